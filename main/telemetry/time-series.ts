import { LatencyHistogram } from './histogram.ts';

/** Resolutions kept, finest first. Each stays under 400 points, which is what one chart line can carry at 1 Hz. */
export const TIERS = [
  { range: '5m', stepMs: 1_000, points: 300 },
  { range: '1h', stepMs: 10_000, points: 360 },
  { range: '24h', stepMs: 300_000, points: 288 },
] as const;
export type SeriesRange = (typeof TIERS)[number]['range'];

/** How values inside one step become one point: counters add up, gauges keep the highest or the latest value. */
export type Fold = 'sum' | 'max' | 'last';

export interface SeriesSlice {
  /** Start of each step, epoch ms, ascending. */
  readonly atMs: readonly number[];
  /** One value per step; null where nothing was sampled: a gap stays a gap. */
  readonly series: ReadonlyMap<string, readonly (number | null)[]>;
}

/** A closed step of one tier, for the store: what a restart needs to draw the past again. */
export interface ClosedStep {
  readonly range: SeriesRange;
  readonly atMs: number;
  readonly values: ReadonlyMap<string, number>;
}

/** Percentiles of fewer values than this say more about luck than about the tail. */
export const MIN_COUNT_P99 = 100;

class Tier {
  readonly range: SeriesRange;
  readonly stepMs: number;
  readonly points: number;
  readonly #lines = new Map<string, Float64Array>();
  readonly #open = new Map<string, number>();
  readonly #latencies = new Map<string, LatencyHistogram>();
  #step: number | null = null;

  constructor({ range, stepMs, points }: (typeof TIERS)[number]) {
    this.range = range;
    this.stepMs = stepMs;
    this.points = points;
  }

  fold(id: string, value: number, how: Fold): void {
    const before = this.#open.get(id);
    if (before === undefined || how === 'last') this.#open.set(id, value);
    else this.#open.set(id, how === 'sum' ? before + value : Math.max(before, value));
  }

  latency(id: string, ms: number): void {
    let histogram = this.#latencies.get(id);
    if (!histogram) {
      histogram = new LatencyHistogram();
      this.#latencies.set(id, histogram);
    }
    histogram.record(ms);
  }

  /** Moves to the step of `wallMs`; steps that passed without a call stay gaps. */
  advance(wallMs: number): ClosedStep | null {
    const step = Math.floor(wallMs / this.stepMs);
    if (this.#step === null) this.#step = step;
    // A clock set back by less than the range goes on in the same step: points never move backwards.
    if (step <= this.#step && this.#step - step < this.points) return null;
    const closed = this.#close(this.#step);
    const skipped = Math.min(this.points, Math.max(0, step - this.#step));
    for (let gap = 1; gap <= skipped; gap += 1) this.#erase(this.#step + gap);
    this.#step = step;
    return closed;
  }

  restore(atMs: number, values: ReadonlyMap<string, number>): void {
    for (const [id, value] of values) this.#write(Math.floor(atMs / this.stepMs), id, value);
  }

  read(wallMs: number, ids: (id: string) => boolean): SeriesSlice {
    const last = (this.#step ?? Math.floor(wallMs / this.stepMs)) - 1;
    const first = last - this.points + 1;
    const atMs = Array.from({ length: this.points }, (_, at) => (first + at) * this.stepMs);
    const series = new Map<string, (number | null)[]>();
    for (const [id, line] of this.#lines) {
      if (!ids(id)) continue;
      series.set(
        id,
        atMs.map((_, at) => {
          const value = line[this.#slot(first + at)] ?? Number.NaN;
          return Number.isNaN(value) ? null : value;
        }),
      );
    }
    return { atMs, series };
  }

  #close(step: number): ClosedStep {
    const values = new Map(this.#open);
    for (const [id, histogram] of this.#latencies) {
      if (histogram.count === 0) continue;
      for (const [name, q] of [
        ['p50', 0.5],
        ['p95', 0.95],
        ['p99', 0.99],
      ] as const) {
        const value = histogram.quantile(q);
        if (value !== null && (name !== 'p99' || histogram.count >= MIN_COUNT_P99)) values.set(`${id}.${name}`, value);
      }
      histogram.clear();
    }
    this.#open.clear();
    for (const [id, value] of values) this.#write(step, id, value);
    return { range: this.range, atMs: step * this.stepMs, values };
  }

  #write(step: number, id: string, value: number): void {
    let line = this.#lines.get(id);
    if (!line) {
      line = new Float64Array(this.points).fill(Number.NaN);
      this.#lines.set(id, line);
    }
    line[this.#slot(step)] = value;
  }

  #erase(step: number): void {
    for (const line of this.#lines.values()) line[this.#slot(step)] = Number.NaN;
  }

  #slot(step: number): number {
    return ((step % this.points) + this.points) % this.points;
  }
}

/**
 * What the charts draw: one time axis per range, gauges and counters folded per step, latencies as percentiles of merged
 * counts. Fed by the rooms, advanced once a second by the composition root's clock.
 */
export class TimeSeries {
  readonly #tiers = TIERS.map((tier) => new Tier(tier));

  fold(id: string, value: number | null, how: Fold): void {
    if (value === null || !Number.isFinite(value)) return;
    for (const tier of this.#tiers) tier.fold(id, value, how);
  }

  /** Becomes `<id>.p50`, `.p95` and, from 100 values on, `.p99`, in ms. */
  latency(id: string, ms: number): void {
    for (const tier of this.#tiers) tier.latency(id, ms);
  }

  /** @returns the steps that ended, for the store. */
  advance(wallMs: number): readonly ClosedStep[] {
    return this.#tiers.flatMap((tier) => {
      const closed = tier.advance(wallMs);
      return closed ? [closed] : [];
    });
  }

  /** Puts back a step that the store kept. */
  restore(step: ClosedStep): void {
    this.#tiers.find(({ range }) => range === step.range)?.restore(step.atMs, step.values);
  }

  read(range: SeriesRange, wallMs: number, ids: (id: string) => boolean = () => true): SeriesSlice {
    const tier = this.#tiers.find((each) => each.range === range);
    return tier ? tier.read(wallMs, ids) : { atMs: [], series: new Map() };
  }
}
