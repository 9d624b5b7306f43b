import { afterEach, describe, expect, it, vi } from 'vitest';
import { type PacedProcess, startPacedProcess } from '../engines/paced-process.ts';
import { NetworkProxy } from '../session/proxy.ts';
import { type Agent, removeTemporaryFolders, startAgent } from '../support/processes.ts';
import { Yard } from './fleet.ts';

const CHATS = 24;
const SLOTS = 2;
const TOKENS = 20;
const TOKENS_PER_S = 50;
/**
 * On top of 1.2 x one machine's time: the seconds until silence is found out (3 s for an agent, up to 5.5 s for an engine) count
 * against a flood that one machine does in about five, and this machine may be busy with other things.
 */
const SLACK_MS = 4000;

interface Machine {
  readonly engine: PacedProcess;
  readonly agent: Agent;
}

describe('one of two machines fails', { timeout: 180_000 }, () => {
  let yard: Yard | null = null;
  let machines: Machine[] = [];
  let networks: NetworkProxy[] = [];

  afterEach(async () => {
    for (const network of networks) network.release();
    await yard?.stop();
    for (const network of networks) await network.stop();
    for (const { engine } of machines) await engine.stop();
    removeTemporaryFolders();
    [yard, machines, networks] = [null, [], []];
  });

  const here = (): Yard => {
    if (!yard) throw new Error('not started');
    return yard;
  };
  const engine = () => startPacedProcess({ task: 'chat', slots: SLOTS, rate: TOKENS_PER_S, answerTokens: TOKENS });

  async function start(): Promise<void> {
    yard = await Yard.start();
    for (const name of ['lively', 'failing']) {
      const each = await engine();
      machines.push({ engine: each, agent: await yard.add(name, [each.url]) });
    }
    await yard.ready('code-assistant', 2);
  }
  const failing = () => machines[1] as Machine;

  async function chat(at: number, stream: boolean): Promise<string> {
    const body = { model: 'code-assistant', messages: [{ role: 'user', content: `question ${at}` }], stream };
    const response = await here().post('/v1/chat/completions', body);
    const text = await response.text();
    return response.status === 200 && text.includes('"stop"') && !text.includes('"error"') ? 'answered' : text;
  }

  /** Sends all at once, half of them streamed; resolves with the time until the last answer. */
  async function flood(): Promise<number> {
    const from = performance.now();
    const answers = await Promise.all(Array.from({ length: CHATS }, (_, at) => chat(at, at % 2 === 0)));
    expect(answers.filter((answer) => answer !== 'answered')).toEqual([]);
    return performance.now() - from;
  }

  /** What the lively machine needs alone, on this computer at this time. */
  async function singleNodeMs(): Promise<number> {
    const { id } = await here().node('failing');
    await here().operator.post(`nodes/${id}/maintenance`);
    await here().ready('code-assistant', 1);
    const ms = await flood();
    await here().operator.post(`nodes/${id}/resume`);
    await here().ready('code-assistant', 2);
    return ms;
  }

  const stateOf = async (name: string) => (await here().node(name)).state;
  /** Resolves with the time until the machine is in a state. */
  async function becomes(name: string, state: string, timeoutMs: number): Promise<number> {
    const from = performance.now();
    await vi.waitUntil(async () => (await stateOf(name)) === state, { timeout: timeoutMs, interval: 50 });
    return performance.now() - from;
  }

  it('a frozen agent takes no more with it than it had begun, and comes back when it thaws', async () => {
    await start();
    const alone = await singleNodeMs();
    failing().agent.kill('SIGSTOP');
    expect(await flood()).toBeLessThan(1.2 * alone + SLACK_MS);
    await becomes('failing', 'unreachable', 20_000);
    await failing().engine.forget();
    await flood();
    expect((await failing().engine.counts()).chats.begun).toBe(0); // not touched again while it is silent
    failing().agent.kill('SIGCONT');
    await becomes('failing', 'ready', 20_000);
    await here().ready('code-assistant', 2);
    await flood();
    expect((await failing().engine.counts()).chats.completed).toBeGreaterThan(0);
  });

  it('a frozen engine behind a live agent holds nothing, and is used again when it thaws', async () => {
    await start();
    const alone = await singleNodeMs();
    failing().engine.kill('SIGSTOP');
    expect(await flood()).toBeLessThan(1.2 * alone + SLACK_MS);
    const rows = await here().providers('code-assistant');
    expect(rows.find(({ nodeName }) => nodeName === 'failing')?.state).not.toBe('ready');
    expect(await stateOf('failing')).toBe('degraded');
    failing().engine.kill('SIGCONT');
    await here().ready('code-assistant', 2);
  });

  it('an agent that is killed under load is not ready within 15 s, its work is done elsewhere, and a new process takes its place', async () => {
    await start();
    const answers = flood();
    await vi.waitUntil(async () => (await failing().engine.counts()).chats.begun > 0, { timeout: 10_000 });
    failing().agent.kill('SIGKILL');
    expect(await becomes('failing', 'unreachable', 15_000)).toBeLessThan(15_000);
    // What had begun to stream there ends with an error, once; everything else is answered.
    await answers.catch((error: Error) => expect(error.message).toMatch(/stream_interrupted/));
    const { dataDir, listen } = failing().agent;
    const again = await startAgent({
      name: 'failing',
      dataDir,
      engines: [failing().engine.url],
      args: ['--listen', listen],
    });
    here().agents.push(again);
    await becomes('failing', 'ready', 20_000);
    await flood();
  });

  it('a network that swallows everything is noticed by silence: no new work after 3 s, not ready after 15 s, then ready again', async () => {
    yard = await Yard.start();
    const [near, far] = [await engine(), await engine()];
    machines.push({ engine: near, agent: await yard.add('lively', [near.url]) });
    const agent = await startAgent({ name: 'failing', engines: [far.url] });
    yard.agents.push(agent);
    machines.push({ engine: far, agent });
    const network = new NetworkProxy(Number(agent.listen.split(':').at(-1)));
    networks.push(network);
    await yard.pair(agent, `127.0.0.1:${await network.start()}`);
    await yard.ready('code-assistant', 2);
    network.hold();
    const from = performance.now();
    await vi.waitUntil(
      async () => (await here().providers('code-assistant')).some(({ state }) => state === 'ineligible'),
      { timeout: 8000, interval: 50 },
    );
    expect(performance.now() - from).toBeGreaterThan(2500);
    expect(await stateOf('failing')).toBe('ready'); // silent, not given up yet
    await flood();
    await becomes('failing', 'unreachable', 20_000);
    network.release();
    await becomes('failing', 'ready', 20_000);
  });
});
