import type { IncomingCall } from '../wire/stream.ts';
import type { VectorBatch } from './vectors.ts';
import { vectorBytes } from './vectors.ts';

/** Bytes handed to the session at once; small enough that cancelling and other streams are not held up. */
const SLICE_BYTES = 256 * 1024;

/** The texts of an embed or tokenize call; empty when the body is none. */
export function readTexts(body: Uint8Array): readonly string[] {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'));
    return Array.isArray(parsed) ? parsed.map((text) => (typeof text === 'string' ? text : '')) : [];
  } catch {
    return [];
  }
}

/** Answers an embed call with its vectors, no faster than they are taken. */
export async function sendVectors(call: IncomingCall, batch: VectorBatch): Promise<void> {
  call.respond({ status: 200, contentType: 'application/octet-stream', count: batch.count, width: batch.width });
  const bytes = vectorBytes(batch);
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    if (call.signal.aborted) return;
    if (!call.write(bytes.subarray(at, at + SLICE_BYTES))) await call.drained();
  }
}
