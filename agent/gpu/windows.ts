import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Clock } from '../../main/domain/time.ts';
import { childEnvironment } from '../child-environment.ts';
import { LineChild, type LineChildOptions } from './line-child.ts';
import { amount, type GpuReading, type GpuSource, type GpuVendor, label, percent, stale } from './source.ts';
import { WINDOWS_SCRIPT } from './windows-script.ts';

const FRESH_MS = 10_000;
/** Compiling its type and the first collection take seconds on a busy machine. */
const SILENCE_MS = 60_000;
const MAX_LINES = 4096;
/** A graphics unit with so little memory of its own works in the machine's. */
const CARVE_OUT_BYTES = 2 * 1024 ** 3;
const VENDORS: Readonly<Record<string, GpuVendor>> = { 4318: 'nvidia', 4098: 'amd', 4130: 'amd', 32902: 'intel' };
/** Microsoft's own adapters draw in software. */
const SOFTWARE_VENDOR = '5140';

interface Usage {
  dedicated: number | null;
  shared: number | null;
}

/**
 * One sample of `WINDOWS_SCRIPT`, without its `end`. A GPU is as busy as the busiest of its engines, and an engine as busy as all
 * processes on it together: what the Task Manager shows. Idle engines are not listed, so none listed is 0 and not "unknown".
 */
export function parseWindowsSample(lines: readonly string[]): readonly GpuReading[] {
  const rows = lines.slice(0, MAX_LINES).map((line) => line.split('\t'));
  const usage = new Map<string, Usage>();
  const engines = new Map<string, Map<string, number>>();
  for (const [kind, instance = '', first, second] of rows) {
    const [luid, engine] = instanceOf(instance);
    if (luid === null) continue;
    if (kind === 'memory') {
      usage.set(luid, { dedicated: numeric(first), shared: numeric(second) });
    } else if (kind === 'engine') {
      const busy = engines.get(luid) ?? new Map<string, number>();
      busy.set(engine, (busy.get(engine) ?? 0) + (numeric(first) ?? 0));
      engines.set(luid, busy);
    }
  }
  const counted = rows.some(([kind]) => kind === 'engines');
  const seen = new Set<string>();
  return rows.flatMap(([kind, luid = '', vendor = '', dedicated, shared, name]) => {
    if (kind !== 'adapter' || vendor === SOFTWARE_VENDOR || seen.has(luid)) return [];
    seen.add(luid);
    const used = usage.get(luid);
    // An adapter that the counters do not know has no idle engines either: nothing is known of it.
    const busiest = counted && used ? Math.max(0, ...(engines.get(luid)?.values() ?? [])) : null;
    const total = { dedicated: numeric(dedicated), shared: numeric(shared) };
    const joint = (total.dedicated ?? 0) <= CARVE_OUT_BYTES && (total.shared ?? 0) > (total.dedicated ?? 0);
    const reading: GpuReading = {
      vendor: VENDORS[vendor] ?? 'other',
      number: null,
      pci: null,
      uuid: null,
      name: label(name),
      utilisationPercent: percent(busiest),
      memoryUsedBytes: joint ? both(used?.dedicated, used?.shared) : (used?.dedicated ?? null),
      memoryTotalBytes: joint ? both(total.dedicated, total.shared) : total.dedicated,
      temperatureC: null,
      powerW: null,
    };
    return [reading];
  });
}

/** `pid_1234_luid_0x00000000_0x0000D1B2_phys_0_eng_3_engtype_Compute_0` -> `000000000000d1b2`, `0/3`. */
function instanceOf(instance: string): readonly [luid: string | null, engine: string] {
  const match = /luid_0x([0-9a-f]{8})_0x([0-9a-f]{8})_phys_(\d+)(?:_eng_(\d+))?/i.exec(instance);
  if (match === null) return [null, ''];
  return [`${match[1]}${match[2]}`.toLowerCase(), `${match[3]}/${match[4] ?? ''}`];
}

function numeric(text: string | undefined): number | null {
  return text === undefined || text === '' ? null : amount(Number(text));
}

const both = (a: number | null | undefined, b: number | null | undefined) =>
  a === null || a === undefined || b === null || b === undefined ? null : a + b;

export interface WindowsOptions {
  readonly clock: Clock;
  readonly environment: NodeJS.ProcessEnv;
  /** Starts PowerShell; for tests. */
  readonly startTool?: LineChildOptions['start'];
}

/** GPUs of Windows whatever their maker, by one long-lived PowerShell that reads performance counters. */
export class WindowsSource implements GpuSource {
  readonly #clock: Clock;
  readonly #child: LineChild;
  #lines: string[] = [];
  #readings: readonly GpuReading[] = [];
  #atMs = Number.NEGATIVE_INFINITY;

  constructor({ clock, environment, startTool }: WindowsOptions) {
    this.#clock = clock;
    this.#child = new LineChild({
      clock,
      silenceMs: SILENCE_MS,
      start: startTool ?? (() => startPowerShell(environment)),
      onLine: (line) => this.#take(line),
    });
  }

  start(): void {
    this.#child.start();
  }

  stop(): void {
    this.#child.stop();
  }

  latest(): readonly GpuReading[] {
    return this.#clock.nowMs() - this.#atMs > FRESH_MS ? this.#readings.map(stale) : this.#readings;
  }

  #take(line: string): void {
    if (line !== 'end') {
      if (this.#lines.length < MAX_LINES) this.#lines.push(line);
      return;
    }
    this.#readings = parseWindowsSample(this.#lines);
    this.#atMs = this.#clock.nowMs();
    this.#lines = [];
  }
}

function startPowerShell(environment: NodeJS.ProcessEnv) {
  const windows = environment.SystemRoot ?? 'C:\\Windows';
  const program = path.join(windows, 'System32', 'WindowsPowerShell', 'v1.0', 'powershell.exe');
  if (!existsSync(program)) return null;
  const options = ['-NoLogo', '-NoProfile', '-NonInteractive', '-ExecutionPolicy', 'Bypass'];
  return spawn(program, [...options, '-Command', WINDOWS_SCRIPT], {
    env: childEnvironment(environment),
    stdio: ['ignore', 'pipe', 'ignore'],
    windowsHide: true,
  });
}
