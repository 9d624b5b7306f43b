import { hash32 } from '../seeded.ts';

/** Where a stand-in's vectors and token counts come from. */
export interface VectorSource {
  readonly width: number;
  /** Tokens of a text, two special ones included. */
  count(text: string): Promise<number>;
  /** L2-normalised, of the whole text. */
  encode(text: string): Promise<Float32Array>;
  /** The longest beginning of at most so many tokens, special ones included. */
  cut(text: string, tokens: number): Promise<string>;
}

/** A word, number or sign with the blanks before it; blanks at the end. Every token holds at least one byte. */
const TOKENS = /\s*(?:[\p{L}\p{N}]+|[^\s\p{L}\p{N}])|\s+$/gu;
const SPECIAL = 2;

/**
 * A deterministic encoder: the sum of a random direction for each token and for each pair of neighbours. The same text always
 * gives the same bits, another text another direction, and texts that share words are closer. Another seed is another
 * encoder of the same width.
 */
export class HashVectors implements VectorSource {
  readonly width: number;
  readonly #seed: string;
  readonly #directions = new Map<string, Float32Array>();

  constructor(width = 64, seed = '') {
    this.width = width;
    this.#seed = seed;
  }

  async count(text: string): Promise<number> {
    return tokensOf(text).length + SPECIAL;
  }

  async encode(text: string): Promise<Float32Array> {
    const sum = new Float32Array(this.width);
    const tokens = ['<s>', ...tokensOf(text), '</s>'];
    tokens.forEach((token, at) => {
      this.#add(sum, token);
      if (at > 0) this.#add(sum, `${tokens[at - 1]}\0${token}`);
    });
    const norm = Math.sqrt(sum.reduce((total, value) => total + value * value, 0));
    return sum.map((value) => value / norm);
  }

  async cut(text: string, tokens: number): Promise<string> {
    return tokensOf(text)
      .slice(0, Math.max(0, tokens - SPECIAL))
      .join('');
  }

  #add(sum: Float32Array, piece: string): void {
    const direction = this.#direction(piece);
    for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] ?? 0) + (direction[i] ?? 0);
  }

  /** Signs from a hash, 32 at a time. */
  #direction(piece: string): Float32Array {
    const known = this.#directions.get(piece);
    if (known !== undefined) return known;
    const direction = new Float32Array(this.width);
    let bits = 0;
    for (let i = 0; i < this.width; i++) {
      if (i % 32 === 0) bits = mixed(hash32(`${this.#seed}/${i}/${piece}`));
      direction[i] = (bits >>> (i % 32)) & 1 ? 1 : -1;
    }
    this.#directions.set(piece, direction);
    return direction;
  }
}

/** FNV's low bits follow the last byte too closely to serve as signs. */
function mixed(hash: number): number {
  let word = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35);
  return (word ^ (word >>> 16)) >>> 0;
}

function tokensOf(text: string): readonly string[] {
  return text.match(TOKENS) ?? [];
}

/** The vectors and tokens of a real llama.cpp server that embeds. */
export class LlamaVectors implements VectorSource {
  readonly width: number;
  readonly #url: string;

  constructor(url: string, width: number) {
    this.#url = url;
    this.width = width;
  }

  async count(text: string): Promise<number> {
    return (await this.#tokens(text)).length;
  }

  async encode(text: string): Promise<Float32Array> {
    const answer = (await this.#ask('/v1/embeddings', { input: [text] })) as { data: { embedding: number[] }[] };
    return Float32Array.from(answer.data[0]?.embedding ?? []);
  }

  async cut(text: string, tokens: number): Promise<string> {
    const all = await this.#tokens(text);
    if (all.length <= tokens) return text;
    const kept = all.slice(1, tokens - 1);
    return ((await this.#ask('/detokenize', { tokens: kept })) as { content: string }).content;
  }

  async #tokens(content: string): Promise<readonly number[]> {
    return ((await this.#ask('/tokenize', { content, add_special: true })) as { tokens: number[] }).tokens;
  }

  async #ask(path: string, body: object): Promise<unknown> {
    const response = await fetch(`${this.#url}${path}`, { method: 'POST', body: JSON.stringify(body) });
    return response.json();
  }
}

export function base64Of(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64');
}
