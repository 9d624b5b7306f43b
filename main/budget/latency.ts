/** Weight of the newest call. */
const ALPHA = 0.2;
const FLOOR_MS = 50;
export const SEED_LATENCY_MS = 2000;

/** EWMA of the duration of successful cloud calls, queueing excluded. Failures are quick and would teach a wrong figure. */
export class Latency {
  #ms: number;

  constructor(seedMs: number = SEED_LATENCY_MS) {
    this.#ms = Math.max(FLOOR_MS, seedMs);
  }

  get ms(): number {
    return this.#ms;
  }

  add(latencyMs: number): void {
    if (!Number.isFinite(latencyMs) || latencyMs < 0) return;
    this.#ms = Math.max(FLOOR_MS, this.#ms + ALPHA * (latencyMs - this.#ms));
  }
}
