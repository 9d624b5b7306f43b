import { createHash } from 'node:crypto';

/** Deterministic uniform numbers in [-1, 1) from a text. */
function* noise(seed: string): Generator<number> {
  let block = 0;
  for (;;) {
    const digest = createHash('sha256').update(`${seed}#${block++}`).digest();
    for (let at = 0; at < digest.length; at += 4) yield digest.readInt32LE(at) / 2 ** 31;
  }
}

function direction(seed: string, width: number): Float64Array {
  const values = new Float64Array(width);
  const source = noise(seed);
  for (let at = 0; at < width; at++) values[at] = source.next().value ?? 0;
  return values;
}

const features = new Map<string, Float64Array>();

/** Direction of one letter group; kept, because texts share most of theirs. */
function feature(name: string, width: number): Float64Array {
  const key = `${width}/${name}`;
  const known = features.get(key);
  if (known !== undefined) return known;
  const made = direction(key, width);
  if (features.size > 20_000) features.clear();
  features.set(key, made);
  return made;
}

/** Reference vector of a text: texts that share letter groups are close, no two texts are equal. Norm 1. */
export function referenceVector(text: string, width: number): Float64Array {
  const sum = new Float64Array(width);
  const padded = `^${text}$`;
  for (let at = 0; at + 3 <= padded.length; at++) addTo(sum, feature(padded.slice(at, at + 3), width), 1);
  const whole = direction(`whole ${text}`, width);
  addTo(sum, whole, 0.3 * Math.max(1, Math.sqrt(padded.length)));
  return normalised(sum);
}

/** The vector as a serving stack with other numerics makes it: at exactly `cosine` to the reference. */
export function servedVector(text: string, width: number, cosine: number, seed: string): Float32Array {
  const base = referenceVector(text, width);
  if (cosine >= 1) return Float32Array.from(base);
  const off = direction(`${seed}|${text}`, width);
  const along = dot(off, base);
  addTo(off, base, -along);
  const side = normalised(off);
  const sine = Math.sqrt(1 - cosine * cosine);
  return Float32Array.from(base, (value, at) => cosine * value + sine * (side[at] ?? 0));
}

/** Relevance in [0, 1]: part of the query's words found in the document. */
export function relevance(query: string, document: string): number {
  const words = new Set(query.toLowerCase().split(/\W+/).filter(Boolean));
  const found = new Set(document.toLowerCase().split(/\W+/).filter(Boolean));
  let shared = 0;
  for (const word of words) if (found.has(word)) shared++;
  const tie = createHash('sha256').update(`${query}|${document}`).digest().readUInt16LE() / 2 ** 16;
  return (0.98 * shared) / Math.max(1, words.size) + 0.02 * tie;
}

function addTo(target: Float64Array, source: Float64Array, scale: number): void {
  for (let at = 0; at < target.length; at++) target[at] = (target[at] ?? 0) + scale * (source[at] ?? 0);
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let at = 0; at < a.length; at++) sum += (a[at] ?? 0) * (b[at] ?? 0);
  return sum;
}

function normalised(values: Float64Array): Float64Array {
  const norm = Math.sqrt(dot(values, values));
  return values.map((value) => value / norm);
}
