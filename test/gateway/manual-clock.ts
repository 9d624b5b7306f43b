import type { Clock } from '../../main/domain/time.ts';

/** A clock that a test moves by hand; timers run in the order of their time. */
export class ManualClock implements Clock {
  #nowMs = 1000;
  readonly #wallStartMs: number;
  #timers: { readonly atMs: number; readonly callback: () => void }[] = [];

  /** @param wallMs what `wallMs()` says at first */
  constructor(wallMs = Date.UTC(2026, 0, 2, 23, 0, 0)) {
    this.#wallStartMs = wallMs - this.#nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#wallStartMs + this.#nowMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { atMs: this.#nowMs + delayMs, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      const next = this.#timers.filter((timer) => timer.atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#nowMs = next.atMs;
      next.callback();
    }
    this.#nowMs = endMs;
  }
}
