import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Clock } from '../../main/domain/time.ts';
import { amount, type GpuReading, type GpuSource, label, percent, shortPci, stale } from './source.ts';

const AMD = '0x1002';
const PERIOD_MS = 4_000;
/** The busy figure flickers between 0 and 100: two readings this far apart are averaged. */
const APART_MS = 200;
/** Reading hangs when the driver does. */
const FRESH_MS = 3 * PERIOD_MS;
const MAX_CARDS = 32;
/** A card with so little memory of its own that what lies beyond it must be what models use. */
const CARVE_OUT_BYTES = 2 * 1024 ** 3;

/** Content of the files of one card, trimmed, by name; absent when it cannot be read. */
export type SysfsCard = Readonly<Record<string, string | undefined>>;

const FILES = ['mem_info_vram_total', 'mem_info_vram_used', 'mem_info_gtt_total', 'mem_info_gtt_used'];
const SENSORS = ['temp1_input', 'power1_average', 'power1_input', 'in1_label'];

/**
 * One AMD card from its files in sysfs. Memory in bytes, temperature in thousandths of a degree, power in microwatts. An APU has
 * its weights in system memory (GTT) while its small carve-out looks full, so both count together there.
 */
export function readAmdCard(card: SysfsCard, busy: readonly (string | undefined)[]): GpuReading {
  const vram = { total: integer(card.mem_info_vram_total), used: integer(card.mem_info_vram_used) };
  const gtt = { total: integer(card.mem_info_gtt_total), used: integer(card.mem_info_gtt_used) };
  const shared = isApu(card, vram.total, gtt.total);
  const utilisation = busy.map(integer).filter((value) => value !== null);
  const temperature = signed(card.temp1_input);
  const power = integer(card.power1_average) ?? integer(card.power1_input);
  return {
    vendor: 'amd',
    number: null,
    pci: shortPci(card.pci ?? ''),
    uuid: label(card.unique_id),
    name: label(card.product_name),
    utilisationPercent: percent(
      utilisation.length === 0 ? null : utilisation.reduce((sum, value) => sum + value, 0) / utilisation.length,
    ),
    memoryUsedBytes: shared ? sum(vram.used, gtt.used) : vram.used,
    memoryTotalBytes: shared ? sum(vram.total, gtt.total) : vram.total,
    temperatureC: temperature === null ? null : temperature / 1000,
    powerW: power === null ? null : power / 1e6,
  };
}

/** Only APUs have a sensor for the voltage of their north bridge; older kernels show it by the tiny carve-out alone. */
function isApu(card: SysfsCard, vramTotal: number | null, gttTotal: number | null): boolean {
  if (card.in1_label === 'vddnb') return true;
  return vramTotal !== null && gttTotal !== null && vramTotal <= CARVE_OUT_BYTES && gttTotal > vramTotal;
}

const sum = (a: number | null, b: number | null) => (a === null || b === null ? null : a + b);
const integer = (text: string | undefined) => amount(signed(text));
const signed = (text: string | undefined) => (text !== undefined && /^-?\d{1,18}$/.test(text) ? Number(text) : null);

export interface AmdOptions {
  readonly clock: Clock;
  /** `/sys/class/drm`, or a copy of it. */
  readonly root?: string;
}

/** AMD cards of Linux from sysfs: no tool needed, no rights beyond reading. */
export class AmdSource implements GpuSource {
  readonly #clock: Clock;
  readonly #root: string;
  #readings: readonly GpuReading[] = [];
  #atMs = Number.NEGATIVE_INFINITY;
  #stopped = true;
  #cancel: () => void = () => {};

  constructor({ clock, root = '/sys/class/drm' }: AmdOptions) {
    this.#clock = clock;
    this.#root = root;
  }

  start(): void {
    this.#stopped = false;
    void this.#sample();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  latest(): readonly GpuReading[] {
    return this.#clock.nowMs() - this.#atMs > FRESH_MS ? this.#readings.map(stale) : this.#readings;
  }

  /** Reads every card now. */
  async read(): Promise<readonly GpuReading[]> {
    const cards = await this.#cards();
    const awake = await Promise.all(cards.map((card) => isAwake(card)));
    const busy = () => Promise.all(cards.map((card, i) => (awake[i] ? text(card, 'gpu_busy_percent') : undefined)));
    const first = await busy();
    if (cards.length > 0) await this.#wait(APART_MS);
    const second = await busy();
    return await Promise.all(
      cards.map(async (card, i) => readAmdCard(await readCard(card, awake[i] === true), [first[i], second[i]])),
    );
  }

  async #sample(): Promise<void> {
    this.#readings = await this.read().catch(() => []);
    this.#atMs = this.#clock.nowMs();
    if (!this.#stopped) this.#cancel = this.#clock.after(PERIOD_MS, () => void this.#sample());
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.after(ms, resolve);
    });
  }

  /** Device folders of AMD cards, in the order of their numbers. */
  async #cards(): Promise<readonly string[]> {
    const names = await readdir(this.#root).catch(() => []);
    const numbers = names.flatMap((name) => (/^card\d{1,3}$/.test(name) ? [Number(name.slice(4))] : []));
    const folders = numbers
      .sort((a, b) => a - b)
      .slice(0, MAX_CARDS)
      .map((number) => path.join(this.#root, `card${number}`, 'device'));
    const vendors = await Promise.all(folders.map((folder) => text(folder, 'vendor')));
    return folders.filter((_, i) => vendors[i] === AMD);
  }
}

/** A card that sleeps would be woken by being read, and a laptop's battery would pay for the gauge. */
async function isAwake(folder: string): Promise<boolean> {
  return (await text(folder, 'power/runtime_status')) !== 'suspended';
}

async function readCard(folder: string, awake: boolean): Promise<SysfsCard> {
  const uevent = await text(folder, 'uevent');
  const card: Record<string, string | undefined> = {
    pci: /^PCI_SLOT_NAME=(.+)$/m.exec(uevent ?? '')?.[1],
    unique_id: await text(folder, 'unique_id'),
    product_name: await text(folder, 'product_name'),
  };
  if (!awake) return card;
  for (const file of FILES) card[file] = await text(folder, file);
  const [sensors] = await readdir(path.join(folder, 'hwmon')).catch(() => []);
  if (sensors !== undefined) {
    for (const file of SENSORS) card[file] = await text(path.join(folder, 'hwmon', sensors), file);
  }
  return card;
}

async function text(folder: string, file: string): Promise<string | undefined> {
  return await readFile(path.join(folder, file), 'utf8').then(
    (content) => content.slice(0, 4096).trim(),
    () => undefined,
  );
}
