import type { GpuReport } from '../wire/control.ts';

export type GpuVendor = 'nvidia' | 'amd' | 'intel' | 'apple' | 'other';

/** One GPU as a source sees it. */
export interface GpuReading extends Omit<GpuReport, 'index'> {
  readonly vendor: GpuVendor;
  /** The tool's own number, kept where there is one, so that people find the card again; null: the order counts. */
  readonly number: number | null;
  /** PCI address in the short form `03:00.0`, to find the name in the inventory; null where the source has none. */
  readonly pci: string | null;
}

/** One way of reading GPUs. Never throws; a machine without such GPUs has an empty list. */
export interface GpuSource {
  start(): void;
  stop(): void;
  /** The last readings; never waits. What is too old to be told as now is null. */
  latest(): readonly GpuReading[];
}

/** A reading whose values are not known (any more); identity and memory size stay. */
export function stale(reading: GpuReading): GpuReading {
  return { ...reading, utilisationPercent: null, memoryUsedBytes: null, temperatureC: null, powerW: null };
}

/** `00000000:03:00.0` and `0000:03:00.0` are `03:00.0` to lspci. */
export function shortPci(address: string): string | null {
  return /([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$/i.exec(address.trim())?.[1]?.toLowerCase() ?? null;
}

/** A finite number >= 0, else null. */
export function amount(value: unknown): number | null {
  const number = typeof value === 'number' ? value : typeof value === 'bigint' ? Number(value) : Number.NaN;
  return Number.isFinite(number) && number >= 0 ? number : null;
}

export function percent(value: number | null): number | null {
  return value === null ? null : Math.min(100, value);
}

/** A foreign name fit to be shown, null when empty. */
export function label(text: unknown): string | null {
  if (typeof text !== 'string') return null;
  const plain = text.replace(/[\p{Cc}\p{Cf}]/gu, '').trim();
  return plain === '' ? null : plain.slice(0, 128);
}
