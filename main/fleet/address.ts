import { isIPv4, isIPv6 } from 'node:net';
import { SwitchyardError } from '../domain/errors.ts';

export const AGENT_PORT = 7412;

export interface AgentAddress {
  /** Name or IP address as `tls.connect` takes it, an IPv6 zone included: `fe80::1%eth0`. */
  readonly host: string;
  readonly port: number;
}

const NAME = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*\.?$/i;
const ZONE = /^[A-Za-z0-9_.~ -]{1,64}$/;

/**
 * `HOST`, `HOST:PORT`, `[v6]`, `[v6%zone]:PORT`, and a bare IPv6 address. The zone of a link-local address is kept, without
 * it nothing is reached; `%25` is read as the `%` that URLs write so. Throws `invalid_address`.
 */
export function parseAddress(typed: string): AgentAddress {
  const text = typed.trim();
  const bracketed = /^\[([^\]]*)\](?::(\d{1,5}))?$/.exec(text);
  if (bracketed !== null) return { host: ipv6(bracketed[1] ?? ''), port: portOf(bracketed[2]) };
  if (text.split(':').length > 2) return { host: ipv6(text), port: AGENT_PORT };
  const plain = /^([^:]+)(?::(\d{1,5}))?$/.exec(text);
  const host = plain?.[1] ?? '';
  // Digits and dots alone are an IPv4 address or a mistake: resolvers would read 10.1 as 10.0.0.1.
  if (!(isIPv4(host) || (NAME.test(host) && !/^[\d.]+$/.test(host)))) throw new SwitchyardError('invalid_address');
  return { host: host.toLowerCase(), port: portOf(plain?.[2]) };
}

/** `HOST:PORT`, IPv6 in brackets: what `parseAddress` reads back to the same. */
export function formatAddress({ host, port }: AgentAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function ipv6(text: string): string {
  const [address = '', ...rest] = text.split('%');
  if (!isIPv6(address)) throw new SwitchyardError('invalid_address');
  if (rest.length === 0) return address.toLowerCase();
  const zone = rest.join('%').replace(/^25(?=.)/, '');
  if (rest.length > 1 || !ZONE.test(zone)) throw new SwitchyardError('invalid_address');
  return `${address.toLowerCase()}%${zone}`;
}

function portOf(digits: string | undefined): number {
  if (digits === undefined) return AGENT_PORT;
  const port = Number(digits);
  if (port < 1 || port > 65_535) throw new SwitchyardError('invalid_address');
  return port;
}
