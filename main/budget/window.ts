/** One minute, and a second for what the network does to the distance between two starts. */
export const WINDOW_MS = 61_000;

/**
 * Sliding window over the starts of calls. A start keeps its place whatever becomes of the call, because it was counted
 * where it arrived. Starts are recorded also while no rate is trusted, so that a rate discovered later counts them.
 */
export class StartWindow {
  #starts: number[] = [];
  #head = 0;

  /** Records a start; times must not go backwards. */
  record(nowMs: number): void {
    this.#forget(nowMs);
    this.#starts.push(nowMs);
  }

  /** Starts by whole seconds since, oldest first: [age in ms, rounded down; how many]. */
  ages(nowMs: number): readonly (readonly [number, number])[] {
    this.#forget(nowMs);
    const ages = new Map<number, number>();
    for (let at = this.#head; at < this.#starts.length; at++) {
      const ageMs = Math.floor((nowMs - (this.#starts[at] ?? nowMs)) / 1000) * 1000;
      ages.set(ageMs, (ages.get(ageMs) ?? 0) + 1);
    }
    return [...ages];
  }

  /** Takes up starts of before, as `ages` told them so long ago. Only into an empty window. */
  remember(ages: readonly (readonly [number, number])[], sinceMs: number, nowMs: number): void {
    for (const [ageMs, count] of ages) {
      for (let at = 0; at < count; at++) this.#starts.push(nowMs - sinceMs - ageMs);
    }
    this.#forget(nowMs);
  }

  /** Starts in the 61 s that end now. */
  count(nowMs: number): number {
    this.#forget(nowMs);
    return this.#starts.length - this.#head;
  }

  /** When the next start fits under `limit` per window; `nowMs` itself when one fits now. */
  opensAtMs(nowMs: number, limit: number): number {
    const inside = this.count(nowMs);
    if (inside < limit) return nowMs;
    const leaving = this.#starts[this.#head + inside - limit];
    return leaving === undefined ? nowMs : leaving + WINDOW_MS;
  }

  #forget(nowMs: number): void {
    for (;;) {
      const first = this.#starts[this.#head];
      if (first === undefined || first > nowMs - WINDOW_MS) break;
      this.#head++;
    }
    if (this.#head > 1024 && this.#head * 2 > this.#starts.length) {
      this.#starts = this.#starts.slice(this.#head);
      this.#head = 0;
    }
  }
}
