import type { NodeId, ProviderId } from '../domain/ids.ts';

/** What the operator wants of a node, whatever state it is in. */
export type NodeWish = 'serve' | 'drain' | 'maintenance';

/** A paired node as it rests: everything a restart needs to reach it again. */
export interface StoredNode {
  readonly id: NodeId;
  readonly name: string;
  readonly address: string;
  /** SHA-256 of the agent's public key, 64 hex digits, pinned at pairing. */
  readonly fingerprint: string;
  /** 32 bytes; the store seals it. */
  readonly key: Uint8Array;
  readonly pairedAtMs: number;
  readonly wish: NodeWish;
}

export interface PendingNode {
  readonly address: string;
  readonly fingerprint: string;
  readonly key: Uint8Array;
}

/** Where the registry keeps its nodes. Reads answer from the last good snapshot; writes reject with `store_unavailable`. */
export interface NodeStore {
  nodes(): readonly StoredNode[];
  save(node: StoredNode): Promise<void>;
  remove(id: NodeId): Promise<void>;
  /** A pairing that was begun at this address and whose end was not seen. */
  pending(address: string): PendingNode | null;
  savePending(pending: PendingNode): Promise<void>;
  removePending(address: string): Promise<void>;
  baseWeight(provider: ProviderId): number;
}
