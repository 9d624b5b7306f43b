import type { ProviderId, RequestId } from '../domain/ids.ts';
import type { RoleId } from '../domain/roles.ts';
import type { RouterSnapshot } from './snapshot.ts';
import type {
  AttemptId,
  AttemptOutcome,
  Decision,
  EndedResult,
  ItemTrace,
  PermitPort,
  RoutedProvider,
  RouterItem,
  RouterRoleSettings,
  RouterSettings,
  SubmitResult,
} from './types.ts';

/** Public face of the router; `RouterCore` implements it. Call `decide` after every event and when `nextWakeMs` has come. */
export interface Router {
  /** The whole fleet, in the order in which ties are broken. Counters, rates, parking and `current` survive by provider id. */
  setProviders(providers: readonly RoutedProvider[], nowMs: number): void;
  setRole(role: RoleId, settings: RouterRoleSettings, nowMs: number): void;
  /** Takes an item into its role's queue or says why not. Deadlines run from `nowMs`. */
  submit(item: RouterItem, nowMs: number): SubmitResult;
  /**
   * The client is gone: the item leaves the queue. Returns the running attempts to abort (each still needs its `attemptEnded`).
   * No `finished` or `fail` follows. Unknown or ended ids give an empty list.
   */
  cancel(request: RequestId, nowMs: number): readonly AttemptId[];
  /** A byte of the answer has gone to the client: from now on no other provider is tried. */
  firstByte(attempt: AttemptId, nowMs: number): void;
  /** Exactly once per dispatched attempt. Says whether the answer counts. */
  attemptEnded(attempt: AttemptId, outcome: AttemptOutcome, nowMs: number): EndedResult;
  /** A probe of this provider (by its agent or the gate) has ended: one that was parked for silence may be tried again. */
  probed(provider: ProviderId, ok: boolean, nowMs: number): void;
  /** Something in the budget has changed: refused claims are offered again at the next `decide`. */
  permitsChanged(): void;
  decide(nowMs: number): readonly Decision[];
  /** Latest monotonic time at which `decide` must be called again; null: not before the next event. */
  nextWakeMs(nowMs: number): number | null;
  /** The trace so far of an item that has not ended, e.g. just before `cancel`; null: unknown or ended. */
  traceOf(request: RequestId, nowMs: number): ItemTrace | null;
  snapshot(nowMs: number): RouterSnapshot;
}

export interface RouterOptions {
  readonly permits: PermitPort;
  readonly settings?: Partial<RouterSettings>;
}
