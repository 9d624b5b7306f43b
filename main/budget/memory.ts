import type { LimitMemory } from './limit.ts';

/** What was learnt of the account, as it survives a restart. */
export interface BudgetMemory {
  readonly atWallMs: number;
  /** Null: no call was measured. */
  readonly latencyMs: number | null;
  readonly limit: LimitMemory;
  /** Starts that a window of 61 s still counts: [age in ms, how many], oldest first. */
  readonly starts: readonly (readonly [number, number])[];
}

/** What is older says nothing about the account any more: a plateau is tried again after as long. */
export const MEMORY_MS = 600_000;

/** How old it is; null: there is none, or it is of no use (too old, or from a clock that has been set back since). A cooldown holds until it ends. */
export function ageOf(memory: BudgetMemory | null, wallMs: number): number | null {
  if (memory === null) return null;
  const ageMs = wallMs - memory.atWallMs;
  return ageMs >= 0 && ageMs <= Math.max(MEMORY_MS, memory.limit.coolsForMs) ? ageMs : null;
}
