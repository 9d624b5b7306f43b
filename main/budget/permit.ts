import type { PriorityClass } from '../domain/classes.ts';
import type { ProjectId } from '../domain/ids.ts';
import type { RoleId } from '../domain/roles.ts';
import type { CallTarget } from './circuits.ts';
import type { CloudRefusal, SourceRow } from './sources.ts';

/** One startable piece of work (a request, or one chunk of a striped one) that wants a permit for one cloud provider. */
export interface PermitAsk extends CallTarget {
  /** Names the piece of work; asking again with the same id is the same ask. */
  readonly id: string;
  readonly project: ProjectId;
  /** API key behind it; absent where there is none. Nothing is decided by it. */
  readonly keyId?: string | null;
  readonly role: RoleId;
  readonly class: PriorityClass;
  readonly arrivedAtMs: number;
  /** Upper estimate of the cost; null when the price is unknown. */
  readonly estimateUsd: number | null;
}

/** One cloud call in flight, from before the send until the upstream call has really ended. */
export interface Permit {
  /** Travels to the agent, which names it when a cancelled call has ended. */
  readonly id: string;
  readonly ask: PermitAsk;
  /** Number of the congestion event in which the call started. */
  readonly cuts: number;
  readonly startedAtMs: number;
}

/** Why a call may not start now. Stable words: they are kept on traces. */
export type RefusalReason =
  | 'cloud_paused'
  | 'key_refused'
  | 'credit_exhausted'
  | 'free_tier_limit'
  | 'model_cooling'
  | 'provider_cooling'
  | 'in_flight_budget'
  | 'spend_cap'
  | 'price_unknown'
  | 'account_cooling'
  | 'rate_window'
  | 'no_permit'
  | 'not_its_turn';

export interface Refused {
  readonly granted: false;
  readonly reason: RefusalReason;
  /** When it is worth asking again without anything else happening; null: when a permit returns, or never by itself. */
  readonly untilMs: number | null;
}

export type Decision = { readonly granted: true; readonly permit: Permit } | Refused;

/** How a cloud call ended. */
export type CallOutcome =
  /** `latencyMs`: from the send to the end, queueing excluded. `costUsd` null: not reported, the estimate stands. */
  | { readonly kind: 'success'; readonly latencyMs: number; readonly costUsd: number | null }
  /** OpenRouter or the upstream answered with an error, before or inside the stream. */
  | { readonly kind: 'refused'; readonly refusal: CloudRefusal; readonly costUsd: number | null }
  /** Anything else: transport, time-out, unusable answer, cancelled by the client. Nothing is learnt about the account. */
  | { readonly kind: 'ended'; readonly costUsd: number | null };

/** What the end of a call means for whoever started it. */
export interface Reaction {
  /** Null: the call was not refused by OpenRouter. */
  readonly source: SourceRow | null;
  /** The account's limit was halved by this very call. */
  readonly cut: boolean;
}
