import type { ProviderId, RequestId, SpaceId } from '../domain/ids.ts';

/** Who wrote which vectors of a request. Kept 90 days, so that rows of an encoder that drifted can be found. */
export interface LedgerRange {
  readonly request: RequestId;
  readonly space: SpaceId;
  readonly provider: ProviderId;
  /** First and last input index, both included. */
  readonly from: number;
  readonly to: number;
  /** Wall clock, when the vectors were admitted. */
  readonly atMs: number;
}

export const LEDGER_KEPT_MS = 90 * 24 * 3_600_000;

/** Written at the latest after this long, or when so many wait: nothing on the request path waits for disk. */
export const LEDGER_FLUSH_MS = 1000;
export const LEDGER_FLUSH_COUNT = 512;

/** While the store is unavailable the newest ranges are kept up to this number; older ones are lost and counted. */
export const LEDGER_BUFFER_LIMIT = 50_000;

/** Sorted index ranges with touching and overlapping neighbours joined: one job's chunks read as one range. */
export function joinRanges(ranges: readonly LedgerRange[]): readonly LedgerRange[] {
  const sorted = [...ranges].sort(
    (a, b) =>
      compareText(a.request, b.request) ||
      compareText(a.space, b.space) ||
      compareText(a.provider, b.provider) ||
      a.from - b.from,
  );
  const joined: LedgerRange[] = [];
  for (const range of sorted) {
    const last = joined.at(-1);
    const touches =
      last !== undefined &&
      last.request === range.request &&
      last.space === range.space &&
      last.provider === range.provider &&
      range.from <= last.to + 1;
    if (touches) {
      const atMs = Math.min(last.atMs, range.atMs);
      joined[joined.length - 1] = { ...last, to: Math.max(last.to, range.to), atMs };
    } else joined.push(range);
  }
  return joined.sort((a, b) => a.atMs - b.atMs || compareText(a.request, b.request) || a.from - b.from);
}

/** Rows (not ranges) that the given ranges cover. */
export function countRows(ranges: readonly LedgerRange[]): number {
  return ranges.reduce((sum, { from, to }) => sum + (to - from + 1), 0);
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Ranges not yet on disk, bounded. Plain state: the service decides when to flush. */
export class LedgerBuffer {
  #waiting: LedgerRange[] = [];
  #lost = 0;

  add(range: LedgerRange): void {
    this.#waiting.push(range);
    this.#trim();
  }

  /** Hands the waiting ranges out; `putBack` returns them when they could not be written. */
  take(): readonly LedgerRange[] {
    const taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }

  putBack(ranges: readonly LedgerRange[]): void {
    this.#waiting = [...ranges, ...this.#waiting];
    this.#trim();
  }

  peek(): readonly LedgerRange[] {
    return this.#waiting;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** Ranges dropped because the store stayed away too long. */
  get lost(): number {
    return this.#lost;
  }

  #trim(): void {
    const over = this.#waiting.length - LEDGER_BUFFER_LIMIT;
    if (over <= 0) return;
    this.#waiting.splice(0, over);
    this.#lost += over;
  }
}
