import type { IncomingCall } from '../wire/stream.ts';
import { isRecord } from './sse.ts';
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

export interface RankedTexts {
  readonly query: string;
  readonly documents: readonly string[];
}

/** Query and documents of a rerank call; empty when the body is none. */
export function readRanked(body: Uint8Array): RankedTexts {
  const none = { query: '', documents: [] };
  try {
    const parsed: unknown = JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'));
    if (!isRecord(parsed) || typeof parsed.query !== 'string' || !Array.isArray(parsed.documents)) return none;
    return { query: parsed.query, documents: parsed.documents.map((text) => (typeof text === 'string' ? text : '')) };
  } catch {
    return none;
  }
}

export interface InputPart {
  /** A JSON array of strings. */
  readonly inputs: Uint8Array;
  readonly count: number;
}

/** The inputs of an embed call in parts of at most `maxBytes` each; a single longer text is a part of its own. */
export function inputParts(body: Uint8Array, count: number, maxBytes: number): readonly InputPart[] {
  if (body.byteLength <= maxBytes) return [{ inputs: body, count }];
  const parts: InputPart[] = [];
  let texts: string[] = [];
  let bytes = 2;
  const close = () => {
    if (texts.length > 0) parts.push({ inputs: Buffer.from(`[${texts.join(',')}]`), count: texts.length });
    texts = [];
    bytes = 2;
  };
  for (const text of readTexts(body)) {
    const json = JSON.stringify(text);
    const size = Buffer.byteLength(json) + 1;
    if (bytes + size > maxBytes) close();
    texts.push(json);
    bytes += size;
  }
  close();
  return parts;
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
