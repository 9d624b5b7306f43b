/** The grammar of JSON, byte by byte: pure answers for the scanner, which keeps the state. */
export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null';

// States of a number: what its last byte was.
const MINUS = 0;
const ZERO = 1;
const INTEGER = 2;
const POINT = 3;
const FRACTION = 4;
const EXPONENT = 5;
const EXPONENT_SIGN = 6;
const EXPONENT_DIGITS = 7;

export function kindOf(byte: number): JsonKind | null {
  if (byte === 0x22) return 'string';
  if (byte === 0x7b) return 'object';
  if (byte === 0x5b) return 'array';
  if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39)) return 'number';
  if (byte === 0x74 || byte === 0x66) return 'boolean';
  return byte === 0x6e ? 'null' : null;
}

/** `"`, `\`, `/`, b, f, n, r, t. */
export function isSimpleEscape(byte: number): boolean {
  return (
    byte === 0x22 ||
    byte === 0x5c ||
    byte === 0x2f ||
    byte === 0x62 ||
    byte === 0x66 ||
    byte === 0x6e ||
    byte === 0x72 ||
    byte === 0x74
  );
}

export function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** UTF-8 bytes of one UTF-16 code unit; both halves of a pair share its four. */
export function utf8Share(unit: number): number {
  if (unit < 0x80) return 1;
  if (unit < 0x800) return 2;
  return unit >= 0xd800 && unit <= 0xdfff ? 2 : 3;
}

export function isCompleteNumber(state: number): boolean {
  return state === ZERO || state === INTEGER || state === FRACTION || state === EXPONENT_DIGITS;
}

/** @param byte `-` or a digit */
export function firstNumberState(byte: number): number {
  if (byte === 0x2d) return MINUS;
  return byte === 0x30 ? ZERO : INTEGER;
}

/** @returns -1 when the byte does not continue the number. */
export function nextNumberState(state: number, byte: number): number {
  const digit = byte >= 0x30 && byte <= 0x39;
  switch (state) {
    case MINUS:
      return byte === 0x30 ? ZERO : digit ? INTEGER : -1;
    case ZERO:
    case INTEGER:
      if (digit) return state === INTEGER ? INTEGER : -1;
      if (byte === 0x2e) return POINT;
      return (byte | 0x20) === 0x65 ? EXPONENT : -1;
    case POINT:
    case FRACTION:
      if (digit) return FRACTION;
      return state === FRACTION && (byte | 0x20) === 0x65 ? EXPONENT : -1;
    case EXPONENT:
      if (byte === 0x2b || byte === 0x2d) return EXPONENT_SIGN;
      return digit ? EXPONENT_DIGITS : -1;
    case EXPONENT_SIGN:
    case EXPONENT_DIGITS:
      return digit ? EXPONENT_DIGITS : -1;
    default:
      return -1;
  }
}
