import type { TLSSocket } from 'node:tls';
import type { WebSocket } from 'ws';
import { CLOSE } from './close.ts';
import {
  type ChannelBinding,
  EXPORTER_BYTES,
  EXPORTER_LABEL,
  type HandshakeMessage,
  type HandshakePort,
  HandshakeRefused,
  MAX_HANDSHAKE_BYTES,
  type RefusalCode,
} from './handshake.ts';
import type { MuxPort } from './mux.ts';

/**
 * All bytes that a side may have sent when its proof is checked, upgrade headers included: ws itself would keep a whole
 * announced message. One read from the network (64 KiB) may hold the proof and what rightly follows it.
 */
const MAX_UNPROVED_BYTES = 96 * 1024;

/** The socket closed in the middle of the handshake without saying why. */
export class SocketClosed extends Error {
  constructor() {
    super('the socket closed');
    this.name = 'SocketClosed';
  }
}

/** What proofs on this connection are bound to. `fingerprint`: 64 hex digits. */
export function channelBinding(tls: TLSSocket, fingerprint: string): ChannelBinding {
  return {
    fingerprint: Buffer.from(fingerprint, 'hex'),
    exporter: tls.exportKeyingMaterial(EXPORTER_BYTES, EXPORTER_LABEL, Buffer.alloc(0)),
  };
}

/** Payload of a WebSocket message as one buffer, without a copy where ws gives it as one. */
export function messageBytes(message: Buffer | ArrayBuffer | Buffer[]): Buffer {
  if (Buffer.isBuffer(message)) return message;
  return Array.isArray(message) ? Buffer.concat(message) : Buffer.from(message);
}

/**
 * A fresh WebSocket as a HandshakePort. Takes the socket's messages until `release`; nothing is lost in between, and a
 * peer that sends more than the handshake needs is cut off.
 */
export class HandshakeSocket implements HandshakePort {
  readonly #ws: WebSocket;
  readonly #tls: TLSSocket;
  #early: HandshakeMessage[] = [];
  #waiter: { resolve(message: HandshakeMessage): void; reject(error: Error): void } | null = null;
  #end: Error | null = null;
  readonly #onMessage = (data: Buffer | ArrayBuffer | Buffer[], binary: boolean): void => {
    const message = { bytes: messageBytes(data), binary };
    if (this.#waiter === null) {
      this.#early.push(message);
      return;
    }
    const waiter = this.#waiter;
    this.#waiter = null;
    waiter.resolve(message);
  };
  readonly #onClose = (code: number): void => this.#finish(refusalOf(code) ?? new SocketClosed());
  readonly #onError = (): void => this.#finish(new SocketClosed());
  readonly #onBytes = (): void => {
    if (this.#tls.bytesRead > MAX_UNPROVED_BYTES) {
      this.#tls.destroy();
      this.#finish(new HandshakeRefused('malformed'));
    }
  };

  constructor(ws: WebSocket, tls: TLSSocket) {
    this.#ws = ws;
    this.#tls = tls;
    ws.on('message', this.#onMessage);
    ws.on('close', this.#onClose);
    // Stays for the socket's life: an 'error' without a listener would end the process, and 'close' follows it anyway.
    ws.on('error', this.#onError);
    tls.prependListener('data', this.#onBytes);
  }

  send(bytes: Buffer, binary: boolean): void {
    if (this.#ws.readyState === this.#ws.OPEN) this.#ws.send(bytes, { binary });
  }

  next(): Promise<HandshakeMessage> {
    const early = this.#early.shift();
    if (early !== undefined) {
      return early.bytes.length > MAX_HANDSHAKE_BYTES
        ? Promise.reject(new HandshakeRefused('malformed'))
        : Promise.resolve(early);
    }
    if (this.#end !== null) return Promise.reject(this.#end);
    return new Promise((resolve, reject) => {
      this.#waiter = {
        resolve: (message) =>
          message.bytes.length > MAX_HANDSHAKE_BYTES ? reject(new HandshakeRefused('malformed')) : resolve(message),
        reject,
      };
    });
  }

  /** The peer has proved itself: it may send more. */
  trust(): void {
    this.#tls.off('data', this.#onBytes);
  }

  /** Hands the socket over. Gives the messages that came too early; the caller must attach in the same turn. */
  release(): readonly HandshakeMessage[] {
    this.trust();
    this.#ws.off('message', this.#onMessage);
    this.#ws.off('close', this.#onClose);
    const early = this.#early;
    this.#early = [];
    return early;
  }

  #finish(error: Error): void {
    this.#end ??= error;
    this.#waiter?.reject(this.#end);
    this.#waiter = null;
  }
}

const REFUSALS: readonly (readonly [number, RefusalCode])[] = [
  [CLOSE.refused, 'proof'],
  [CLOSE.version, 'version'],
  [CLOSE.tooManyControllers, 'too-many-controllers'],
  [CLOSE.notStored, 'not-stored'],
  [CLOSE.violation, 'malformed'],
];

function refusalOf(closeCode: number): HandshakeRefused | null {
  const refusal = REFUSALS.find(([code]) => code === closeCode);
  return refusal === undefined ? null : new HandshakeRefused(refusal[1]);
}

/** The close code that tells the peer of a refusal. */
export function closeCodeOf(refusal: RefusalCode): number {
  return REFUSALS.find(([, code]) => code === refusal)?.[0] ?? CLOSE.refused;
}

/**
 * A proved data socket as the mux wants it. Messages go around the sender of ws, which would give header and payload to TLS as
 * two pieces: they stand behind each other in memory, so they are one. Everything else on this socket stays ws's.
 */
export function muxPort(ws: WebSocket, tls: TLSSocket): MuxPort {
  // Only the end that dialled knows an address; it has to mask, and masks with zeros: inside TLS there is nobody to protect.
  const masks = typeof ws.url === 'string';
  return {
    send: (message) => {
      if (ws.readyState === ws.OPEN && tls.writable) tls.write(webSocketMessage(message, masks));
    },
    get bufferedAmount() {
      return ws.bufferedAmount;
    },
    onDrain: (callback) => void tls.on('drain', callback),
    close: (reason) => ws.close(CLOSE.violation, reason),
  };
}

/** The last frame of a message, which is binary (RFC 6455, 5.2). */
const FIN_BINARY = 0x82;
const MASKED = 0x80;

/** Writes the header into the bytes in front of `message`, of which there are `HEADROOM_BYTES`. */
export function webSocketMessage(message: Buffer, masks: boolean): Buffer {
  const { length } = message;
  const sizeBytes = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const headerBytes = 2 + sizeBytes + (masks ? 4 : 0);
  const whole = Buffer.from(message.buffer, message.byteOffset - headerBytes, headerBytes + length);
  whole[0] = FIN_BINARY;
  whole[1] = (masks ? MASKED : 0) | (sizeBytes === 0 ? length : sizeBytes === 2 ? 126 : 127);
  if (sizeBytes === 2) whole.writeUInt16BE(length, 2);
  if (sizeBytes === 8) {
    whole.writeUInt16BE(0, 2);
    whole.writeUIntBE(length, 4, 6);
  }
  if (masks) whole.writeUInt32BE(0, headerBytes - 4);
  return whole;
}
