import type { ProviderId, RequestId, SpaceId } from '../domain/ids.ts';
import type { Policy } from '../domain/policy.ts';
import type { RoleId, RoleSettings } from '../domain/roles.ts';
import type { Said } from '../domain/said.ts';
import type { Fingerprint, VerdictKind } from '../domain/verdict.ts';
import type { FoundingCandidate } from './founding.ts';
import type { LedgerRange } from './ledger.ts';
import type { Encoder } from './probe-port.ts';
import type { Space } from './space.ts';
import type { RoleChange, VerdictPoint } from './store-port.ts';
import type { Verdict } from './verdict.ts';

/** What an embedding role answers with now. */
export type RoleSpace =
  | { readonly state: 'founded'; readonly space: Space }
  /** Founding has begun by itself: first requests wait for it. */
  | { readonly state: 'founding' }
  | { readonly state: 'anchor-lost'; readonly space: Space }
  | { readonly state: 'unfounded'; readonly candidates: readonly FoundingCandidate[]; readonly reason: Said };

export type GateEvent =
  | { readonly type: 'verdict'; readonly verdict: Verdict }
  | { readonly type: 'space'; readonly space: Space; readonly change: 'founded' | 'retired' | 'imported' | 'changed' }
  | { readonly type: 'founding'; readonly role: RoleId; readonly state: RoleSpace['state'] }
  /** A provider that had passed no longer does, and wrote rows since its last good check. */
  | {
      readonly type: 'drift';
      readonly verdict: Verdict;
      readonly sinceMs: number;
      readonly ranges: readonly LedgerRange[];
      readonly rows: number;
    }
  /** The store refused a write; serving goes on. `lostRanges` counts ledger ranges given up so far. */
  | { readonly type: 'store'; readonly state: 'failing' | 'recovered'; readonly lostRanges: number };

export interface FoundRequest {
  readonly role: RoleId;
  /** Null: by the rules of founding by itself. */
  readonly founder: ProviderId | null;
  /** Refused unless the founder gives this width; null: whatever it gives. */
  readonly width: number | null;
  /** Needed to replace a space, the trial too. */
  readonly confirm: boolean;
  /** Settings of the role that the space is founded for: they change with it, or neither does. Absent: they stay. */
  readonly change?: RoleChange | null;
}

export interface FoundResult {
  readonly space: Space;
  readonly verdict: Verdict;
  /** Smallest cosine of the founder against the replaced space's anchor; null without one or of another width. */
  readonly cosineToPrevious: number | null;
}

/** What the router asks: synchronous and cheap. */
export interface VerdictSource {
  verdictFor(provider: ProviderId, space: SpaceId): VerdictKind;
  /** May serve a text of this space now: `pass`, or `pass-reduced` in a space founded in the cloud. */
  admitted(provider: ProviderId, space: SpaceId): boolean;
  /** A verdict is being made, or about to be: first requests wait for it. */
  pending(provider: ProviderId, space: SpaceId): boolean;
}

/** What dispatch asks around each embed call. */
export interface AnswerGuard {
  /**
   * With the fingerprint in the trailers of an answer. False: discard the vectors and re-queue the chunk; the verdict has
   * been voided if the fingerprint is another than the one that passed.
   */
  admit(provider: ProviderId, space: SpaceId, fingerprint: Fingerprint): boolean;
  /** Widths that may be asked of this provider: the space's own, and declared ones it passed cut. */
  servesWidth(provider: ProviderId, space: SpaceId, width: number): boolean;
  /** After vectors were admitted. Never waits for disk. */
  record(range: Omit<LedgerRange, 'atMs'>): void;
}

export interface Gate extends VerdictSource, AnswerGuard {
  /** Loads spaces and verdicts. Before it resolves nothing is admitted. */
  start(): Promise<void>;
  /** Aborts verifications and writes the ledger out. Idempotent. */
  stop(): Promise<void>;
  subscribe(listener: (event: GateEvent) => void): () => void;

  /** The whole catalogue, at each change. A changed fingerprint voids verdicts before this returns. */
  onProviders(encoders: readonly Encoder[]): void;
  /** Role settings, at start and at each change. A changed policy, threshold or cut width asks for new verdicts. */
  onRoles(roles: Readonly<Record<RoleId, RoleSettings>>): void;

  roleSpace(role: RoleId): RoleSpace;
  space(id: SpaceId): Space | null;
  spaces(): readonly Space[];
  verdict(provider: ProviderId, space: SpaceId): Verdict | null;
  verdicts(): readonly Verdict[];
  history(provider: ProviderId, space: SpaceId, sinceMs: number): Promise<readonly VerdictPoint[]>;

  /** @param wanted settings that the role would have; absent: those it has */
  candidates(role: RoleId, wanted?: RoleSettings): readonly FoundingCandidate[];
  /**
   * @throws SwitchyardError space_unfounded, confirmation_required, provider_not_found, founder_refused, role_not_found,
   *   version_conflict when the role was changed while the founder was measured
   */
  found(request: FoundRequest): Promise<FoundResult>;
  /** @throws SwitchyardError space_not_found; confirmation_required for the current space of a role */
  retire(space: SpaceId, confirm: boolean): Promise<Space>;
  /** @throws SwitchyardError space_not_found, space_anchor_lost */
  exportSpace(space: SpaceId): string;
  /** @throws SwitchyardError invalid_space_file, space_exists, confirmation_required */
  importSpace(content: string, confirm: boolean): Promise<Space>;
  /** Starts checks of one provider or all now; returns those that were started. @throws SwitchyardError provider_not_found */
  verify(provider: ProviderId | null): readonly ProviderId[];
  /** @throws SwitchyardError new_space_required when no encoder of the role's space can follow */
  checkPolicy(role: RoleId, policy: Policy): void;

  /** What a provider wrote since its last good check, as joined ranges; `sinceMs` null: it never passed. */
  affected(
    provider: ProviderId,
  ): Promise<{ readonly sinceMs: number | null; readonly ranges: readonly LedgerRange[]; readonly rows: number }>;
  rangesOfRequest(request: RequestId): Promise<readonly LedgerRange[]>;
}
