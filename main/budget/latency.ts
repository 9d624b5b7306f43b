/** Weight of the newest call. */
const ALPHA = 0.2;
const FLOOR_MS = 50;
export const SEED_LATENCY_MS = 2000;

/** EWMA of the duration of successful cloud calls, queueing excluded. Failures are quick and would teach a wrong figure. */
export class Latency {
  #ms: number;
  #measured: boolean;

  /** `measuredMs`: of an earlier run; null: nothing was measured yet, `seedMs` is assumed. */
  constructor(measuredMs: number | null = null, seedMs: number = SEED_LATENCY_MS) {
    this.#ms = Math.max(FLOOR_MS, measuredMs ?? seedMs);
    this.#measured = measuredMs !== null;
  }

  /** What a ceiling is reckoned from: measured, or assumed until a call was. */
  get ms(): number {
    return this.#ms;
  }

  /** Null before the first call that was measured. */
  get measuredMs(): number | null {
    return this.#measured ? this.#ms : null;
  }

  add(latencyMs: number): void {
    if (!Number.isFinite(latencyMs) || latencyMs < 0) return;
    this.#measured = true;
    this.#ms = Math.max(FLOOR_MS, this.#ms + ALPHA * (latencyMs - this.#ms));
  }
}
