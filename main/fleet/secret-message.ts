import type { TLSSocket } from 'node:tls';
import type { Clock } from '../domain/time.ts';

const FINAL_BINARY = 0x82;
const MASKED = 0x80;
const MASK_BYTES = 4;
/** How often a busy socket is looked at again. */
const LOOK_MS = 2;

/**
 * Sends binary WebSocket messages past `ws`, each as a single buffer of this process, in the order in which they were given. `ws`
 * writes a header and a payload, and Node joins whatever waits behind a write that runs, both in memory of its own that it frees
 * without zeroing: a key would stay readable there. One buffer on an idle socket goes into the encryption as it is. The mask is
 * zero, as on all frames of this socket. Every buffer is zeroed when the socket is done with it.
 */
export class SecretMessages {
  readonly #tls: TLSSocket;
  readonly #clock: Clock;
  #last: Promise<unknown> = Promise.resolve();

  constructor(tls: TLSSocket, clock: Clock) {
    this.#tls = tls;
    this.#clock = clock;
  }

  /**
   * @param payload up to 65,535 bytes; zeroed at once
   * @returns true when it has left
   */
  send(payload: Uint8Array): Promise<boolean> {
    const frame = framed(payload);
    payload.fill(0);
    const sent = this.#last.then(() => this.#write(frame));
    this.#last = sent;
    return sent;
  }

  async #write(frame: Buffer): Promise<boolean> {
    while (this.#tls.writableLength > 0 && !this.#tls.destroyed) {
      await new Promise<void>((resolve) => this.#clock.after(LOOK_MS, resolve));
    }
    return await new Promise((resolve) => {
      this.#tls.write(frame, (error) => {
        frame.fill(0);
        resolve(error === undefined || error === null);
      });
    });
  }
}

function framed(payload: Uint8Array): Buffer {
  const headerBytes = payload.length < 126 ? 2 : 4;
  const frame = Buffer.allocUnsafeSlow(headerBytes + MASK_BYTES + payload.length);
  frame[0] = FINAL_BINARY;
  if (headerBytes === 2) frame[1] = MASKED | payload.length;
  else {
    frame[1] = MASKED | 126;
    frame.writeUInt16BE(payload.length, 2);
  }
  frame.fill(0, headerBytes, headerBytes + MASK_BYTES);
  frame.set(payload, headerBytes + MASK_BYTES);
  return frame;
}
