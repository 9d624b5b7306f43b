import { EventEmitter } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { createAgentClock } from '../../../agent/clock.ts';
import { findProgram } from '../../../agent/gpu/find-program.ts';
import { readInventory, startInventory, takeInventory } from '../../../agent/gpu/inventory.ts';
import { joinReadings, MachineGpus } from '../../../agent/gpu/machine.ts';
import type { GpuReading } from '../../../agent/gpu/source.ts';
import { GpuReport } from '../../../agent/wire/control.ts';
import { SimClock } from '../../gate/sim-clock.ts';

const reading = (parts: Partial<GpuReading>): GpuReading => ({
  vendor: 'nvidia',
  number: null,
  pci: null,
  uuid: null,
  name: null,
  utilisationPercent: null,
  memoryUsedBytes: null,
  memoryTotalBytes: null,
  temperatureC: null,
  powerW: null,
  ...parts,
});

describe('the GPUs of a machine', () => {
  it('are all of them, NVIDIA under the numbers of its tool and the others behind', () => {
    const nvidia = [reading({ number: 0, name: 'A' }), reading({ number: 2, name: 'C' })];
    const amd = [reading({ vendor: 'amd', name: 'D', utilisationPercent: 0 })];
    const gpus = joinReadings([nvidia, amd], []);
    expect(gpus.map(({ index, name }) => [index, name])).toEqual([
      [0, 'A'],
      [2, 'C'],
      [3, 'D'],
    ]);
    expect(gpus[2]?.utilisationPercent).toBe(0);
    for (const gpu of gpus) expect(GpuReport.parse(gpu)).toEqual(gpu);
  });

  it('are taken once each where two sources see the same maker', () => {
    const counters = [reading({ name: 'by counters' }), reading({ vendor: 'intel', name: 'UHD' })];
    expect(joinReadings([[reading({ number: 0, name: 'by tool' })], counters], []).map(({ name }) => name)).toEqual([
      'by tool',
      'UHD',
    ]);
  });

  it('that only the inventory knows are shown with unknown values, and it names cards that have no name', () => {
    const inventory = readInventory({
      controllers: [
        { vendor: 'Intel Corporation', model: 'Arc A770', busAddress: '05:00.0' },
        { vendor: 'Advanced Micro Devices, Inc. [AMD/ATI]', model: 'Navi 32 [RX 7800 XT]', busAddress: '03:00.0' },
        { vendor: 'Red Hat, Inc.', model: 'Virtio 1.0 GPU', busAddress: '00:01.0' },
      ],
    });
    const gpus = joinReadings([[], [reading({ vendor: 'amd', pci: '03:00.0', utilisationPercent: 5 })]], inventory);
    expect(gpus).toMatchObject([
      { index: 0, name: 'Navi 32 [RX 7800 XT]', utilisationPercent: 5 },
      { index: 1, name: 'Arc A770', utilisationPercent: null, memoryTotalBytes: null },
    ]);
  });

  it('are told without waiting for the inventory, which is asked once', async () => {
    const clock = new SimClock();
    let asked = 0;
    const child = Object.assign(new EventEmitter(), { kill: () => true });
    const source = { start: () => {}, stop: () => {}, latest: () => [] };
    const gpus = new MachineGpus({
      clock,
      sources: [source],
      startInventory: () => {
        asked += 1;
        return child as never;
      },
    });
    gpus.start();
    expect(gpus.latest()).toEqual([]);
    expect(asked).toBe(0);
    await clock.advance(60_000);
    expect(asked).toBe(1);
    child.emit('message', { controllers: [{ vendor: 'Intel Corporation', model: 'UHD' }] });
    expect(gpus.latest()).toMatchObject([{ name: 'UHD' }]);
    gpus.stop();
  });
});

describe('the inventory', () => {
  it('comes from a process of its own and is a list on any machine', async () => {
    const found = await new Promise((resolve) => {
      takeInventory(createAgentClock(), startInventory, resolve);
    });
    expect(Array.isArray(found)).toBe(true);
  });

  it('of an unexpected shape is empty', () => {
    for (const wrong of [null, 'x', { controllers: 'x' }, { controllers: [3] }])
      expect(readInventory(wrong)).toEqual([]);
    expect(readInventory({ controllers: [{ vendor: 7, model: 'Intel UHD' }] })).toEqual([
      { vendor: 'intel', name: 'Intel UHD', pci: null },
    ]);
  });
});

describe('a program', () => {
  it("is found on PATH first, then in its maker's folder, and never in the working folder", async () => {
    const root = await mkdtemp(path.join(tmpdir(), 'switchyard-path-'));
    const [first, maker] = [path.join(root, 'first'), path.join(root, 'maker')];
    for (const folder of [first, maker]) {
      await mkdir(folder);
      await writeFile(path.join(folder, 'tool'), '#!/bin/sh\n');
      await chmod(path.join(folder, 'tool'), 0o755);
    }
    await mkdir(path.join(root, 'folder', 'tool'), { recursive: true });
    expect(findProgram('tool', [maker], { PATH: `${path.join(root, 'folder')}:${first}` }, 'linux')).toBe(
      path.join(first, 'tool'),
    );
    expect(findProgram('tool', [maker], { PATH: ':.:bin' }, 'linux')).toBe(path.join(maker, 'tool'));
    expect(findProgram('tool', [], {}, 'linux')).toBeNull();
    await rm(root, { recursive: true });
  });
});
