import { type Link, LinkWatch, linkTo, type ReadInterfaces } from '../../agent/wire/discovery/interfaces.ts';
import { type Announcement, MdnsLink, type MdnsOptions, type MdnsTrouble } from '../../agent/wire/discovery/mdns.ts';
import { machineName, NodeHint } from '../../agent/wire/discovery/messages.ts';
import type { EventSink } from '../domain/events.ts';
import { type Said, said } from '../domain/said.ts';
import type { Clock } from '../domain/time.ts';
import { formatAddress } from '../fleet/address.ts';
import type { DiscoverySource, FoundAgent } from '../operator/house.ts';
import { Querier } from './querier.ts';
import { Sightings } from './sightings.ts';

/** An agent seen just now, and where. A hint: the session proves it. */
export interface AgentHint {
  readonly id: string;
  readonly fingerprint: string;
  /** `HOST:PORT`. */
  readonly address: string;
}

export interface DiscoveryStart {
  /** The setting of the operator. */
  readonly enabled: boolean;
  readonly events: EventSink;
  /** Each time an agent is seen, also again. */
  onSeen(hint: AgentHint): void;
}

/** What the composition root is given: `LanDiscovery`, or `noDiscovery`. */
export interface Discovery extends DiscoverySource {
  start(options: DiscoveryStart): void;
  setEnabled(enabled: boolean): void;
  stop(): void;
}

/** For `--no-discovery`: agents are added by address. */
export const noDiscovery: Discovery = {
  searching: false,
  problem: null,
  found: () => [],
  start: () => {},
  setEnabled: () => {},
  stop: () => {},
};

export interface LanDiscoveryOptions {
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly interfaces: ReadInterfaces;
  readonly openLink?: (options: MdnsOptions) => MdnsLink;
  /** For tests: loopback counts as a link, and other UDP ports. */
  readonly lab?: { readonly loopback: boolean; readonly mdnsPort: number; readonly queryPort: number };
}

/** After a start or a change of the network, ms; then every `ROUND_MS`. mDNS wants a second between queries. */
const FIRST_ROUNDS_MS = [0, 1000, 3000];
const ROUND_MS = 15_000;

const PROBLEMS: Readonly<Record<MdnsTrouble, Said>> = {
  held: said('discovery_port_held'),
  forbidden: said('discovery_forbidden'),
  failed: said('discovery_failed'),
};

/** Finds agents on every link of this machine by mDNS and by broadcast, side by side: whichever answers first shows them. */
export class LanDiscovery implements Discovery {
  readonly #options: LanDiscoveryOptions;
  readonly #sightings = new Sightings();
  readonly #mdns = new Map<string, MdnsLink>();
  readonly #querier: Querier;
  readonly #watch: LinkWatch;
  #start: DiscoveryStart | null = null;
  #searching = false;
  #links: readonly Link[] = [];
  #trouble: MdnsTrouble | null = null;
  #told: MdnsTrouble | null = null;
  #cancel: () => void = () => {};

  constructor(options: LanDiscoveryOptions) {
    this.#options = options;
    const { clock, randomBytes, interfaces, lab } = options;
    this.#querier = new Querier({
      randomBytes,
      ...(lab ? { port: lab.queryPort } : {}),
      onAnswer: ({ id, fp, name, port }, from) => this.#see({ id, fp }, name, from, port),
    });
    this.#watch = new LinkWatch({
      clock,
      read: interfaces,
      loopback: lab?.loopback ?? false,
      onLinks: (links) => this.#setLinks(links),
    });
  }

  get searching(): boolean {
    return this.#searching;
  }

  get problem(): Said | null {
    return this.#trouble === null ? null : PROBLEMS[this.#trouble];
  }

  found(): readonly FoundAgent[] {
    const { clock } = this.#options;
    const nowMs = clock.nowMs();
    const wallMs = clock.wallMs();
    return this.#sightings.list(nowMs).map(({ seenAtMs, ...agent }) => ({
      ...agent,
      seenAtMs: Math.round(wallMs - (nowMs - seenAtMs)),
    }));
  }

  start(options: DiscoveryStart): void {
    this.#start = options;
    this.setEnabled(options.enabled);
  }

  setEnabled(enabled: boolean): void {
    if (enabled === this.#searching || this.#start === null) return;
    this.#searching = enabled;
    if (enabled) {
      this.#watch.start();
      return;
    }
    this.#watch.stop();
    this.#cancel();
    this.#querier.stop();
    this.#closeMdns();
    this.#links = [];
    this.#trouble = null;
    this.#sightings.clear();
  }

  stop(): void {
    this.setEnabled(false);
    this.#start = null;
  }

  #setLinks(links: readonly Link[]): void {
    this.#links = links;
    this.#querier.setLinks(links);
    this.#openMdns();
    this.#round(0);
  }

  #openMdns(): void {
    this.#closeMdns();
    this.#trouble = null;
    const { lab, openLink = (options) => new MdnsLink(options) } = this.#options;
    const names = new Set<string>();
    for (const { name, address, family } of this.#links) {
      if (family !== 4 || names.has(name)) continue;
      names.add(name);
      const link = openLink({
        address,
        ...(lab ? { port: lab.mdnsPort } : {}),
        onAnnounced: (announcements, from) => {
          for (const announcement of announcements) this.#heard(announcement, from);
        },
        onTrouble: (trouble) => {
          if (this.#mdns.get(address) === link) this.#failed(trouble);
        },
      });
      this.#mdns.set(address, link);
    }
  }

  #closeMdns(): void {
    const open = [...this.#mdns.values()];
    this.#mdns.clear();
    for (const link of open) void link.close();
  }

  #round(number: number): void {
    this.#cancel();
    // The port may be free again; a socket that failed to bind never comes back by itself.
    if (this.#trouble !== null && number >= FIRST_ROUNDS_MS.length) this.#openMdns();
    for (const link of this.#mdns.values()) link.query();
    this.#querier.ask();
    const nowMs = this.#options.clock.nowMs();
    this.#sightings.expire(nowMs);
    const due = FIRST_ROUNDS_MS[number];
    const next = FIRST_ROUNDS_MS[number + 1];
    const wait = due === undefined || next === undefined ? ROUND_MS : next - due;
    this.#cancel = this.#options.clock.after(wait, () => this.#round(number + 1));
  }

  #heard({ instance, port, txt, gone }: Announcement, from: string): void {
    const hint = NodeHint.safeParse(txt);
    if (!hint.success) return;
    const { id, fp } = hint.data;
    if (gone) this.#sightings.remove(id, fp, formatAddress({ host: from, port }));
    else this.#see({ id, fp }, machineName(instance), from, port);
  }

  /** The address is the one it answered from: its records may be of before a change of address, or name a tunnel. */
  #see({ id, fp }: NodeHint, name: string, from: string, port: number): void {
    const link = linkTo(from, this.#links);
    if (link === null) return;
    const address = formatAddress({ host: from, port });
    const rank = this.#links.indexOf(link);
    const sighting = { id, fingerprint: fp, name, address, rank };
    this.#sightings.add(sighting, this.#options.clock.nowMs());
    this.#start?.onSeen({ id, fingerprint: fp, address });
  }

  #failed(trouble: MdnsTrouble): void {
    if (this.#trouble !== null) return; // every send repeats the error
    this.#trouble = trouble;
    if (this.#told === trouble) return;
    this.#told = trouble;
    this.#start?.events.record({ severity: 'warn', source: 'fleet', says: PROBLEMS[trouble] });
  }
}
