/**
 * SentencePiece unigram tokeniser of the built-in encoder: the sequence of pieces with the best summed score (Viterbi over a
 * trie). Same results as the package's own, whose cost grows with the square of the text: a body of a megabyte must be counted
 * and refused in milliseconds.
 */
export type Vocabulary = readonly (readonly [piece: string, score: number])[];

interface Node {
  readonly next: Map<string, Node>;
  /** -1: no piece ends here. */
  id: number;
  score: number;
}

/** Ids below are control symbols and never spelt in a text. */
const RESERVED = 6;
const UNKNOWN = 0;
const SPACE = '\u2581';

const newNode = (): Node => ({ next: new Map(), id: -1, score: 0 });

export class UnigramTokenizer {
  readonly #root = newNode();

  constructor(vocabulary: Vocabulary) {
    vocabulary.forEach(([piece, score], id) => {
      if (id >= RESERVED) this.#insert(piece, score, id);
    });
  }

  /** @returns token ids; empty for an empty text. Neighbouring unknown characters are one token. */
  encode(text: string): number[] {
    const normalised = text.normalize('NFKC');
    if (normalised === '') return [];
    const symbols = [...(SPACE + normalised.replaceAll(' ', SPACE))];
    const size = symbols.length;
    const best = new Float64Array(size + 1);
    const ids = new Int32Array(size + 1);
    const lengths = new Int32Array(size + 1).fill(1);
    const reached = new Uint8Array(size + 1);
    for (let from = 0; from < size; from++) {
      const base = best[from] ?? 0;
      const offer = (end: number, id: number, score: number) => {
        const total = base + score;
        // A later start wins a tie, as in the original.
        if (reached[end] === 0 || best[end] === 0 || total >= (best[end] ?? 0)) {
          best[end] = total;
          ids[end] = id;
          lengths[end] = end - from;
          reached[end] = 1;
        }
      };
      let node: Node | undefined = this.#root;
      let matched = false;
      for (let at = from; at < size; at++) {
        node = node.next.get(symbols[at] ?? '');
        if (node === undefined) break;
        if (node.id >= 0) {
          matched = true;
          offer(at + 1, node.id, node.score);
        }
      }
      if (!matched) offer(from + 1, UNKNOWN, 0);
    }
    return backwards(ids, lengths);
  }

  #insert(piece: string, score: number, id: number): void {
    let node = this.#root;
    for (const symbol of piece) {
      const next = node.next.get(symbol) ?? newNode();
      node.next.set(symbol, next);
      node = next;
    }
    node.id = id;
    node.score = score;
  }
}

function backwards(ids: Int32Array, lengths: Int32Array): number[] {
  const tokens: number[] = [];
  for (let end = ids.length - 1; end > 0; end -= lengths[end] ?? 1) {
    const id = ids[end] ?? UNKNOWN;
    if (id === UNKNOWN && tokens.at(-1) === UNKNOWN) continue;
    tokens.push(id);
  }
  return tokens.reverse();
}
