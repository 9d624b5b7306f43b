/** Buckets per doubling: neighbours differ by 2^(1/8), so a quantile is off by at most 4.4 % of its value. */
const PER_DOUBLING = 8;
const SMALLEST_MS = 0.0625;
const BUCKETS = 8 * 26; // up to 2^26 x 0.0625 ms, above one hour

/**
 * Latencies in fixed logarithmic buckets. Two of them add up bucket by bucket, so that percentiles over roles, machines and
 * stretches of time come from counts and never from averaged percentiles.
 */
export class LatencyHistogram {
  readonly #counts = new Uint32Array(BUCKETS);
  #total = 0;
  #sumMs = 0;

  get count(): number {
    return this.#total;
  }

  get sumMs(): number {
    return this.#sumMs;
  }

  record(ms: number): void {
    if (!(ms >= 0)) return;
    const bucket = ms <= SMALLEST_MS ? 0 : Math.ceil(Math.log2(ms / SMALLEST_MS) * PER_DOUBLING);
    const at = Math.min(BUCKETS - 1, bucket);
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#total += 1;
    this.#sumMs += ms;
  }

  add(other: LatencyHistogram): void {
    for (let at = 0; at < BUCKETS; at += 1) this.#counts[at] = (this.#counts[at] ?? 0) + (other.#counts[at] ?? 0);
    this.#total += other.#total;
    this.#sumMs += other.#sumMs;
  }

  clear(): void {
    this.#counts.fill(0);
    this.#total = 0;
    this.#sumMs = 0;
  }

  /**
   * @param q in [0, 1].
   * @returns the geometric middle of the bucket that holds the value of rank ceil(q x n), in ms; null when empty.
   */
  quantile(q: number): number | null {
    if (this.#total === 0) return null;
    const rank = Math.max(1, Math.ceil(q * this.#total));
    let seen = 0;
    for (let at = 0; at < BUCKETS; at += 1) {
      seen += this.#counts[at] ?? 0;
      if (seen >= rank) return at === 0 ? SMALLEST_MS : SMALLEST_MS * 2 ** ((at - 0.5) / PER_DOUBLING);
    }
    return null;
  }
}
