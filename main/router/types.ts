import type { PriorityClass } from '../domain/classes.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { ProjectId, ProviderId, RequestId, SpaceId } from '../domain/ids.ts';
import type { Provider } from '../domain/provider.ts';
import type { RoleId, RoleSettings, Task } from '../domain/roles.ts';
import type { Regime, VerdictKind } from '../domain/verdict.ts';
import type { RequestContext } from '../domain/work.ts';
import type { Explanation } from './explanation.ts';
import type { ReasonCode } from './reasons.ts';

/** Why a cloud provider takes nothing at all for now, whatever the permits say. */
export type CloudClosure = 'cloud_paused' | 'cloud_off' | 'key_missing' | 'key_stale' | 'spend_cap' | 'free_tier_spent';

/** A provider with what gate, budget and fleet found about it. The order of providers is the order in which ties are broken. */
export interface RoutedProvider extends Provider {
  /** Verdict by space; a missing space counts as `unverified`. Empty for chat and rerank. */
  readonly spaces: ReadonlyMap<SpaceId, VerdictKind>;
  /** When the newest of these verdicts was found (monotonic): one older than a fingerprint change does not count. */
  readonly verifiedAtMs: number | null;
  /** Cloud embedding: an upstream is pinned. True for everything that needs no pin. */
  readonly pinned: boolean;
  /** Cloud only; null: open. */
  readonly closed: CloudClosure | null;
  /** Monotonic: nothing is sent before (throttled model or upstream, account in cooldown). Null: not cooling. */
  readonly coolingUntilMs: number | null;
  /** Monotonic, since when its engine or node cannot be reached; null: reachable, or unknown since when. */
  readonly unreachableSinceMs: number | null;
  /** Monotonic, when the gate or the agent will look at it again after a failed probe; null: nothing is planned. */
  readonly nextProbeAtMs: number | null;
}

/** What the router needs of a role's settings. */
export type RouterRoleSettings = Pick<RoleSettings, 'enabled' | 'policy' | 'maxLocalWaitMs' | 'minTokensPerSecond'>;

/** One request in the router's terms. Immutable; the shell keeps the texts and bytes under the same request id. */
export interface RouterItem {
  readonly context: RequestContext;
  readonly task: Task;
  /** Inputs of an embedding request; 1 for chat and rerank. At least 1. */
  readonly units: number;
  /** Prompt estimate + max output, for the context window. Embeddings: the longest single input. */
  readonly neededTokens: number;
  /** Estimated tokens of the whole item: what fair sharing between projects charges. At least 1. */
  readonly costTokens: number;
  /** Prefix-cache affinity; null: none. */
  readonly conversation: string | null;
  /** Embeddings: the space the vectors must belong to. Null for chat and rerank. */
  readonly space: { readonly id: SpaceId; readonly regime: Regime } | null;
}

export type AttemptId = number;

/** Inputs `start` up to but not including `start + count` of one embedding item. */
export interface InputRange {
  readonly start: number;
  readonly count: number;
}

/** A provider and why it does not take an item. */
export interface ProviderRefusal {
  readonly provider: ProviderId;
  readonly reason: ReasonCode;
}

export type SubmitResult =
  | { readonly accepted: true }
  | {
      readonly accepted: false;
      readonly code: ErrorCode;
      /** Null: trying again soon is pointless. */
      readonly retryAfterMs: number | null;
      /** For `no_provider` and `context_too_long`: each provider with its reason. */
      readonly reasons: readonly ProviderRefusal[];
    };

/**
 * How an attempt ended. Reported exactly once per dispatched attempt, aborted ones included, when the upstream call has
 * really ended: the slot and the permit return at that moment.
 */
export type AttemptOutcome =
  | { readonly kind: 'success' }
  /** 429 or "model busy": re-queued, counts against nobody; the provider is left alone for `retryAfterMs` (default 1 s). */
  | { readonly kind: 'busy'; readonly retryAfterMs: number | null }
  | {
      readonly kind: 'failed';
      readonly code: ErrorCode;
      /**
       * Who fell silent (no answer, connection lost or refused) rather than answering with an error: nothing of it is touched
       * again until it has been probed.
       */
      readonly silent: 'no' | 'engine' | 'node';
      /** Failing inputs, counted from the start of the attempt's range. */
      readonly failing?: readonly number[];
    }
  /** The request's own fault: the item ends, nobody else is tried, nobody learns. */
  | { readonly kind: 'callerFault'; readonly code: ErrorCode; readonly failing?: readonly number[] }
  /** Another process answers there than the one the gate checked: vectors are discarded, its verdict is void. */
  | { readonly kind: 'fingerprint' }
  /** Aborted, client gone, control plane's own doing: nobody learns. */
  | { readonly kind: 'ignored' };

export type Decision =
  | {
      readonly kind: 'dispatch';
      readonly attempt: AttemptId;
      readonly request: RequestId;
      readonly provider: RoutedProvider;
      /** Null for chat and rerank. */
      readonly range: InputRange | null;
      /** A second copy of a chunk that another attempt is still working on; the first success wins. */
      readonly copyOf: AttemptId | null;
      readonly permit: PermitRef | null;
      /** First dispatch of the item: time from arrival, ms. */
      readonly queuedMs: number;
      readonly explanation: Explanation;
    }
  /** Stop the upstream call; its slot is held until `attemptEnded`. Its answer, if it comes, is discarded. */
  | { readonly kind: 'abort'; readonly attempt: AttemptId; readonly request: RequestId }
  /** The item has ended without an answer. Its running attempts are aborted by decisions of their own. */
  | {
      readonly kind: 'fail';
      readonly request: RequestId;
      readonly code: ErrorCode;
      readonly retryAfterMs: number | null;
      readonly reasons: readonly ProviderRefusal[];
      /** Embedding inputs concerned, absolute indices, at most 2,048. Empty: all or not known. */
      readonly failing: readonly number[];
      readonly trace: ItemTrace;
    }
  /** Every unit has been answered. */
  | { readonly kind: 'finished'; readonly request: RequestId; readonly trace: ItemTrace };

/** What the shell does with an answer: `keep` it (for embeddings at `range`) or `discard` it (late copy, cancelled, void). */
export interface EndedResult {
  readonly keep: boolean;
  readonly range: InputRange | null;
}

/**
 * Compact record of one item, plain JSON. Explanations are not in it: each dispatch decision carries its own, and keeping them
 * here too would hold a table of the whole fleet for every running request.
 */
export interface ItemTrace {
  readonly request: RequestId;
  readonly role: RoleId;
  readonly project: ProjectId;
  readonly class: PriorityClass;
  readonly submittedAtMs: number;
  readonly endedAtMs: number;
  readonly attempts: readonly AttemptRecord[];
}

export interface AttemptRecord {
  readonly attempt: AttemptId;
  readonly provider: ProviderId;
  readonly range: InputRange | null;
  readonly copyOf: AttemptId | null;
  readonly startedAtMs: number;
  readonly firstByteAtMs: number | null;
  /** Its answer was no longer wanted from then on. */
  readonly abortedAtMs: number | null;
  /** Null while it runs. */
  readonly endedAtMs: number | null;
  readonly outcome: AttemptOutcome['kind'] | null;
  readonly code: ErrorCode | null;
}

/** Opaque to the router; the port that made it understands it. */
export type PermitRef = object;

/** Why the budget gives nothing now. `no_permit` and `cooling` pass by themselves; `spend_cap` closes the cloud for this item. */
export type PermitRefusal = 'no_permit' | 'cooling' | 'spend_cap' | 'cloud_off';

/** Waiting work that may go to the cloud now, per project and role. */
export interface CloudDemand {
  readonly project: ProjectId;
  readonly role: RoleId;
  readonly class: PriorityClass;
  readonly oldestAtMs: number;
}

/**
 * The account-wide budget as the router sees it. The router offers each waiting project's best item in turn (highest class,
 * then oldest); the budget grants or refuses by its own fairness.
 */
export interface PermitPort {
  /** Called before a round of `tryAcquire` with everything that waits: one entry per project and role. Empty: nobody waits. */
  demand(waiting: readonly CloudDemand[], nowMs: number): void;
  tryAcquire(item: RouterItem, provider: RoutedProvider, nowMs: number): PermitRef | PermitRefusal;
  /** The upstream call has ended. The budget learns outcomes from the shell, not from here. */
  release(permit: PermitRef, nowMs: number): void;
  /** Monotonic time at which a refused claim may be granted without any release; null: only after a release. */
  nextChangeMs(nowMs: number): number | null;
}

export interface RouterSettings {
  /** Waiting items of one role; a project may hold a quarter of it. Default 1,000. */
  readonly queueBound: number;
  /** Conversations remembered for affinity. Default 10,000. */
  readonly conversations: number;
}
