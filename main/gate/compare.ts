/**
 * Numerics of the gate. Vectors lie row-major in a Float32Array; sums run in doubles. Every test is written so that NaN
 * fails it: `!(cosine > threshold)`, never `cosine <= threshold`.
 */

/** `count` vectors of `width` numbers. */
export interface Matrix {
  readonly values: Float32Array;
  readonly count: number;
  readonly width: number;
}

/** @throws RangeError when the numbers do not fill `count` rows of `width` */
export function matrix(values: Float32Array, count: number, width: number): Matrix {
  if (values.length !== count * width) throw new RangeError(`${values.length} numbers are not ${count} x ${width}`);
  return { values, count, width };
}

export function row({ values, width }: Matrix, index: number): Float32Array {
  return values.subarray(index * width, (index + 1) * width);
}

/** Rows of `parts` one below the other. All have the width of the first. */
export function stack(parts: readonly Matrix[]): Matrix {
  const width = parts[0]?.width ?? 0;
  const count = parts.reduce((sum, part) => sum + part.count, 0);
  const values = new Float32Array(count * width);
  let at = 0;
  for (const part of parts) {
    values.set(part.values, at);
    at += part.values.length;
  }
  return matrix(values, count, width);
}

export function rows(source: Matrix, from: number, to: number): Matrix {
  return matrix(source.values.subarray(from * source.width, to * source.width), to - from, source.width);
}

export function norm(vector: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < vector.length; i++) {
    const value = vector[i] ?? Number.NaN;
    sum += value * value;
  }
  return Math.sqrt(sum);
}

/** In [-1, 1] but for rounding; NaN when a vector is zero, not finite, or the widths differ. */
export function cosine(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) return Number.NaN;
  let dot = 0;
  let squareA = 0;
  let squareB = 0;
  for (let i = 0; i < a.length; i++) {
    const x = a[i] ?? Number.NaN;
    const y = b[i] ?? Number.NaN;
    dot += x * y;
    squareA += x * x;
    squareB += y * y;
  }
  // Roots taken apart: the product of two squares of large or tiny vectors leaves the range of doubles.
  return dot / (Math.sqrt(squareA) * Math.sqrt(squareB));
}

/** Cosine of each row of `a` with the row of the same index of `b`. */
export function rowCosines(a: Matrix, b: Matrix): Float64Array {
  const result = new Float64Array(Math.max(a.count, b.count)).fill(Number.NaN);
  for (let i = 0; i < Math.min(a.count, b.count); i++) result[i] = cosine(row(a, i), row(b, i));
  return result;
}

/** Index of the least value, the first NaN before all; -1 when empty. */
export function worstIndex(values: Float64Array): number {
  let worst = -1;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? Number.NaN;
    if (Number.isNaN(value)) return i;
    if (worst < 0 || value < (values[worst] ?? Number.NaN)) worst = i;
  }
  return worst;
}

/** NaN when any value is NaN or there is none: nothing measured is never a pass. */
export function least(values: Float64Array): number {
  return values[worstIndex(values)] ?? Number.NaN;
}

export function mean(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Mean of the rows. */
export function centre({ values, count, width }: Matrix): Float64Array {
  const sum = new Float64Array(width);
  for (let at = 0; at < values.length; at += width) {
    for (let i = 0; i < width; i++) sum[i] = (sum[i] ?? 0) + (values[at + i] ?? Number.NaN);
  }
  return sum.map((value) => value / count);
}

function shifted(vector: Float32Array, by: Float64Array): Float64Array {
  const result = new Float64Array(vector.length);
  for (let i = 0; i < vector.length; i++) result[i] = (vector[i] ?? Number.NaN) - (by[i] ?? Number.NaN);
  return result;
}

/** Rows scaled to length 1, so that a set of raw vectors is centred on its directions and not on its longest members. */
function directions(source: Matrix): Matrix {
  const values = new Float32Array(source.values.length);
  for (let i = 0; i < source.count; i++) {
    const vector = row(source, i);
    const length = norm(vector);
    for (let j = 0; j < vector.length; j++) values[i * source.width + j] = (vector[j] ?? Number.NaN) / length;
  }
  return matrix(values, source.count, source.width);
}

/**
 * Cosines after subtracting the *anchor's* mean direction from both sides. When all vectors of a model share a direction,
 * the plain cosine is near 1 for whatever they are; what is left here is only what tells texts apart. The anchor's mean is
 * taken for both because a provider's own mean would hide a shift that all its vectors share.
 */
export function centredCosines(provider: Matrix, anchor: Matrix): Float64Array {
  const anchors = directions(anchor);
  const providers = directions(provider);
  const by = centre(anchors);
  const result = new Float64Array(anchors.count).fill(Number.NaN);
  for (let i = 0; i < Math.min(anchors.count, providers.count); i++) {
    result[i] = cosine(shifted(row(providers, i), by), shifted(row(anchors, i), by));
  }
  return result;
}

/** Dot product of row `i` of `a` and row `j` of `b`; the cosine when both hold directions. */
function dotRows(a: Matrix, i: number, b: Matrix, j: number): number {
  const { width } = a;
  let sum = 0;
  for (let k = 0, x = i * width, y = j * width; k < width; k++, x++, y++) {
    sum += (a.values[x] ?? Number.NaN) * (b.values[y] ?? Number.NaN);
  }
  return sum;
}

/** Rows whose most similar anchor is another row than their own; a row that cannot be compared is among them. */
export function misplaced(provider: Matrix, anchor: Matrix): readonly number[] {
  const vectors = directions(provider);
  const anchors = directions(anchor);
  const wrong: number[] = [];
  for (let i = 0; i < vectors.count; i++) {
    const own = i < anchors.count ? dotRows(vectors, i, anchors, i) : Number.NaN;
    let isNearest = Number.isFinite(own);
    for (let j = 0; isNearest && j < anchors.count; j++) {
      if (j !== i && !(dotRows(vectors, i, anchors, j) <= own)) isNearest = false;
    }
    if (!isNearest) wrong.push(i);
  }
  return wrong;
}

/** The two different rows that are most alike: a collapsed encoder gives one vector for many texts. */
export function closestPair(source: Matrix): { readonly a: number; readonly b: number; readonly cosine: number } {
  const vectors = directions(source);
  let closest = { a: 0, b: 1, cosine: Number.NEGATIVE_INFINITY };
  for (let a = 0; a < vectors.count; a++) {
    for (let b = a + 1; b < vectors.count; b++) {
      const value = dotRows(vectors, a, vectors, b);
      if (Number.isNaN(value)) return { a, b, cosine: value };
      if (value > closest.cosine) closest = { a, b, cosine: value };
    }
  }
  return closest;
}

/** First row with a value that is not finite, or of length zero; -1: all can be used. */
export function firstUnusable(source: Matrix): number {
  for (let i = 0; i < source.count; i++) {
    const length = norm(row(source, i));
    if (!(length > 0) || !Number.isFinite(length)) return i;
  }
  return -1;
}

/** Largest relative difference of a row's norm from its anchor's: 0.01 is one per cent. */
export function normDeviation(provider: Matrix, anchor: Matrix): number {
  let largest = 0;
  for (let i = 0; i < provider.count; i++) {
    const deviation = Math.abs(norm(row(provider, i)) / norm(row(anchor, i)) - 1);
    if (!(deviation <= largest)) largest = deviation;
    if (Number.isNaN(largest)) return largest;
  }
  return largest;
}

/** The leading `width` numbers of each row, scaled to length 1: what an agent gives for a cut width. */
export function cutRows(source: Matrix, width: number): Matrix {
  const values = new Float32Array(source.count * width);
  for (let i = 0; i < source.count; i++) values.set(row(source, i).subarray(0, width), i * width);
  return directions(matrix(values, source.count, width));
}
