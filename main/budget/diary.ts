import type { LimitEvent } from './limit.ts';
import type { BudgetRecord } from './snapshot.ts';

const KEPT = 500;
/** Of all kinds, and of cuts and pauses, which steps would push out, as many again: what the next run is told. */
export const LASTING = 64;

/** Something worth showing to people, at its monotonic time. */
export type DiaryEvent =
  | Exclude<LimitEvent, { readonly kind: 'cut' }>
  | (Extract<LimitEvent, { readonly kind: 'cut' }> & { readonly cause: string })
  | { readonly kind: 'paused' | 'resumed'; readonly atMs: number }
  | { readonly kind: 'ceiling'; readonly atMs: number; readonly from: number; readonly to: number }
  | { readonly kind: 'circuit'; readonly atMs: number; readonly name: string; readonly subject: string | null };

/** The last cuts, steps and closures, in wall-clock time. */
export class Diary {
  readonly #wallOf: (atMs: number) => number;
  #records: BudgetRecord[] = [];
  #recorded = 0;

  /** @param earlier records of an earlier run: they count as told. */
  constructor(wallOf: (atMs: number) => number, earlier: readonly BudgetRecord[] = []) {
    this.#wallOf = wallOf;
    this.#records = [...earlier];
  }

  get records(): readonly BudgetRecord[] {
    return this.#records;
  }

  /** Entries ever made: tells a reader how many are new. */
  get recorded(): number {
    return this.#recorded;
  }

  /** The few that outlive the process. */
  get lasting(): readonly BudgetRecord[] {
    const limits = this.#records.filter(({ kind }) => kind === 'cut' || kind === 'cooldown-extended');
    const lasting = new Set([...limits.slice(-LASTING), ...this.#records.slice(-LASTING)]);
    return this.#records.filter((record) => lasting.has(record));
  }

  note(event: DiaryEvent): void {
    const atWallMs = this.#wallOf(event.atMs);
    this.#recorded += 1;
    if (event.kind === 'cut' || event.kind === 'cooldown-extended') {
      const { atMs: _, untilMs, ...rest } = event;
      this.#records.push({ ...rest, atWallMs, untilWallMs: this.#wallOf(untilMs) });
    } else {
      const { atMs: _, ...rest } = event;
      this.#records.push({ ...rest, atWallMs });
    }
    // Half at a time, so that a long run does not move the array with every record.
    if (this.#records.length > KEPT) this.#records = this.#records.slice(-KEPT / 2);
  }
}
