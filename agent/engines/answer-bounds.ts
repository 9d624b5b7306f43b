/** Everything in an answer but its vectors or scores. */
const AROUND_BYTES = 64 * 1024;
/** Whatever stands beside the vector or score of one text. */
const ITEM_BYTES = 512;
/** A number of a vector, as text, with the blanks of those who indent; base64 takes 6. */
const NUMBER_BYTES = 32;
/** The widest vectors that are known. */
const WIDEST = 8192;
/** Some rerankers send the documents back; a byte of text takes six in JSON at most. */
const ECHO = 6;

/** Bytes that an answer with `count` vectors may have; `width` null: not known. */
export function vectorsBytes(count: number, width: number | null): number {
  return AROUND_BYTES + count * ((width ?? WIDEST) * NUMBER_BYTES + ITEM_BYTES);
}

/** Bytes that an answer with `count` scores may have, asked for with a body of `sent` bytes. */
export function scoresBytes(count: number, sent: number): number {
  return AROUND_BYTES + count * ITEM_BYTES + sent * ECHO;
}
