/** Clock handed to every service: tests simulate it, the composition root gives the real one. */
export interface Clock {
  /** Milliseconds on a monotonic scale with an arbitrary zero: for intervals and deadlines. */
  nowMs(): number;
  /** Milliseconds since the Unix epoch: for records and for days (UTC), never for intervals. */
  wallMs(): number;
  /** Runs `callback` once after `delayMs`; the returned function cancels it and may be called twice. */
  after(delayMs: number, callback: () => void): () => void;
}

/** Uniform in [0, 1), injected so that every random decision can be replayed. */
export type Random = () => number;
