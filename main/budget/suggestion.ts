import { MAX_PERMITS } from './ceiling.ts';

const FULL_FOR_MS = 600_000;
/** A permit on its way from one call to the next is no sign of spare room. */
const BLINK_MS = 1000;

/**
 * Watches whether a ceiling that nobody could discover is what holds work up: all permits in use with work waiting, without
 * a refusal, for 10 min. Then the operator is offered twice as many; nothing is taken by itself.
 */
export class Suggestion {
  #fullSinceMs: number | null = null;
  #roomSinceMs: number | null = null;

  observe(full: boolean, nowMs: number): void {
    if (full) {
      this.#fullSinceMs ??= nowMs;
      this.#roomSinceMs = null;
      return;
    }
    this.#roomSinceMs ??= nowMs;
    if (nowMs - this.#roomSinceMs > BLINK_MS) this.#fullSinceMs = null;
  }

  /** Something happened that says the ceiling is right, or has changed. */
  reset(): void {
    this.#fullSinceMs = null;
    this.#roomSinceMs = null;
  }

  /** Override to offer; null: none. */
  offer(ceiling: number, nowMs: number): number | null {
    if (this.#fullSinceMs === null || nowMs - this.#fullSinceMs < FULL_FOR_MS || ceiling >= MAX_PERMITS) return null;
    if (this.#roomSinceMs !== null && nowMs - this.#roomSinceMs > BLINK_MS) return null;
    return Math.min(MAX_PERMITS, Math.max(1, ceiling) * 2);
  }
}
