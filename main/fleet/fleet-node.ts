import type { CloudFromAgent } from '../../agent/wire/cloud.ts';
import type { Heartbeat, Welcome } from '../../agent/wire/control.ts';
import type { CallOpener } from '../../agent/wire/stream.ts';
import type { ErrorCode } from '../domain/errors.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { EventSink } from '../domain/events.ts';
import type { NodeId } from '../domain/ids.ts';
import type { NodeState } from '../domain/provider.ts';
import { knownFrom, type Said, said, saidOf, together } from '../domain/said.ts';
import type { Clock, Random } from '../domain/time.ts';
import type { NodeWish } from '../store/ports.ts';
import { AnnouncedKey, type NodeKeys } from './announced-key.ts';
import type { AgentLink, CloudLane, LinkOptions, LostReason } from './link.ts';
import { NodeAddresses } from './node-addresses.ts';

/** Where and how one node is reached; the embedded agent's changes with each of its processes. */
export interface NodeTarget {
  readonly address: string;
  readonly fingerprint: string;
  /** Announced, and not used yet. */
  readonly nextFingerprint?: string | null;
  readonly key: Uint8Array;
}

export interface FleetNodeOptions {
  readonly id: NodeId;
  readonly name: string;
  readonly controller: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: EventSink;
  readonly makeLink: (options: LinkOptions) => AgentLink & CloudLane;
  /** Another machine goes by this name too. */
  readonly isShared?: (name: string) => boolean;
  /** State, pulls, heartbeat or welcome changed. */
  readonly onChange: () => void;
  /** A session runs, or has ended for whatever reason. */
  readonly onSession?: (change: 'began' | 'lost') => void;
  /** What the agent says about its OpenRouter key and calls. */
  readonly onCloud?: (message: CloudFromAgent) => void;
  /** Another next key was announced or withdrawn, or it was used. Resolves when that is kept. */
  readonly onKeys?: (keys: NodeKeys) => Promise<void>;
  /** What the machine calls itself, heard at the beginning of a session. */
  readonly onNamed?: (name: string) => void;
  /** A session came up at another address than the one last known: that is where the node is. */
  readonly onMoved?: (address: string) => void;
}

/** First wait before a dial is repeated, and the longest. A node that comes back is found within the longest. */
const RETRY_FIRST_MS = 250;
const RETRY_LONGEST_MS = 5_000;
/** After a refusal that only a person can lift (another certificate, revoked): asked again seldom, for the machine may be mended. */
const RETRY_REFUSED_MS = 60_000;

/** What keeps a machine from being found is said by its agent at the beginning of each session: news once. */
const STANDING = /^discovery_/;
const MOST_STANDING = 16;

const REFUSALS: ReadonlySet<ErrorCode> = new Set([
  'identity_changed',
  'join_refused',
  'wire_version',
  'too_many_controllers',
]);

/** Why the node is not ready, and by what. */
interface Problem {
  readonly code: ErrorCode | LostReason | 'node_key_unreadable';
  readonly says: Said;
}

/**
 * One paired node over time: keeps a link up, dials again with growing, jittered waits, and says in which state the node is.
 * Liveness comes from the authenticated session alone.
 */
export class FleetNode {
  readonly id: NodeId;
  readonly #options: FleetNodeOptions;
  readonly #announced: AnnouncedKey;
  readonly #addresses = new NodeAddresses();
  #target: NodeTarget | null = null;
  #wish: NodeWish = 'serve';
  #link: (AgentLink & CloudLane) | null = null;
  #running = false;
  #dialling = false;
  #stopped = true;
  #failures = 0;
  #cancelRetry: () => void = () => {};
  #retryAtMs = 0;
  #problem: Problem | null = null;
  #stateSinceMs: number;
  #lastState: NodeState = 'unknown';
  #everRan = false;
  /** Codes of how things stand with it that were told already. */
  readonly #standing = new Set<string>();
  /** Nothing known holds: before the first heartbeat of a session, and after sleep. */
  #unknown = true;
  #beating = false;
  #gone = false;
  welcome: Welcome | null = null;
  heartbeat: Heartbeat | null = null;
  /** clock.nowMs of the last heartbeat. */
  heartbeatAtMs: number | null = null;

  constructor(options: FleetNodeOptions) {
    this.id = options.id;
    this.#options = options;
    this.#announced = new AnnouncedKey({
      keys: () => this.#keys(),
      hold: (keys) => {
        if (this.#target) this.#target = { ...this.#target, ...keys };
      },
      keep: async (keys) => options.onKeys?.(keys),
      isCurrent: (link) => this.#link === link,
    });
    this.#stateSinceMs = options.clock.wallMs();
  }

  /** What the machine calls itself. */
  get ownName(): string {
    return this.welcome?.name ?? this.#options.name;
  }

  /** What people are told: with its address where another machine has the same name. */
  get name(): string {
    const name = this.ownName;
    const address = this.#target?.address;
    return address !== undefined && this.#options.isShared?.(name) ? `${name} (${address})` : name;
  }

  get target(): NodeTarget | null {
    return this.#target;
  }

  get wish(): NodeWish {
    return this.#wish;
  }

  /** Why the node is not ready; null while it is. */
  get problem(): Said | null {
    return this.#problem?.says ?? null;
  }

  /** Epoch ms since when the state holds. */
  get stateSinceMs(): number {
    return this.#stateSinceMs;
  }

  get pulls(): boolean {
    return this.#running && (this.#link?.pulls ?? false) && !this.#unknown;
  }

  get rttMs(): number | null {
    return this.#running ? (this.#link?.rttMs ?? null) : null;
  }

  /** Null while no session runs: nothing can be sent. */
  get opener(): CallOpener | null {
    return this.#running && this.#link ? this.#link.opener : null;
  }

  /** Null while no session runs. */
  get lane(): CloudLane | null {
    return this.#running ? this.#link : null;
  }

  get state(): NodeState {
    if (this.#problem && REFUSALS.has(this.#problem.code as ErrorCode)) return 'error';
    if (this.#problem?.code === 'revoked' || this.#problem?.code === 'node_key_unreadable') return 'error';
    if (this.#wish === 'maintenance') return 'maintenance';
    if (this.#unknown) return 'unknown';
    if (!this.#running) return this.#everRan || this.#failures > 0 ? 'unreachable' : 'unknown';
    if (this.#wish === 'drain') return 'draining';
    // An agent without an OpenRouter key lacks nothing as a machine.
    const engines = (this.heartbeat?.engines ?? []).filter(({ kind }) => kind !== 'openrouter');
    return engines.some(({ state }) => state === 'unreachable' || state === 'error') ? 'degraded' : 'ready';
  }

  /** Dials the target, and again whenever the link is lost, until `stop`. A new target replaces the link to the old one. */
  connect(target: NodeTarget): void {
    this.#target = target;
    this.#stopped = false;
    this.#failures = 0;
    this.#addresses.reset();
    this.#dropLink();
    this.#dial();
  }

  /**
   * Discovery has seen this node at an address. It is dialled when no session runs; the session proves that it is the node, and
   * until then nothing changes: what answers there may be anybody.
   */
  offer(address: string): void {
    if (this.#stopped || address === this.#target?.address) return;
    if (this.#running) {
      this.#addresses.seenWhileRunning(address);
      return;
    }
    if (this.#target && this.#addresses.hint(address) && !this.#dialling) this.#dial();
  }

  /** The target is gone and a new one will be given (the embedded agent restarts). */
  disconnect(): void {
    this.#target = null;
    this.#dropLink();
    this.#changed();
  }

  /** Its key cannot be opened, so it is not dialled before a person has given the keyring or paired it again. */
  keyUnreadable(says: Said): void {
    this.#problem = { code: 'node_key_unreadable', says };
    this.#changed();
  }

  setWish(wish: NodeWish): void {
    this.#wish = wish;
    this.#changed();
  }

  /** The machine slept or its clock jumped: nothing known of this node holds; the session is made anew after `delayMs`. */
  forgetLiveness(delayMs: number): void {
    if (this.#stopped || !this.#target) return;
    this.#unknown = true;
    this.#dropLink();
    this.#changed();
    this.#retryIn(delayMs);
  }

  detect(): void {
    if (this.#running) this.#link?.detect();
  }

  /** Asks the agent to forget this control plane, then ends for good. True when the agent confirmed. */
  async forget(): Promise<boolean> {
    const link = this.#running ? this.#link : null;
    this.#gone = true;
    const confirmed = link ? await link.forget() : false;
    this.stop();
    return confirmed;
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelRetry();
    this.#dropLink();
  }

  #dropLink(): void {
    this.#cancelRetry();
    const link = this.#link;
    this.#link = null;
    this.#dialling = false;
    link?.close();
    this.#setRunning(false);
  }

  #setRunning(running: boolean): void {
    if (running === this.#running) return;
    this.#running = running;
    this.#options.onSession?.(running ? 'began' : 'lost');
  }

  #dial(): void {
    const known = this.#target;
    if (this.#stopped || this.#dialling || !known) return;
    const target = { ...known, address: this.#addresses.next(known.address) };
    const hinted = target.address !== known.address;
    this.#dialling = true;
    this.#beating = false;
    const { clock, controller, makeLink } = this.#options;
    const current = () => this.#link === link;
    const link: AgentLink & CloudLane = makeLink({
      ...target,
      controller,
      clock,
      handlers: {
        onWelcome: (welcome) => {
          if (!current()) return;
          this.welcome = welcome;
          this.#options.onNamed?.(welcome.name);
        },
        onNextUsed: () => {
          if (current() && target.nextFingerprint) this.#promoteNext(target.nextFingerprint);
        },
        onHeartbeat: (heartbeat) => {
          if (!current()) return;
          this.heartbeat = heartbeat;
          this.heartbeatAtMs = clock.nowMs();
          // Before the first heartbeat nobody knows which engines there are, so the node is not ready yet.
          this.#beating = true;
          if (this.#running) this.#unknown = false;
          this.#announced.hear(heartbeat.fingerprint, link);
          this.#changed();
        },
        onEvent: ({ severity, code, sentence }) => {
          if (severity === 'info' && this.#standing.has(code)) return;
          if (STANDING.test(code) && this.#standing.size < MOST_STANDING) this.#standing.add(code);
          const says = knownFrom(sentence) ?? { code: 'agent_says', sentence };
          this.#options.events.record({ severity, source: 'fleet', code, says, node: this.id });
        },
        onCloud: (message) => {
          if (current()) this.#options.onCloud?.(message);
        },
        onPulls: () => {
          if (current()) this.#changed();
        },
        onLost: (reason) => {
          if (current()) this.#lost(reason);
        },
      },
    });
    this.#link = link;
    link.start().then(
      () => {
        if (!current()) return;
        this.#cancelRetry();
        if (hinted) this.#move(target);
        this.#dialling = false;
        this.#everRan = true;
        this.#failures = 0;
        this.#problem = null;
        this.#unknown = !this.#beating;
        this.#setRunning(true);
        this.#changed();
      },
      (error: unknown) => {
        if (!current()) return;
        // The other refusals come after the certificate has been compared: it is the node, elsewhere.
        const code = error instanceof SwitchyardError ? error.code : 'node_unreachable';
        if (hinted && (code === 'node_unreachable' || code === 'identity_changed')) this.#hintFailed();
        else this.#failed(error);
      },
    );
  }

  #keys(): NodeKeys | null {
    if (!this.#target) return null;
    const { fingerprint, nextFingerprint = null } = this.#target;
    return { fingerprint, nextFingerprint };
  }

  #promoteNext(fingerprint: string): void {
    this.#announced.used(fingerprint);
    this.#options.events.record({
      severity: 'info',
      source: 'fleet',
      says: said('node_key_changed', { name: this.name }),
      node: this.id,
    });
  }

  #move({ address }: NodeTarget): void {
    this.#addresses.moved(this.#target?.address ?? null);
    if (this.#target) this.#target = { ...this.#target, address };
    this.#options.onMoved?.(address);
  }

  /** Not the node, or nobody: says nothing of the node itself. The dial that was due before stays due. */
  #hintFailed(): void {
    this.#dialling = false;
    this.#link = null;
    const nowMs = this.#options.clock.nowMs();
    this.#retryIn(this.#addresses.hasHints ? 0 : Math.max(this.#retryAtMs - nowMs, RETRY_FIRST_MS));
  }

  #failed(error: unknown): void {
    this.#dialling = false;
    this.#link = null;
    this.#failures += 1;
    const known = error instanceof SwitchyardError ? error : new SwitchyardError('node_unreachable');
    const isNew = this.#problem?.code !== known.code;
    this.#problem = { code: known.code, says: saidOf(known) };
    this.#unknown = false;
    if (REFUSALS.has(known.code)) {
      if (isNew)
        this.#tell('error', known.code, together(said('machine_says', { name: this.name }), saidOf(known)), true);
      this.#retryIn(RETRY_REFUSED_MS);
    } else {
      const ceiling = Math.min(RETRY_LONGEST_MS, RETRY_FIRST_MS * 2 ** Math.min(10, this.#failures));
      this.#retryIn(ceiling / 2 + (this.#options.random() * ceiling) / 2);
    }
    if (this.#addresses.hasHints) this.#retryIn(RETRY_FIRST_MS);
    this.#changed();
  }

  #lost(reason: LostReason): void {
    this.#link = null;
    this.#setRunning(false);
    if (this.#gone || this.#stopped) return;
    this.#addresses.sessionLost();
    this.#problem = { code: reason, says: said(reason) };
    this.#tell(
      reason === 'revoked' ? 'error' : 'warn',
      `node_${reason}`,
      said(reason === 'silent' ? 'node_fell_silent' : `node_${reason}`, { name: this.name }),
      reason === 'revoked',
    );
    this.#retryIn(reason === 'revoked' ? RETRY_REFUSED_MS : RETRY_FIRST_MS * (0.5 + this.#options.random()));
    this.#changed();
  }

  #retryIn(delayMs: number): void {
    this.#cancelRetry();
    this.#retryAtMs = this.#options.clock.nowMs() + delayMs;
    this.#cancelRetry = this.#options.clock.after(delayMs, () => this.#dial());
  }

  #tell(severity: 'warn' | 'error', code: string, says: Said, needsPerson: boolean): void {
    this.#options.events.record({ severity, source: 'fleet', code, says, needsPerson, node: this.id });
  }

  #changed(): void {
    const { state } = this;
    if (state !== this.#lastState) {
      this.#lastState = state;
      this.#stateSinceMs = this.#options.clock.wallMs();
    }
    this.#options.onChange();
  }
}
