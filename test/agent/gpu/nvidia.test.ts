import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { createAgentClock } from '../../../agent/clock.ts';
import { NvidiaSource, parseNvidiaLine } from '../../../agent/gpu/nvidia.ts';
import { SimClock } from '../../gate/sim-clock.ts';
import { FakeTool } from './fake-tool.ts';

const fixture = (name: string) => readFileSync(new URL(`./fixtures/${name}`, import.meta.url), 'utf8');
const linesOf = (name: string) => fixture(name).trim().split('\n');
const MIB = 1024 * 1024;

describe('a line of nvidia-smi', () => {
  it('gives every card its values, in bytes, degrees and watts', () => {
    const [first, second] = linesOf('nvidia-two-cards.csv').map(parseNvidiaLine);
    expect(second).toEqual({
      vendor: 'nvidia',
      number: 1,
      uuid: 'GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9',
      pci: '41:00.0',
      name: 'NVIDIA GeForce RTX 3090',
      utilisationPercent: 97,
      memoryUsedBytes: 22_310 * MIB,
      memoryTotalBytes: 24_576 * MIB,
      temperatureC: 71,
      powerW: 348.12,
    });
    expect(first?.number).toBe(0);
  });

  it('of an idle card says 0 %, which is not "unknown"', () => {
    expect(parseNvidiaLine(linesOf('nvidia-two-cards.csv')[0] ?? '')?.utilisationPercent).toBe(0);
  });

  it('leaves unknown whatever the tool says in words, and nothing else', () => {
    const [unified, laptop, broken] = linesOf('nvidia-unknowns.csv').map(parseNvidiaLine);
    expect(unified).toMatchObject({ utilisationPercent: 12, memoryUsedBytes: null, memoryTotalBytes: null });
    expect(unified).toMatchObject({ temperatureC: 51, powerW: 9.63 });
    expect(laptop).toMatchObject({ utilisationPercent: null, memoryUsedBytes: 14 * MIB, powerW: null });
    expect(broken).toMatchObject({ utilisationPercent: null, memoryUsedBytes: 0, temperatureC: null, powerW: null });
  });

  it('that is an error message is no card', () => {
    expect(linesOf('nvidia-failed.txt').map(parseNvidiaLine)).toEqual([null, null, null, null, null]);
  });
});

describe('the source', () => {
  const stops: (() => void)[] = [];
  afterEach(() => {
    for (const stop of stops.splice(0)) stop();
  });

  function source() {
    const clock = new SimClock();
    const tools: FakeTool[] = [];
    const gpus = new NvidiaSource({
      clock,
      environment: {},
      startTool: () => {
        const tool = new FakeTool();
        tools.push(tool);
        return tool.child;
      },
    });
    gpus.start();
    stops.push(() => gpus.stop());
    return { clock, tools, gpus };
  }
  const sample = fixture('nvidia-two-cards.csv');

  it('shows both cards of one long-lived tool, also when a line comes in pieces', () => {
    const { tools, gpus } = source();
    expect(gpus.latest()).toEqual([]);
    for (const piece of sample.match(/[\s\S]{1,7}/g) ?? []) tools[0]?.write(piece);
    expect(gpus.latest().map(({ number, utilisationPercent }) => [number, utilisationPercent])).toEqual([
      [0, 0],
      [1, 97],
    ]);
    expect(tools).toHaveLength(1);
  });

  it('keeps the cards but not their values when the tool has fallen silent', async () => {
    const { clock, tools, gpus } = source();
    tools[0]?.write(sample);
    await clock.advance(7_000);
    expect(gpus.latest()).toMatchObject([
      {
        name: 'NVIDIA GeForce RTX 4090',
        utilisationPercent: null,
        memoryUsedBytes: null,
        memoryTotalBytes: 24_564 * MIB,
      },
      { utilisationPercent: null, temperatureC: null, powerW: null },
    ]);
  });

  it('starts the tool anew with growing waits when it ends: 5 s, 10 s, 20 s', async () => {
    const { clock, tools } = source();
    for (const [wait, count] of [
      [5_000, 2],
      [10_000, 3],
      [20_000, 4],
    ] as const) {
      tools.at(-1)?.end();
      await clock.advance(wait - 1);
      expect(tools).toHaveLength(count - 1);
      await clock.advance(1);
      expect(tools).toHaveLength(count);
    }
  });

  it('kills a tool that hangs', async () => {
    const { clock, tools } = source();
    tools[0]?.write(sample);
    await clock.advance(29_999);
    expect(tools[0]?.killed).toBe(false);
    await clock.advance(1);
    expect(tools[0]?.killed).toBe(true);
  });

  it('drops a card that the tool no longer lists', async () => {
    const { clock, tools, gpus } = source();
    tools[0]?.write(sample);
    const [first = ''] = sample.split('\n');
    for (let i = 0; i < 31; i++) {
      await clock.advance(2_000);
      tools[0]?.write(`${first}\n`);
    }
    expect(gpus.latest().map(({ number }) => number)).toEqual([0]);
  });

  it('reads a real process, and ends it', async () => {
    const line = linesOf('nvidia-two-cards.csv')[0] ?? '';
    const script = `setInterval(() => console.log(${JSON.stringify(line)}), 20)`;
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] });
    const gone = new Promise((resolve) => child.once('exit', resolve));
    const gpus = new NvidiaSource({ clock: createAgentClock(), environment: {}, startTool: () => child });
    gpus.start();
    await expect.poll(() => gpus.latest().length).toBe(1);
    gpus.stop();
    await gone;
    expect(child.signalCode).toBe('SIGTERM');
  });
});
