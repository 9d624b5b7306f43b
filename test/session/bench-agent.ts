import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { WebSocket } from 'ws';
import { Controllers, type WriteFile } from '../../agent/session/controllers.ts';
import { certificateFingerprint, type Identity, loadIdentity } from '../../agent/session/identity.ts';
import type { AgentServerOptions } from '../../agent/session/ports.ts';
import { AgentServer } from '../../agent/session/server.ts';
import type { Heartbeat, Welcome } from '../../agent/wire/control.ts';
import type { ChannelBinding } from '../../agent/wire/handshake.ts';
import { channelBinding, HandshakeSocket } from '../../agent/wire/socket.ts';
import type { CallServer } from '../../agent/wire/stream.ts';
import { okHead, trailers } from '../wire/simulated-link.ts';
import { ManualClock } from './manual-clock.ts';

export const welcome: Welcome = {
  t: 'welcome',
  wireVersion: 1,
  agentVersion: '0.1.0',
  node: 'n1',
  name: 'bench',
  platform: 'linux',
  arch: 'x64',
  cpu: null,
  cores: 2,
  memoryTotalBytes: 1,
  pid: 1,
  startedAtMs: 1,
};

export function heartbeat(seq: number): Heartbeat {
  return {
    t: 'heartbeat',
    seq,
    atMs: 1,
    host: { cpuPercent: null, memoryUsedBytes: null, memoryTotalBytes: null, uptimeS: null },
    gpus: [],
    engines: [],
    controllers: 1,
  };
}

/** Answers with the request's own body. */
export const echo: CallServer = (call) => {
  call.respond(okHead);
  call.write(call.body);
  call.end(trailers);
};

export interface TestAgent {
  readonly server: AgentServer;
  readonly controllers: Controllers;
  readonly identity: Identity;
  readonly port: number;
  readonly clock: ManualClock;
}

/** Agents on loopback with folders of their own; `stop` ends and removes all of them. */
export class TestAgents {
  #folders: string[] = [];
  #servers: AgentServer[] = [];

  async folder(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'switchyard-session-'));
    this.#folders.push(folder);
    return folder;
  }

  async start(
    options: Partial<AgentServerOptions> & { folder?: string; write?: WriteFile; manual?: ManualClock } = {},
  ): Promise<TestAgent> {
    const { folder = await this.folder(), write, manual, ...rest } = options;
    const clock = manual ?? new ManualClock();
    const identity = await loadIdentity(folder);
    const controllers = await Controllers.load(folder, ...(write === undefined ? [] : [write]));
    const server = new AgentServer({
      identity,
      controllers,
      clock,
      host: '127.0.0.1',
      port: 0,
      welcome: () => welcome,
      serve: echo,
      ...rest,
    });
    this.#servers.push(server);
    const { port } = await server.start();
    return { server, controllers, identity, port, clock };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()));
    await Promise.all(this.#folders.map((folder) => rm(folder, { recursive: true, force: true })));
    this.#servers = [];
    this.#folders = [];
  }
}

export function codeOf(agent: TestAgent): string {
  const code = agent.server.joinCode();
  if (code === null) throw new Error('no join code');
  return code;
}

export interface RawClient {
  readonly tls: TLSSocket;
  readonly ws: WebSocket;
  readonly socket: HandshakeSocket;
  readonly binding: ChannelBinding;
  /** Close code, once closed. */
  readonly closed: Promise<number>;
}

export async function rawTls(port: number, localAddress?: string): Promise<TLSSocket> {
  const tls = connect({
    host: '127.0.0.1',
    port,
    rejectUnauthorized: false,
    ...(localAddress === undefined ? {} : { localAddress }),
  });
  tls.on('error', () => tls.destroy());
  await new Promise<void>((resolve, reject) => {
    tls.once('secureConnect', resolve);
    tls.once('close', () => reject(new Error('closed before TLS')));
  });
  return tls;
}

/** A client of the protocol that can be made to misbehave. */
export async function rawClient(port: number, localAddress?: string): Promise<RawClient> {
  const tls = await rawTls(port, localAddress);
  const ws = new WebSocket('ws://agent/v1', { createConnection: () => tls, perMessageDeflate: false });
  const closed = new Promise<number>((resolve) => ws.once('close', resolve));
  await new Promise<void>((resolve, reject) => {
    ws.once('open', resolve);
    ws.once('error', reject);
  });
  const certificate = tls.getPeerX509Certificate();
  if (certificate === undefined) throw new Error('no certificate');
  const binding = channelBinding(tls, certificateFingerprint(certificate));
  return { tls, ws, socket: new HandshakeSocket(ws, tls), binding, closed };
}
