import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ControlPlane } from '../../main/control-plane.ts';
import { noDiscovery } from '../../main/discovery/lan-discovery.ts';
import { createSystemClock } from '../../main/platform/clock.ts';
import type { Output } from '../../preload/contract.ts';
import { type PacedProcess, startPacedProcess } from '../engines/paced-process.ts';
import { type Agent, removeTemporaryFolders, startAgent, temporaryFolder } from '../support/processes.ts';

/** The control plane in this process, so that its power hook can be called and its wall clock moved; the agent is real. */
describe('the computer slept', () => {
  let engine: PacedProcess;
  let agent: Agent;
  let plane: ControlPlane;
  let endpoint: string;
  let apiKey: string;
  /** What sleep added to the wall clock: the monotonic one stood still meanwhile, as on Linux. */
  let sleptMs = 0;

  beforeAll(async () => {
    engine = await startPacedProcess({ task: 'chat', slots: 2, rate: 20, answerTokens: 10 });
    agent = await startAgent({ name: 'box', engines: [engine.url] });
    const system = createSystemClock();
    plane = new ControlPlane({
      clock: { ...system, wallMs: () => system.wallMs() + sleptMs },
      random: Math.random,
      randomBytes,
      version: '0.0.0-test',
      shell: 'headless',
      dataFolder: temporaryFolder('wake'),
      storeWorker: new URL('../../main/store/worker.ts', import.meta.url),
      vaultKeys: {},
      port: 0,
      embeddedAgent: null,
      consoleFiles: new Map(),
      discovery: noDiscovery,
    });
    const started = await plane.start();
    endpoint = started.endpoint;
    apiKey = started.secrets.apiKey ?? '';
    await plane.call('nodes.add', { address: agent.listen, joinCode: agent.joinCode });
    await ready();
  });

  afterAll(async () => {
    await plane?.stop();
    await agent?.stop();
    await engine?.stop();
    removeTemporaryFolders();
  });

  const state = async () => ((await plane.call('nodes.list', {})) as Output<'nodes.list'>).nodes[0]?.state;
  const ready = () => vi.waitUntil(async () => (await state()) === 'ready', { timeout: 20_000, interval: 20 });
  const chat = () =>
    fetch(`${endpoint}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'code-assistant', messages: [{ role: 'user', content: 'x' }] }),
    }).then(async (response) => ({ status: response.status, text: await response.text() }));
  /** Requests whose latency is in the histogram. */
  async function measured(): Promise<number> {
    const text = await (await fetch(`${endpoint}/metrics`)).text();
    const counts = [...text.matchAll(/^switchyard_request_duration_seconds_count\{[^}]*\} (\d+)/gm)];
    return counts.reduce((sum, [, count]) => sum + Number(count), 0);
  }

  it('told by the system: the machine is unknown at once, then ready again in a session made anew', async () => {
    plane.onPower('suspend');
    expect(await state()).toBe('ready');
    plane.onPower('resume');
    expect(await state()).toBe('unknown');
    await ready();
    expect((await chat()).status).toBe(200);
  });

  it('a request that ran across the sleep is answered, and its time is in no latency', async () => {
    const before = await measured();
    await engine.forget();
    const answer = chat();
    await vi.waitUntil(async () => (await engine.counts()).chats.begun === 1, { timeout: 10_000, interval: 10 });
    plane.onPower('resume');
    expect((await answer).status).toBe(200);
    expect(await measured()).toBe(before);
    expect((await chat()).status).toBe(200);
    expect(await measured()).toBe(before + 1);
  });

  it('told by nobody: a wall clock that jumped by more than 10 s is the same', async () => {
    sleptMs += 3_600_000;
    await vi.waitUntil(async () => (await state()) === 'unknown', { timeout: 5000, interval: 5 });
    await ready();
    expect((await chat()).status).toBe(200);
  });
});
