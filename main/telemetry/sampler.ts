import type { RequestObserver, RequestSummary } from '../domain/observation.ts';
import type { Clock } from '../domain/time.ts';
import type { ClosedStep, TimeSeries } from './time-series.ts';

export interface SamplerOptions {
  readonly clock: Clock;
  readonly series: TimeSeries;
  /** Levels at this moment: series id -> value; null where unknown. */
  readonly levels: () => Iterable<readonly [string, number | null]>;
  readonly onClosed: (steps: readonly ClosedStep[]) => void;
  /** The machine slept or its clock jumped by more than 10 s. */
  readonly onGap: (gapMs: number) => void;
}

const TICK_MS = 1_000;
const GAP_MS = 10_000;

/** Once a second: reads levels, advances the time series, and notices sleep by ticks that did not come. */
export class Sampler implements RequestObserver {
  readonly #options: SamplerOptions;
  #cancel: () => void = () => {};
  #lastWallMs = 0;
  #running = false;

  constructor(options: SamplerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = true;
    this.#lastWallMs = this.#options.clock.wallMs();
    this.#options.series.advance(this.#lastWallMs);
    this.#schedule();
  }

  stop(): void {
    this.#running = false;
    this.#cancel();
  }

  finished(summary: RequestSummary): void {
    const { series } = this.#options;
    const { role, route, outcome, code } = summary;
    series.fold(`finished.${role}`, 1, 'sum');
    if (route) series.fold(`count.${route}`, 1, 'sum');
    if (outcome === 'failed') series.fold('count.refused', 1, 'sum');
    if (summary.overflowed) series.fold('count.overflowed', 1, 'sum');
    if (code === 'queue_full' || code === 'engine_busy') series.fold('429.local', 1, 'sum');
    if (outcome === 'success' && summary.firstByteMs !== null && !summary.acrossGap) {
      series.latency(`latency.${role}`, summary.firstByteMs);
    }
  }

  #schedule(): void {
    if (this.#running) this.#cancel = this.#options.clock.after(TICK_MS, () => this.#tick());
  }

  #tick(): void {
    const { clock, series, levels, onClosed, onGap } = this.#options;
    const wallMs = clock.wallMs();
    const passedMs = wallMs - this.#lastWallMs;
    this.#lastWallMs = wallMs;
    if (passedMs > GAP_MS || passedMs < -GAP_MS) onGap(passedMs);
    for (const [id, value] of levels()) series.fold(id, value, id.startsWith('queue.') ? 'max' : 'last');
    series.fold('alive', 1, 'last');
    const closed = series.advance(wallMs);
    if (closed.length > 0) onClosed(closed);
    this.#schedule();
  }
}
