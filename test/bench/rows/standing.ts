import { load } from '../load.ts';
import { pair, ready, startAgent, startPlane, startStub } from '../processes.ts';
import { type Figure, median, type Row } from '../report.ts';
import { CHAT_BODY, chatRig } from './chat.ts';

const MIB = 1024 * 1024;
const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Without the probe of the event loop: it would weigh in. */
export const memory: Row = {
  name: 'memory',
  async run({ quick }) {
    const stub = await startStub('chat');
    const agent = await startAgent([stub.url], false);
    const plane = await startPlane({ probed: false });
    await pair(plane, agent);
    await ready(plane, 'code-assistant', 1);
    await rest(quick ? 10_000 : 60_000);
    const figures: Figure[] = [
      { name: 'control plane, idle, headless', value: plane.rssBytes() / MIB, unit: 'MiB', goal: ['<=', 150] },
      {
        name: 'agent, idle, built-in encoder not loaded',
        value: agent.rssBytes() / MIB,
        unit: 'MiB',
        goal: ['<=', 80],
      },
    ];
    await plane.stop();
    await agent.stop();
    await stub.stop();
    return figures;
  },
};

/**
 * Resident memory wanders with the garbage collector: of 30 minutes the means of the 10th to the 15th and of the last five are
 * compared. `SWITCHYARD_BENCH_SOAK_MINUTES` runs fewer, in the same proportion, and then says so: what grows slowly shows less.
 */
export const soak: Row = {
  name: 'memory over 30 min',
  long: true,
  async run() {
    const rig = await chatRig();
    const samples = { plane: [] as number[], agent: [] as number[] };
    const minutes = Number(process.env.SWITCHYARD_BENCH_SOAK_MINUTES ?? 30);
    for (let minute = 0; minute < minutes; minute += 1) {
      await load({ kind: 'open', target: rig.ours(CHAT_BODY), perSecond: 200, seconds: 60 });
      samples.plane.push(rig.plane.rssBytes());
      samples.agent.push(rig.agent.rssBytes());
    }
    await rig.stop();
    const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    const sixth = Math.max(1, Math.floor(minutes / 6));
    const growth = (values: readonly number[]) =>
      100 * (mean(values.slice(-sixth)) / mean(values.slice(2 * sixth, 3 * sixth)) - 1);
    const note = minutes === 30 ? {} : { note: `over ${minutes} min only` };
    return [
      { name: 'control plane grows', value: growth(samples.plane), unit: '%', goal: ['<=', 5], ...note },
      { name: 'agent grows', value: growth(samples.agent), unit: '%', goal: ['<=', 5], ...note },
      { name: 'control plane at the end', value: (samples.plane.at(-1) ?? 0) / MIB, unit: 'MiB', goal: null },
      { name: 'agent at the end', value: (samples.agent.at(-1) ?? 0) / MIB, unit: 'MiB', goal: null },
    ];
  },
};

export const start: Row = {
  name: 'start',
  async run({ quick }) {
    const stub = await startStub('chat');
    const agent = await startAgent([stub.url], false);
    const rounds = quick ? 3 : 7;
    const first: number[] = [];
    const again: number[] = [];
    const served: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const fresh = await startPlane({ probed: false });
      first.push(fresh.readyMs);
      await fresh.stop();
    }
    let plane = await startPlane({ probed: false });
    const { apiKey, dataDir } = plane;
    await pair(plane, agent);
    await ready(plane, 'code-assistant', 1);
    for (let round = 0; round < rounds; round += 1) {
      plane.kill('SIGKILL');
      await rest(200);
      const began = performance.now();
      plane = await startPlane({ dataDir, probed: false });
      again.push(plane.readyMs);
      const answer = await fetch(`${plane.endpoint}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        body: CHAT_BODY,
      });
      await answer.arrayBuffer();
      served.push(answer.ok ? performance.now() - began : Number.NaN);
    }
    await plane.stop();
    await agent.stop();
    await stub.stop();
    return [
      { name: 'headless ready, empty data folder', value: median(first), unit: 'ms', goal: ['<=', 1000] },
      { name: 'ready again after SIGKILL', value: median(again), unit: 'ms', goal: ['<=', 2000] },
      { name: 'first chat answered after SIGKILL', value: median(served), unit: 'ms', goal: ['<=', 2000] },
    ];
  },
};
