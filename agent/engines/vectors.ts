import { EngineFailure } from './failure.ts';
import { isIndex } from './scores.ts';
import { isRecord } from './sse.ts';

/**
 * Vectors on typed arrays, little-endian float32 throughout (every platform that Node 24 runs on is little-endian). An engine
 * that offers base64 sends a vector as one JSON string, which costs a fifth of parsing its numbers.
 */
export interface VectorBatch {
  /** count x width, row-major. */
  readonly values: Float32Array;
  readonly count: number;
  readonly width: number;
}

export interface VectorDemand {
  readonly count: number;
  /** Full width that the engine must send; null: whatever it is, but the same for each. */
  readonly width: number | null;
  /** Leading values to keep; null: all. */
  readonly cut: number | null;
  readonly normalise: boolean;
}

const invalid = (sentence: string, failing: readonly number[] = []) =>
  new EngineFailure(
    'engine_invalid_response',
    { failing: failing.slice(0, 2048).map((index) => ({ index, tokens: null })) },
    sentence,
  );

/**
 * Takes the vectors out of an OpenAI-shaped answer `{data: [{index, embedding: base64 | number[]}]}`, in the order of the
 * inputs whatever the order of the answer.
 * @throws EngineFailure `engine_invalid_response` for too few or too many, an index that is none, another width, values
 * that are not finite, a length that float32 does not hold
 */
export function readVectors(answer: unknown, demand: VectorDemand): VectorBatch {
  const items = isRecord(answer) && Array.isArray(answer.data) ? answer.data : null;
  if (items === null) throw invalid('The engine answered without vectors.');
  if (items.length !== demand.count) {
    throw invalid(`The engine answered with ${items.length} vectors for ${demand.count} texts.`);
  }
  const rows = new Array<Float32Array | undefined>(demand.count).fill(undefined);
  // Indices that are left out altogether mean the order of the texts; some with and some without mean nothing.
  const isIndexed = items.some((item) => isRecord(item) && item.index !== undefined);
  for (const [position, item] of items.entries()) {
    const index: unknown = isIndexed && isRecord(item) ? item.index : position;
    const row = isRecord(item) ? decode(item.embedding) : null;
    if (row === null || !isIndex(index, demand.count) || rows[index] !== undefined) {
      throw invalid('The engine answered with vectors that cannot be read.');
    }
    rows[index] = row;
  }
  return assemble(rows, demand);
}

/**
 * Takes the vectors out of rows of numbers, as native routes answer (`/api/embed` of Ollama, `/embed` of TEI).
 * @throws EngineFailure as `readVectors`
 */
export function readRows(rows: unknown, demand: VectorDemand): VectorBatch {
  if (!Array.isArray(rows)) throw invalid('The engine answered without vectors.');
  return readVectors({ data: rows.map((embedding) => ({ embedding })) }, demand);
}

/** Standard alphabet, padded: `Buffer.from` skips whatever else it meets, and a row would shift by a few bits. */
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

function decode(embedding: unknown): Float32Array | null {
  if (typeof embedding === 'string') {
    if (embedding.length % 4 !== 0 || !BASE64.test(embedding)) return null;
    const bytes = Buffer.from(embedding, 'base64');
    if (bytes.length === 0 || bytes.length % 4 !== 0) return null;
    // Small buffers come from a shared pool at any offset; a float array needs one that is a multiple of four.
    const aligned = bytes.byteOffset % 4 === 0 ? bytes : Buffer.from(Uint8Array.from(bytes).buffer);
    return new Float32Array(aligned.buffer, aligned.byteOffset, aligned.length / 4);
  }
  if (!Array.isArray(embedding) || embedding.length === 0) return null;
  // JSON has no NaN: engines write null instead, which must not become 0.
  return Float32Array.from(embedding, (value) => (typeof value === 'number' ? value : Number.NaN));
}

/**
 * Checks full rows, then cuts, then normalises (a cut vector has lost some of its length).
 * @throws EngineFailure as `readVectors`
 */
export function assemble(rows: readonly (Float32Array | undefined)[], demand: VectorDemand): VectorBatch {
  const full = demand.width ?? rows[0]?.length ?? 0;
  const width = demand.cut === null ? full : Math.min(demand.cut, full);
  const values = new Float32Array(rows.length * width);
  const broken: number[] = [];
  // By number, not by `forEach`: that would pass over a hole and leave a row of zeros.
  for (let index = 0; index < rows.length; index++) {
    const row = rows[index];
    if (row === undefined) throw invalid('The engine left a vector out.');
    if (row.length !== full) {
      throw invalid(`The engine answered with a vector of width ${row.length} where ${full} is due.`, [index]);
    }
    const target = values.subarray(index * width, (index + 1) * width);
    target.set(width === full ? row : row.subarray(0, width));
    if (!isUsable(row) || (width < full && !isUsable(target))) broken.push(index);
    else if (demand.normalise) normalise(target);
  }
  if (broken.length > 0)
    throw invalid('The engine answered with vectors that are not finite or have no length.', broken);
  return { values, count: rows.length, width };
}

/** @throws EngineFailure `engine_invalid_response` when they differ in width */
export function joinBatches(batches: readonly VectorBatch[]): VectorBatch {
  const [first, ...more] = batches;
  if (first === undefined) throw invalid('The engine answered without vectors.');
  if (more.length === 0) return first;
  const { width } = first;
  if (more.some((batch) => batch.width !== width)) throw invalid('The engine answered with vectors of several widths.');
  const values = new Float32Array(batches.reduce((sum, batch) => sum + batch.values.length, 0));
  let at = 0;
  for (const batch of batches) {
    values.set(batch.values, at);
    at += batch.values.length;
  }
  return { values, count: values.length / width, width };
}

/** Normal float32 numbers: a length outside of them has lost its digits, or is none. */
const MIN_NORM = 2 ** -126;
const MAX_NORM = 3.4028234663852886e38;

/** One pass, in double precision: the length is NaN or infinite if a value is. */
function isUsable(row: Float32Array): boolean {
  const norm = Math.sqrt(squares(row));
  return norm >= MIN_NORM && norm <= MAX_NORM;
}

function squares(row: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < row.length; i++) {
    const value = row[i] as number;
    sum += value * value;
  }
  return sum;
}

/** L2, in place, of a row that is usable. */
function normalise(row: Float32Array): void {
  const scale = 1 / Math.sqrt(squares(row));
  for (let i = 0; i < row.length; i++) row[i] = (row[i] as number) * scale;
}

/** The bytes of a batch as they travel. */
export function vectorBytes(batch: VectorBatch): Uint8Array {
  return new Uint8Array(batch.values.buffer, batch.values.byteOffset, batch.values.byteLength);
}
