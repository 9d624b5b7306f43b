import type { ErrorCode } from '../domain/errors.ts';
import type { EventRecord } from '../domain/events.ts';
import type { NodeId, ProviderId, RequestId, SpaceId } from '../domain/ids.ts';
import type { Said } from '../domain/said.ts';
import type { LedgerRange } from '../gate/ledger.ts';
import type { GateSnapshot, StoredFirst, StoredSpace, VerdictPoint } from '../gate/store-port.ts';
import type { Verdict } from '../gate/verdict.ts';
import type { IdempotencyClaim, IdempotencyScope, StoredAnswer } from '../gateway/ports.ts';
import type { FaultKind } from './faults.ts';
import type { KeyringEntry } from './keyring.ts';
import type {
  ApiKeyRecord,
  EventFilter,
  NodeRecord,
  PendingPairingRecord,
  ProjectRecord,
  TraceFilter,
  UsageRow,
} from './ports.ts';
import type { StoredApiKey } from './repositories/access.ts';
import type { DocumentRow } from './repositories/documents.ts';
import type { UsageFilter, UsageSums } from './repositories/figures.ts';
import type { BaseWeight, NodeChange, OpenedNode } from './repositories/nodes.ts';
import type { RowPage, TraceRow } from './repositories/records.ts';
import type { Cursor } from './repositories/statements.ts';

/** Given to the thread when it starts. */
export interface WorkerSettings {
  readonly folder: string;
  /** Null: the key file of the data folder, made when it is missing. */
  readonly keyring: readonly KeyringEntry[] | null;
  readonly maxBytes: number;
  /** This process, for ever different from the one before. */
  readonly writer: string;
}

/** Everything that is served from memory. */
export interface Configuration {
  readonly documents: readonly DocumentRow[];
  readonly adminTokenSha256: string | null;
  readonly nodes: readonly OpenedNode[];
  readonly pending: readonly PendingPairingRecord[];
  readonly weights: readonly BaseWeight[];
  readonly projects: readonly ProjectRecord[];
  readonly apiKeys: readonly StoredApiKey[];
}

export interface Opened {
  /** Null: the database works. Else the configuration comes from the last good copy. */
  readonly fault: FaultKind | null;
  readonly configuration: Configuration;
  readonly keyVersion: number;
  /** Sentences for people. */
  readonly problems: readonly Said[];
}

export type BatchItem =
  | { readonly kind: 'trace'; readonly row: TraceRow }
  | { readonly kind: 'event'; readonly event: EventRecord }
  | { readonly kind: 'series'; readonly range: string; readonly atMs: number; readonly values: string }
  | { readonly kind: 'usage'; readonly sums: UsageSums }
  | { readonly kind: 'used'; readonly id: string; readonly atMs: number }
  | { readonly kind: 'budget'; readonly body: string; readonly atMs: number };

export interface Batch {
  /** Written once, however often it is sent: the thread remembers the last one of each writer. */
  readonly sequence: number;
  readonly items: readonly BatchItem[];
}

/** What the store's thread does when asked, one call after the other. All times are epoch ms. */
export interface WorkerApi {
  open(nowMs: number): Opened;
  /** Tries a write; opens the database again when it was closed. Throws while it does not work. */
  probe(nowMs: number): Opened;
  close(): void;
  copyLastGood(): void;
  usedBytes(): number;
  backup(nowMs: number): string;
  retain(nowMs: number): { readonly rows: number; readonly more: boolean };
  /** @param keyring null: add a key to the key file first. */
  rotate(keyring: readonly KeyringEntry[] | null): { readonly rows: number; readonly keyVersion: number };

  /** @returns how many items were refused by the database for what they are, and left out. */
  writeBatch(batch: Batch): number;
  putDocument(name: string, body: string, ifVersion: number | null, nowMs: number): number;
  putAdminToken(sha256: string): void;
  addNode(record: NodeRecord, key: Uint8Array): void;
  updateNode(id: NodeId, change: NodeChange): void;
  removeNode(id: NodeId): void;
  putPending(pending: PendingPairingRecord, nowMs: number): void;
  dropPending(node: string): void;
  setBaseWeight(provider: ProviderId, node: NodeId, weight: number | null): void;
  addProject(project: ProjectRecord): void;
  addApiKey(key: Omit<ApiKeyRecord, 'lastUsedAtMs' | 'revokedAtMs'>, sha256: string): void;
  revokeApiKey(id: string, atMs: number): void;
  getSecret(name: string): Uint8Array | null;
  putSecret(name: string, value: Uint8Array): void;
  removeSecret(name: string): void;

  trace(id: RequestId): { readonly summary: string; readonly detail: string } | null;
  traces(filter: TraceFilter, limit: number, after: Cursor | null): RowPage;
  events(filter: EventFilter, limit: number, after: Cursor | null): RowPage;
  usage(filter: UsageFilter): UsageRow[];
  steps(range: string, sinceMs: number): { readonly atMs: number; readonly values: string }[];

  loadGate(): GateSnapshot;
  saveSpace(space: StoredSpace): void;
  /** The space and a document, both or neither. @returns the document's new version. Throws as `putDocument` */
  saveSpaceWith(space: StoredSpace, name: string, body: string, ifVersion: number, nowMs: number): number;
  saveVerdict(verdict: Verdict): void;
  saveFirst(first: StoredFirst): void;
  appendRanges(ranges: readonly LedgerRange[]): void;
  rangesOfProvider(provider: ProviderId, sinceMs: number, limit: number): LedgerRange[];
  rangesOfRequest(request: RequestId): LedgerRange[];
  pruneGate(beforeMs: number): void;
  gateHistory(provider: ProviderId, space: SpaceId, sinceMs: number): VerdictPoint[];

  claim(scope: IdempotencyScope, bodySha256: string, nowMs: number): IdempotencyClaim;
  completeClaim(scope: IdempotencyScope, answer: StoredAnswer): void;
  forgetClaim(scope: IdempotencyScope): void;
}

export type WorkerMethod = keyof WorkerApi;

export interface WorkerCall {
  readonly id: number;
  readonly method: WorkerMethod;
  readonly args: readonly unknown[];
}

export type WorkerReply =
  | { readonly id: number; readonly value: unknown; readonly fault: FaultKind | null }
  | {
      readonly id: number;
      readonly error: { readonly code: ErrorCode; readonly sentence: string; readonly says: Said | null };
      readonly fault: FaultKind | null;
    };
