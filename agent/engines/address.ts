import { BlockList, isIP, isIPv4 } from 'node:net';
import type { EngineReport } from '../wire/control.ts';
import { engineUrl } from '../wire/engine-address.ts';

export type Reach = EngineReport['reach'];

/** Where engines listen by default: Ollama, llama.cpp (new and old), vLLM, TGI and TEI, LM Studio. Ports only say where to look. */
export const WELL_KNOWN_PORTS = [11434, 9931, 8080, 8000, 3000, 1234] as const;

export interface EngineAddress {
  /** `host:port`, the engine's id on this node and what people see. */
  readonly id: string;
  /** `http://host:port`. */
  readonly origin: string;
  readonly host: string;
  readonly port: number;
}

function blocks(entries: readonly (readonly [string, number, 'ipv4' | 'ipv6'])[]): BlockList {
  const list = new BlockList();
  for (const [address, bits, family] of entries) list.addSubnet(address, bits, family);
  return list;
}

/**
 * @returns what an IP address reaches: this machine, a private network (RFC 1918, link-local, carrier-grade NAT, unique local),
 * or anything else
 */
export function reachOf(ip: string): Reach {
  const bare = ip.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  if (isIP(bare) === 0) return 'public';
  const family = isIPv4(bare) ? 'ipv4' : 'ipv6';
  const loopback = blocks([
    ['127.0.0.0', 8, 'ipv4'],
    ['::1', 128, 'ipv6'],
  ]);
  if (loopback.check(bare, family)) return 'loopback';
  const near = blocks([
    ['10.0.0.0', 8, 'ipv4'],
    ['172.16.0.0', 12, 'ipv4'],
    ['192.168.0.0', 16, 'ipv4'],
    ['169.254.0.0', 16, 'ipv4'],
    ['100.64.0.0', 10, 'ipv4'],
    ['fc00::', 7, 'ipv6'],
    ['fe80::', 10, 'ipv6'],
  ]);
  return near.check(bare, family) ? 'private' : 'public';
}

const ORDER: readonly Reach[] = ['loopback', 'private', 'public'];

/** True when an address of `actual` reach is no further away than `reported`. */
export function within(actual: Reach, reported: Reach): boolean {
  return ORDER.indexOf(actual) <= ORDER.indexOf(reported);
}

export function furthest(reaches: readonly Reach[]): Reach {
  return ORDER[Math.max(0, ...reaches.map((reach) => ORDER.indexOf(reach)))] ?? 'public';
}

/**
 * Parses `--engine URL`: http or https, host and port, no path, no user. `localhost` is 127.0.0.1, so that an engine named twice
 * is one engine.
 * @throws RangeError with a sentence for people
 */
export function parseEngineAddress(text: string): EngineAddress {
  const url = engineUrl(text);
  if (url === null) throw new RangeError('An engine is given as http://HOST:PORT.');
  const name = url.hostname === 'localhost' ? '127.0.0.1' : url.hostname;
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  return {
    id: `${name}:${port}`,
    origin: `${url.protocol}//${name}:${port}`,
    host: name.replace(/^\[|\]$/g, ''),
    port,
  };
}

export function loopbackAddress(port: number): EngineAddress {
  return { id: `127.0.0.1:${port}`, origin: `http://127.0.0.1:${port}`, host: '127.0.0.1', port };
}
