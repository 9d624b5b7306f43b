import type { EventRecord, Severity } from '../domain/events.ts';
import type { NodeId, ProjectId, ProviderId, RequestId } from '../domain/ids.ts';
import type { RequestSummary } from '../domain/observation.ts';
import type { ProviderKind } from '../domain/policy.ts';
import type { RoleId, RoleSettings } from '../domain/roles.ts';
import type { Said } from '../domain/said.ts';
import type { GateStore } from '../gate/store-port.ts';
import type { ApiKey, IdempotencyStore, KeyDirectory } from '../gateway/ports.ts';
import type { ClosedStep, SeriesRange } from '../telemetry/time-series.ts';

/**
 * What other rooms get of the store. Three manners, and a caller should know which one it uses:
 *
 * - **Read from memory** (synchronous): configuration and keys, from the last good snapshot. Never waits, never throws, also while
 *   the database is unreadable, locked or full.
 * - **Change** (a promise): resolves when the change is committed and the snapshot shows it. Rejects with `store_unavailable` when
 *   it cannot be written; the snapshot is then as before. What was acknowledged survives SIGKILL.
 * - **Record** (synchronous, no result): telemetry, buffered in a bounded queue and written in batches. Never waits, never throws;
 *   what the bound turns away is counted in `health()`.
 */
export interface Store {
  /**
   * Locks the data folder, opens the vault and the database, loads the snapshot. A database that cannot be opened does not stop
   * the start when a last good copy of the configuration exists: `health().state` is then not `ok`.
   * Rejects with `store_in_use` (another process owns the folder; its pid is named), `store_newer`, `vault_locked`, or
   * `store_unavailable`.
   */
  start(): Promise<void>;
  /** Writes what is buffered (at most 3 s), closes the database, releases the folder. Idempotent. */
  stop(): Promise<void>;
  health(): StoreHealth;
  /** Called after every change of `health().state`. @returns its own unsubscribe. */
  onHealth(listener: (health: StoreHealth) => void): () => void;
  /** Called after every change of the snapshot, by this process or by a recovery. @returns its own unsubscribe. */
  onChange(listener: (change: ConfigChange) => void): () => void;

  readonly settings: SettingsStore;
  readonly roles: RoleStore;
  readonly nodes: NodeStore;
  readonly access: AccessStore;
  readonly traces: TraceStore;
  readonly events: EventStore;
  readonly usage: UsageStore;
  readonly series: SeriesStore;
  /** Spaces, verdicts, first vectors, and the ledger of embedding ranges (90 days). */
  readonly budget: BudgetStateStore;
  readonly gate: GateStore;
  readonly idempotency: IdempotencyStore;
  readonly secrets: SecretStore;
  readonly vault: VaultAdmin;
  readonly maintenance: Maintenance;
}

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** What changed in the snapshot; `all` after a recovery, when anything may have. */
export type ConfigChange = 'settings' | 'roles' | 'nodes' | 'access' | 'all';

/** A document and the number of changes it has seen; 0: never stored, the value is the default. */
export interface Versioned<Value> {
  readonly version: number;
  readonly value: Value;
}

/** General settings, one JSON document per name (`endpoint`, `desktop`). Their owner knows their schema. */
export interface SettingsStore {
  /** From memory; null when nothing of that name is stored. */
  get(name: string): Versioned<Json> | null;
  /**
   * @param ifVersion when given, another version in the database rejects with `version_conflict`.
   * @returns the new version.
   */
  put(name: string, value: Json, ifVersion?: number): Promise<number>;
}

export interface RoleStore {
  /**
   * From memory, defaults where nothing is stored. A stored document that cannot be understood comes back disabled and `local`:
   * nothing leaves the network because of a damaged row.
   */
  get(role: RoleId): Versioned<RoleSettings>;
  /** As `SettingsStore.put`. */
  put(role: RoleId, settings: RoleSettings, ifVersion?: number): Promise<number>;
}

/** What the operator wants of a node, whatever its session says. */
export type NodeWish = 'serve' | 'drain' | 'maintenance';

export interface NodeRecord {
  readonly id: NodeId;
  readonly name: string;
  /** `HOST:PORT` in canonical form, zone kept. */
  readonly address: string;
  /** Entered by a person, not found by discovery. */
  readonly manual: boolean;
  /** The agent that this control plane starts itself. */
  readonly embedded: boolean;
  /** SHA-256 of the agent's public key (SPKI), 64 lower-case hex digits. */
  readonly fingerprint: string;
  /** Announced in session; holds beside `fingerprint` until it is first used. */
  readonly nextFingerprint: string | null;
  readonly wish: NodeWish;
  readonly addedAtMs: number;
}

/** A pairing whose end was not seen: the key may already be the node's. */
export interface PendingPairingRecord {
  readonly node: string;
  readonly address: string;
  readonly fingerprint: string;
  /** 32 bytes. */
  readonly key: Uint8Array;
}

export interface NodeStore {
  /** From memory, oldest first. */
  list(): readonly NodeRecord[];
  get(id: NodeId): NodeRecord | null;
  /** Node key (32 bytes), from memory; null when there is none or the vault cannot open it. A copy: the caller may zero it. */
  key(id: NodeId): Uint8Array | null;
  /** Stores node and key in one transaction, replaces an older node of this id, and drops the pending pairing of this id. */
  add(record: NodeRecord, key: Uint8Array): Promise<void>;
  /** Rejects with `node_not_found`. */
  update(
    id: NodeId,
    change: Partial<Pick<NodeRecord, 'name' | 'address' | 'wish' | 'fingerprint' | 'nextFingerprint' | 'manual'>>,
  ): Promise<void>;
  /** Node, key and base weights of its providers. Unknown ids are no error. */
  remove(id: NodeId): Promise<void>;
  /** Before the key is issued: survives a kill at any point of the pairing. One per node id, the newest. */
  putPending(pending: PendingPairingRecord): Promise<void>;
  /** From memory, newest first: the pending pairings that were begun at this address. */
  pending(address: string): readonly PendingPairingRecord[];
  dropPending(node: string): Promise<void>;
  /** The operator's weight of a provider, from memory; 1 when none was set. */
  baseWeight(provider: ProviderId): number;
  /** 0.1 to 10; null sets it back to 1. */
  setBaseWeight(provider: ProviderId, node: NodeId, weight: number | null): Promise<void>;
}

export interface ProjectRecord {
  readonly id: ProjectId;
  readonly name: string;
  readonly createdAtMs: number;
}

/** An API key as people see it; the key itself was shown once and is not kept. */
export interface ApiKeyRecord extends ApiKey {
  readonly name: string;
  /** A few last characters, so that its owner can tell it from others. */
  readonly hint: string;
  readonly createdAtMs: number;
  /** Precise to a minute; null: never used. */
  readonly lastUsedAtMs: number | null;
  readonly revokedAtMs: number | null;
}

/** Projects, API keys and the admin token. `find` and `hasProject` are the endpoint's directory: revoked keys are not found. */
export interface AccessStore extends KeyDirectory {
  projects(): readonly ProjectRecord[];
  apiKeys(): readonly ApiKeyRecord[];
  addProject(project: ProjectRecord): Promise<void>;
  /** @param sha256 lower-case hex of the key's bytes. */
  addApiKey(key: Omit<ApiKeyRecord, 'lastUsedAtMs' | 'revokedAtMs'>, sha256: string): Promise<void>;
  /** Acts in memory at once, also when the database cannot be written (the promise then rejects). */
  revokeApiKey(id: string, atMs: number): Promise<void>;
  /** Recorded, one write per key and minute. */
  used(id: string, atMs: number): void;
  /** SHA-256 (hex) of the admin token; null before the first run made one. */
  adminTokenSha256(): string | null;
  setAdminTokenSha256(sha256: string): Promise<void>;
}

/** Why a request went where it went: figures, ids, codes, times. Never prompts or answers. Kept 7 days. */
export interface TraceRecord {
  readonly summary: RequestSummary;
  /** Everything the explanation needs; at most 64 KiB as JSON, else it is replaced by `{ "omitted": true }`. */
  readonly detail: Json;
}

/** Absent: not filtered. */
export interface TraceFilter {
  readonly project?: ProjectId;
  readonly role?: RoleId;
  readonly route?: ProviderKind;
  readonly provider?: ProviderId;
  readonly node?: NodeId;
  readonly model?: string;
  readonly outcome?: RequestSummary['outcome'];
  readonly code?: string;
  readonly sinceMs?: number;
  /** Exclusive. */
  readonly untilMs?: number;
  readonly minTotalMs?: number;
}

export interface Page<Item> {
  /** Newest first. */
  readonly items: readonly Item[];
  /** Hand it back for the next page; null: there is none. */
  readonly next: string | null;
}

export interface TraceStore {
  record(trace: TraceRecord): void;
  /** Sees what was recorded before the call. Null: unknown or expired. */
  get(id: RequestId): Promise<TraceRecord | null>;
  /** @param limit 1 to 500. */
  list(filter: TraceFilter, limit: number, after?: string): Promise<Page<RequestSummary>>;
}

export interface EventFilter {
  /** This severity and worse. */
  readonly severity?: Severity;
  readonly source?: EventRecord['source'];
  readonly code?: string;
  readonly node?: NodeId;
  readonly role?: RoleId;
  readonly request?: RequestId;
  readonly sinceMs?: number;
  readonly untilMs?: number;
  /** Part of the sentence, compared without case (ASCII). */
  readonly text?: string;
}

/** Kept 30 days. */
export interface EventStore {
  record(event: EventRecord): void;
  list(filter: EventFilter, limit: number, after?: string): Promise<Page<EventRecord>>;
}

/** Which of a day's sums. */
interface UsageOf {
  /** Id of the API key; null: the open loopback project. */
  readonly key: string | null;
  readonly project: ProjectId;
  readonly role: RoleId;
  readonly model: string | null;
  readonly route: ProviderKind | null;
  readonly atMs: number;
}

/** One finished request, to be added to its day's sums. */
export interface UsageEntry extends UsageOf {
  readonly success: boolean;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** False: the tokens were estimated. */
  readonly exact: boolean;
}

/** What one call has cost, to be added to its day's sums. */
export interface UsageCost extends UsageOf {
  readonly costUsd: number;
}

/** Sums of one UTC day. */
export interface UsageRow {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  readonly key: string | null;
  readonly project: ProjectId;
  readonly role: RoleId;
  readonly model: string | null;
  readonly route: ProviderKind | null;
  readonly requests: number;
  readonly failures: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Requests whose tokens were estimated. */
  readonly inexact: number;
  /** Sum of what was booked, kept as whole nano-dollars so that it adds up exactly. */
  readonly costUsd: number;
}

/** Kept 13 months. Summed in memory by day, key and model first: a bounded number of rows, whatever the traffic. */
export interface UsageStore {
  record(entry: UsageEntry): void;
  /** Of a call of its own: it may have no request that has ended, or several calls one. */
  spent(cost: UsageCost): void;
  /** Days inclusive, `YYYY-MM-DD`; oldest first. Sees what was recorded before the call. */
  query(filter: {
    readonly fromDay: string;
    readonly toDay: string;
    readonly project?: ProjectId;
    readonly key?: string;
  }): Promise<readonly UsageRow[]>;
}

/** Closed steps of the charts' time series; each range is kept as long as the charts show it. */
export interface SeriesStore {
  record(step: ClosedStep): void;
  /** Steps of one range from `sinceMs` on, oldest first: what a restart hands to `TimeSeries.restore`. */
  load(range: SeriesRange, sinceMs: number): Promise<readonly ClosedStep[]>;
}

/** Spend counters and learned limits: one document, the newest wins. */
export interface BudgetStateStore {
  /** From memory, as it was at the last save; null: none yet. */
  load(): Json;
  /** Recorded: written within half a second, intermediate states are skipped. */
  save(state: Json): void;
}

/** Small secrets at rest beside node keys (a TLS key, a provider key of team mode), sealed by the vault. */
export interface SecretStore {
  /** Null: none of that name. Rejects with `vault_locked` or `vault_damaged` when it does not open. */
  get(name: string): Promise<Uint8Array | null>;
  put(name: string, value: Uint8Array): Promise<void>;
  remove(name: string): Promise<void>;
}

export interface VaultReport {
  readonly source: 'environment' | 'file' | 'keychain' | 'key-file';
  /** Version that seals new rows. */
  readonly keyVersion: number;
  /** Said when the key is no real protection (a key file beside the database, a keychain of `basic_text`). */
  readonly weak: Said | null;
}

export interface VaultAdmin {
  report(): VaultReport;
  /**
   * Re-encrypts every sealed row under the newest key, in one transaction: any failure leaves every row as it was. A key file or
   * keychain gets a new key first; a keyring of the operator must already hold it.
   * @returns how many rows moved. Rejects with `vault_locked`, `vault_damaged` or `store_unavailable`.
   */
  rotateEncryption(): Promise<{ readonly rows: number; readonly keyVersion: number }>;
}

export interface Maintenance {
  /** A consistent copy in `backups/`, of which the newest three are kept. It needs today's keyring to be opened. @returns its path. */
  backup(): Promise<string>;
  /** Applies retention now; it also runs by itself every hour. @returns rows removed. */
  retain(): Promise<number>;
}

export interface StoreHealth {
  /** `degraded`: the snapshot serves, changes are refused. `stopped`: before start and after stop. */
  readonly state: 'ok' | 'degraded' | 'stopped';
  /** Why it is degraded; null when it is not. */
  readonly reason: Said | null;
  /** Records waiting to be written. */
  readonly buffered: number;
  /** Records turned away by the bound of the buffer since the start, by kind. */
  readonly dropped: Readonly<Record<RecordKind, number>>;
  /** Times the worker thread had to be started again. */
  readonly restarts: number;
  readonly databaseBytes: number;
  /** Things a person should know: a weak vault, documents that could not be understood, node keys that do not open. */
  readonly problems: readonly Said[];
}

export const RECORD_KINDS = ['usage', 'trace', 'event', 'series', 'used', 'budget'] as const;
export type RecordKind = (typeof RECORD_KINDS)[number];
