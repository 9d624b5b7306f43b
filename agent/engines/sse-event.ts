/**
 * Server-sent events as they lie in a buffer. Lines may end in LF or CR LF; a CR alone, which the format allows and no engine
 * writes, would let a client see other lines than we do, so an event that holds one is malformed.
 */

export const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;

/** No engine sends an event as long as this; a stream without line ends must not grow memory. */
export const MAX_EVENT_BYTES = 1024 * 1024;

export interface SseEvent {
  /** Its data lines joined by LF; null when it has none: comments, a blank line. */
  readonly data: Buffer | null;
  /** The last `event:` line; empty when there is none. */
  readonly type: string;
  readonly malformed: boolean;
}

/** @returns offset after the blank line that ends the event beginning at `from`; -1 when it is not there yet. */
export function eventEnd(bytes: Buffer, from: number): number {
  let line = from;
  for (;;) {
    const lf = bytes.indexOf(LF, line);
    if (lf < 0) return -1;
    if (lf === line || (lf === line + 1 && bytes[line] === CR)) return lf + 1;
    line = lf + 1;
  }
}

export function readEvent(event: Buffer): SseEvent {
  return readDataLine(event) ?? readLines(event);
}

/** One data line and nothing else, as all but a few events are; null: it is something else. */
function readDataLine(event: Buffer): SseEvent | null {
  if (!startsWithData(event)) return null;
  const cr = event.indexOf(CR);
  const end = cr < 0 ? event.indexOf(LF) : cr;
  if (end < 0) return null;
  const left = event.length - end;
  const isWhole =
    cr < 0
      ? left === 2 && event[end + 1] === LF
      : left === 4 && event[end + 1] === LF && event[end + 2] === CR && event[end + 3] === LF;
  if (!isWhole) return null;
  return { data: event.subarray(event[5] === SPACE ? 6 : 5, end), type: '', malformed: false };
}

/** `data:` */
function startsWithData(event: Buffer): boolean {
  return event[0] === 0x64 && event[1] === 0x61 && event[2] === 0x74 && event[3] === 0x61 && event[4] === COLON;
}

function readLines(event: Buffer): SseEvent {
  // One byte order mark may stand before a stream, and readers of streams leave it out.
  const bytes = event[0] === 0xef && event[1] === 0xbb && event[2] === 0xbf ? event.subarray(3) : event;
  const data: Buffer[] = [];
  let type = '';
  let malformed = false;
  for (let line = 0; line < bytes.length; ) {
    const lf = bytes.indexOf(LF, line);
    const end = lf < 0 ? bytes.length : lf;
    const stop = end > line && bytes[end - 1] === CR ? end - 1 : end;
    const text = bytes.subarray(line, stop);
    malformed ||= text.includes(CR);
    const colon = text.indexOf(COLON);
    const name = text.toString('latin1', 0, colon < 0 ? text.length : colon);
    const value = colon < 0 ? text.subarray(text.length) : text.subarray(colon + (text[colon + 1] === SPACE ? 2 : 1));
    if (name === 'data') data.push(value);
    if (name === 'event') type = value.toString('utf8');
    line = end + 1;
  }
  return { data: data.length === 0 ? null : joinLines(data), type, malformed };
}

function joinLines(lines: readonly Buffer[]): Buffer {
  const [only] = lines;
  if (only !== undefined && lines.length === 1) return only;
  return Buffer.concat(lines.flatMap((line, i) => (i === 0 ? [line] : [Buffer.of(LF), line])));
}
