import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type LlamaServer, startLlama } from '../engines/llama.ts';
import { chatModel, encoderModel } from '../engines/models.ts';
import { type Fault, type RecordingProxy, startProxy } from '../engines/proxy.ts';
import { describeWithLlama } from '../engines/suite.ts';
import {
  type Agent,
  admin,
  type ControlPlane,
  removeTemporaryFolders,
  startAgent,
  startControlPlane,
} from '../support/processes.ts';

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly code: string | undefined;
  readonly message: string;
}

/** Each fault comes in through real processes; afterwards an ordinary request must be answered as before. */
await describeWithLlama('whatever comes in', () => {
  let encoder: LlamaServer;
  let chat: LlamaServer;
  let encoderProxy: RecordingProxy;
  let chatProxy: RecordingProxy;
  let agent: Agent;
  let plane: ControlPlane;
  let operator: ReturnType<typeof admin>;

  const send = async (route: string, body: unknown): Promise<Answer> => {
    const response = await fetch(`${plane.endpoint}${route}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${plane.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    const error = text.startsWith('{')
      ? ((JSON.parse(text) as { error?: { code?: string; message?: string } }).error ?? {})
      : {};
    return { status: response.status, text, code: error.code, message: error.message ?? '' };
  };
  const embed = (input: unknown) => send('/v1/embeddings', { model: 'embedding', input });
  const talk = (stream: boolean) =>
    send('/v1/chat/completions', {
      model: 'code-assistant',
      messages: [{ role: 'user', content: 'recite' }],
      max_tokens: 40,
      stream,
    });
  const ready = (role: string) =>
    vi.waitUntil(
      async () => {
        const { providers } = await operator.get<{ providers: { state: string }[] }>(`providers?role=${role}`);
        return providers.some(({ state }) => state === 'ready');
      },
      { timeout: 60_000, interval: 100 },
    );

  beforeAll(async () => {
    [encoder, chat] = await Promise.all([
      startLlama({ model: encoderModel(), args: ['--embeddings'] }),
      startLlama({ model: chatModel(), args: ['-np', '2'] }),
    ]);
    [encoderProxy, chatProxy] = [await startProxy(encoder.url), await startProxy(chat.url)];
    agent = await startAgent({ engines: [encoderProxy.url, chatProxy.url] });
    plane = await startControlPlane();
    operator = admin(plane, plane.adminToken);
    await operator.post('nodes', { address: agent.listen, joinCode: agent.joinCode });
    await ready('embedding');
    await ready('code-assistant');
    await operator.patch('settings', { timeouts: { firstByteMs: 2000, betweenTokensMs: 2000 } });
  });

  afterAll(async () => {
    await plane?.stop();
    await agent?.stop();
    for (const each of [encoderProxy, chatProxy, encoder, chat]) await each?.stop();
    removeTemporaryFolders();
  });

  /** Runs a request under a fault and then an ordinary one, which must succeed: nothing else is disturbed. */
  async function under(
    proxy: RecordingProxy,
    fault: Fault,
    request: () => Promise<Answer>,
    times = 100,
  ): Promise<Answer> {
    const clear = proxy.inject(fault, { times });
    const answer = await request();
    clear();
    return answer;
  }
  const recovers = async (request: () => Promise<Answer>) => {
    await vi.waitUntil(async () => (await request()).status === 200, { timeout: 60_000, interval: 500 });
  };

  it('an over-long text is refused with its index, its tokens and the limit, whatever the engine would say', async () => {
    const answer = await embed(['short', 'word '.repeat(3000)]);
    expect(answer).toMatchObject({ status: 400, code: 'input_too_long' });
    expect(JSON.parse(answer.text).error.inputs[0]).toMatchObject({ index: 1, limit: expect.any(Number) });
    expect((await embed(['short'])).status).toBe(200);
  });

  it('with truncate the same text is cut once and embedded', async () => {
    expect(
      (await send('/v1/embeddings', { model: 'embedding', input: ['word '.repeat(3000)], truncate: true })).status,
    ).toBe(200);
  });

  for (const spoil of ['nan', 'width', 'count', 'zero'] as const) {
    it(`vectors with ${spoil} wrong reach no client`, async () => {
      const answer = await under(encoderProxy, { kind: 'vectors', spoil }, () => embed(['a text', 'another']));
      expect(answer.status).toBeGreaterThanOrEqual(500);
      expect(['engine_invalid_response', 'no_provider', 'engine_error', 'queue_timeout']).toContain(answer.code);
      expect(answer.message.length).toBeGreaterThan(20);
      await recovers(() => embed(['afterwards']));
    });
  }

  it('a 200 with an error object is no vector and no answer', async () => {
    expect(
      (await under(encoderProxy, { kind: 'error-in-200' }, () => embed(['a text']))).status,
    ).toBeGreaterThanOrEqual(500);
    await recovers(() => embed(['afterwards']));
    expect((await under(chatProxy, { kind: 'error-in-200' }, () => talk(false))).status).toBeGreaterThanOrEqual(500);
    await recovers(() => talk(false));
  });

  it("the engine's own 500 for an over-long input is the caller's fault and parks nobody", async () => {
    const answer = await under(encoderProxy, { kind: 'over-long' }, () => embed(['a text']));
    expect(answer.status).toBe(400);
    expect(answer.code).toBe('input_too_long');
    expect((await embed(['afterwards'])).status).toBe(200);
  });

  it('an engine that hangs is given up in time', async () => {
    const answer = await under(chatProxy, { kind: 'hang' }, () => talk(false));
    expect(answer.status).toBeGreaterThanOrEqual(500);
    expect(answer.message.length).toBeGreaterThan(20);
    await recovers(() => talk(false));
  });

  it('an engine that dies mid-stream ends the stream with an error event and without success', async () => {
    const answer = await under(chatProxy, { kind: 'die-after', bytes: 600 }, () => talk(true));
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('"error"');
    expect(answer.text).toContain('stream_interrupted');
    expect(answer.text).not.toContain('[DONE]');
    await recovers(() => talk(true));
  });

  it('an error event inside a stream is passed on as ours, and a [DONE] behind it is no success', async () => {
    for (const done of [true, false]) {
      const answer = await under(chatProxy, { kind: 'error-after', events: 3, done }, () => talk(true));
      expect(answer.text).toContain('"error"');
      expect(answer.text).not.toContain('[DONE]');
      expect(answer.text).not.toContain('something in the engine broke');
      await recovers(() => talk(true));
    }
  });

  it('a stream that ends in peace without a finish reason has failed', async () => {
    const answer = await under(chatProxy, { kind: 'end-after', events: 3 }, () => talk(true));
    expect(answer.text).toContain('"error"');
    expect(answer.text).not.toContain('[DONE]');
    await recovers(() => talk(true));
  });

  it('an unknown model is 404 and lists what exists', async () => {
    const answer = await send('/v1/chat/completions', { model: 'nobody', messages: [{ role: 'user', content: 'x' }] });
    expect(answer).toMatchObject({ status: 404, code: 'model_not_found' });
    expect(answer.message).toContain('code-assistant');
  });

  it('a wrong or used join code, a bad address and a silent port are told apart', async () => {
    const add = (address: string, joinCode: string) =>
      operator.post('nodes', { address, joinCode }).then(
        () => 'paired',
        (error: { code: string }) => error.code,
      );
    expect(await add(agent.listen, agent.joinCode)).toBe('join_refused'); // used by this very test's pairing
    expect(await add(agent.listen, '0000-0000-0000-0000')).toBe('join_refused');
    expect(await add(agent.listen, 'nonsense')).toBe('invalid_join_code');
    expect(await add('no host:99999', agent.joinCode)).toBe('invalid_address');
    expect(await add('127.0.0.1:1', '0000-0000-0000-0000')).toBe('node_unreachable');
    expect((await embed(['still paired'])).status).toBe(200);
  });

  it('SIGKILL of the control plane loses no node, no space and no key: it serves again within two seconds of its start', async () => {
    const { dataDir, apiKey } = plane;
    const before = await embed(['the same text']);
    plane.kill('SIGKILL');
    await plane.gone;
    plane = { ...(await startControlPlane({ dataDir })), apiKey };
    const from = performance.now();
    let again = await embed(['the same text']);
    while (again.status !== 200 && performance.now() - from < 30_000) {
      await wait(50);
      again = await embed(['the same text']);
    }
    expect(again.text).toBe(before.text);
  });

  it('SIGKILL of the agent makes its node not ready, and it is back when a new process listens there', async () => {
    const { dataDir, listen } = agent;
    agent.kill('SIGKILL');
    await agent.gone;
    const state = async () => {
      const response = await fetch(`${plane.endpoint}/readyz`);
      return response.status;
    };
    expect(await state()).toBeLessThan(600);
    expect((await talk(false)).status).toBeGreaterThanOrEqual(500);
    agent = await startAgent({ dataDir, engines: [encoderProxy.url, chatProxy.url], args: ['--listen', listen] });
    await recovers(() => talk(false));
    await recovers(() => embed(['back']));
  });
});
