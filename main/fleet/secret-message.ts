import type { TLSSocket } from 'node:tls';

const FINAL_BINARY = 0x82;
const MASKED = 0x80;
const MASK_BYTES = 4;

/**
 * Sends one binary WebSocket message past `ws`, as a single buffer of this process. `ws` writes a header and a payload, and Node's
 * TLS joins two buffers in memory of its own that it frees without zeroing: a key would stay readable there. One buffer goes
 * into the encryption as it is. The mask is zero, as on all frames of this socket. Both buffers are zeroed when the
 * socket is done with them.
 *
 * @param payload up to 65,535 bytes; zeroed
 * @returns true when it has left
 */
export function sendSecret(tls: TLSSocket, payload: Uint8Array): Promise<boolean> {
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
  payload.fill(0);
  return new Promise((resolve) => {
    tls.write(frame, (error) => {
      frame.fill(0);
      resolve(error === undefined || error === null);
    });
  });
}
