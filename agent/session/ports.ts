import type { Clock } from '../../main/domain/time.ts';
import type { CloudAsk, CloudFromAgent } from '../wire/cloud.ts';
import type { AgentEvent, Heartbeat, Welcome } from '../wire/control.ts';
import type { CallServer } from '../wire/stream.ts';
import type { Controllers } from './controllers.ts';
import type { Identity, KeyPair } from './identity.ts';

/** Where agents listen unless told otherwise. */
export const DEFAULT_PORT = 7412;

/** What a session server is built from: `new AgentServer(options)`, then `await server.start()`. */
export interface AgentServerOptions {
  /** Certificate, key and node id: `loadIdentity(folder)`. */
  readonly identity: Identity;
  /** Paired control planes and the join code: `Controllers.load(folder)`. */
  readonly controllers: Controllers;
  readonly clock: Clock;
  /** Interface address to listen on; absent: all of them. */
  readonly host?: string;
  /** 0 takes any free port; absent: 7412. */
  readonly port?: number;
  /** Asked once per session for its first message. */
  welcome(): Welcome;
  /** Takes each call, once its body is whole. A throw fails that call as `engine_error`, nothing else. */
  readonly serve: CallServer;
  /** A control plane asks for engines to be looked for again. */
  onDetect?(controller: string): void;
  /**
   * A binary control message: a push, which may hold a key. The frame is the handler's, who zeroes it. Without this handler
   * such a message breaks the protocol.
   */
  onPush?(controller: string, frame: Uint8Array): void;
  onAsk?(controller: string, ask: CloudAsk): void;
  /** A control plane has kept the fingerprint that heartbeats announce. */
  onKnown?(controller: string, fingerprint: string): void;
  /** A session began, ended, or (`silent`) has not pinged for 5 s: cloud calls of that control plane should be aborted. */
  onSession?(controller: string, change: SessionChange): void;
  /** A control plane was removed on this machine: nothing of it may be kept. */
  onRevoked?(controller: string): void;
  /** A control plane was paired or removed; the argument is how many remain. For heartbeats and people. */
  onControllers?(count: number): void;
  /** A handler above threw; the call or message is lost, the session lives on. */
  onFault?(error: unknown): void;
}

export type SessionChange = 'began' | 'silent' | 'back' | 'ended';

/** Counts since the start; for metrics and tests, not for decisions. */
export interface AgentServerCounters {
  /** Sockets refused before a proof: limits, Origin, time-outs, wrong proofs, other versions. */
  readonly refused: number;
  readonly wrongCodes: number;
  /** Control sessions now. */
  readonly sessions: number;
  /** Sockets that have not proved themselves yet, now. */
  readonly unproved: number;
  /** Calls now open over all data sockets. */
  readonly calls: number;
  readonly callsTotal: number;
  /** Sockets closed for breaking the protocol after their proof. */
  readonly violations: number;
  /** Heartbeats not sent because that control plane does not read. */
  readonly heartbeatsSkipped: number;
}

/** The agent's listener, as the rest of the agent sees it. `AgentServer` implements it. */
export interface AgentListener {
  /** Resolves when listening; rejects with the system's error (`EADDRINUSE`) otherwise. Makes a join code if nobody is paired. */
  start(): Promise<{ readonly host: string; readonly port: number }>;
  /** Says goodbye to every session, aborts their calls, closes the port. Idempotent. */
  stop(): Promise<void>;
  /**
   * Sends the heartbeat to every session and keeps it as the first one of sessions to come. `seenBy`: as one control plane should
   * see it; absent: all see the same.
   */
  broadcast(heartbeat: Heartbeat, seenBy?: (controller: string) => Heartbeat): void;
  event(event: AgentEvent): void;
  /** To that control plane's session; false when it has none now. */
  send(controller: string, message: CloudFromAgent | AgentEvent): boolean;
  /** The join code as people read it (`XXXX-XXXX-XXXX-XXXX`), or null when used or closed. */
  joinCode(): string | null;
  /** Replaces the join code; the old one is dead at once. */
  newJoinCode(): Promise<string>;
  /**
   * Removes a control plane: its sessions end at once, whatever the disk does. Resolves false when that id is not paired;
   * rejects when the removal could not be stored, in which case it holds only until the agent restarts.
   */
  revoke(controller: string): Promise<boolean>;
  /** Takes over what `agent code` or `agent controllers rm` wrote from another process; sessions of removed ones end. */
  reload(): Promise<void>;
  /** Shows that key to connections from now on; those that stand are left alone. */
  showKey(pair: KeyPair): void;
  counters(): AgentServerCounters;
}
