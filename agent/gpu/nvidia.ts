import { spawn } from 'node:child_process';
import path from 'node:path';
import type { Clock } from '../../main/domain/time.ts';
import { childEnvironment } from '../child-environment.ts';
import { findProgram } from './find-program.ts';
import { LineChild, type LineChildOptions } from './line-child.ts';
import { amount, type GpuReading, type GpuSource, label, percent, shortPci, stale } from './source.ts';

const PERIOD_S = 2;
const QUERY = [
  'index',
  'uuid',
  'pci.bus_id',
  'name',
  'utilization.gpu',
  'memory.used',
  'memory.total',
  'temperature.gpu',
  'power.draw',
];
const MIB = 1024 * 1024;
/** Three samples missed: no longer what the card does now. */
const FRESH_MS = 3 * PERIOD_S * 1000 + 500;
/** A card that the tool still runs but does not list any more has fallen off the bus. */
const GONE_MS = 60_000;
/** Without persistence mode the first sample can take seconds. */
const SILENCE_MS = 30_000;

export const NVIDIA_ARGUMENTS = [
  `--query-gpu=${QUERY.join(',')}`,
  '--format=csv,noheader,nounits',
  '-l',
  `${PERIOD_S}`,
];

/**
 * One line of nvidia-smi (`NVIDIA_ARGUMENTS`): MiB, degrees Celsius, watts. Whatever is not a number (`[N/A]`, `[Not Supported]`,
 * `[Unknown Error]`, `[GPU requires reset]`) is null. @returns null for a line that is no GPU: its errors go to stdout too.
 */
export function parseNvidiaLine(line: string): GpuReading | null {
  const fields = line.split(',').map((field) => field.trim());
  // Only a name could hold a comma, so the fields are counted from both ends.
  if (fields.length < QUERY.length || !/^\d{1,4}$/.test(fields[0] ?? '')) return null;
  const [utilisation, used, total, temperature, power] = fields.slice(-5).map(number);
  const uuid = label(fields[1]);
  return {
    vendor: 'nvidia',
    number: Number(fields[0]),
    pci: shortPci(fields[2] ?? ''),
    uuid: uuid?.startsWith('[') ? null : uuid,
    name: label(fields.slice(3, -5).join(', ')),
    utilisationPercent: percent(amount(utilisation)),
    memoryUsedBytes: bytes(used),
    memoryTotalBytes: bytes(total),
    temperatureC: temperature ?? null,
    powerW: amount(power),
  };
}

/** Undefined for words: they mean "unknown", each in its own way. */
function number(field: string): number | undefined {
  return /^-?\d+(\.\d+)?$/.test(field) ? Number(field) : undefined;
}

const bytes = (mebibytes: number | undefined) => {
  const known = amount(mebibytes);
  return known === null ? null : known * MIB;
};

export interface NvidiaOptions {
  readonly clock: Clock;
  readonly environment: NodeJS.ProcessEnv;
  /** Starts nvidia-smi; for tests. */
  readonly startTool?: LineChildOptions['start'];
}

/** NVIDIA cards of Linux and Windows by one long-lived `nvidia-smi`. */
export class NvidiaSource implements GpuSource {
  readonly #clock: Clock;
  readonly #child: LineChild;
  readonly #cards = new Map<number, { readonly reading: GpuReading; readonly atMs: number }>();
  #heardAtMs = Number.NEGATIVE_INFINITY;

  constructor({ clock, environment, startTool }: NvidiaOptions) {
    this.#clock = clock;
    this.#child = new LineChild({
      clock,
      silenceMs: SILENCE_MS,
      start: startTool ?? (() => startNvidiaSmi(environment)),
      onLine: (line) => {
        const reading = parseNvidiaLine(line);
        if (reading?.number === null || reading === null) return;
        this.#heardAtMs = clock.nowMs();
        this.#cards.set(reading.number, { reading, atMs: this.#heardAtMs });
      },
    });
  }

  start(): void {
    this.#child.start();
  }

  stop(): void {
    this.#child.stop();
  }

  latest(): readonly GpuReading[] {
    const nowMs = this.#clock.nowMs();
    for (const [key, { atMs }] of this.#cards) if (this.#heardAtMs - atMs > GONE_MS) this.#cards.delete(key);
    return [...this.#cards.values()]
      .sort((a, b) => (a.reading.number ?? 0) - (b.reading.number ?? 0))
      .map(({ reading, atMs }) => (nowMs - atMs > FRESH_MS ? stale(reading) : reading));
  }
}

function startNvidiaSmi(environment: NodeJS.ProcessEnv) {
  const windows = environment.SystemRoot ?? 'C:\\Windows';
  const folders =
    process.platform === 'win32'
      ? [path.join(windows, 'System32'), 'C:\\Program Files\\NVIDIA Corporation\\NVSMI']
      : ['/usr/bin', '/usr/local/bin', '/usr/lib/wsl/lib', '/run/current-system/sw/bin'];
  const program = findProgram('nvidia-smi', folders, environment);
  if (program === null) return null;
  return spawn(program, NVIDIA_ARGUMENTS, {
    env: { ...childEnvironment(environment), LC_ALL: 'C' },
    stdio: ['ignore', 'pipe', 'ignore'],
    windowsHide: true,
  });
}
