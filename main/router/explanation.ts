import type { PriorityClass } from '../domain/classes.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { ProjectId, ProviderId, RequestId, SpaceId } from '../domain/ids.ts';
import type { Policy } from '../domain/policy.ts';
import type { RoleId } from '../domain/roles.ts';
import type { ProviderRefusal } from './types.ts';

/**
 * Why one dispatch went where it went: plain JSON from which `replay` makes the same choice again. Columns, not rows, so that
 * a choice among a thousand providers stays cheap to record; all columns of one table have one length and order.
 */
export interface Explanation {
  readonly version: 1;
  readonly atMs: number;
  readonly request: RequestId;
  readonly role: RoleId;
  readonly project: ProjectId;
  readonly class: PriorityClass;
  readonly policy: Policy;
  readonly model: string | null;
  readonly space: SpaceId | null;
  readonly neededTokens: number;
  /** Everybody who could serve the item, free or not, in the order of the fleet. */
  readonly eligible: readonly ProviderId[];
  readonly refused: readonly ProviderRefusal[];
  /** Wait estimate at the last look; null for items that were never estimated. */
  readonly wait: WaitRecord | null;
  /** Under `backup`: why the cloud was open to the item; null: it was not, or the policy is another. */
  readonly spill: SpillReason | null;
  readonly candidates: CandidateTable;
  readonly affinity: ProviderId | null;
  readonly chunk: ChunkTable | null;
  readonly copy: CopyRecord | null;
  readonly picked: ProviderId;
  /** Attempts of the item that ended before this choice. */
  readonly before: readonly {
    readonly provider: ProviderId;
    readonly outcome: string;
    readonly code: ErrorCode | null;
  }[];
}

export type SpillReason = 'no_local' | 'wait_over_threshold' | 'waited' | 'local_failed';

export interface WaitRecord {
  readonly atMs: number;
  /** Estimate in ms; null: unknown. */
  readonly waitMs: number | null;
  /** Waiting ahead at the same or a higher class. */
  readonly ahead: number;
  readonly busy: number;
  readonly slots: number;
  /** Mean service time per local engine considered, under its first provider; null: none measured. */
  readonly serviceMs: readonly { readonly provider: ProviderId; readonly slots: number; readonly ms: number | null }[];
}

/** The eligible providers that were free, in the order of the fleet. */
export interface CandidateTable {
  readonly provider: readonly ProviderId[];
  /** Choice tier: 0 local with the model loaded, 1 local, 2 cloud. Embeddings: 0 local, 2 cloud. */
  readonly tier: readonly number[];
  readonly base: readonly number[];
  /** Running and queued attempts plus foreign load. */
  readonly busy: readonly number[];
  readonly slots: readonly number[];
  readonly speed: readonly number[];
  /** max(1, round(100 x base x load x speed)), load = 1 / (1 + 2 x busy / slots). */
  readonly weight: readonly number[];
  /** `current` of the smooth weighted round robin before the choice. */
  readonly current: readonly number[];
}

/** Striping inputs, one row per candidate. */
export interface ChunkTable {
  readonly left: number;
  /** Seconds since anything of the job moved. */
  readonly idleS: number;
  /** Sum of known rates over the eligible providers, inputs/s. */
  readonly totalRate: number;
  readonly fastestRate: number;
  readonly providers: number;
  readonly rate: readonly (number | null)[];
  readonly maxBatch: readonly number[];
  readonly inFlight: readonly number[];
  readonly chunksInFlight: readonly number[];
  /** True where the candidate may not take this very piece (failed it before, or an engine's last slot is kept for others). */
  readonly barred: readonly boolean[];
  /** Inputs of the piece at the front: no chunk crosses its end. */
  readonly piece: number;
}

/** A hedged copy: the owner's expectation against the idle provider's. */
export interface CopyRecord {
  readonly sentAtMs: number;
  readonly expectedAtMs: number | null;
  readonly inputs: number;
  readonly rate: number;
}
