import type { CloudAsk, CloudFromAgent } from '../../agent/wire/cloud.ts';
import type { AgentEvent, Heartbeat, Welcome } from '../../agent/wire/control.ts';
import type { CallOpener } from '../../agent/wire/stream.ts';
import type { Clock } from '../domain/time.ts';

/** What the control plane knows of a paired node and needs to reach it. */
export interface LinkTarget {
  /** `HOST:PORT`, `HOST` (port 7412), `[v6%zone]:PORT`. */
  readonly address: string;
  /** Id of this control plane, the same for ever: `[A-Za-z0-9_-]{1,64}`. */
  readonly controller: string;
  /** Node key, 32 bytes, from the vault. */
  readonly key: Uint8Array;
  /** SHA-256 of the agent's public key (SPKI), 64 lower-case hex digits, learned at pairing. */
  readonly fingerprint: string;
  /** Announced by the agent in a session: holds beside the other until it is first used. */
  readonly nextFingerprint?: string | null;
}

/** Why a link ended. After any of them the link is dead; make a new one. */
export type LostReason =
  /** The socket closed, or the network broke. */
  | 'closed'
  /** Nothing was heard for 15 s. */
  | 'silent'
  /** The agent said goodbye: it stops or restarts. */
  | 'bye'
  /** This control plane was removed at the agent: only pairing helps. */
  | 'revoked'
  /** The agent broke the protocol. */
  | 'violation'
  /** Another session of this control plane took its place. */
  | 'superseded';

export interface LinkHandlers {
  /** The agent has proved itself with its next key: the one before must not be taken any more. */
  onNextUsed?(): void;
  /** Once, before `start` resolves. */
  onWelcome(welcome: Welcome): void;
  onHeartbeat(heartbeat: Heartbeat): void;
  onEvent?(event: AgentEvent): void;
  /** How the agent's OpenRouter key stands, and answers to `push` and `ask`. */
  onCloud?(message: CloudFromAgent): void;
  /** False after 3 s of silence: nothing new may be sent there and unstarted work moves. True again when it is heard. */
  onPulls?(pulls: boolean): void;
  /** Once, when a running link ends for any reason but `close` and `forget`. Every open call has failed before. */
  onLost?(reason: LostReason): void;
  /** A handler of this link or of one of its calls threw. */
  onFault?(error: unknown): void;
}

export interface LinkOptions extends LinkTarget {
  readonly clock: Clock;
  readonly handlers: LinkHandlers;
}

/** One authenticated connection to one agent: `new AgentSession(options)` implements it. */
export interface AgentLink {
  /**
   * Dials, proves, resumes, opens the data socket, waits for the welcome. Once per link. Rejects with a SwitchyardError:
   * `node_unreachable` (also time-outs; worth trying again), `identity_changed`, `join_refused` (node key not known there any
   * more), `wire_version`, `invalid_address`. A rejected link is dead.
   */
  start(): Promise<Welcome>;
  /** Calls opened while the link is not running fail with blame `transport`. */
  readonly opener: CallOpener;
  /** Round trip of the last ping; null before the first. */
  readonly rttMs: number | null;
  /** Running and heard within 3 s. */
  readonly pulls: boolean;
  /** Milliseconds (clock.nowMs) when anything was last heard on the control socket; null before the start. */
  readonly heardAtMs: number | null;
  readonly openCalls: number;
  /** Asks the agent to look for engines again. */
  detect(): void;
  /** Tells the agent that its announced fingerprint has been kept. */
  acknowledge(fingerprint: string): void;
  /** Removes this control plane at the agent, node key included. Resolves true when the agent confirmed within 3 s. Ends the link. */
  forget(): Promise<boolean>;
  /** Ends the link in peace; calls fail, `onLost` is not called. Idempotent. */
  close(): void;
}

/** The link's other lane: what the control plane says to the agent about OpenRouter. `AgentSession` implements it too. */
export interface CloudLane {
  /**
   * Sends a push (`encodePush`) as one binary message. The frame is zeroed when it has left this process, or at once when the
   * link is not running. Resolves true when it has left; only the agent's acknowledgement says that it was applied.
   */
  push(frame: Uint8Array): Promise<boolean>;
  /** False: the link is not running. */
  ask(question: CloudAsk): boolean;
}

/** A pairing whose end was not seen: what `storePending` was given. */
export interface PendingPairing {
  readonly key: Uint8Array;
  readonly fingerprint: string;
}

export interface PairOptions {
  readonly address: string;
  readonly controller: string;
  /** As typed by a person; lower case, dashes, O for 0 and the like are understood. */
  readonly joinCode: string;
  readonly clock: Clock;
  /** Of the key that the agent must show, 64 hex digits; absent: whichever, the join code decides. */
  readonly fingerprint?: string;
  /** Left over from an attempt that was cut: tried first, so that a code burnt by it is not needed again. */
  readonly pending?: PendingPairing;
  /**
   * Called with the fresh node key BEFORE it is issued; pairing goes on when it resolves. What it stored is the node's key
   * from the moment `pairAgent` resolves, and may already be so when it rejects (keep it as `pending` for the next attempt).
   */
  storePending(pending: PendingPairing & { readonly node: string }): Promise<void>;
}

export interface PairedAgent extends PendingPairing {
  /** The agent's own id, stable across restarts and addresses. */
  readonly node: string;
  /** In canonical form, zone kept. */
  readonly address: string;
}

/**
 * `pairAgent` in pair.ts. Rejects with a SwitchyardError: `invalid_join_code`, `invalid_address`, `join_refused`,
 * `node_unreachable`, `identity_changed`, `wire_version`, `too_many_controllers`, `store_unavailable` (the agent's disk), or as `storePending` rejects.
 */
export type PairAgent = (options: PairOptions) => Promise<PairedAgent>;
