const LF = 0x0a;
const CR = 0x0d;
/** No upstream sends an event as long as this; a stream without line ends must not grow memory. */
const MAX_EVENT_BYTES = 8 * 1024 * 1024;

export interface StreamEvent {
  /** As it came, blank line included. */
  readonly raw: Buffer;
  /** Null: comments only, which are no sign of progress. */
  readonly data: string | null;
}

/** Cuts a byte stream into server-sent events. Lines end in LF or CR LF. */
export class EventReader {
  #pending: Buffer = Buffer.alloc(0);

  /** Whole events so far. @throws RangeError when one is longer than any upstream sends */
  push(chunk: Buffer): readonly StreamEvent[] {
    const bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    const events: StreamEvent[] = [];
    let from = 0;
    for (let end = eventEnd(bytes, from); end >= 0; end = eventEnd(bytes, from)) {
      events.push(toEvent(bytes.subarray(from, end)));
      from = end;
    }
    this.#pending = bytes.subarray(from);
    if (this.#pending.length > MAX_EVENT_BYTES) throw new RangeError('event too long');
    return events;
  }

  /** What is left when the stream ends without a blank line; null: nothing. */
  flush(): StreamEvent | null {
    const rest = this.#pending;
    this.#pending = Buffer.alloc(0);
    return rest.length === 0 ? null : toEvent(rest);
  }
}

/** Offset after the blank line that ends the event at `from`; -1 when it has not come yet. */
function eventEnd(bytes: Buffer, from: number): number {
  let line = from;
  for (;;) {
    const lf = bytes.indexOf(LF, line);
    if (lf < 0) return -1;
    if (lf === line || (lf === line + 1 && bytes[line] === CR)) return lf + 1;
    line = lf + 1;
  }
}

function toEvent(raw: Buffer): StreamEvent {
  const data = raw
    .toString('utf8')
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(line.startsWith('data: ') ? 6 : 5));
  return { raw, data: data.length === 0 ? null : data.join('\n') };
}
