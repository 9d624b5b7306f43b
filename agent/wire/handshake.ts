import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { WIRE_VERSION } from './control.ts';

/**
 * Mutual proof of a shared secret inside TLS 1.3, bound to the agent's key and to this very connection. Both procedures run
 * over a port, so that every attack can be tried without a socket. docs/protocol.md has the table.
 */
export type Mode = 'pair' | 'resume' | 'data';

/** Largest message, in bytes, before both sides have proved themselves. */
export const MAX_HANDSHAKE_BYTES = 4096;
/** RFC 9266: the exporter value that names one TLS connection. */
export const EXPORTER_LABEL = 'EXPORTER-Channel-Binding';
export const EXPORTER_BYTES = 32;
const PROOF_BYTES = 32;
const NONCE_BYTES = 32;
const NODE_KEY_BYTES = 32;

const bytes32 = z.string().regex(/^[A-Za-z0-9_-]{43}$/);
const id = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);

const AnyVersion = z.object({ v: z.number() });
const Hello = z.discriminatedUnion('mode', [
  z.object({ v: z.literal(WIRE_VERSION), mode: z.literal('pair'), cp: id, cn: bytes32 }),
  z.object({ v: z.literal(WIRE_VERSION), mode: z.literal('resume'), cp: id, cn: bytes32 }),
  z.object({ v: z.literal(WIRE_VERSION), mode: z.literal('data'), cp: id, cn: bytes32, sid: id }),
]);
export type Hello = z.infer<typeof Hello>;
const Challenge = z.object({ v: z.literal(WIRE_VERSION), node: id, an: bytes32 });
const Issue = z.object({ key: bytes32 });
const Stored = z.object({ t: z.literal('stored') });
const Ready = z.object({ t: z.literal('ready'), sid: id });

/** One message of the handshake as it was on the wire. JSON travels as text messages, proofs as binary ones. */
export interface HandshakeMessage {
  readonly bytes: Buffer;
  readonly binary: boolean;
}

/** Where the messages go. `next` rejects when the peer closed, with the refusal if the peer gave one. */
export interface HandshakePort {
  send(bytes: Buffer, binary: boolean): void;
  next(): Promise<HandshakeMessage>;
  /** The peer's proof was right. */
  trust(): void;
}

/** What binds the proofs to this connection. */
export interface ChannelBinding {
  /** SHA-256 of the agent's SPKI, 32 bytes: its own at the agent, the one TLS showed at the controller. */
  readonly fingerprint: Uint8Array;
  /** 32 bytes exported from the TLS connection. */
  readonly exporter: Uint8Array;
}

export type RefusalCode =
  /** Wrong, used or closed code; unknown control plane; foreign session; bad proof. Never says which. */
  | 'proof'
  | 'version'
  /** Not a message of this handshake. */
  | 'malformed'
  | 'too-many-controllers'
  /** The agent could not store the node key; the code still holds. */
  | 'not-stored';

/** The handshake ended without a session. Carries nothing that the peer sent. */
export class HandshakeRefused extends Error {
  readonly code: RefusalCode;
  constructor(code: RefusalCode) {
    super(`handshake refused: ${code}`);
    this.name = 'HandshakeRefused';
    this.code = code;
  }
}

function hmac(key: Uint8Array, parts: readonly (string | Uint8Array)[]): Buffer {
  const mac = createHmac('sha256', key);
  const length = Buffer.alloc(4);
  for (const part of parts) {
    const bytes = typeof part === 'string' ? Buffer.from(part) : part;
    length.writeUInt32BE(bytes.length);
    mac.update(length).update(bytes);
  }
  return mac.digest();
}

/** K = HMAC(secret, "switchyard/1", mode), parts length-prefixed: a node key is no join code and the reverse. */
export function deriveKey(secret: Uint8Array, mode: Mode): Buffer {
  return hmac(secret, [`switchyard/${WIRE_VERSION}`, mode]);
}

/**
 * HMAC(K, role, T). Without the role an echo of one's own proof would pass; T is the first two messages as sent, the
 * agent's fingerprint and the exporter, so that nothing can be downgraded, relayed or replayed.
 */
export function prove(
  key: Uint8Array,
  role: 'controller' | 'agent',
  hello: Uint8Array,
  challenge: Uint8Array,
  binding: ChannelBinding,
): Buffer {
  return hmac(key, [role, hello, challenge, binding.fingerprint, binding.exporter]);
}

function isProof(message: HandshakeMessage, expected: Buffer): boolean {
  return message.binary && message.bytes.length === PROOF_BYTES && timingSafeEqual(message.bytes, expected);
}

function sendJson(port: HandshakePort, value: unknown): Buffer {
  const bytes = Buffer.from(JSON.stringify(value));
  port.send(bytes, false);
  return bytes;
}

function parse<Out>(schema: z.ZodType<Out>, message: HandshakeMessage): Out {
  if (message.binary || message.bytes.length > MAX_HANDSHAKE_BYTES) throw new HandshakeRefused('malformed');
  let value: unknown;
  try {
    value = JSON.parse(message.bytes.toString('utf8'));
  } catch {
    throw new HandshakeRefused('malformed');
  }
  const version = AnyVersion.safeParse(value);
  if (version.success && version.data.v !== WIRE_VERSION) throw new HandshakeRefused('version');
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new HandshakeRefused('malformed');
  return parsed.data;
}

const nonce = (): string => randomBytes(NONCE_BYTES).toString('base64url');

export interface ControllerHandshake {
  readonly controller: string;
  readonly binding: ChannelBinding;
  /** The join code's 10 bytes for `pair`, the 32-byte node key otherwise. */
  readonly secret: Uint8Array;
}

/** Steps 1 to 4, the controller's side. Resolves with the agent's node id, once the agent has proved itself. */
async function proveAsController(
  port: HandshakePort,
  options: ControllerHandshake,
  mode: Mode,
  sid?: string,
): Promise<string> {
  const hello = sendJson(port, {
    v: WIRE_VERSION,
    mode,
    cp: options.controller,
    cn: nonce(),
    ...(sid === undefined ? {} : { sid }),
  });
  const challenge = await port.next();
  const { node } = parse(Challenge, challenge);
  const key = deriveKey(options.secret, mode);
  port.send(prove(key, 'controller', hello, challenge.bytes, options.binding), true);
  const answer = await port.next();
  if (!isProof(answer, prove(key, 'agent', hello, challenge.bytes, options.binding))) {
    throw new HandshakeRefused('proof');
  }
  port.trust();
  return node;
}

/**
 * Pairs: `issue` gives the node key to send and must have stored it as pending when it resolves. Resolves when the agent has
 * stored it; a rejection after `issue` ran leaves open whether it did.
 */
export async function pairAsController(
  port: HandshakePort,
  options: ControllerHandshake,
  issue: (node: string) => Promise<Uint8Array>,
): Promise<string> {
  const node = await proveAsController(port, options, 'pair');
  const key = await issue(node);
  sendJson(port, { key: Buffer.from(key).toString('base64url') });
  parse(Stored, await port.next());
  return node;
}

export async function resumeAsController(
  port: HandshakePort,
  options: ControllerHandshake,
): Promise<{ readonly node: string; readonly sid: string }> {
  const node = await proveAsController(port, options, 'resume');
  const { sid } = parse(Ready, await port.next());
  return { node, sid };
}

export async function joinDataAsController(
  port: HandshakePort,
  options: ControllerHandshake,
  sid: string,
): Promise<string> {
  return await proveAsController(port, options, 'data', sid);
}

/** What the agent's side asks of its surroundings. */
export interface AgentHandshake {
  readonly node: string;
  readonly binding: ChannelBinding;
  /** The secret for this hello, or null: then a random one stands in, so that the answer takes the same way and time. */
  secret(hello: Hello): Uint8Array | null;
  /** The first proof was checked. Called before anything is sent. */
  proved(hello: Hello, right: boolean): void;
  /** Stores the node key and burns the code that was proved, in one durable step; throws HandshakeRefused otherwise. */
  store(controller: string, key: Uint8Array, code: Uint8Array): Promise<void>;
  /** Opens a control session and returns its id. */
  openSession(controller: string): string;
}

export type AgentOutcome =
  | { readonly mode: 'pair'; readonly controller: string }
  | { readonly mode: 'resume'; readonly controller: string; readonly sid: string }
  | { readonly mode: 'data'; readonly controller: string; readonly sid: string };

/** The agent's side, all modes. Rejects with HandshakeRefused (or as `next` does); the caller then closes the socket. */
export async function handshakeAsAgent(port: HandshakePort, options: AgentHandshake): Promise<AgentOutcome> {
  const first = await port.next();
  const hello = parse(Hello, first);
  const challenge = sendJson(port, { v: WIRE_VERSION, node: options.node, an: nonce() });
  const given = await port.next();
  // Looked up only now: a code or key that was replaced while the peer took its time must not pass.
  const found = options.secret(hello);
  const secret = Uint8Array.from(found ?? randomBytes(NODE_KEY_BYTES));
  const key = deriveKey(secret, hello.mode);
  const right = isProof(given, prove(key, 'controller', first.bytes, challenge, options.binding)) && found !== null;
  options.proved(hello, right);
  if (!right) throw new HandshakeRefused('proof');
  port.trust();
  port.send(prove(key, 'agent', first.bytes, challenge, options.binding), true);
  if (hello.mode === 'resume') {
    const sid = options.openSession(hello.cp);
    sendJson(port, { t: 'ready', sid });
    return { mode: 'resume', controller: hello.cp, sid };
  }
  if (hello.mode === 'data') return { mode: 'data', controller: hello.cp, sid: hello.sid };
  const { key: issued } = parse(Issue, await port.next());
  await options.store(hello.cp, Buffer.from(issued, 'base64url'), secret);
  sendJson(port, { t: 'stored' });
  return { mode: 'pair', controller: hello.cp };
}
