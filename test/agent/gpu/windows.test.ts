import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseWindowsSample, WindowsSource } from '../../../agent/gpu/windows.ts';
import { SimClock } from '../../gate/sim-clock.ts';
import { FakeTool } from './fake-tool.ts';

const sample = readFileSync(new URL('./fixtures/windows-sample.tsv', import.meta.url), 'utf8');
const lines = sample.trim().split('\n');

describe("a sample of Windows' counters", () => {
  it('shows a card as busy as its busiest engine, all processes on that engine together', () => {
    // Compute: 61 + 20.5. Two copy engines of 30 and 60 are two engines, not one of 90.
    expect(parseWindowsSample(lines)[0]).toEqual({
      vendor: 'amd',
      number: null,
      pci: null,
      uuid: null,
      name: 'AMD Radeon RX 7800 XT',
      utilisationPercent: 81.5,
      memoryUsedBytes: 9_663_676_416,
      memoryTotalBytes: 17_095_983_104,
      temperatureC: null,
      powerW: null,
    });
  });

  it('shows a GPU without busy engines at 0 %, with the memory it shares', () => {
    expect(parseWindowsSample(lines)[1]).toMatchObject({
      vendor: 'intel',
      utilisationPercent: 0,
      memoryUsedBytes: 536_870_912,
      memoryTotalBytes: 134_217_728 + 16_961_765_376,
    });
  });

  it('leaves out what draws in software', () => {
    expect(parseWindowsSample(lines)).toHaveLength(2);
  });

  it('without the engine counters knows no load', () => {
    const without = lines.filter((line) => !line.startsWith('engine'));
    expect(parseWindowsSample(without).map(({ utilisationPercent }) => utilisationPercent)).toEqual([null, null]);
  });

  it('of an adapter that the counters do not know gives its name alone', () => {
    const without = lines.filter((line) => !line.startsWith('memory'));
    expect(parseWindowsSample(without)[1]).toMatchObject({ utilisationPercent: null, memoryUsedBytes: null });
  });
});

describe('the source', () => {
  it('takes over a sample when it is whole, and forgets its values after 10 s of silence', async () => {
    const clock = new SimClock();
    const tool = new FakeTool();
    const gpus = new WindowsSource({ clock, environment: {}, startTool: () => tool.child });
    gpus.start();
    tool.write(sample.replaceAll('\n', '\r\n'));
    expect(gpus.latest()).toEqual([]);
    tool.write('end\r\n');
    expect(gpus.latest()).toHaveLength(2);
    await clock.advance(10_001);
    expect(gpus.latest()).toMatchObject([
      { name: 'AMD Radeon RX 7800 XT', utilisationPercent: null, memoryUsedBytes: null },
      { utilisationPercent: null },
    ]);
    gpus.stop();
  });
});
