import { type CloudAck, type CloudStatus, encodePush, isKey, MAX_PUSH, type PushMeta } from '../../agent/wire/cloud.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { EventSink } from '../domain/events.ts';
import type { NodeId } from '../domain/ids.ts';
import { ROLE_IDS, type RoleId, type RoleSettings } from '../domain/roles.ts';
import { type Said, said } from '../domain/said.ts';
import type { Clock } from '../domain/time.ts';
import type { AgentPort, PushFacts, PushFactsStore, PushRecord } from './ports.ts';
import { WordAwaited } from './word-awaited.ts';

export interface KeyPushOptions {
  readonly clock: Clock;
  readonly agents: AgentPort;
  readonly store: PushFactsStore;
  readonly events: EventSink;
  readonly roles: () => Readonly<Record<RoleId, RoleSettings>>;
  /** Base URL of the API; null: each agent's own. */
  readonly baseUrl: () => string | null;
  /** A node's hold on the key has changed. */
  onChange(node: NodeId): void;
  /** An agent has applied another key. */
  onKeyApplied(node: NodeId): void;
}

export type HolderState = 'accepted' | 'pending' | 'refused' | 'key-missing' | 'key-stale' | 'unreachable';

export interface Holder {
  readonly node: NodeId;
  readonly name: string;
  readonly state: HolderState;
  /** Accepted: when it took this key; else since when it says so. */
  readonly atWallMs: number | null;
  readonly push: number | null;
  readonly remembered: boolean;
  /** A person had the key dropped here: nobody misses it. */
  readonly forgotten: boolean;
}

/**
 * Numbers up to here are believed of an agent: more than any house counts, and far from the end of the wire's. What lies beyond half of
 * the rest was not counted here either.
 */
export const MAX_BELIEVED_PUSH = MAX_PUSH / 2;
/** As many as sends are remembered of. */
const MOST_FORGOTTEN = 64;
const MAX_OWN_PUSH = (MAX_PUSH + MAX_BELIEVED_PUSH) / 2;

const NO_FACTS: PushFacts = {
  version: 1,
  number: 0,
  keyPush: 0,
  keyPushedAtWallMs: null,
  narrowedTo: null,
  sentTo: [],
};

/**
 * The control plane's side of the key: bytes come in, go out in one frame per agent, and are zeroed; what stays are numbers
 * and times. Without a key a push changes models, pins and policies.
 */
export class KeyPush {
  readonly #options: KeyPushOptions;
  readonly #statuses = new Map<NodeId, { readonly status: CloudStatus; readonly atWallMs: number }>();
  readonly #refused = new Map<NodeId, number>();
  /** Have seen more pushes than we had sent: `now` is sent ours once more, `done` was, in this session. */
  readonly #ahead = new Map<NodeId, 'now' | 'done'>();
  readonly #toldOf = new Set<NodeId>();
  readonly #awaited = new WordAwaited();
  #facts: PushFacts = NO_FACTS;
  #cancelLook: () => void = () => undefined;

  constructor(options: KeyPushOptions) {
    this.#options = options;
  }

  /** Takes up the facts of earlier runs. */
  start(): void {
    const facts = this.#options.store.load() ?? NO_FACTS;
    this.#facts = Math.max(facts.number, facts.keyPush) > MAX_OWN_PUSH ? NO_FACTS : facts;
    for (const { node } of this.#sentNewest()) this.#awaitWord(node as NodeId);
  }

  stop(): void {
    this.#cancelLook();
  }

  get facts(): PushFacts {
    return this.#facts;
  }

  /**
   * Sends the key to every ready agent, or to those named. Owns the bytes and zeroes them, whatever happens. Resolves when each
   * socket has taken its frame.
   * @throws SwitchyardError `invalid_cloud_key`, `no_key_agent`
   */
  async push(
    key: Buffer,
    options: { readonly nodeIds?: readonly string[] | undefined; readonly remember?: boolean | undefined } = {},
  ): Promise<void> {
    try {
      const bytes = trimmed(key);
      if (!isKey(bytes)) throw new SwitchyardError('invalid_cloud_key');
      const ready = this.#options.agents.ready();
      const targets = ready.filter(({ node }) => options.nodeIds?.includes(node) ?? true);
      if (targets.length === 0) throw new SwitchyardError('no_key_agent');
      const number = this.#facts.number + 1;
      this.#save({
        number,
        keyPush: number,
        keyPushedAtWallMs: this.#options.clock.wallMs(),
        narrowedTo: options.nodeIds ?? null,
        forgotten: { all: false, nodes: this.#forgotten.filter((node) => !(options.nodeIds?.includes(node) ?? true)) },
        warned: '',
      });
      this.#refused.clear();
      // Asked anew, whatever an agent was asked before.
      for (const { node } of targets) {
        this.#awaited.heard(node);
        this.#awaitWord(node);
      }
      const meta: PushMeta = { ...this.#meta(number), ...(options.remember === true ? { remember: true } : {}) };
      const sent = targets.map(({ node }) => this.#send(node, number, meta, bytes));
      // The others learn that what they hold is stale.
      for (const { node } of ready.filter((agent) => !targets.includes(agent)))
        void this.#send(node, number, this.#meta(number), null);
      await Promise.all(sent);
    } finally {
      key.fill(0);
    }
  }

  /** Roles or base URL have changed: every agent hears of it, and keeps its key. */
  configChanged(): void {
    const number = this.#facts.number + 1;
    this.#save({ number });
    for (const { node } of this.#options.agents.ready())
      void this.#send(node, number, this.#meta(this.#facts.keyPush), null);
  }

  /** Makes agents drop the key, in memory and at rest; null: all. Who is away drops it when it comes. */
  forget(nodeIds: readonly string[] | null): void {
    const number = this.#facts.number + 1;
    const all = nodeIds === null || this.hasForgotten;
    const named = nodeIds ?? [...this.#options.agents.ready(), ...this.#facts.sentTo].map(({ node }) => node);
    const nodes = [...new Set([...this.#forgotten, ...named])].slice(-MOST_FORGOTTEN);
    this.#save({ number, forgotten: { all, nodes } });
    for (const { node } of this.#options.agents.ready()) {
      if (nodeIds?.includes(node) ?? true)
        void this.#send(node, number, { ...this.#meta(this.#facts.keyPush), forget: true }, null);
    }
  }

  /** A session has begun: the agent gets routes and numbers, without a key. */
  sessionBegan(node: NodeId): void {
    this.#ahead.delete(node);
    this.#sendRoutes(node);
  }

  #sendRoutes(node: NodeId): void {
    const number = this.#facts.number + 1;
    this.#save({ number });
    this.#awaitWord(node);
    const meta = this.#meta(this.#facts.keyPush);
    void this.#send(node, number, this.#isForgotten(node) ? { ...meta, forget: true } : meta, null);
    this.#warn();
  }

  /** A person had the newest key dropped everywhere: it is as if none had been given. */
  get hasForgotten(): boolean {
    return this.#facts.forgotten?.all ?? false;
  }

  get #forgotten(): readonly string[] {
    return this.#facts.forgotten?.nodes ?? [];
  }

  #isForgotten(node: string): boolean {
    return this.hasForgotten || this.#forgotten.includes(node);
  }

  sessionLost(node: NodeId): void {
    this.#ahead.delete(node);
    this.#statuses.delete(node);
    this.#awaitWord(node);
    this.#options.onChange(node);
    this.#warn();
  }

  onAck(node: NodeId, ack: CloudAck): void {
    const record = this.#facts.sentTo.find((sent) => sent.node === node && sent.push === ack.push);
    if (record !== undefined) {
      const outcome = ack.result === 'applied' ? 'accepted' : 'refused';
      this.#record({ ...record, atWallMs: this.#options.clock.wallMs(), outcome });
    }
    if (ack.result === 'applied') {
      this.#refused.delete(node);
      if (ack.push === this.#facts.keyPush) this.#options.onKeyApplied(node);
    } else if (ack.reason === 'out-of-order') {
      // This agent has seen more pushes than we remember (an older copy of the database): go on from its number, once in a session.
      if (!this.#ahead.has(node)) this.#ahead.set(node, 'now');
      this.#refused.set(node, ack.push);
    } else {
      this.#refused.set(node, ack.push);
      this.#tell('cloud_push_refused', said('cloud_push_refused', { name: this.#options.agents.name(node) }), node);
    }
    this.#options.onChange(node);
  }

  onStatus(node: NodeId, status: CloudStatus): void {
    const before = this.#statuses.get(node);
    const atWallMs = before && saysTheSame(before.status, status) ? before.atWallMs : this.#options.clock.wallMs();
    this.#statuses.set(node, { status, atWallMs });
    if (numberOf(status) > MAX_BELIEVED_PUSH) this.#tellBeyond(node);
    else {
      this.#believe(status);
      if (this.#ahead.get(node) === 'now') {
        this.#ahead.set(node, 'done');
        this.#sendRoutes(node);
      }
    }
    this.#options.onChange(node);
    this.#warn();
  }

  /** An agent takes no push that is not newer than its last. Its word makes no key old that others hold: only we know of the newest. */
  #believe(status: CloudStatus): void {
    const { number, keyPush } = this.#facts;
    if (numberOf(status) <= number) return;
    this.#save({ number: numberOf(status), keyPush: keyPush === 0 ? (status.keyPush ?? 0) : keyPush });
  }

  #tellBeyond(node: NodeId): void {
    if (this.#toldOf.has(node)) return;
    this.#toldOf.add(node);
    this.#tell('cloud_push_beyond', said('cloud_push_beyond', { name: this.#options.agents.name(node) }), node);
  }

  status(node: NodeId): CloudStatus | null {
    return this.#statuses.get(node)?.status ?? null;
  }

  /** May cloud work go to this agent now? */
  holds(node: NodeId): boolean {
    return this.#stateOf(node) === 'accepted';
  }

  /** Every ready agent, and those that were sent the newest key and are away. */
  holders(): readonly Holder[] {
    const ready = this.#options.agents.ready();
    const away = this.#sentNewest().filter((record) => !ready.some(({ node }) => node === record.node));
    const nodes = [...ready.map(({ node }) => node), ...new Set(away.map((record) => record.node as NodeId))];
    return nodes.map((node) => {
      const known = this.#statuses.get(node);
      const sent = this.#facts.sentTo.find((record) => record.node === node);
      const state = this.#stateOf(node);
      // Older than our memory of it: nobody knows when.
      const tookAt = sent?.push === this.#facts.keyPush ? sent.atWallMs : null;
      return {
        node,
        name: this.#options.agents.name(node),
        state,
        atWallMs: state === 'accepted' ? tookAt : (known?.atWallMs ?? sent?.atWallMs ?? null),
        push: known?.status.keyPush ?? null,
        remembered: known?.status.remembered ?? false,
        forgotten: this.#isForgotten(node),
      };
    });
  }

  #stateOf(node: NodeId): HolderState {
    if (!this.#options.agents.ready().some((agent) => agent.node === node)) return 'unreachable';
    const status = this.#statuses.get(node)?.status;
    const refused = this.#refused.get(node);
    if (refused !== undefined && refused === this.#facts.keyPush) return 'refused';
    if (status === undefined) return 'pending';
    if (status.keyRefused || numberOf(status) > MAX_BELIEVED_PUSH) return 'refused';
    if (status.key === 'missing') return this.#isUnderWay(node, status) ? 'pending' : 'key-missing';
    if (status.key === 'stale' || (status.keyPush ?? 0) < this.#facts.keyPush)
      return this.#isUnderWay(node, status) ? 'pending' : 'key-stale';
    return 'accepted';
  }

  /** The newest key is on its way to this agent: not acknowledged yet, or what it reports is from before. */
  #isUnderWay(node: NodeId, status: CloudStatus): boolean {
    const sent = this.#sentNewest().find((record) => record.node === node);
    return sent?.outcome === 'sent' || (sent?.outcome === 'accepted' && status.push < sent.push);
  }

  #sentNewest(): readonly PushRecord[] {
    return this.#facts.sentTo.filter((record) => record.push === this.#facts.keyPush);
  }

  /** Routes of all roles. A role that may not leave says so to the agent too. */
  #meta(keyPush: number): PushMeta {
    const roles = this.#options.roles();
    const baseUrl = this.#options.baseUrl();
    const routes = ROLE_IDS.map((role) => {
      const { cloud, policy, enabled } = roles[role];
      const { model, upstreams, quantizations } = cloud;
      return [
        role,
        { model: enabled ? model : null, upstreams: [...upstreams], quantizations: [...quantizations], policy },
      ] as const;
    });
    return { keyPush, roles: Object.fromEntries(routes), ...(baseUrl === null ? {} : { baseUrl }) };
  }

  /** One frame, zeroed when the socket is done with it. Resolves then. */
  #send(node: NodeId, number: number, meta: PushMeta, key: Uint8Array | null): Promise<void> {
    const frame = encodePush(number, meta, key);
    return new Promise((resolve) => {
      const done = () => {
        frame.fill(0);
        resolve();
      };
      if (!this.#options.agents.sendBinary(node, frame, done)) {
        done();
        return;
      }
      if (key !== null) this.#record({ node, push: number, atWallMs: this.#options.clock.wallMs(), outcome: 'sent' });
    });
  }

  /** One record per node: its newest. */
  #record(record: PushRecord): void {
    this.#save({ sentTo: [...this.#facts.sentTo.filter((sent) => sent.node !== record.node), record].slice(-64) });
  }

  #save(changes: Partial<PushFacts>): void {
    this.#facts = { ...this.#facts, ...changes };
    this.#options.store.save(this.#facts);
  }

  #awaitWord(node: NodeId): void {
    this.#awaited.begin(node, this.#options.clock.nowMs());
  }

  /** What an agent says before its session runs counts once it runs. */
  #wordLeftMs(): number {
    const holders = this.holders();
    const silent = holders.filter(({ state }) => state === 'pending' || state === 'unreachable');
    for (const holder of holders) if (!silent.includes(holder)) this.#awaited.heard(holder.node);
    const nodes = silent.map(({ node }) => node);
    return this.#awaited.leftMs(nodes, this.#options.clock.nowMs());
  }

  /**
   * One holder left, or none although a key was pushed and somebody is there to take it: a person should know, once. Not before
   * each agent that may hold it has spoken, or had its time. Where it was forgotten on purpose nobody misses it.
   */
  #warn(): void {
    this.#cancelLook();
    if (this.#facts.keyPush === 0 || this.hasForgotten) return;
    const { agents, clock } = this.#options;
    const ready = agents.ready();
    const leftMs = this.#wordLeftMs();
    const holding = ready.filter(({ node }) => this.holds(node));
    const meant = this.#sentNewest().filter(({ node }) => !this.#isForgotten(node));
    const isMissed = meant.length > 0 || this.#forgotten.length === 0;
    const kind = holding.length === 1 && meant.length > 1 ? 'one' : holding.length === 0 && isMissed ? 'none' : '';
    if (kind === (this.#facts.warned ?? '')) return;
    if (kind === 'none' && ready.length === 0) return;
    if (kind !== '' && leftMs > 0) {
      this.#cancelLook = clock.after(leftMs, () => this.#warn());
      return;
    }
    this.#save({ warned: kind });
    if (kind === 'none') this.#tell('no_key_agent', said('no_key_agent_again'), null);
    const [only] = holding;
    if (kind === 'one' && only) this.#tell('one_key_agent', said('one_key_agent', { name: only.name }), null);
  }

  #tell(code: string, says: Said, node: NodeId | null): void {
    this.#options.events.record({
      severity: 'warn',
      source: 'cloud',
      code,
      says,
      needsPerson: true,
      ...(node === null ? {} : { node }),
    });
  }
}

const saysTheSame = (a: CloudStatus, b: CloudStatus): boolean =>
  a.key === b.key && a.keyPush === b.keyPush && a.keyRefused === b.keyRefused;

/** The newest push that this agent has seen: one that was started again knows only that of its key. */
function numberOf({ push, keyPush }: CloudStatus): number {
  return Math.max(push, keyPush ?? 0);
}

/** Without the white space around it; a view, no copy. */
function trimmed(bytes: Buffer): Buffer {
  const isSpace = (byte: number | undefined) => byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
  let from = 0;
  let to = bytes.length;
  while (from < to && isSpace(bytes[from])) from++;
  while (to > from && isSpace(bytes[to - 1])) to--;
  return bytes.subarray(from, to);
}
