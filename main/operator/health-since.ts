import type { Clock } from '../domain/time.ts';

/** An item that was not asked about for so long had gone in between. */
const FORGET_MS = 10_000;
const MOST = 1_000;

/** Since when each health item has been there. Items are made anew at every look; only their ids last. */
export class HealthSince {
  readonly #clock: Clock;
  readonly #seen = new Map<string, { readonly sinceMs: number; lookedAtMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns epoch ms of the first look that found it, in a row of looks without a longer break. */
  of(id: string): number {
    const nowMs = this.#clock.nowMs();
    const seen = this.#seen.get(id);
    if (seen && nowMs - seen.lookedAtMs < FORGET_MS) {
      seen.lookedAtMs = nowMs;
      return seen.sinceMs;
    }
    if (this.#seen.size >= MOST) this.#seen.clear();
    const sinceMs = Math.round(this.#clock.wallMs());
    this.#seen.set(id, { sinceMs, lookedAtMs: nowMs });
    return sinceMs;
  }
}
