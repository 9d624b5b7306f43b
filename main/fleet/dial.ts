import { createHash, timingSafeEqual } from 'node:crypto';
import { connect, type TLSSocket } from 'node:tls';
import { WebSocket } from 'ws';
import { type ChannelBinding, HandshakeRefused, type RefusalCode } from '../../agent/wire/handshake.ts';
import { channelBinding, HandshakeSocket, SocketClosed } from '../../agent/wire/socket.ts';
import { type ErrorCode, SwitchyardError } from '../domain/errors.ts';
import { type Said, said } from '../domain/said.ts';
import type { Clock } from '../domain/time.ts';
import type { AgentAddress } from './address.ts';

export const CONNECT_MS = 3000;
/** From the connection to the last message of the handshake; the agent allows 5 s itself. */
export const HANDSHAKE_MS = 8000;

export interface DialOptions {
  readonly address: AgentAddress;
  /** 64 hex digits each, of the keys that the agent may show; null while pairing: any. */
  readonly fingerprints: readonly string[] | null;
  readonly clock: Clock;
  /** Largest message taken once the agent has proved itself, in bytes. */
  readonly maxMessageBytes: number;
}

/** An upgraded WebSocket on which nothing is proved yet. */
export interface Dialled {
  readonly ws: WebSocket;
  readonly tls: TLSSocket;
  readonly socket: HandshakeSocket;
  /** Of the key that the agent showed, 64 hex digits. */
  readonly fingerprint: string;
  readonly binding: ChannelBinding;
}

/**
 * Dials, runs `use` on the fresh socket within the time limit, and gives what it gives. On any rejection the socket is gone,
 * and the error is a SwitchyardError (errors of the product's own code inside `use` pass unchanged).
 */
export async function dial<Out>(options: DialOptions, use: (dialled: Dialled) => Promise<Out>): Promise<Out> {
  const { host, port } = options.address;
  // Without `session` nothing is resumed: a resumed session shows no certificate, so there would be nothing to compare.
  const tls = connect({
    host,
    port,
    servername: '',
    rejectUnauthorized: false,
    minVersion: 'TLSv1.3',
    ALPNProtocols: ['http/1.1'],
  });
  let late = false;
  let using = false;
  const expire = (): void => {
    late = true;
    tls.destroy();
  };
  // Errors arrive wherever somebody waits; a listener that stays keeps the rest from ending the process.
  tls.on('error', () => tls.destroy());
  let stop = options.clock.after(CONNECT_MS, expire);
  try {
    await opened(tls);
    stop();
    stop = options.clock.after(HANDSHAKE_MS, expire);
    tls.setNoDelay(true);
    const fingerprint = peerFingerprint(tls);
    if (options.fingerprints?.every((known) => !sameFingerprint(known, fingerprint))) {
      throw new SwitchyardError('identity_changed');
    }
    const ws = await upgraded(tls, options.maxMessageBytes);
    const socket = new HandshakeSocket(ws, tls);
    const binding = channelBinding(tls, fingerprint);
    using = true;
    return await use({ ws, tls, socket, fingerprint, binding });
  } catch (error) {
    tls.destroy();
    // Before `use` runs, what throws is Node's own, in words that are not ours.
    const known = error instanceof SwitchyardError || using;
    throw late || !known ? new SwitchyardError('node_unreachable') : asSwitchyardError(error);
  } finally {
    stop();
  }
}

const CODES: Record<RefusalCode, ErrorCode> = {
  proof: 'join_refused',
  version: 'wire_version',
  malformed: 'node_unreachable',
  'too-many-controllers': 'too_many_controllers',
  'not-stored': 'store_unavailable',
};

const SENTENCES: Partial<Record<RefusalCode, Said>> = {
  malformed: said('not_an_agent'),
  'not-stored': said('pairing_not_stored'),
};

function asSwitchyardError(error: unknown): unknown {
  if (error instanceof HandshakeRefused) return new SwitchyardError(CODES[error.code], SENTENCES[error.code]);
  return error instanceof SocketClosed ? new SwitchyardError('node_unreachable') : error;
}

class ConnectionFailed extends Error {}

function opened(tls: TLSSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    tls.once('secureConnect', () => resolve());
    tls.once('close', () => reject(new ConnectionFailed()));
  });
}

/** The WebSocket upgrade over the open connection: no Origin, nothing secret in URL or header, no compression. */
function upgraded(tls: TLSSocket, maxPayload: number): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const ws = new WebSocket('ws://agent/v1', {
      createConnection: () => tls,
      perMessageDeflate: false,
      followRedirects: false,
      maxPayload,
      // Masking protects plain-text proxies from scripts of web pages; inside TLS it is only a copy of every byte.
      generateMask: () => undefined,
    });
    ws.once('open', () => resolve(ws));
    // Stays: an 'error' that nobody hears would end the process.
    ws.on('error', () => reject(new ConnectionFailed()));
    ws.once('close', () => reject(new ConnectionFailed()));
  });
}

function peerFingerprint(tls: TLSSocket): string {
  const certificate = tls.getPeerX509Certificate();
  if (certificate === undefined || tls.isSessionReused()) throw new ConnectionFailed();
  return createHash('sha256')
    .update(certificate.publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex');
}

function sameFingerprint(left: string, right: string): boolean {
  const [a, b] = [Buffer.from(left, 'hex'), Buffer.from(right, 'hex')];
  return a.length === b.length && timingSafeEqual(a, b);
}
