import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { createAgentClock } from '../../agent/clock.ts';
import { Advertiser, type AdvertiserNote } from '../../agent/discovery/advertiser.ts';
import { type AgentHint, LanDiscovery } from '../../main/discovery/lan-discovery.ts';
import type { NewEvent } from '../../main/domain/events.ts';

/** Discovery over real sockets on loopback, on ports of its own, so that it needs no rights and meets nobody. */
export interface Ports {
  readonly loopback: true;
  readonly mdnsPort: number;
  readonly queryPort: number;
}

const clock = createAgentClock();
const loopback = () => ({ lo: (networkInterfaces().lo ?? networkInterfaces().lo0 ?? []).filter(isIPv4) });
const isIPv4 = ({ family }: { family: string }) => family === 'IPv4';

export async function freePorts(): Promise<Ports> {
  const sockets = [createSocket('udp4'), createSocket('udp4')];
  for (const socket of sockets) await once(socket.bind(0), 'listening');
  const [mdnsPort = 0, queryPort = 0] = sockets.map((socket) => socket.address().port);
  for (const socket of sockets) socket.close();
  return { loopback: true, mdnsPort, queryPort };
}

/** Takes a UDP port and shares it with nobody. */
export async function hold(port: number): Promise<Socket> {
  const socket = createSocket('udp4');
  await once(socket.bind(port, '0.0.0.0'), 'listening');
  return socket;
}

export interface AgentParts {
  readonly id: string;
  readonly name?: string;
  readonly host?: string;
}

export function advertise(lab: Ports, { id, name = 'workstation', host = '0.0.0.0' }: AgentParts) {
  const notes: AdvertiserNote[] = [];
  const advertiser = new Advertiser({
    clock,
    interfaces: loopback,
    hint: { id, fp: id.repeat(2) },
    name,
    host,
    port: 7412,
    onNote: (note) => notes.push(note),
    lab,
  });
  advertiser.start();
  return { advertiser, notes };
}

export function discover(lab: Ports) {
  const events: NewEvent[] = [];
  const hints: AgentHint[] = [];
  const discovery = new LanDiscovery({
    clock,
    randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
    interfaces: loopback,
    lab,
  });
  discovery.start({
    enabled: true,
    events: { record: (event) => events.push(event) },
    onSeen: (hint) => hints.push(hint),
  });
  return { discovery, events, hints };
}
