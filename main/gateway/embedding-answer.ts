import type { EmbedAnswer } from '../domain/work.ts';
import type { Reply } from './http-reply.ts';
import { floatsRoom, rowBase64, writeFloats } from './vector-text.ts';

export type EncodingFormat = 'float' | 'base64';

/**
 * Bytes encoded before the event loop gets its turn, at least one row: under a millisecond of digits, a tenth of it of base64.
 * Buffers of this size also cost the garbage collector least.
 */
const SLICE_BYTES: Readonly<Record<EncodingFormat, number>> = { float: 256 * 1024, base64: 1024 * 1024 };
/** Room around a row: its braces, names and index. */
const ROW_ROOM = 80;

/** Every value is a number that JSON can say; an engine's NaN must never look like an answer. */
export function allFinite(values: Float32Array): boolean {
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index] ?? Number.NaN;
    if (value - value !== 0) return false;
  }
  return true;
}

/**
 * Encodes the vectors once, as the client asked, in slices with the event loop's turn in between. A small answer is one write
 * with its length; a large one goes out as it is made and waits for its reader.
 */
export async function sendEmbeddings(
  answer: EmbedAnswer,
  format: EncodingFormat,
  reply: Reply,
  headers: readonly string[],
): Promise<void> {
  const tail = Buffer.from(
    `],"model":${JSON.stringify(answer.route.model)},"usage":${JSON.stringify({
      prompt_tokens: answer.usage.promptTokens,
      total_tokens: answer.usage.promptTokens,
    })}}`,
  );
  const first = encodeSlice(answer, format, 0);
  if (first.next === answer.count) {
    const body = Buffer.concat([first.bytes, tail]);
    reply.head(200, [...headers, 'content-length', String(body.length)]);
    reply.end(body);
    return;
  }
  let drained: (() => void) | null = null;
  const wake = (): void => {
    drained?.();
    drained = null;
  };
  reply.onDrain(wake);
  reply.onGone(wake);
  reply.head(200, headers);
  for (let slice = first; !reply.gone; slice = encodeSlice(answer, format, slice.next)) {
    const flows = reply.write(slice.bytes);
    if (slice.next === answer.count) break;
    if (flows) await new Promise(setImmediate);
    else if (!reply.gone) {
      await new Promise<void>((resolve) => {
        drained = resolve;
      });
    }
  }
  reply.end(tail);
}

interface Slice {
  readonly bytes: Buffer;
  /** The row behind the last one of it. */
  readonly next: number;
}

/** As many rows from `fromRow` on as fit; the beginning of the answer stands before row 0. */
function encodeSlice(answer: EmbedAnswer, format: EncodingFormat, fromRow: number): Slice {
  const { vectors, width, count } = answer;
  const rowRoom = ROW_ROOM + (format === 'float' ? floatsRoom(width) : Math.ceil((width * 4) / 3) * 4 + 2);
  const out = Buffer.allocUnsafeSlow(
    ROW_ROOM + Math.min((count - fromRow) * rowRoom, Math.max(rowRoom, SLICE_BYTES[format])),
  );
  let at = fromRow === 0 ? out.write('{"object":"list","data":[', 0, 'latin1') : 0;
  let row = fromRow;
  for (; row < count && at + rowRoom <= out.length; row += 1) {
    at += out.write(
      `${row === 0 ? '' : ','}{"object":"embedding","index":${row},"embedding":${format === 'float' ? '[' : '"'}`,
      at,
      'latin1',
    );
    const from = row * width;
    if (format === 'float') at = writeFloats(out, at, vectors, from, from + width);
    else at += out.write(rowBase64(vectors, from, from + width), at, 'latin1');
    at += out.write(format === 'float' ? ']}' : '"}', at, 'latin1');
  }
  return { bytes: out.subarray(0, at), next: row };
}
