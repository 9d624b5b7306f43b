import { randomBytes } from 'node:crypto';

/** Crockford's base32: no I, L, O, U, so that a code survives being read aloud and written down. */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const CHARACTERS = 16;
/** 80 random bits. */
export const JOIN_CODE_BYTES = 10;

const VALUES = new Map([...ALPHABET].map((character, value) => [character, value]));
for (const [read, value] of [
  ['O', 0],
  ['I', 1],
  ['L', 1],
] as const) {
  VALUES.set(read, value);
}

export function newJoinCode(): Uint8Array {
  return new Uint8Array(randomBytes(JOIN_CODE_BYTES));
}

/** 10 bytes as `XXXX-XXXX-XXXX-XXXX`. */
export function formatJoinCode(code: Uint8Array): string {
  if (code.length !== JOIN_CODE_BYTES) throw new RangeError('A join code is 10 bytes.');
  let text = '';
  let held = 0;
  let bits = 0;
  for (const byte of code) {
    held = (held << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += ALPHABET.charAt((held >>> bits) & 31);
    }
    held &= (1 << bits) - 1;
  }
  return (text.match(/.{4}/g) ?? []).join('-');
}

/** What a person typed, or null. Lower case, spaces and any kind of dash are fine; O is 0, I and L are 1. */
export function parseJoinCode(typed: string): Uint8Array | null {
  if (typed.length > 128) return null;
  const characters = typed.replace(/[\s\p{Dash_Punctuation}\u2212_.]/gu, '').toUpperCase();
  if (characters.length !== CHARACTERS) return null;
  const code = new Uint8Array(JOIN_CODE_BYTES);
  let held = 0;
  let bits = 0;
  let length = 0;
  for (const character of characters) {
    const value = VALUES.get(character);
    if (value === undefined) return null;
    held = (held << 5) | value;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      code[length] = held >>> bits;
      length += 1;
      held &= (1 << bits) - 1;
    }
  }
  return code;
}
