/** Most points a chart draws. */
export const MAX_POINTS = 400;

export interface Axis {
  readonly atMs: readonly number[];
  readonly series: readonly { readonly id: string; readonly values: readonly (number | null)[] }[];
}

/** One row per moment, as the chart wants them. */
export type Point = { readonly atMs: number } & { readonly [series: string]: number | null };

/**
 * Rows of at most `max` moments. Buckets keep their largest value, so that a short peak is not lost; a bucket without a value
 * stays empty. Where two moments lie more than 2.5 steps apart an empty row is put between them: a gap stays a gap.
 */
export function toPoints(axis: Axis, stepMs: number, max = MAX_POINTS): Point[] {
  const size = Math.max(1, Math.ceil(axis.atMs.length / max));
  const points: Point[] = [];
  for (let from = 0; from < axis.atMs.length; from += size) {
    const to = Math.min(from + size, axis.atMs.length);
    const atMs = axis.atMs[to - 1] ?? 0;
    const before = points.at(-1);
    if (before && stepMs > 0 && atMs - before.atMs > 2.5 * stepMs * size) points.push({ atMs: before.atMs + 1 });
    const point: Record<string, number | null> = { atMs };
    for (const { id, values } of axis.series) point[id] = largest(values, from, to);
    points.push(point as Point);
  }
  return points;
}

function largest(values: readonly (number | null)[], from: number, to: number): number | null {
  let best: number | null = null;
  for (let at = from; at < to; at += 1) {
    const value = values[at] ?? null;
    if (value !== null && (best === null || value > best)) best = value;
  }
  return best;
}

/** The smallest round number not below `value` whose half is round too; whole numbers get a whole half. */
export function roundMaximum(value: number, whole: boolean): number {
  if (!(value > 0)) return whole ? 2 : 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const nice =
    [1, 2, 3, 4, 6, 8, 10].map((step) => step * power).find((step) => step >= value * 0.999999) ?? 10 * power;
  return whole ? Math.max(2, Math.ceil(nice / 2) * 2) : nice;
}

/** Bottom, middle and top of an axis, without a figure that reads like one already there. */
export function valueTicks(bottom: number, top: number, format: (value: number) => string): number[] {
  const words = new Set<string>();
  return [bottom, top, (bottom + top) / 2]
    .filter((value) => !words.has(format(value)) && words.add(format(value)))
    .sort((a, b) => a - b);
}

/** `count` moments from the start to the end of a span, evenly. */
export function ticks(fromMs: number, toMs: number, count = 5): number[] {
  return Array.from({ length: count }, (_, at) => Math.round(fromMs + ((toMs - fromMs) * at) / (count - 1)));
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const ROUND_STEPS_MS = [
  ...[1, 5, 10, 15, 30].map((seconds) => seconds * 1000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR_MS),
];
/**
 * Moments at which a clock shows round figures, at most five of them. `zoneMs` is how far the local clock is ahead of UTC;
 * `endShare` is the part of the span before its end that is left free for what stands there. Spans of more than two days, which no
 * such step divides, get even parts.
 */
export function timeTicks(fromMs: number, toMs: number, zoneMs: number, endShare: number): number[] {
  const span = toMs - fromMs;
  const step = ROUND_STEPS_MS.find((one) => span / one <= 5);
  if (step === undefined || span <= 0) return ticks(fromMs, toMs);
  const first = Math.ceil((fromMs + zoneMs) / step) * step - zoneMs;
  const all = Array.from({ length: Math.floor((toMs - first) / step) + 1 }, (_, at) => first + at * step);
  return all.filter((at) => toMs - at >= endShare * span);
}

/** On which side of its line a label stands. */
export type MarkSide = 'after' | 'before';

/**
 * Where labels go, as parts of the span: after their line, before it near the right edge, and nowhere when they would lie on an
 * earlier label. Their lines stay in any case. `width` is how much of the span a label takes.
 */
export function labelSides<Mark extends { readonly atMs: number }>(
  marks: readonly Mark[],
  fromMs: number,
  toMs: number,
  width = 0.34,
): ReadonlyMap<Mark, MarkSide> {
  const sides = new Map<Mark, MarkSide>();
  let taken = Number.NEGATIVE_INFINITY;
  for (const mark of [...marks].sort((a, b) => a.atMs - b.atMs)) {
    const at = (mark.atMs - fromMs) / (toMs - fromMs);
    const side = at + width <= 1 ? 'after' : 'before';
    const left = side === 'after' ? at : at - width;
    if (left < taken) continue;
    sides.set(mark, side);
    taken = left + width;
  }
  return sides;
}

/**
 * Counts per step as counts per `bucketMs`, at the middle of each bucket: wide enough to be seen, and all equally far apart, because
 * bars are as wide as the shortest way between two of them. Empty stays empty.
 */
export function sumBuckets(axis: Axis, bucketMs: number): Axis {
  const first = Math.floor((axis.atMs[0] ?? 0) / bucketMs);
  const count = axis.atMs.length === 0 ? 0 : Math.floor((axis.atMs.at(-1) ?? 0) / bucketMs) - first + 1;
  return {
    atMs: Array.from({ length: count }, (_, bucket) => (first + bucket + 0.5) * bucketMs),
    series: axis.series.map(({ id, values }) => {
      const sums: (number | null)[] = Array.from({ length: count }, () => null);
      values.forEach((value, at) => {
        const bucket = Math.floor((axis.atMs[at] ?? 0) / bucketMs) - first;
        if (value !== null) sums[bucket] = (sums[bucket] ?? 0) + value;
      });
      return { id, values: sums };
    }),
  };
}

/** The newest value that is known. */
export function lastKnown(values: readonly (number | null)[]): number | null {
  for (let at = values.length - 1; at >= 0; at -= 1) {
    const value = values[at];
    if (value !== null && value !== undefined) return value;
  }
  return null;
}
