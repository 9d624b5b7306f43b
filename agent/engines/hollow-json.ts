import { jsonOf } from './json-answer.ts';

/**
 * JSON whose long base64 strings were decoded from its bytes and stand in the parsed value as marks. Of an answer with vectors a
 * megabyte is base64 and a kilobyte is JSON: as strings the vectors would be made, checked and thrown away again.
 */
export interface HollowJson {
  /** As `jsonOf` gives it, but for the strings that were decoded; undefined when it is no JSON. */
  readonly value: unknown;
  /** The bytes that a string of `value` stands for, at an address where float32 may be read; null: it stands for itself. */
  bytesOf(text: string): Uint8Array | null;
}

/** Shorter strings are parsed like everything else. */
const LONG_BYTES = 1024;
/** Base64 taken before the event loop gets its turn again: about a millisecond. */
const SLICE_BYTES = 2 * 1024 * 1024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const EQUALS = 0x3d;
/** Stands in no answer as it is; one that does, or that might spell it, is parsed whole. */
const MARK = '\x7f';
const MARK_BYTE = 0x7f;
const SPELLED = '\\u';

export async function hollowJson(body: Buffer): Promise<HollowJson> {
  const whole = (): HollowJson => ({ value: jsonOf({ body }), bytesOf: () => null });
  if (body.length <= LONG_BYTES || body.includes(MARK_BYTE)) return whole();
  const room = Buffer.allocUnsafeSlow(Math.ceil(body.length / 4) * 3);
  const decoded: Uint8Array[] = [];
  const kept: Uint8Array[] = [];
  let used = 0;
  let copied = 0;
  let sliceEnd = SLICE_BYTES;
  for (let open = body.indexOf(QUOTE); open >= 0; ) {
    const close = stringEnd(body, open);
    if (close < 0) return whole();
    if (close - open > LONG_BYTES) {
      const length = decodeBase64(body, open + 1, close, room, used);
      // What holds no floats is not worth a mark.
      if (length !== null && length % 4 === 0) {
        kept.push(body.subarray(copied, open + 1), Buffer.from(`${MARK}${decoded.length}`, 'latin1'));
        decoded.push(room.subarray(used, used + length));
        used += length;
        copied = close;
      }
      if (close > sliceEnd) {
        sliceEnd = close + SLICE_BYTES;
        await new Promise(setImmediate);
      }
    }
    open = body.indexOf(QUOTE, close + 1);
  }
  if (decoded.length === 0) return whole();
  kept.push(body.subarray(copied));
  const hollow = Buffer.concat(kept);
  if (hollow.includes(SPELLED)) return whole();
  return {
    value: jsonOf({ body: hollow }),
    bytesOf: (text) => (text.startsWith(MARK) ? (decoded[Number(text.slice(1))] ?? null) : null),
  };
}

/** @returns offset of the quote that ends the string opened at `open`; -1: it has none */
function stringEnd(json: Buffer, open: number): number {
  for (let from = open + 1; ; ) {
    const quote = json.indexOf(QUOTE, from);
    if (quote < 0) return -1;
    let escapes = 0;
    while (json[quote - 1 - escapes] === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return quote;
    from = quote + 1;
  }
}

/**
 * Decodes `source[from, to)` into `target` from `at` on.
 * @returns bytes written; null, with anything behind `at`, when it is not base64 of the standard alphabet, padded
 */
export function decodeBase64(source: Buffer, from: number, to: number, target: Buffer, at: number): number | null {
  const length = to - from;
  if (length === 0 || length % 4 !== 0) return null;
  const text = source.toString('latin1', from, to);
  // The decoder also reads the alphabet of URLs.
  if (text.includes('-') || text.includes('_')) return null;
  const padding = source[to - 1] !== EQUALS ? 0 : source[to - 2] !== EQUALS ? 1 : 2;
  // It passes over what is no base64 and stops at a padding: each such character makes the result shorter than it has to be.
  const due = (length / 4) * 3 - padding;
  return target.write(text, at, due, 'base64') === due ? due : null;
}
