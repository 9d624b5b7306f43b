import type { EventRecord } from '../domain/events.ts';
import type { Clock } from '../domain/time.ts';
import type { ClosedStep } from '../telemetry/time-series.ts';
import {
  type Json,
  RECORD_KINDS,
  type RecordKind,
  type TraceRecord,
  type UsageCost,
  type UsageEntry,
} from './ports.ts';
import type { UsageSums } from './repositories/figures.ts';
import type { Batch, BatchItem } from './worker-api.ts';
import { WriteBuffer } from './write-buffer.ts';

const MIB = 1024 * 1024;
const DAY_MS = 86_400_000;
const BOUNDS = {
  usage: { items: 10_000, bytes: 8 * MIB },
  trace: { items: 20_000, bytes: 32 * MIB },
  event: { items: 20_000, bytes: 8 * MIB },
  series: { items: 5_000, bytes: 16 * MIB },
  used: { items: 10_000, bytes: MIB },
  budget: { items: 1, bytes: MIB },
} as const;
/** Records of one transaction: a few milliseconds of the thread's time. */
const BATCH_ITEMS = 500;
/** How long records gather before they are written. */
const GATHER_MS = 200;
const RETRY_MS = 1_000;
const DETAIL_MAX_BYTES = 64 * 1024;
const OMITTED = '{"omitted":true}';

export interface RecordWriterOptions {
  readonly clock: Clock;
  /** Writes a batch; @returns how many of its items the database refused for what they are. Rejects when it cannot write. */
  readonly write: (batch: Batch) => Promise<number>;
}

/**
 * Takes records from the request path without waiting and writes them in batches, in order. Usage is summed by day and key, the
 * last use of a key and the budget's state keep only their newest value, so that an outage costs memory by kind, not by traffic.
 */
export class RecordWriter {
  readonly #options: RecordWriterOptions;
  readonly #buffer = new WriteBuffer<RecordKind, BatchItem>(BOUNDS);
  readonly #usage = new Map<string, UsageSums>();
  readonly #used = new Map<string, number>();
  #budget: { readonly body: string; readonly atMs: number } | null = null;
  #cancelTimer: (() => void) | null = null;
  #draining: Promise<boolean> | null = null;
  #isStopped = false;
  #day = { number: Number.NaN, text: '' };

  constructor(options: RecordWriterOptions) {
    this.#options = options;
  }

  trace({ summary, detail }: TraceRecord): void {
    const json = JSON.stringify(detail);
    const kept = json.length > DETAIL_MAX_BYTES ? OMITTED : json;
    // As texts: they cross to the thread in one copy each, where an object is taken apart and put together again.
    this.#push('trace', { kind: 'trace', row: { summary: JSON.stringify(summary), detail: kept } }, kept.length + 512);
  }

  event(event: EventRecord): void {
    this.#push('event', { kind: 'event', event }, event.sentence.length + 256);
  }

  step({ range, atMs, values }: ClosedStep): void {
    const json = JSON.stringify(Object.fromEntries(values));
    this.#push('series', { kind: 'series', range, atMs, values: json }, json.length + 64);
  }

  use(entry: UsageEntry): void {
    const sums = this.#sumsOf(entry);
    if (!sums) return;
    sums.requests += 1;
    sums.failures += entry.success ? 0 : 1;
    sums.promptTokens += entry.promptTokens;
    sums.completionTokens += entry.completionTokens;
    sums.inexact += entry.exact ? 0 : 1;
    this.#schedule(GATHER_MS);
  }

  spend(cost: UsageCost): void {
    const sums = this.#sumsOf(cost);
    if (!sums) return;
    sums.costNanoUsd += Math.round(cost.costUsd * 1e9);
    this.#schedule(GATHER_MS);
  }

  /** Null: there is no room for another sum, and it is counted as dropped. */
  #sumsOf(entry: UsageEntry | UsageCost): UsageSums | null {
    const { project, role } = entry;
    const day = this.#dayOf(entry.atMs);
    const key = entry.key ?? '';
    const model = entry.model ?? '';
    const route = entry.route ?? '';
    const name = JSON.stringify([day, key, project, role, model, route]);
    let sums = this.#usage.get(name);
    if (!sums) {
      if (this.#usage.size >= BOUNDS.usage.items) {
        this.#buffer.countDropped('usage', 1);
        return null;
      }
      sums = {
        day,
        key,
        project,
        role,
        model,
        route,
        requests: 0,
        failures: 0,
        promptTokens: 0,
        completionTokens: 0,
        inexact: 0,
        costNanoUsd: 0,
      };
      this.#usage.set(name, sums);
    }
    return sums;
  }

  /** UTC, `2026-11-30`. */
  #dayOf(atMs: number): string {
    const number = Math.floor(atMs / DAY_MS);
    if (number !== this.#day.number) this.#day = { number, text: new Date(atMs).toISOString().slice(0, 10) };
    return this.#day.text;
  }

  keyUsed(id: string, atMs: number): void {
    this.#used.set(id, atMs);
    this.#schedule(GATHER_MS);
  }

  budget(state: Json, atMs: number): void {
    this.#budget = { body: JSON.stringify(state), atMs };
    this.#schedule(GATHER_MS);
  }

  /** Records waiting, sums counted once each. */
  get waiting(): number {
    return this.#buffer.size + this.#usage.size + this.#used.size + (this.#budget ? 1 : 0);
  }

  dropped(): Readonly<Record<RecordKind, number>> {
    const entries = RECORD_KINDS.map((kind) => [kind, this.#buffer.dropped(kind)]);
    return Object.fromEntries(entries) as Record<RecordKind, number>;
  }

  /** Writes what waits now. @returns false when the database did not take it; it is tried again later. */
  async flush(): Promise<boolean> {
    // A drain under way may have gathered the sums before the caller's record, so one more may be needed after it.
    for (let round = 0; round < 3 && this.waiting > 0; round += 1) {
      if (!(await this.#drain())) return false;
    }
    return true;
  }

  /** No more timers; `flush` still works. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  #push(kind: RecordKind, item: BatchItem, bytes: number): void {
    this.#buffer.push(kind, item, bytes);
    this.#schedule(GATHER_MS);
  }

  #schedule(delayMs: number): void {
    if (this.#cancelTimer || this.#isStopped) return;
    this.#cancelTimer = this.#options.clock.after(delayMs, () => {
      this.#cancelTimer = null;
      void this.#drain();
    });
  }

  #drain(): Promise<boolean> {
    this.#draining ??= this.#write().finally(() => {
      this.#draining = null;
    });
    return this.#draining;
  }

  async #write(): Promise<boolean> {
    for (;;) {
      if (!this.#buffer.hasOutstanding) this.#gather();
      const batch = this.#buffer.batch(BATCH_ITEMS);
      if (!batch) return true;
      try {
        const refused = await this.#options.write(batch);
        if (refused > 0) this.#countRefused(batch, refused);
        this.#buffer.settle();
      } catch {
        this.#schedule(RETRY_MS);
        return false;
      }
    }
  }

  /** The thread says how many, not which; of a mixed batch they are booked on its first kind. */
  #countRefused({ items }: Batch, refused: number): void {
    const kind = items[0]?.kind;
    if (kind) this.#buffer.countDropped(kind, refused);
  }

  #gather(): void {
    for (const sums of this.#usage.values()) {
      if (!this.#buffer.push('usage', { kind: 'usage', sums }, 256)) {
        this.#buffer.countDropped('usage', Math.max(sums.requests, 1) - 1);
      }
    }
    this.#usage.clear();
    for (const [id, atMs] of this.#used) this.#buffer.push('used', { kind: 'used', id, atMs }, 64);
    this.#used.clear();
    if (this.#budget && this.#buffer.push('budget', { kind: 'budget', ...this.#budget }, this.#budget.body.length)) {
      this.#budget = null;
    }
  }
}
