import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createAgentClock } from '../../../agent/clock.ts';
import { AmdSource, readAmdCard } from '../../../agent/gpu/amd.ts';

const GIB = 1024 ** 3;

describe('an AMD card', () => {
  const card = {
    pci: '0000:03:00.0',
    unique_id: '5c88007dd2d3d3a1',
    mem_info_vram_total: String(16 * GIB),
    mem_info_vram_used: String(9 * GIB),
    mem_info_gtt_total: String(32 * GIB),
    mem_info_gtt_used: String(GIB / 2),
    temp1_input: '54000',
    power1_average: '187000000',
  };

  it('of its own memory shows that memory, degrees and watts, and the mean of two readings', () => {
    expect(readAmdCard(card, ['100', '40'])).toEqual({
      vendor: 'amd',
      number: null,
      pci: '03:00.0',
      uuid: '5c88007dd2d3d3a1',
      name: null,
      utilisationPercent: 70,
      memoryUsedBytes: 9 * GIB,
      memoryTotalBytes: 16 * GIB,
      temperatureC: 54,
      powerW: 187,
    });
  });

  it('that idles is at 0 %, and one that cannot be read is unknown', () => {
    expect(readAmdCard(card, ['0', '0']).utilisationPercent).toBe(0);
    expect(readAmdCard(card, [undefined, '30']).utilisationPercent).toBe(30);
    expect(readAmdCard({}, [undefined, undefined])).toMatchObject({
      utilisationPercent: null,
      memoryUsedBytes: null,
      memoryTotalBytes: null,
      temperatureC: null,
      powerW: null,
    });
  });

  it('without an average of its power shows what it draws now', () => {
    const { power1_average: _, ...now } = card;
    expect(readAmdCard({ ...now, power1_input: '42500000' }, []).powerW).toBe(42.5);
  });

  it('that is part of the processor counts the memory it borrows: 0.5 GiB full, 6 GiB of weights behind it', () => {
    const apu = {
      mem_info_vram_total: String(GIB / 2),
      mem_info_vram_used: String(GIB / 2),
      mem_info_gtt_total: String(15 * GIB),
      mem_info_gtt_used: String(6 * GIB),
    };
    expect(readAmdCard(apu, [])).toMatchObject({ memoryUsedBytes: 6.5 * GIB, memoryTotalBytes: 15.5 * GIB });
  });

  it('that is part of the processor is known by its sensor also when it was given 96 GiB', () => {
    const apu = {
      in1_label: 'vddnb',
      mem_info_vram_total: String(96 * GIB),
      mem_info_vram_used: String(60 * GIB),
      mem_info_gtt_total: String(16 * GIB),
      mem_info_gtt_used: String(GIB),
    };
    expect(readAmdCard(apu, [])).toMatchObject({ memoryUsedBytes: 61 * GIB, memoryTotalBytes: 112 * GIB });
  });
});

describe('the source', () => {
  const folders: string[] = [];
  afterEach(async () => {
    for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
  });

  async function sysfs(files: Readonly<Record<string, string>>): Promise<string> {
    const root = await mkdtemp(path.join(tmpdir(), 'switchyard-drm-'));
    folders.push(root);
    for (const [name, content] of Object.entries(files)) {
      await mkdir(path.dirname(path.join(root, name)), { recursive: true });
      await writeFile(path.join(root, name), `${content}\n`);
    }
    return root;
  }

  it('finds every AMD card of the machine, in the order of their numbers, and nothing else', async () => {
    const root = await sysfs({
      'card10/device/vendor': '0x1002',
      'card10/device/gpu_busy_percent': '3',
      'card2/device/vendor': '0x1002',
      'card2/device/gpu_busy_percent': '0',
      'card2/device/uevent': 'DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_SLOT_NAME=0000:03:00.0\nMODALIAS=pci:v1',
      'card2/device/hwmon/hwmon4/temp1_input': '41000',
      'card0/device/vendor': '0x8086',
      'card2-DP-1/status': 'connected',
      'renderD128/device/vendor': '0x1002',
    });
    expect(await new AmdSource({ clock: createAgentClock(), root }).read()).toMatchObject([
      { pci: '03:00.0', utilisationPercent: 0, temperatureC: 41, powerW: null },
      { pci: null, utilisationPercent: 3 },
    ]);
  });

  it('does not wake a card that sleeps', async () => {
    const root = await sysfs({
      'card0/device/vendor': '0x1002',
      'card0/device/power/runtime_status': 'suspended',
      'card0/device/gpu_busy_percent': '5',
      'card0/device/mem_info_vram_total': '1024',
    });
    const [card] = await new AmdSource({ clock: createAgentClock(), root }).read();
    expect(card).toMatchObject({ utilisationPercent: null, memoryTotalBytes: null });
  });

  it('is empty where there is no sysfs', async () => {
    expect(await new AmdSource({ clock: createAgentClock(), root: '/nonexistent' }).read()).toEqual([]);
  });
});
