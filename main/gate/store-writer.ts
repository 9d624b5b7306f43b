import type { Clock } from '../domain/time.ts';
import { LEDGER_FLUSH_COUNT, LEDGER_FLUSH_MS, LedgerBuffer, type LedgerRange } from './ledger.ts';
import type { GateStore } from './store-port.ts';

const RETRY_MS = 5000;

/**
 * Writes findings and ledger behind the back of whoever found them: nobody on the request path waits for disk. While the
 * store fails, the newest finding of each key and a bounded ledger are kept, and tried again.
 */
export class StoreWriter {
  readonly #store: GateStore;
  readonly #clock: Clock;
  readonly #onState: (failing: boolean, lostRanges: number) => void;
  readonly #dirty = new Map<string, () => Promise<void>>();
  readonly #ledger = new LedgerBuffer();
  #flushing: Promise<void> | null = null;
  #cancelTimer: (() => void) | null = null;
  #failing = false;

  constructor(store: GateStore, clock: Clock, onState: (failing: boolean, lostRanges: number) => void) {
    this.#store = store;
    this.#clock = clock;
    this.#onState = onState;
  }

  /** A later write of the same key replaces one that has not happened yet. */
  write(key: string, action: () => Promise<void>): void {
    this.#dirty.delete(key);
    this.#dirty.set(key, action);
    if (!this.#failing) void this.flush();
  }

  record(range: LedgerRange): void {
    this.#ledger.add(range);
    if (this.#failing) return;
    if (this.#ledger.size >= LEDGER_FLUSH_COUNT) void this.flush();
    else this.#later(LEDGER_FLUSH_MS);
  }

  /** Ranges that are not on disk yet. */
  waiting(): readonly LedgerRange[] {
    return this.#ledger.peek();
  }

  /** Writes everything that waits now. Resolves also when the store refuses; then it is tried again later. */
  flush(): Promise<void> {
    this.#flushing ??= this.#drain().finally(() => {
      this.#flushing = null;
      // What came in between the last look and now.
      if (!this.#failing && (this.#dirty.size > 0 || this.#ledger.size > 0)) this.#later(LEDGER_FLUSH_MS);
    });
    return this.#flushing;
  }

  async stop(): Promise<void> {
    this.#clearTimer();
    await this.flush();
    this.#clearTimer();
  }

  #clearTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  #later(delayMs: number): void {
    this.#cancelTimer ??= this.#clock.after(delayMs, () => {
      this.#cancelTimer = null;
      void this.flush();
    });
  }

  async #drain(): Promise<void> {
    let ranges: readonly LedgerRange[] = [];
    try {
      while (this.#dirty.size > 0 || this.#ledger.size > 0) {
        for (const [key, action] of [...this.#dirty]) {
          await action();
          if (this.#dirty.get(key) === action) this.#dirty.delete(key);
        }
        ranges = this.#ledger.take();
        if (ranges.length > 0) await this.#store.appendRanges(ranges);
        ranges = [];
      }
      this.#setFailing(false);
    } catch {
      this.#ledger.putBack(ranges);
      this.#setFailing(true);
      this.#later(RETRY_MS);
    }
  }

  #setFailing(failing: boolean): void {
    if (failing === this.#failing) return;
    this.#failing = failing;
    this.#onState(failing, this.#ledger.lost);
  }
}
