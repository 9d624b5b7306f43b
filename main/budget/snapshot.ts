import type { ProjectId } from '../domain/ids.ts';
import type { Said } from '../domain/said.ts';
import type { CeilingSource } from './ceiling.ts';
import type { OpenCircuit } from './circuits.ts';
import type { BudgetState } from './describe.ts';
import type { SpendLine } from './spend.ts';
import type { AccountFacts } from './trust.ts';

/** One entry of the budget's diary; wall clock, so that a chart can draw it. */
export type BudgetRecord = { readonly atWallMs: number } & (
  | {
      readonly kind: 'cut';
      readonly from: number;
      readonly to: number;
      readonly untilWallMs: number;
      readonly cause: string;
    }
  | { readonly kind: 'cooldown-extended'; readonly untilWallMs: number }
  | { readonly kind: 'step'; readonly from: number; readonly to: number }
  | { readonly kind: 'plateau'; readonly value: number | null }
  | { readonly kind: 'ceiling'; readonly from: number; readonly to: number }
  | { readonly kind: 'circuit'; readonly name: string; readonly subject: string | null }
  | { readonly kind: 'paused' | 'resumed' }
);

/** Everything about the budget at one moment, for the GUI, `GET /admin/budget` and metrics. */
export interface BudgetSnapshot {
  readonly state: BudgetState;
  readonly sentence: string;
  /** The same by code and figures. */
  readonly says: Omit<Said, 'sentence'>;
  readonly ceiling: number;
  readonly ceilingSource: CeilingSource;
  readonly effective: number;
  /** min(effective, ceiling); for free models only when the ceiling of paid ones is 0. */
  readonly usable: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly override: number | null;
  readonly paused: boolean;
  /** Null before the first discovery. */
  readonly facts: AccountFacts | null;
  readonly discoveredAtWallMs: number | null;
  readonly rpmTrusted: boolean;
  /** What the ceiling is reckoned from; an assumption until `latencyMeasured`. */
  readonly latencyMs: number;
  readonly latencyMeasured: boolean;
  readonly cuts: number;
  readonly plateau: number | null;
  /** Monotonic; null when not cooling. */
  readonly cooldownUntilMs: number | null;
  readonly cooldownUntilWallMs: number | null;
  /** Null when there is nowhere to climb. */
  readonly nextStepWallMs: number | null;
  /** Starts in any 61 s under a trusted rate; null: no window. */
  readonly window: { readonly limit: number; readonly starts: number } | null;
  /** Override to offer to the operator; null: none. */
  readonly suggestion: number | null;
  /** Permits that each waiting project may hold; null when none waits. */
  readonly share: number | null;
  readonly projects: readonly { readonly project: ProjectId; readonly held: number; readonly waiting: number }[];
  readonly circuits: readonly {
    readonly reason: OpenCircuit['reason'];
    readonly subject: string | null;
    readonly sentence: string;
    readonly untilWallMs: number | null;
  }[];
  readonly spend: readonly SpendLine[];
  readonly records: readonly BudgetRecord[];
}
