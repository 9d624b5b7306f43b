import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type PacedProcess, startPacedProcess } from '../engines/paced-process.ts';
import { type Agent, admin, removeTemporaryFolders, startAgent, startControlPlane } from '../support/processes.ts';
import { Yard } from './fleet.ts';

const run = promisify(execFile);

describe('two control planes that share an agent', () => {
  let engine: PacedProcess;
  let agent: Agent;
  let first: Yard;
  let second: Yard;

  beforeAll(async () => {
    engine = await startPacedProcess({ task: 'chat', slots: 2, rate: 50, answerTokens: 10 });
    agent = await startAgent({ name: 'shared', engines: [engine.url] });
    first = new Yard(await startControlPlane());
    second = new Yard(await startControlPlane());
    await first.pair(agent);
    const entry = new URL('../../agent/index.ts', import.meta.url).pathname;
    const { stdout } = await run(process.execPath, [entry, 'code', '--new', '--json', '--data-dir', agent.dataDir]);
    const { joinCode } = JSON.parse(stdout) as { joinCode: string };
    await vi.waitUntil(
      () =>
        second.operator.post('nodes', { address: agent.listen, joinCode }).then(
          () => true,
          () => false, // the running agent reads what the other process wrote a moment later
        ),
      { timeout: 10_000, interval: 500 },
    );
    await first.ready('code-assistant', 1);
    await second.ready('code-assistant', 1);
  });

  afterAll(async () => {
    await first?.stop();
    await second?.stop();
    await agent?.stop();
    await engine?.stop();
    removeTemporaryFolders();
  });

  const chat = (yard: Yard, more: object = {}) =>
    yard
      .post('/v1/chat/completions', { model: 'code-assistant', messages: [{ role: 'user', content: 'x' }], ...more })
      .then(async (response) => ({ status: response.status, text: await response.text() }));

  it('the engine never sees more than its slots, and everybody is answered in the end', async () => {
    await engine.forget();
    const answers = await Promise.all(
      [first, second].flatMap((yard) => Array.from({ length: 8 }, () => chat(yard, { stream: true }))),
    );
    const refused = answers.filter(({ status }) => status !== 200);
    // A plane that is turned away three times says so with 503 and Retry-After; nobody hangs and nothing is lost.
    for (const { status, text } of refused)
      expect([status, text]).toEqual([503, expect.stringContaining('engine_busy')]);
    const { chats } = await engine.counts();
    expect(chats.most).toBeLessThanOrEqual(2);
    expect(chats.completed).toBe(answers.length - refused.length);
    expect(chats.completed).toBeGreaterThanOrEqual(10);
  });

  it("shows the other's calls as load that is not its own", async () => {
    await engine.setRate(5);
    const long = [chat(first, { max_tokens: 20 }), chat(first, { max_tokens: 20 })];
    await vi.waitUntil(
      async () => {
        const [row] = await second.providers('code-assistant');
        return row?.state === 'busy' && row.running === 0;
      },
      { timeout: 10_000, interval: 100 },
    );
    await engine.setRate(Number.POSITIVE_INFINITY);
    for (const { status } of await Promise.all(long)) expect(status).toBe(200);
    await second.ready('code-assistant', 1);
  });

  it('one that is revoked is out at once; the other goes on', async () => {
    const [id] = (await admin(first.plane, first.plane.adminToken).get<{ nodes: { id: string }[] }>('nodes')).nodes.map(
      (node) => node.id,
    );
    await first.operator.delete(`nodes/${id}`);
    expect((await chat(second)).status).toBe(200);
    expect((await chat(first)).status).toBe(503);
  });
});

describe('which machine a chat goes to', () => {
  let yard: Yard;
  const engines: PacedProcess[] = [];

  beforeAll(async () => {
    yard = await Yard.start();
    for (const [name, rate] of [
      ['fast', 200],
      ['slow', 20],
    ] as const) {
      const engine = await startPacedProcess({ task: 'chat', slots: 4, rate, answerTokens: 10 });
      engines.push(engine);
      await yard.add(name, [engine.url]);
    }
    await yard.ready('code-assistant', 2);
  });

  afterAll(async () => {
    await yard?.stop();
    for (const engine of engines) await engine.stop();
    removeTemporaryFolders();
  });

  async function chat(content: string, later: readonly string[] = []): Promise<string> {
    const messages = [content, ...later].map((text) => ({ role: 'user', content: text }));
    const response = await yard.post('/v1/chat/completions', { model: 'code-assistant', messages });
    expect(response.status).toBe(200);
    await response.arrayBuffer();
    return response.headers.get('x-switchyard-provider') ?? '';
  }

  it('a conversation stays where it began, whatever the others do meanwhile', async () => {
    const conversations = ['alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta'];
    const begun = new Map<string, string>();
    for (const name of conversations) begun.set(name, await chat(`I am ${name}`));
    expect(new Set(begun.values()).size).toBe(2); // both machines got some
    for (let round = 0; round < 3; round += 1) {
      for (const name of conversations) {
        const turns = Array.from({ length: round + 1 }, (_, at) => `turn ${at}`);
        expect(await chat(`I am ${name}`, turns)).toBe(begun.get(name));
      }
    }
  });

  it('below the speed floor of its role a machine gets nothing, conversations included', async () => {
    await yard.operator.patch('roles/code-assistant', { minTokensPerSecond: 60 });
    // The speeds come with the next heartbeat.
    await vi.waitUntil(
      async () => (await yard.providers('code-assistant')).filter(({ state }) => state === 'ineligible').length === 1,
      { timeout: 15_000, interval: 200 },
    );
    const served = new Set<string>();
    for (let at = 0; at < 12; at += 1) served.add(await chat(`question ${at % 6}`));
    expect([...served]).toHaveLength(1);
    const rows = await yard.providers('code-assistant');
    expect(rows.find(({ id }) => served.has(id))?.nodeName).toBe('fast');
    await yard.operator.patch('roles/code-assistant', { minTokensPerSecond: null });
  });

  describe('tokens', () => {
    interface Usage {
      readonly rows: readonly {
        readonly promptTokens: number;
        readonly completionTokens: number;
        readonly requests: number;
      }[];
    }
    const booked = async () => {
      const { rows } = await yard.operator.get<Usage>('usage?by=role&days=1');
      const sum = (of: (row: Usage['rows'][number]) => number) => rows.reduce((total, row) => total + of(row), 0);
      return { prompt: sum((row) => row.promptTokens), completion: sum((row) => row.completionTokens) };
    };

    for (const { include, name } of [
      { include: undefined, name: 'a stream that did not ask for usage shows none' },
      { include: true, name: 'a stream that asked shows it once' },
      { include: false, name: 'a stream that declined shows none' },
    ]) {
      it(`${name}, and is booked to the token`, async () => {
        const before = await booked();
        const response = await yard.post('/v1/chat/completions', {
          model: 'code-assistant',
          messages: [{ role: 'user', content: 'count me' }],
          max_tokens: 9,
          stream: true,
          ...(include === undefined ? {} : { stream_options: { include_usage: include } }),
        });
        const text = await response.text();
        expect(text.match(/"usage":\{/g) ?? []).toHaveLength(include ? 1 : 0);
        expect(text).toContain('[DONE]');
        // The engine counts 7 prompt tokens and writes the 9 that were asked for. The store writes a moment later.
        await expect.poll(booked).toEqual({ prompt: before.prompt + 7, completion: before.completion + 9 });
      });
    }
  });
});
