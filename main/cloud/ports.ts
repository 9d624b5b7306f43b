import type { CloudAsk } from '../../agent/wire/cloud.ts';
import type { NodeId } from '../domain/ids.ts';

/** The control sockets of the fleet, as the cloud needs them. */
export interface AgentPort {
  /** Nodes with a running session, with the names people gave them. */
  ready(): readonly { readonly node: NodeId; readonly name: string }[];
  name(node: NodeId): string;
  /**
   * Sends one binary message. `sent` is called once, when the socket has taken the bytes or given up on them: only then may
   * they be zeroed. False: there is no session, and `sent` is not called.
   */
  sendBinary(node: NodeId, frame: Buffer, sent: () => void): boolean;
  /** Sends a JSON message; false: there is no session. */
  send(node: NodeId, message: CloudAsk): boolean;
}

/** What persists of key pushes: numbers, names and times. Nothing derived from a key. */
export interface PushFacts {
  readonly version: 1;
  /** Newest push of any kind. */
  readonly number: number;
  /** Newest push that carried a key; 0: none ever. */
  readonly keyPush: number;
  readonly keyPushedAtWallMs: number | null;
  /** Whom the newest key was meant for; null: every agent that was ready. */
  readonly narrowedTo: readonly string[] | null;
  readonly sentTo: readonly PushRecord[];
  /** Who was to drop the newest key, on purpose; `all`: everybody, whoever comes later too. Absent: nobody. */
  readonly forgotten?: { readonly all: boolean; readonly nodes: readonly string[] } | undefined;
  /** How few hold the key, as a person was last told; a restart does not tell it again. */
  readonly warned?: 'one' | 'none' | '' | undefined;
}

export interface PushRecord {
  readonly node: string;
  readonly push: number;
  /** Of its outcome. */
  readonly atWallMs: number;
  readonly outcome: 'sent' | 'accepted' | 'refused';
}

/** Where the facts rest. `save` may be written a moment later. */
export interface PushFactsStore {
  load(): PushFacts | null;
  save(facts: PushFacts): void;
}
