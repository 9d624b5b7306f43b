/** Deterministic encoders with real structure: alike texts get alike vectors, order and every token count. */

export const WIDTH = 64;

/** Faults an encoder can have; each one alone must be enough for a refusal. */
export interface Faults {
  /** Noise relative to the vector's length, a fixed one per text: what quantised weights do. */
  readonly quantisation?: number;
  /** Weighs tokens by their place, instead of all alike. */
  readonly pooling?: 'mean' | 'late';
  readonly prefix?: string;
  /** Reads only so many tokens and says nothing. */
  readonly cutAt?: number;
  /** Reads only the last so many tokens. */
  readonly cutFrontAt?: number;
  readonly scale?: number;
  /** The number at index 3 of every vector of this text. */
  readonly spoil?: { readonly text: string; readonly value: number };
  readonly constant?: boolean;
  /** Texts whose letters are all capitals get one vector. */
  readonly capitalsCollapse?: boolean;
  /** Share of the neighbours' vectors that leaks into each vector of a batch. */
  readonly batchLeak?: number;
  /** The only batches that leak: of 16 texts and more, of texts of one length (no padding), or of several (padding). */
  readonly leaksIn?: 'large' | 'equal' | 'unequal';
  /** Texts with a letter beyond ASCII get one vector. */
  readonly accentsCollapse?: boolean;
  /** Noise that is another at every call. */
  readonly jitter?: number;
  /** Weights of another training. */
  readonly seed?: number;
  readonly width?: number;
  /** Share of one direction that all vectors have in common. */
  readonly shared?: number;
}

function hash(text: string, seed: number): number {
  let state = 2166136261 ^ seed;
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 16777619);
  state ^= state >>> 13;
  state = Math.imul(state, 0x5bd1e995);
  return (state ^ (state >>> 15)) >>> 0;
}

function gaussians(seed: number, count: number): Float64Array {
  let state = seed || 1;
  const uniform = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return ((state >>> 0) + 1) / 4294967297;
  };
  return Float64Array.from(
    { length: count },
    () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()),
  );
}

/** Words in pieces of four letters, signs and blanks one by one; capitals are their own tokens. */
export function tokens(text: string): readonly string[] {
  const words = text.match(/[\p{L}\p{N}\p{M}]+|[^\s]|\s(?=\s)|^\s$/gu) ?? [];
  return ['[start]', ...words.flatMap((word) => word.match(/.{1,4}/gsu) ?? []), '[end]'];
}

let noise = 1;

export function encode(texts: readonly string[], faults: Faults = {}): Float32Array {
  const width = faults.width ?? WIDTH;
  const vectors = texts.map((text) => encodeOne(text, faults, width));
  const leak = leaks(texts, faults) ? (faults.batchLeak ?? 0) : 0;
  const mixed = vectors.map((vector, i) => {
    const neighbour = vectors[(i + 1) % vectors.length] ?? vector;
    return vectors.length < 2 ? vector : vector.map((x, k) => x + leak * (neighbour[k] ?? 0));
  });
  const out = new Float32Array(texts.length * width);
  mixed.forEach((vector, i) => {
    out.set(vector, i * width);
  });
  return out;
}

function leaks(texts: readonly string[], { leaksIn }: Faults): boolean {
  if (leaksIn === undefined) return true;
  if (leaksIn === 'large') return texts.length >= 16;
  const lengths = new Set(texts.map((text) => tokens(text).length));
  return (leaksIn === 'equal') === (lengths.size === 1);
}

function encodeOne(text: string, faults: Faults, width: number): Float64Array {
  const seed = faults.seed ?? 1;
  let seen = tokens((faults.prefix ?? '') + text);
  if (faults.cutAt !== undefined) seen = seen.slice(0, faults.cutAt);
  if (faults.cutFrontAt !== undefined) seen = seen.slice(-faults.cutFrontAt);
  if (faults.constant) seen = ['same'];
  if (faults.capitalsCollapse && /[A-Z]/.test(text) && text.toUpperCase() === text) seen = ['[unk]'];
  if (faults.accentsCollapse && /[^\P{L}a-z]/iu.test(text)) seen = ['[unk]'];
  const vector = new Float64Array(width);
  seen.forEach((token, place) => {
    const part = gaussians(hash(token, seed), width);
    const weight = faults.pooling === 'late' ? (place + 1) ** 2 / seen.length ** 2 : 1;
    for (let k = 0; k < width; k++) vector[k] = (vector[k] ?? 0) + (weight * (part[k] ?? 0)) / seen.length;
  });
  const shared = gaussians(hash('shared', seed), width);
  for (let k = 0; k < width; k++) vector[k] = (vector[k] ?? 0) + (faults.shared ?? 0) * (shared[k] ?? 0);
  const length = Math.hypot(...vector);
  const disturb = (share: number, key: number): void => {
    const by = gaussians(key, width);
    const size = Math.hypot(...by);
    for (let k = 0; k < width; k++) vector[k] = (vector[k] ?? 0) + (share * length * (by[k] ?? 0)) / size;
  };
  if (faults.quantisation) disturb(faults.quantisation, hash(text, 77));
  if (faults.jitter) disturb(faults.jitter, hash(text, noise++));
  const scale = faults.scale ?? 1;
  for (let k = 0; k < width; k++) vector[k] = (vector[k] ?? 0) * scale;
  if (faults.spoil?.text === text) vector[3] = faults.spoil.value;
  return vector;
}
