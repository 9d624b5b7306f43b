import { execFile } from 'node:child_process';
import type { Clock } from '../../main/domain/time.ts';
import { childEnvironment } from '../child-environment.ts';
import { type PlistDict, type PlistValue, parsePlist } from './plist.ts';
import { amount, type GpuReading, type GpuSource, label, percent, stale } from './source.ts';

const IOREG = '/usr/sbin/ioreg';
const ARGUMENTS = ['-r', '-d', '1', '-w', '0', '-c', 'IOAccelerator', '-a'];
const PERIOD_MS = 4_000;
const TIMEOUT_MS = 3_000;
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_MISSES = 2;

/**
 * The accelerators that `ioreg -a` lists. On Apple silicon memory is unified: its total is the machine's. An accelerator without
 * statistics (a bridge) is none. Temperature and power need root, so they are null, but for the cards of Intel Macs that tell.
 *
 * @param memoryBytes memory of the machine
 */
export function parseIoreg(xml: string, memoryBytes: number): readonly GpuReading[] {
  const root = parsePlist(xml);
  if (!Array.isArray(root)) return [];
  return root.flatMap((entry: PlistValue) => {
    if (!isDict(entry)) return [];
    const { PerformanceStatistics: statistics } = entry;
    return isDict(statistics) ? [reading(entry, statistics, memoryBytes)] : [];
  });
}

function reading(entry: PlistDict, statistics: PlistDict, memoryBytes: number): GpuReading {
  const own = ownMemory(entry, statistics);
  const name = nameOf(entry);
  return {
    vendor: /apple/i.test(name ?? '') || /^AGX/.test(String(entry.IOClass ?? '')) ? 'apple' : 'other',
    number: null,
    pci: null,
    uuid: null,
    name,
    utilisationPercent: percent(amount(statistics['Device Utilization %']) ?? amount(statistics['GPU Activity(%)'])),
    memoryUsedBytes: own ? own.used : amount(statistics['In use system memory']),
    memoryTotalBytes: own ? own.total : memoryBytes,
    temperatureC: amount(statistics['Temperature(C)']),
    powerW: amount(statistics['Total Power(W)']),
  };
}

/** Memory of a card of its own, or null: unified memory. */
function ownMemory(entry: PlistDict, statistics: PlistDict): { used: number | null; total: number | null } | null {
  const used = amount(statistics.vramUsedBytes);
  const free = amount(statistics.vramFreeBytes);
  const totalMb = amount(entry['VRAM,totalMB']);
  if (used === null && free === null && totalMb === null) return null;
  const total = totalMb === null ? null : totalMb * 1024 * 1024;
  return { used, total: total ?? (used === null || free === null ? null : used + free) };
}

/** `model` is text on Apple silicon and bytes with a closing zero on PCI cards. */
function nameOf({ model, IOClass }: PlistDict): string | null {
  if (model instanceof Uint8Array) return label(Buffer.from(model).toString('utf8'));
  return label(model) ?? label(IOClass);
}

function isDict(value: PlistValue | undefined): value is PlistDict {
  return typeof value === 'object' && !Array.isArray(value) && !(value instanceof Uint8Array);
}

export interface AppleOptions {
  readonly clock: Clock;
  readonly environment: NodeJS.ProcessEnv;
  readonly memoryBytes: number;
  /** Runs ioreg; rejects when it fails. For tests. */
  readonly run?: () => Promise<string>;
}

/** GPUs of a Mac by `ioreg`, which needs no rights and answers within some 20 ms. */
export class AppleSource implements GpuSource {
  readonly #options: AppleOptions;
  #readings: readonly GpuReading[] = [];
  #misses = 0;
  #stopped = true;
  #cancel: () => void = () => {};

  constructor(options: AppleOptions) {
    this.#options = options;
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
    return this.#misses >= MAX_MISSES ? this.#readings.map(stale) : this.#readings;
  }

  async #sample(): Promise<void> {
    const { clock, environment, memoryBytes, run = () => runIoreg(environment) } = this.#options;
    try {
      this.#readings = parseIoreg(await run(), memoryBytes);
      this.#misses = 0;
    } catch {
      this.#misses += 1;
    }
    if (!this.#stopped) this.#cancel = clock.after(PERIOD_MS, () => void this.#sample());
  }
}

function runIoreg(environment: NodeJS.ProcessEnv): Promise<string> {
  const options = { env: childEnvironment(environment), timeout: TIMEOUT_MS, maxBuffer: MAX_BYTES };
  return new Promise((resolve, reject) => {
    execFile(IOREG, ARGUMENTS, options, (error, stdout) => (error ? reject(error) : resolve(stdout)));
  });
}
