import { PRIORITY_CLASSES, type PriorityClass } from '../domain/classes.ts';

const BUCKET_MS = 5000;
const BUCKETS = 60;
const CLASSES = PRIORITY_CLASSES.length;
const FLOOR_SHARE = 0.1;

/** Position of a class, highest first. */
export function rankOf(cls: PriorityClass): number {
  return PRIORITY_CLASSES.indexOf(cls);
}

/**
 * Which class goes next: batch, then normal, while its part of the running time is under 10 %; otherwise the highest with work.
 *
 * @param runningMs and hasWork one per class, highest first
 * @returns rank of the class; -1: no work
 */
export function nextClass(runningMs: readonly number[], hasWork: readonly boolean[]): number {
  let total = 0;
  for (const part of runningMs) total += part;
  for (let rank = CLASSES - 1; rank > 0; rank -= 1) {
    if (hasWork[rank] === true && (runningMs[rank] ?? 0) < FLOOR_SHARE * total) return rank;
  }
  return hasWork.indexOf(true);
}

/** Running time of calls by class over the last 5 minutes, in buckets of 5 s; calls still running count as they go. */
export class RunningTime {
  /** ms per class, highest first, over the window. */
  readonly totals: number[] = new Array<number>(CLASSES).fill(0);
  private readonly running: number[] = new Array<number>(CLASSES).fill(0);
  private readonly buckets = new Float64Array(BUCKETS * CLASSES);
  private bucket = 0;
  private atMs: number | null = null;

  started(rank: number, nowMs: number): void {
    this.advance(nowMs);
    this.running[rank] = (this.running[rank] ?? 0) + 1;
  }

  ended(rank: number, nowMs: number): void {
    this.advance(nowMs);
    this.running[rank] = (this.running[rank] ?? 0) - 1;
  }

  advance(nowMs: number): void {
    if (this.atMs === null) {
      this.atMs = nowMs;
      this.bucket = Math.floor(nowMs / BUCKET_MS);
      return;
    }
    if (nowMs <= this.atMs) return;
    const last = Math.floor(nowMs / BUCKET_MS);
    if (last - this.bucket >= 2 * BUCKETS) {
      // Longer away than the window: begin again inside it, or a laptop's night would be walked through 5 s at a time.
      this.atMs = (last - BUCKETS) * BUCKET_MS;
      this.bucket = last - BUCKETS;
      this.buckets.fill(0);
      this.totals.fill(0);
    }
    while (this.bucket < last) {
      this.add(this.bucket, (this.bucket + 1) * BUCKET_MS - this.atMs);
      this.bucket += 1;
      this.atMs = this.bucket * BUCKET_MS;
      this.clear(this.bucket);
    }
    this.add(this.bucket, nowMs - this.atMs);
    this.atMs = nowMs;
  }

  private add(bucket: number, elapsedMs: number): void {
    const at = (bucket % BUCKETS) * CLASSES;
    for (let rank = 0; rank < CLASSES; rank += 1) {
      const ms = elapsedMs * (this.running[rank] ?? 0);
      this.buckets[at + rank] = (this.buckets[at + rank] ?? 0) + ms;
      this.totals[rank] = (this.totals[rank] ?? 0) + ms;
    }
  }

  private clear(bucket: number): void {
    const at = (bucket % BUCKETS) * CLASSES;
    for (let rank = 0; rank < CLASSES; rank += 1) {
      this.totals[rank] = Math.max(0, (this.totals[rank] ?? 0) - (this.buckets[at + rank] ?? 0));
      this.buckets[at + rank] = 0;
    }
  }
}
