import { BlockList, isIPv6 } from 'node:net';
import type { NetworkInterfaceInfo } from 'node:os';
import type { Clock } from '../../../main/domain/time.ts';

/** One address of this machine on one of its links. */
export interface Link {
  readonly name: string;
  /** Zone kept: `fe80::1%eth0`. */
  readonly address: string;
  readonly family: 4 | 6;
  readonly prefix: number;
  /** Where a query reaches every machine of the link; null on links without broadcast (point to point). */
  readonly everybody: string | null;
  /** A tunnel, a bridge of containers or the like: what is also seen on a real link is better reached there. */
  readonly virtual: boolean;
}

/** `os.networkInterfaces`, injected. */
export type ReadInterfaces = () => NodeJS.Dict<NetworkInterfaceInfo[]>;

const MAX_LINKS = 64;
const POLL_MS = 2000;
const VIRTUAL =
  /^(tun|tap|utun|wg|ppp|ipsec|tailscale|zt|nebula|docker|br-|veth|virbr|vmnet|vnic|cni|flannel|cali|lxc|podman|vEthernet)/i;

/**
 * The addresses that discovery works on: IPv4, and link-local IPv6 (global IPv6 says nothing about a link). Loopback counts
 * only when asked for.
 */
export function linksOf(
  found: NodeJS.Dict<NetworkInterfaceInfo[]>,
  { loopback = false, platform = process.platform } = {},
): readonly Link[] {
  const links: Link[] = [];
  for (const [name, addresses] of Object.entries(found)) {
    for (const each of addresses ?? []) {
      if (each.internal && !loopback) continue;
      const link = linkOf(name, each, platform);
      if (link !== null) links.push(link);
    }
  }
  // Real links first, IPv4 before IPv6: the order in which an address is preferred.
  return links.sort((a, b) => Number(a.virtual) - Number(b.virtual) || a.family - b.family).slice(0, MAX_LINKS);
}

function linkOf(name: string, info: NetworkInterfaceInfo, platform: NodeJS.Platform): Link | null {
  const prefix = Number(info.cidr?.split('/')[1] ?? Number.NaN);
  if (!Number.isInteger(prefix)) return null;
  // Tunnels have no hardware address; loopback has none either, but is no tunnel.
  const virtual = !info.internal && (VIRTUAL.test(name) || info.mac === '00:00:00:00:00:00');
  if (info.family === 'IPv4') {
    const everybody = info.internal ? info.address : prefix <= 30 ? broadcastOf(info.address, prefix) : null;
    return { name, address: info.address, family: 4, prefix, everybody, virtual };
  }
  if (!info.address.toLowerCase().startsWith('fe80:')) return null;
  const zone = platform === 'win32' ? String(info.scopeid) : name;
  const address = `${info.address.toLowerCase().split('%')[0]}%${zone}`;
  // Every IPv6 machine listens to all-nodes, so nothing need be joined.
  return { name, address, family: 6, prefix, everybody: `ff02::1%${zone}`, virtual };
}

function broadcastOf(address: string, prefix: number): string {
  const number = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const hosts = 2 ** (32 - prefix);
  const last = Math.floor(number / hosts) * hosts + hosts - 1;
  return [24, 16, 8, 0].map((shift) => Math.floor(last / 2 ** shift) % 256).join('.');
}

/** The link that an address is on, or null: whoever answers from elsewhere was not asked. */
export function linkTo(address: string, links: readonly Link[]): Link | null {
  return links.find((link) => isOn(address, link)) ?? null;
}

function isOn(address: string, link: Link): boolean {
  if (isIPv6(address)) {
    const zone = address.split('%')[1];
    return link.family === 6 && zone !== undefined && zone === link.address.split('%')[1];
  }
  if (link.family !== 4) return false;
  const subnet = new BlockList();
  subnet.addSubnet(link.address, link.prefix, 'ipv4');
  return subnet.check(address, 'ipv4');
}

export interface LinkWatchOptions {
  readonly clock: Clock;
  readonly read: ReadInterfaces;
  readonly loopback?: boolean;
  /** Called at the start, and whenever an address came, went or moved. */
  onLinks(links: readonly Link[]): void;
}

/** Looks at the network interfaces every 2 s: no system tells a program of a changed address in a way that is common to all. */
export class LinkWatch {
  readonly #options: LinkWatchOptions;
  #last = '';
  #cancel: () => void = () => {};

  constructor(options: LinkWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#look();
  }

  stop(): void {
    this.#cancel();
    this.#last = '';
  }

  #look(): void {
    const { clock, read, loopback, onLinks } = this.#options;
    this.#cancel = clock.after(POLL_MS, () => this.#look());
    let links: readonly Link[];
    try {
      links = linksOf(read(), { loopback: loopback === true });
    } catch {
      return; // no descriptors left, for instance: the next look tells
    }
    const now = JSON.stringify(links);
    if (now === this.#last) return;
    this.#last = now;
    onLinks(links);
  }
}
