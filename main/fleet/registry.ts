import type { CloudFromAgent } from '../../agent/wire/cloud.ts';
import type { CallOpener } from '../../agent/wire/stream.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { EventSink } from '../domain/events.ts';
import type { NodeId, ProviderId } from '../domain/ids.ts';
import { said } from '../domain/said.ts';
import type { Clock, Random } from '../domain/time.ts';
import type { NodeRecord, NodeStore, NodeWish } from '../store/ports.ts';
import { FleetNode, type NodeTarget } from './fleet-node.ts';
import type { AgentLink, CloudLane, LinkOptions, PairAgent } from './link.ts';

export interface FleetOptions {
  readonly controller: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: EventSink;
  readonly store: NodeStore;
  readonly pair: PairAgent;
  readonly makeLink: (options: LinkOptions) => AgentLink & CloudLane;
  /** A session with a node runs, or has ended. */
  readonly onSession?: (node: NodeId, change: 'began' | 'lost') => void;
  readonly onCloud?: (node: NodeId, message: CloudFromAgent) => void;
}

/** Sessions are made anew spread over this time after a sleep, so that a waking laptop does not storm its network. */
const RESUME_JITTER_MS = 1_000;

/** `10.0.0.5:7412` or `[fe80::1%eth0]:7412`, not a name. */
const NUMERIC = /^(\[|[\d.]+(:\d+)?$)/;

/**
 * The machines of this control plane: pairs them, keeps a link to each, remembers them over a kill, and says what they
 * report. Order is the order of pairing, the embedded agent first.
 */
export class FleetRegistry {
  readonly #options: FleetOptions;
  readonly #nodes = new Map<NodeId, FleetNode>();
  readonly #listeners = new Set<() => void>();
  #embedded: NodeId | null = null;
  #pairing = new Set<string>();

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  /** Dials every stored node; resolves at once, nodes become ready as they answer. */
  start(): void {
    const { store, events } = this.#options;
    for (const record of store.list()) {
      if (record.embedded) continue;
      const key = store.key(record.id);
      const node = this.#add(record.id, record.name, record.wish);
      if (key) node.connect({ ...record, key });
      else {
        const says = said('node_key_unreadable', { name: record.name });
        node.keyUnreadable(says);
        events.record({ severity: 'error', source: 'fleet', says, needsPerson: true, node: record.id });
      }
    }
  }

  stop(): void {
    for (const node of this.#nodes.values()) node.stop();
    this.#nodes.clear();
  }

  nodes(): readonly FleetNode[] {
    return [...this.#nodes.values()];
  }

  get(id: NodeId): FleetNode | null {
    return this.#nodes.get(id) ?? null;
  }

  get embedded(): NodeId | null {
    return this.#embedded;
  }

  opener(id: NodeId): CallOpener | null {
    return this.#nodes.get(id)?.opener ?? null;
  }

  baseWeight(provider: ProviderId): number {
    return this.#options.store.baseWeight(provider);
  }

  record(id: NodeId): NodeRecord | null {
    return this.#options.store.get(id);
  }

  /** Called on every change of any node. @returns its own unsubscribe. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Pairs with the agent at an address. The node is stored before this resolves, and dialled.
   *
   * @param fingerprint of the key that the agent must show, where it is known beforehand
   * @throws SwitchyardError as `PairAgent`, `node_exists`, `store_unavailable`.
   */
  async add(address: string, joinCode: string, fingerprint?: string): Promise<FleetNode> {
    const { store, clock, controller, pair, events } = this.#options;
    const spot = address.trim();
    if (this.#pairing.has(spot)) throw new SwitchyardError('node_exists', said('pairing_underway'));
    this.#pairing.add(spot);
    try {
      const [pending] = store.pending(spot);
      const paired = await pair({
        address: spot,
        controller,
        joinCode,
        clock,
        ...(pending ? { pending } : {}),
        ...(fingerprint === undefined ? {} : { fingerprint }),
        storePending: (begun) => store.putPending({ ...begun, address: spot }),
      });
      const id = paired.node as NodeId;
      if (id === this.#embedded) throw new SwitchyardError('node_exists', said('own_agent'));
      const before = store.get(id);
      const record: NodeRecord = {
        id,
        name: before?.name ?? spot,
        address: paired.address,
        manual: true,
        embedded: false,
        fingerprint: paired.fingerprint,
        nextFingerprint: null,
        wish: before?.wish ?? 'serve',
        addedAtMs: clock.wallMs(),
      };
      await store.add(record, paired.key);
      const node = this.#nodes.get(id) ?? this.#add(id, record.name, record.wish);
      node.connect({ ...record, key: paired.key });
      events.record({
        severity: 'info',
        source: 'fleet',
        says: said('node_paired', { address: record.address }),
        node: id,
      });
      this.#tell();
      return node;
    } finally {
      this.#pairing.delete(spot);
    }
  }

  /** The agent that this control plane started for its own machine is up, or up again in a new process. */
  attachEmbedded(id: NodeId, target: NodeTarget): void {
    if (this.#embedded !== null && this.#embedded !== id) {
      this.#nodes.get(this.#embedded)?.stop();
      this.#nodes.delete(this.#embedded);
    }
    this.#embedded = id;
    const node = this.#nodes.get(id) ?? this.#add(id, 'This machine', 'serve');
    node.connect(target);
  }

  /** Its process ended; a new one will be attached. */
  detachEmbedded(): void {
    if (this.#embedded !== null) this.#nodes.get(this.#embedded)?.disconnect();
  }

  /**
   * Discovery has seen an agent. A paired node whose session is down is dialled there too, and what is proved there is remembered.
   * An agent that is not paired, or shows another fingerprint, is none of the fleet's business.
   */
  foundAt(id: NodeId, address: string, fingerprint: string): void {
    const node = this.#nodes.get(id);
    const known = [node?.target?.fingerprint, node?.target?.nextFingerprint];
    if (node && id !== this.#embedded && known.includes(fingerprint)) node.offer(address);
  }

  /** @throws SwitchyardError node_not_found, store_unavailable. */
  async setWish(id: NodeId, wish: NodeWish): Promise<FleetNode> {
    const node = this.#need(id);
    if (this.#options.store.get(id)) await this.#options.store.update(id, { wish });
    node.setWish(wish);
    return node;
  }

  /**
   * Unpairs and forgets a node. The agent is asked to forget this control plane; when it cannot be reached it is told so on
   * the event, for then its side must be cleaned by hand.
   *
   * @throws SwitchyardError node_not_found, store_unavailable.
   */
  async remove(id: NodeId): Promise<void> {
    const node = this.#need(id);
    if (id === this.#embedded) {
      throw new SwitchyardError('invalid_request', said('own_agent_stays'));
    }
    await this.#options.store.remove(id);
    const confirmed = await node.forget();
    this.#nodes.delete(id);
    this.#options.events.record({
      severity: confirmed ? 'info' : 'warn',
      source: 'fleet',
      code: 'node_removed',
      says: confirmed
        ? said('node_removed', { name: node.name })
        : said('node_removed_untold', { name: node.name, controller: this.#options.controller }),
      node: id,
    });
    this.#tell();
  }

  /** The machine slept or its clock jumped. */
  forgetLiveness(): void {
    for (const node of this.#nodes.values()) node.forgetLiveness(this.#options.random() * RESUME_JITTER_MS);
  }

  #need(id: NodeId): FleetNode {
    const node = this.#nodes.get(id);
    if (!node) throw new SwitchyardError('node_not_found');
    return node;
  }

  #add(id: NodeId, name: string, wish: NodeWish): FleetNode {
    const { controller, clock, random, events, makeLink, onSession, onCloud } = this.#options;
    const node = new FleetNode({
      id,
      name,
      controller,
      clock,
      random,
      events,
      makeLink,
      // The app's own machine keeps its plain name: its address is another at every start.
      isShared: (shared) =>
        id !== this.embedded && [...this.#nodes.values()].some((other) => other.id !== id && other.ownName === shared),
      onChange: () => this.#tell(),
      onSession: (change) => onSession?.(id, change),
      onCloud: (message) => onCloud?.(id, message),
      onMoved: (address) => this.#moved(id, address),
      onKeys: async (keys) => {
        if (this.#options.store.get(id)) await this.#options.store.update(id, keys);
      },
      onNamed: (name) => this.#named(id, name),
    });
    this.#nodes.set(id, node);
    node.setWish(wish);
    return node;
  }

  /** A name that a person gave stays: it may lead to the next address too, and to the node when it is away from this network. */
  #moved(id: NodeId, address: string): void {
    const { store, events } = this.#options;
    const record = store.get(id);
    if (!record) return;
    events.record({
      severity: 'info',
      source: 'fleet',
      says: said('node_moved', { name: record.name, address }),
      node: id,
    });
    if (!NUMERIC.test(record.address)) return;
    store.update(id, { address }).catch(() => {}); // it is found again after the next start
  }

  /** Kept, so that the machine has its name before it answers after the next start. */
  #named(id: NodeId, name: string): void {
    const { store } = this.#options;
    const record = store.get(id);
    if (record && record.name !== name) store.update(id, { name }).catch(() => {}); // heard again in the next session
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
