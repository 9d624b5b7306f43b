/**
 * Reads an engine's event stream as it passes, event by event. Bytes are handed on as they came: only whole events, so that
 * an error event or a usage chunk nobody asked for can be kept back. A comment is handed on but is no progress.
 *
 * Lines may end in LF or CR LF. Events are parsed only when they hold something to learn: at 25,000 tokens a second a
 * JSON.parse per token would cost a tenth of a core.
 */

const LF = 0x0a;
const CR = 0x0d;
/** No engine sends an event as long as this; a stream without line ends must not grow memory. */
const MAX_EVENT_BYTES = 8 * 1024 * 1024;

export interface StreamUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

export type SseStep =
  /** Hand these bytes on (possibly none). `progress`: an event with data was among them. */
  | { readonly kind: 'pass'; readonly bytes: Uint8Array; readonly progress: boolean }
  /** The engine reported an error, or the stream is malformed. Nothing further may be handed on. */
  | { readonly kind: 'error'; readonly bytes: Uint8Array; readonly malformed: boolean };

export class SseScanner {
  readonly #keepUsage: boolean;
  readonly #collect: ((event: unknown) => void) | null;
  #pending: Buffer | null = null;
  #usage: StreamUsage | null = null;
  #finished = false;
  #done = false;
  #dataEvents = 0;
  #error: unknown = null;

  /** `keepUsage`: the client asked for the usage chunk itself. `collect` gets every event, parsed (for assembling). */
  constructor(keepUsage: boolean, collect: ((event: unknown) => void) | null = null) {
    this.#keepUsage = keepUsage;
    this.#collect = collect;
  }

  /** As the engine counted; null when it did not. */
  get usage(): StreamUsage | null {
    return this.#usage;
  }

  /** A finish reason other than `error` was seen. */
  get finished(): boolean {
    return this.#finished;
  }

  /** `[DONE]` was seen. It proves nothing by itself: some engines send it after an error. */
  get done(): boolean {
    return this.#done;
  }

  /** The event that reported an error, parsed; null when there was none or it was no JSON. For classifying, not for passing on. */
  get error(): unknown {
    return this.#error;
  }

  /** Events with data so far, `[DONE]` not counted: an upper bound of the tokens. */
  get dataEvents(): number {
    return this.#dataEvents;
  }

  push(chunk: Uint8Array): SseStep {
    const fresh = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const bytes = this.#pending === null ? fresh : Buffer.concat([this.#pending, fresh]);
    const before = this.#dataEvents;
    const wasDone = this.#done;
    const kept: Uint8Array[] = [];
    let from = 0; // start of the run of events that is handed on in one piece
    let at = 0;
    for (;;) {
      const end = eventEnd(bytes, at);
      if (end < 0) break;
      const verdict = this.#look(bytes.subarray(at, end));
      if (verdict === 'pass') {
        at = end;
        continue;
      }
      if (at > from) kept.push(bytes.subarray(from, at));
      if (verdict === 'error') return { kind: 'error', bytes: joined(kept), malformed: false };
      at = end;
      from = end;
    }
    if (at > from) kept.push(bytes.subarray(from, at));
    this.#pending = at < bytes.length ? bytes.subarray(at) : null;
    if (this.#pending !== null && this.#pending.length > MAX_EVENT_BYTES) {
      return { kind: 'error', bytes: joined(kept), malformed: true };
    }
    return { kind: 'pass', bytes: joined(kept), progress: this.#dataEvents > before || this.#done !== wasDone };
  }

  /** The stream is over: what is left without a blank line after it. Only a complete line may be handed on. */
  flush(): SseStep {
    const rest = this.#pending;
    this.#pending = null;
    if (rest === null) return { kind: 'pass', bytes: new Uint8Array(0), progress: false };
    const verdict = this.#look(rest);
    if (verdict === 'error') return { kind: 'error', bytes: new Uint8Array(0), malformed: false };
    return { kind: 'pass', bytes: verdict === 'pass' ? rest : new Uint8Array(0), progress: false };
  }

  #look(event: Buffer): 'pass' | 'drop' | 'error' {
    const data = dataOf(event);
    if (data === null) return event.indexOf('event: error') === 0 ? 'error' : 'pass';
    if (data.length === 6 && data.equals(DONE)) {
      this.#done = true;
      return this.#finished ? 'pass' : 'drop'; // a success marker without success is not handed on
    }
    this.#dataEvents++;
    if (this.#collect === null && !isTelling(data)) return 'pass';
    return this.#learn(data);
  }

  #learn(data: Buffer): 'pass' | 'drop' | 'error' {
    let parsed: unknown;
    try {
      parsed = JSON.parse(data.toString('utf8'));
    } catch {
      return 'error';
    }
    this.#collect?.(parsed);
    if (!isRecord(parsed)) return 'pass';
    if (parsed.error !== undefined && parsed.error !== null) {
      this.#error = parsed;
      return 'error';
    }
    const choices = Array.isArray(parsed.choices) ? parsed.choices : [];
    for (const choice of choices) {
      if (!isRecord(choice)) continue;
      if (choice.error !== undefined && choice.error !== null) return 'error';
      const reason = choice.finish_reason;
      if (reason === 'error') return 'error';
      if (typeof reason === 'string') this.#finished = true;
    }
    const usage = readUsage(parsed);
    if (usage !== null) this.#usage = usage;
    const onlyUsage = isRecord(parsed.usage) && Array.isArray(parsed.choices) && choices.length === 0;
    return onlyUsage && !this.#keepUsage ? 'drop' : 'pass';
  }
}

const DONE = Buffer.from('[DONE]');
const EMPTY = new Uint8Array(0);

function joined(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 0) return EMPTY;
  return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
}

/** @returns offset after the blank line that ends the event beginning at `from`; -1 when it is not there yet. */
function eventEnd(bytes: Buffer, from: number): number {
  let line = from;
  for (;;) {
    const lf = bytes.indexOf(LF, line);
    if (lf < 0) return -1;
    if (lf === line || (lf === line + 1 && bytes[line] === CR)) return lf + 1;
    line = lf + 1;
  }
}

/** @returns the data of an event (its lines joined by LF), or null when it has none: a comment, a blank line. */
function dataOf(event: Buffer): Buffer | null {
  let found: Buffer | null = null;
  let line = 0;
  while (line < event.length) {
    let end = event.indexOf(LF, line);
    if (end < 0) end = event.length;
    const stop = end > line && event[end - 1] === CR ? end - 1 : end;
    if (startsWithData(event, line)) {
      const from = line + 5 + (event[line + 5] === 0x20 ? 1 : 0);
      const value = event.subarray(Math.min(from, stop), stop);
      found = found === null ? value : Buffer.concat([found, Buffer.of(LF), value]);
    }
    line = end + 1;
  }
  return found;
}

/** `data:` */
function startsWithData(bytes: Buffer, at: number): boolean {
  return (
    bytes[at] === 0x64 &&
    bytes[at + 1] === 0x61 &&
    bytes[at + 2] === 0x74 &&
    bytes[at + 3] === 0x61 &&
    bytes[at + 4] === 0x3a
  );
}

/** Might hold a finish reason, usage or an error. Wrong positives cost a parse, wrong negatives do not occur. */
function isTelling(data: Buffer): boolean {
  return data.includes('"usage"') || data.includes('error') || data.includes('"timings"') || hasReason(data);
}

const REASON = '"finish_reason"';
function hasReason(data: Buffer): boolean {
  let at = data.indexOf(REASON);
  while (at >= 0) {
    at += REASON.length;
    while (data[at] === 0x20 || data[at] === 0x3a) at++;
    if (data[at] !== 0x6e) return true; // anything but null
    at = data.indexOf(REASON, at);
  }
  return false;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isInteger(value) && value >= 0;

/**
 * Token counts of an answer or chunk: OpenAI's `usage`, else llama.cpp's `timings` (prompt_n excludes what the cache already
 * held, cache_n is that). The timings come without being asked for, so the stream stays as the client ordered it.
 */
export function readUsage(answer: Record<string, unknown>): StreamUsage | null {
  const usage = answer.usage;
  if (isRecord(usage) && isCount(usage.prompt_tokens)) {
    const completion = usage.completion_tokens;
    return { promptTokens: usage.prompt_tokens, completionTokens: isCount(completion) ? completion : 0 };
  }
  const timings = answer.timings;
  if (isRecord(timings) && isCount(timings.prompt_n) && isCount(timings.predicted_n)) {
    const cached = isCount(timings.cache_n) ? timings.cache_n : 0;
    return { promptTokens: timings.prompt_n + cached, completionTokens: timings.predicted_n };
  }
  return null;
}
