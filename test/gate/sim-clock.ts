import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../main/domain/time.ts';

/** Time moves only when told. Between timers everything that promises hold back gets its turn. */
export class SimClock implements Clock {
  #now = 0;
  #wallOffset = Date.UTC(2027, 0, 1);
  #timers: { at: number; order: number; callback: () => void }[] = [];
  #order = 0;

  nowMs(): number {
    return this.#now;
  }

  wallMs(): number {
    return this.#now + this.#wallOffset;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { at: this.#now + delayMs, order: this.#order++, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Lets every promise that needs no time go as far as it can. */
  async settle(): Promise<void> {
    for (let i = 0; i < 3; i++) await turn();
  }

  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    await this.settle();
    for (;;) {
      const due = this.#timers.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at || a.order - b.order)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== due);
      this.#now = Math.max(this.#now, due.at);
      due.callback();
      await this.settle();
    }
    this.#now = until;
  }
}
