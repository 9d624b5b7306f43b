import type { Readable } from 'node:stream';
import { MAX_KEY_BYTES } from '../../agent/wire/cloud.ts';
import { SwitchyardError } from '../domain/errors.ts';

/** A key, and white space around it. */
const MAX_BODY_BYTES = MAX_KEY_BYTES + 64;

/**
 * Reads a key from a request's body into one buffer outside the pool, zeroing every chunk that the parser handed over. Whoever
 * gets the buffer zeroes it.
 * @throws SwitchyardError `invalid_cloud_key` when it is longer than a key can be; everything read is zeroed then
 */
export async function readKeyBody(body: Readable): Promise<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(MAX_BODY_BYTES);
  let size = 0;
  let tooLong = false;
  try {
    for await (const chunk of body) {
      if (!Buffer.isBuffer(chunk)) throw new SwitchyardError('invalid_cloud_key');
      if (size + chunk.length > buffer.length) tooLong = true;
      else {
        buffer.set(chunk, size);
        size += chunk.length;
      }
      chunk.fill(0);
    }
  } catch {
    buffer.fill(0);
    throw new SwitchyardError('invalid_cloud_key');
  }
  if (!tooLong) return buffer.subarray(0, size);
  buffer.fill(0);
  throw new SwitchyardError('invalid_cloud_key');
}
