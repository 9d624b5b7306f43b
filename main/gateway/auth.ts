import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { SwitchyardError } from '../domain/errors.ts';
import type { ProjectId } from '../domain/ids.ts';
import type { ApiKey, KeyDirectory } from './ports.ts';

/** Who is on the other end of the connection, as far as rules about the network go. */
export interface Peer {
  readonly loopback: boolean;
  readonly tls: boolean;
}

/**
 * @param trustProxy believe the nearest proxy: the last X-Forwarded-For, the last X-Forwarded-Proto. Without it such headers
 *   are ignored, as any client may send them.
 */
export function peerOf(request: IncomingMessage, trustProxy: boolean): Peer {
  const socket = request.socket as IncomingMessage['socket'] & { readonly encrypted?: boolean };
  const direct: Peer = { loopback: isLoopback(socket.remoteAddress ?? ''), tls: socket.encrypted === true };
  if (!trustProxy) return direct;
  const address = lastOf(request.headers['x-forwarded-for']);
  const scheme = lastOf(request.headers['x-forwarded-proto']);
  return {
    loopback: direct.loopback && (address === null || isLoopback(address)),
    tls: direct.tls || (scheme === 'https' && direct.loopback),
  };
}

function lastOf(header: string | string[] | undefined): string | null {
  const text = Array.isArray(header) ? header.join(',') : header;
  return text?.split(',').at(-1)?.trim() ?? null;
}

function isLoopback(address: string): boolean {
  const plain = address.startsWith('::ffff:') ? address.slice(7) : address;
  return plain === '::1' || /^127(\.\d{1,3}){3}$/.test(plain);
}

/** @returns the token of `Authorization: Bearer`; null when there is none. */
export function bearerToken(request: IncomingMessage): string | null {
  const header = request.headers.authorization;
  if (header === undefined || header.slice(0, 7).toLowerCase() !== 'bearer ') return null;
  const token = header.slice(7).trim();
  return token === '' ? null : token;
}

export function sha256Hex(text: string): string {
  return hash('sha256', text, 'hex');
}

/** The principal of requests that come over loopback without a key, where the operator allows that. */
function openKey(project: ProjectId): ApiKey {
  return {
    id: '',
    project,
    allowWiden: false,
    anyProject: false,
    classCap: 'interactive',
    roles: null,
    limits: { requestsPerMinute: null, tokensPerMinute: null, usdPerDay: null },
  };
}

/**
 * Finds the API key of a request. A key that is sent must be known, also where none is needed: a revoked key must not go on
 * as nobody.
 * @throws SwitchyardError invalid_api_key
 */
export function authenticateKey(
  request: IncomingMessage,
  directory: KeyDirectory,
  openProject: ProjectId | null,
  peer: Peer,
): ApiKey {
  const token = bearerToken(request);
  if (token !== null) {
    const key = directory.find(sha256Hex(token));
    if (key !== null) return key;
  } else if (openProject !== null && peer.loopback && request.headers.authorization === undefined) {
    return openKey(openProject);
  }
  throw new SwitchyardError('invalid_api_key');
}

/** Compares a token with the SHA-256 that is kept of the right one. */
export function matchesToken(token: string, sha256: string): boolean {
  const kept = Buffer.from(sha256, 'hex');
  const sent = hash('sha256', token, 'buffer');
  return kept.length === sent.length && timingSafeEqual(kept, sent);
}
