import { eventEnd, MAX_EVENT_BYTES, readEvent } from '../engines/sse-event.ts';

export interface StreamEvent {
  /** As it came, blank line included. */
  readonly raw: Buffer;
  /** Null: comments only, which are no sign of progress. */
  readonly data: string | null;
  /** Its `event:` line names an error. */
  readonly isError: boolean;
  /** Not to be read, nor handed on. */
  readonly malformed: boolean;
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

function toEvent(raw: Buffer): StreamEvent {
  const { data, type, malformed } = readEvent(raw);
  return { raw, data: data?.toString('utf8') ?? null, isError: type.toLowerCase().includes('error'), malformed };
}
