import type { LimitEvent } from './limit.ts';
import type { BudgetRecord } from './snapshot.ts';

const KEPT = 500;

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

  constructor(wallOf: (atMs: number) => number) {
    this.#wallOf = wallOf;
  }

  get records(): readonly BudgetRecord[] {
    return this.#records;
  }

  /** Entries ever made: tells a reader how many are new. */
  get recorded(): number {
    return this.#recorded;
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
