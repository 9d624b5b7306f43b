/** Numbers that are the same on every machine: what the test models are made of. */

/** mulberry32: uniform in [0, 1), period 2^32, one 32-bit word of state. */
export function uniform(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let word = Math.imul(state ^ (state >>> 15), 1 | state);
    word = (word + Math.imul(word ^ (word >>> 7), 61 | word)) ^ word;
    return ((word ^ (word >>> 14)) >>> 0) / 4294967296;
  };
}

/** FNV-1a over the UTF-8 bytes: a seed from a name. */
export function hash32(text: string): number {
  let hash = 2166136261;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 16777619);
  return hash >>> 0;
}

/** `count` normally distributed values of the given standard deviation (Box-Muller), fixed by `name`. */
export function gaussian(name: string, count: number, deviation: number): Float32Array {
  const next = uniform(hash32(name));
  const values = new Float32Array(count);
  for (let i = 0; i < count; i += 2) {
    const radius = Math.sqrt(-2 * Math.log(1 - next())) * deviation;
    const angle = 2 * Math.PI * next();
    values[i] = radius * Math.cos(angle);
    if (i + 1 < count) values[i + 1] = radius * Math.sin(angle);
  }
  return values;
}
