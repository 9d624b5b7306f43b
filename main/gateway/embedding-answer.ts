import type { EmbedAnswer } from '../domain/work.ts';
import type { Reply } from './http-reply.ts';
import { floatsRoom, rowBase64, writeFloats } from './vector-text.ts';

export type EncodingFormat = 'float' | 'base64';

/** Values encoded before the event loop gets its turn: about 3 ms of digits, well under 1 ms of base64. */
const SLICE_VALUES = 65_536;
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
  const rowsPerSlice = Math.max(1, Math.floor(SLICE_VALUES / Math.max(1, answer.width)));
  const tail = Buffer.from(
    `],"model":${JSON.stringify(answer.route.model)},"usage":${JSON.stringify({
      prompt_tokens: answer.usage.promptTokens,
      total_tokens: answer.usage.promptTokens,
    })}}`,
  );
  const head = Buffer.from('{"object":"list","data":[');
  if (answer.count <= rowsPerSlice) {
    const body = Buffer.concat([head, encodeRows(answer, format, 0, answer.count), tail]);
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
  reply.write(head);
  for (let row = 0; row < answer.count && !reply.gone; row += rowsPerSlice) {
    const slice = encodeRows(answer, format, row, Math.min(answer.count, row + rowsPerSlice));
    if (reply.write(slice)) await new Promise(setImmediate);
    else if (!reply.gone) {
      await new Promise<void>((resolve) => {
        drained = resolve;
      });
    }
  }
  reply.end(tail);
}

function encodeRows(answer: EmbedAnswer, format: EncodingFormat, fromRow: number, toRow: number): Buffer {
  const { vectors, width } = answer;
  const rows = toRow - fromRow;
  const valueRoom = format === 'float' ? floatsRoom(width) : Math.ceil((width * 4) / 3) * 4 + 2;
  const out = Buffer.allocUnsafe(rows * (valueRoom + ROW_ROOM));
  let at = 0;
  for (let row = fromRow; row < toRow; row += 1) {
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
  return out.subarray(0, at);
}
