import { EngineFailure } from './failure.ts';
import { hollowJson } from './hollow-json.ts';
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
  return assemble(rowsOf(answer, demand, NOT_DECODED), demand);
}

/** As `readVectors`, from the bytes of the answer; large ones let others have their turn in between. */
export async function readVectorsOf(
  body: Buffer,
  demand: VectorDemand,
): Promise<{ readonly batch: VectorBatch; readonly answer: unknown }> {
  const { value, bytesOf } = await hollowJson(body);
  const assembling = assembleInTurns(rowsOf(value, demand, bytesOf), demand);
  for (;;) {
    const step = assembling.next();
    if (step.done === true) return { batch: step.value, answer: value };
    await new Promise(setImmediate);
  }
}

type BytesOf = (text: string) => Uint8Array | null;
const NOT_DECODED: BytesOf = () => null;

function rowsOf(answer: unknown, demand: VectorDemand, bytesOf: BytesOf): readonly (Float32Array | undefined)[] {
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
    const row = isRecord(item) ? decode(item.embedding, bytesOf) : null;
    if (row === null || !isIndex(index, demand.count) || rows[index] !== undefined) {
      throw invalid('The engine answered with vectors that cannot be read.');
    }
    rows[index] = row;
  }
  return rows;
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

function decode(embedding: unknown, bytesOf: BytesOf): Float32Array | null {
  if (typeof embedding === 'string') {
    const decoded = bytesOf(embedding);
    if (decoded !== null) return new Float32Array(decoded.buffer, decoded.byteOffset, decoded.length / 4);
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
  const assembling = assembleInTurns(rows, demand);
  for (;;) {
    const step = assembling.next();
    if (step.done === true) return step.value;
  }
}

/** Values looked at in one turn: two milliseconds. */
const TURN_VALUES = 512 * 1024;

/** Yields when others should have their turn. */
function* assembleInTurns(
  rows: readonly (Float32Array | undefined)[],
  demand: VectorDemand,
): Generator<undefined, VectorBatch> {
  const full = demand.width ?? rows[0]?.length ?? 0;
  const width = demand.cut === null ? full : Math.min(demand.cut, full);
  const together = width === full ? adjoining(rows, full) : null;
  const values = together ?? new Float32Array(rows.length * width);
  const broken: number[] = [];
  let turn = 0;
  // By number, not by `forEach`: that would pass over a hole and leave a row of zeros.
  for (let index = 0; index < rows.length; index++) {
    const row = rows[index];
    if (row === undefined) throw invalid('The engine left a vector out.');
    if (row.length !== full) {
      throw invalid(`The engine answered with a vector of width ${row.length} where ${full} is due.`, [index]);
    }
    const target = values.subarray(index * width, (index + 1) * width);
    if (together === null) target.set(width === full ? row : row.subarray(0, width));
    const length = norm(row);
    const kept = width < full ? norm(target) : length;
    if (!isUsable(length) || !isUsable(kept)) broken.push(index);
    else if (demand.normalise) scale(target, 1 / kept);
    turn += full;
    if (turn >= TURN_VALUES) {
      turn = 0;
      yield;
    }
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

const isUsable = (norm: number) => norm >= MIN_NORM && norm <= MAX_NORM;

/** L2, in double precision: NaN or infinite if a value is. */
function norm(row: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < row.length; i++) {
    const value = row[i] as number;
    sum += value * value;
  }
  return Math.sqrt(sum);
}

/** In place. */
function scale(row: Float32Array, factor: number): void {
  for (let i = 0; i < row.length; i++) row[i] = (row[i] as number) * factor;
}

/** The rows as one array where they lie behind each other in memory already, in order; else null. */
function adjoining(rows: readonly (Float32Array | undefined)[], width: number): Float32Array | null {
  const [first] = rows;
  if (first === undefined) return null;
  for (let index = 0; index < rows.length; index++) {
    const row = rows[index];
    if (row?.buffer !== first.buffer || row.byteOffset !== first.byteOffset + index * width * 4) return null;
    if (row.length !== width) return null;
  }
  return new Float32Array(first.buffer, first.byteOffset, rows.length * width);
}

/** The bytes of a batch as they travel. */
export function vectorBytes(batch: VectorBatch): Uint8Array {
  return new Uint8Array(batch.values.buffer, batch.values.byteOffset, batch.values.byteLength);
}
