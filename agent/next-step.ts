import { networkInterfaces } from 'node:os';
import { DEFAULT_PORT } from './session/ports.ts';
import { linksOf, type ReadInterfaces } from './wire/discovery/interfaces.ts';

/** More than these help nobody who has to choose one. */
const MOST = 3;

interface Address {
  readonly host: string;
  readonly port: number;
}

export function shown({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** What to type elsewhere to reach an agent that listens there: IPv4 addresses of real links first; empty where none is known. */
export function addressesToType({ host, port }: Address, read: ReadInterfaces = networkInterfaces): readonly string[] {
  const everywhere = host === '0.0.0.0' || host === '::';
  const hosts = everywhere
    ? linksOf(read())
        .filter(({ family }) => family === 4)
        .map(({ address }) => address)
    : [host];
  return hosts
    .slice(0, MOST)
    .map((each) => (port === DEFAULT_PORT && !each.includes(':') ? each : shown({ host: each, port })));
}

/** The sentence for a machine that no control plane has paired. */
export function howToPair(addresses: readonly string[]): string {
  const where = addresses.length === 0 ? 'the address of this machine' : addresses.join(' or ');
  return `To pair it: in the console Fleet > Add machine, type ${where} and the join code.`;
}
