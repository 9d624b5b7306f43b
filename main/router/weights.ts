/** What a heartbeat says of a provider's pace; null or not above zero: unknown. */
export interface Pace {
  readonly tokensPerSecond: number | null;
  readonly ttftMs: number | null;
}

const SLOWEST = 0.25;
const FASTEST = 4;

/** Middle value; of an even count the mean of the middle two; null for none. Sorts a copy. */
export function median(values: readonly number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[sorted.length >> 1];
  if (upper === undefined) return null;
  if (sorted.length % 2 === 1) return upper;
  return ((sorted[(sorted.length >> 1) - 1] ?? upper) + upper) / 2;
}

/**
 * speed = clamp(sqrt((tps / tps~) x (ttft~ / ttft)), 0.25, 4), one per pace, where ~ is the median over those known. An
 * unknown value is left out of its median and its ratio counts as 1.
 */
export function speedFactors(paces: readonly Pace[]): readonly number[] {
  const known = (value: number | null): value is number => value !== null && value > 0;
  const tps = median(paces.map((pace) => pace.tokensPerSecond).filter(known));
  const ttft = median(paces.map((pace) => pace.ttftMs).filter(known));
  return paces.map((pace) => {
    const throughput = tps !== null && known(pace.tokensPerSecond) ? pace.tokensPerSecond / tps : 1;
    const latency = ttft !== null && known(pace.ttftMs) ? ttft / pace.ttftMs : 1;
    return Math.min(FASTEST, Math.max(SLOWEST, Math.sqrt(throughput * latency)));
  });
}

/** load = 1 / (1 + 2 x busy / slots); `busy` is running + queued + foreign work. */
export function loadFactor(busy: number, slots: number): number {
  return 1 / (1 + (2 * busy) / slots);
}

/** weight = max(1, round(100 x base x load x speed)), half up. */
export function weightOf(base: number, load: number, speed: number): number {
  return Math.max(1, Math.round(100 * base * load * speed));
}
