const LONGEST_BYTES = 256;

/**
 * A text as the value of a header: printable ASCII stays, everything else (line ends, spaces, other scripts) becomes
 * percent-encoded UTF-8; at most 256 bytes, never cut inside an escape. A provider id goes out as it is.
 */
export function headerValue(text: string): string {
  if (text.length <= LONGEST_BYTES && /^[!-~]*$/.test(text)) return text;
  let value = '';
  for (const byte of Buffer.from(text.slice(0, LONGEST_BYTES), 'utf8')) {
    const piece =
      byte > 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    if (value.length + piece.length > LONGEST_BYTES) break;
    value += piece;
  }
  return value;
}
