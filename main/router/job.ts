import type { ProviderId } from '../domain/ids.ts';
import type { AttemptId, InputRange } from './types.ts';

/** Inputs that came back and wait to be handed out again. */
export interface Piece extends InputRange {
  readonly failures: number;
  readonly failedBy: readonly ProviderId[];
}

/** Inputs handed out together: one attempt works on them, or two while a copy runs. */
export interface Chunk extends Piece {
  readonly sentAtMs: number;
  /** When its first provider should be through; null: rate unknown. */
  readonly expectedAtMs: number | null;
  readonly local: boolean;
  readonly owner: ProviderId;
  readonly live: AttemptId[];
  copied: boolean;
  settled: boolean;
}

const NOBODY: readonly ProviderId[] = [];

/**
 * Ledger of one embedding item: which inputs are not handed out, in flight, answered. At every moment the three add up to all
 * inputs and no input is in two of them, so nothing is lost or answered twice.
 */
export class StripedJob {
  readonly units: number;
  /** Inputs not handed out. */
  left: number;
  answered = 0;
  /** When anything last moved: handed out, answered. */
  movedAtMs: number;
  readonly chunks = new Set<Chunk>();
  private next = 0;
  private readonly returned: Piece[] = [];
  private readonly chunksOf = new Map<ProviderId, number>();

  constructor(units: number, nowMs: number) {
    this.units = units;
    this.left = units;
    this.movedAtMs = nowMs;
  }

  get finished(): boolean {
    return this.answered === this.units;
  }

  /** What goes out next: what came back last, else the inputs never handed out. Null: nothing left. */
  front(): Piece | null {
    const back = this.returned.at(-1);
    if (back !== undefined) return back;
    if (this.next === this.units) return null;
    return { start: this.next, count: this.units - this.next, failures: 0, failedBy: NOBODY };
  }

  chunksAt(provider: ProviderId): number {
    return this.chunksOf.get(provider) ?? 0;
  }

  /** Hands out the first `count` inputs of the front piece. */
  take(
    count: number,
    attempt: AttemptId,
    owner: { readonly id: ProviderId; readonly local: boolean; readonly expectedAtMs: number | null },
    nowMs: number,
  ): Chunk {
    const piece = this.front();
    if (piece === null || count < 1 || count > piece.count) throw new RangeError('more than the front piece holds');
    if (this.returned.length > 0) {
      this.returned.pop();
      if (count < piece.count) {
        this.returned.push({ ...piece, start: piece.start + count, count: piece.count - count });
      }
    } else {
      this.next += count;
    }
    this.left -= count;
    this.movedAtMs = nowMs;
    const chunk: Chunk = {
      start: piece.start,
      count,
      failures: piece.failures,
      failedBy: piece.failedBy,
      sentAtMs: nowMs,
      expectedAtMs: owner.expectedAtMs,
      local: owner.local,
      owner: owner.id,
      live: [attempt],
      copied: false,
      settled: false,
    };
    this.chunks.add(chunk);
    this.count(owner.id, 1);
    return chunk;
  }

  copy(chunk: Chunk, attempt: AttemptId, provider: ProviderId): void {
    chunk.copied = true;
    chunk.live.push(attempt);
    this.count(provider, 1);
  }

  /** One attempt on the chunk is over, however it ended. */
  attemptOver(chunk: Chunk, attempt: AttemptId, provider: ProviderId): void {
    const at = chunk.live.indexOf(attempt);
    if (at >= 0) chunk.live.splice(at, 1);
    this.count(provider, -1);
  }

  /** The first answer of the chunk. */
  answer(chunk: Chunk, nowMs: number): void {
    chunk.settled = true;
    this.chunks.delete(chunk);
    this.answered += chunk.count;
    this.movedAtMs = nowMs;
  }

  /** Nobody works on the chunk any more: its inputs go to the front. `failedBy` null: it counts against nobody. */
  giveBack(chunk: Chunk, failedBy: ProviderId | null): Piece {
    chunk.settled = true;
    this.chunks.delete(chunk);
    this.left += chunk.count;
    const piece: Piece = {
      start: chunk.start,
      count: chunk.count,
      failures: chunk.failures + (failedBy === null ? 0 : 1),
      failedBy: failedBy === null || chunk.failedBy.includes(failedBy) ? chunk.failedBy : [...chunk.failedBy, failedBy],
    };
    this.returned.push(piece);
    return piece;
  }

  private count(provider: ProviderId, by: number): void {
    const now = this.chunksAt(provider) + by;
    if (now <= 0) this.chunksOf.delete(provider);
    else this.chunksOf.set(provider, now);
  }
}
