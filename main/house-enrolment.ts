import type { EventSink } from './domain/events.ts';
import type { NodeId, ProviderId } from './domain/ids.ts';
import { said } from './domain/said.ts';
import type { Clock } from './domain/time.ts';
import type { CatalogueEntry } from './fleet/catalogue.ts';
import type { NodeStore } from './store/ports.ts';

/** A machine that joins tells of its engines with its first heartbeats; a model may be loaded into view a little later. */
const NEWCOMER_MS = 10 * 60_000;

export interface NewcomersOptions {
  readonly clock: Clock;
  readonly events: EventSink;
  readonly store: Pick<NodeStore, 'baseWeight' | 'setBaseWeight'>;
  readonly entries: () => readonly CatalogueEntry[];
  readonly refresh: () => void;
}

interface Newcomer {
  readonly name: string;
  readonly weight: number;
  readonly untilMs: number;
  readonly weighed: Set<ProviderId>;
}

/**
 * Base weights of machines that have just joined. A weight is a provider's, and the providers of a machine are known only once
 * it has told of its engines: each gets the weight of the command when it is first seen.
 */
export class Newcomers {
  readonly #options: NewcomersOptions;
  readonly #nodes = new Map<NodeId, Newcomer>();

  constructor(options: NewcomersOptions) {
    this.#options = options;
  }

  weigh(node: NodeId, name: string, weight: number): void {
    const untilMs = this.#options.clock.nowMs() + NEWCOMER_MS;
    this.#nodes.set(node, { name, weight, untilMs, weighed: new Set() });
    this.look();
  }

  /** The providers may be others. */
  look(): void {
    if (this.#nodes.size === 0) return;
    const { clock, entries, store } = this.#options;
    for (const [node, newcomer] of this.#nodes) if (clock.nowMs() > newcomer.untilMs) this.#nodes.delete(node);
    for (const { provider } of entries()) {
      const newcomer = this.#nodes.get(provider.node);
      // What the account in the cloud costs and does is the same from every machine.
      if (!newcomer || provider.kind === 'cloud' || newcomer.weighed.has(provider.id)) continue;
      newcomer.weighed.add(provider.id);
      if (store.baseWeight(provider.id) !== newcomer.weight) void this.#weigh(provider.id, provider.node, newcomer);
    }
  }

  async #weigh(provider: ProviderId, node: NodeId, { name, weight }: Newcomer): Promise<void> {
    const { store, refresh, events } = this.#options;
    try {
      await store.setBaseWeight(provider, node, weight);
      refresh();
    } catch {
      events.record({
        severity: 'warn',
        source: 'fleet',
        says: said('enrolment_weight_lost', { name }),
        needsPerson: true,
        node,
        provider,
      });
    }
  }
}
