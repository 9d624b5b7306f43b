import type { IncomingMessage } from 'node:http';
import { KEY_BYTES } from '../../preload/contract.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { Clock } from '../domain/time.ts';

/** A key and the white space that a file or a shell may put around it. */
const ROOM = KEY_BYTES.max + 64;
const TIMEOUT_MS = 10_000;

/**
 * Reads a cloud key as bytes and nothing else: each chunk is copied into one unpooled buffer and zeroed, because a string (or a
 * pooled buffer) leaves copies that nobody can wipe.
 *
 * @returns exactly the key's bytes, 8 to 512 printable ASCII characters, in a buffer of its own that the caller zeroes
 * @throws SwitchyardError invalid_cloud_key, request_timeout, client_closed; all that was read is zeroed then
 */
export function readCloudKey(request: IncomingMessage, clock: Clock): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > ROOM) throw new SwitchyardError('invalid_cloud_key');
  return new Promise((resolve, reject) => {
    const room = Buffer.allocUnsafeSlow(ROOM);
    let length = 0;
    let open = true;
    const cancelDeadline = clock.after(TIMEOUT_MS, () => fail('request_timeout'));

    function fail(code: 'invalid_cloud_key' | 'request_timeout' | 'client_closed'): void {
      if (!open) return;
      open = false;
      cancelDeadline();
      room.fill(0);
      reject(new SwitchyardError(code));
    }
    request.on('data', (chunk: Buffer) => {
      if (open && length + chunk.length <= ROOM) {
        chunk.copy(room, length);
        length += chunk.length;
      } else fail('invalid_cloud_key');
      chunk.fill(0);
    });
    request.on('end', () => {
      if (!open) return;
      const key = trimmed(room.subarray(0, length));
      room.fill(0);
      if (key === null) {
        fail('invalid_cloud_key');
        return;
      }
      open = false;
      cancelDeadline();
      resolve(key);
    });
    request.on('close', () => fail('client_closed'));
    request.on('error', () => fail('client_closed'));
  });
}

/** @returns a copy without the white space around it; null when that is no key. */
export function trimmed(bytes: Buffer): Buffer | null {
  let start = 0;
  let end = bytes.length;
  while (start < end && isSpace(bytes[start])) start += 1;
  while (end > start && isSpace(bytes[end - 1])) end -= 1;
  const length = end - start;
  if (length < KEY_BYTES.min || length > KEY_BYTES.max) return null;
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte <= 0x20 || byte >= 0x7f) return null;
  }
  const key = Buffer.allocUnsafeSlow(length);
  bytes.copy(key, 0, start, end);
  return key;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || (byte !== undefined && byte >= 0x09 && byte <= 0x0d);
}
