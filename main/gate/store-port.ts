import type { ProviderId, RequestId, SpaceId } from '../domain/ids.ts';
import type { RoleSettings } from '../domain/roles.ts';
import type { VerdictKind } from '../domain/verdict.ts';
import type { LedgerRange } from './ledger.ts';
import type { SpaceFacts } from './space.ts';
import type { Verdict } from './verdict.ts';

/** Vectors as they rest: little-endian float32, row-major, with the digest that tells loss from truth. */
export interface StoredMatrix {
  readonly bytes: Uint8Array;
  /** SHA-256 of `bytes`, lower-case hex, made by the gate; the store only keeps it. */
  readonly sha256: string;
}

export interface StoredSpace {
  /** JSON-serialisable. */
  readonly facts: SpaceFacts;
  /** Null when no anchor rests here (lost). */
  readonly anchor: StoredMatrix | null;
  /** The space in which the role answers requests that name none. At most one per role. */
  readonly current: boolean;
}

/** Settings of the space's role that go with it. */
export interface RoleChange {
  readonly settings: RoleSettings;
  /** Of the settings that the change was worked out from; another one in the store: nothing is written. */
  readonly ifVersion: number;
}

/** A provider's own first vectors in a space: what drift is measured against. */
export interface StoredFirst {
  readonly provider: ProviderId;
  readonly space: SpaceId;
  readonly vectors: StoredMatrix;
  readonly takenAtMs: number;
  /** JSON-serialisable; the process that gave them. */
  readonly fingerprint: Verdict['fingerprint'];
}

export interface GateSnapshot {
  readonly spaces: readonly StoredSpace[];
  /** The newest verdict of each (provider, space). */
  readonly verdicts: readonly Verdict[];
  readonly firsts: readonly StoredFirst[];
}

export interface VerdictPoint {
  readonly atMs: number;
  readonly minCosine: number | null;
  readonly kind: VerdictKind;
}

/**
 * Where the gate's findings rest. Every method is one transaction; a rejection means that nothing changed. Only `saveSpace`
 * is awaited before anything is served: a space whose anchor is not on disk must not answer.
 */
export interface GateStore {
  load(): Promise<GateSnapshot>;
  /**
   * Inserts or replaces by id. With `current`, every other space of the role stops being current. With `role`, its settings are
   * written in the same transaction; rejects with `version_conflict` when somebody changed them meanwhile.
   */
  saveSpace(space: StoredSpace, role?: RoleChange | null): Promise<void>;
  /** Replaces the one of (provider, space), and adds a point to its history (kept 90 days). */
  saveVerdict(verdict: Verdict): Promise<void>;
  saveFirst(first: StoredFirst): Promise<void>;
  appendRanges(ranges: readonly LedgerRange[]): Promise<void>;
  /** Ranges that a provider wrote at or after `sinceMs` (wall clock), oldest first, at most `limit`. */
  rangesOfProvider(provider: ProviderId, sinceMs: number, limit: number): Promise<readonly LedgerRange[]>;
  rangesOfRequest(request: RequestId): Promise<readonly LedgerRange[]>;
  /** Deletes ranges and history points older than `beforeMs`. */
  prune(beforeMs: number): Promise<void>;
  history(provider: ProviderId, space: SpaceId, sinceMs: number): Promise<readonly VerdictPoint[]>;
}
