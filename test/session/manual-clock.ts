import type { Clock } from '../../main/domain/time.ts';

/** Time moves only by `advance`. */
export class ManualClock implements Clock {
  #now = 1000;
  #timers: { readonly at: number; readonly run: () => void }[] = [];

  nowMs(): number {
    return this.#now;
  }

  wallMs(): number {
    return 1_800_000_000_000 + this.#now;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { at: this.#now + delayMs, run: callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Runs every timer that falls due on the way, in order. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const due = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== due);
      this.#now = Math.max(this.#now, due.at);
      due.run();
    }
    this.#now = end;
  }

  /** Sleeps: time has passed before any timer runs, then each due one runs once. */
  jump(ms: number): void {
    this.#now += ms;
    this.advance(0);
  }
}
