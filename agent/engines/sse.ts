import { ChoiceEnds } from './choice-ends.ts';
import { eventEnd, LF, MAX_EVENT_BYTES, readEvent } from './sse-event.ts';

/**
 * Reads an engine's event stream as it passes, event by event. Bytes are handed on as they came: only whole events, so that
 * an error event or a usage chunk nobody asked for can be kept back. A comment is handed on but is no progress.
 *
 * Events are parsed only when they hold something to learn, or may: at 25,000 tokens a second a JSON.parse per token would
 * cost a twentieth of a core, a look with one expression costs a quarter of that.
 */

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
  /** Of an event that has no end yet. */
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #usage: StreamUsage | null = null;
  readonly #ends = new ChoiceEnds();
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

  /** Every choice that was seen has ended with a finish reason other than `error`. */
  get finished(): boolean {
    return this.#ends.all;
  }

  /** `[DONE]` was seen: nothing behind it is read. It proves nothing by itself, some engines send it after an error. */
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
    // Without the end of a line in it, it ends no event: nothing is searched, and nothing copied, time and again.
    if (!fresh.includes(LF)) return this.#wait(fresh, EMPTY, false);
    const bytes = this.#withPending(fresh);
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
    return this.#wait(bytes.subarray(at), joined(kept), this.#dataEvents > before || this.#done !== wasDone);
  }

  /** The stream is over: what is left without a blank line after it. */
  flush(): SseStep {
    const rest = this.#withPending(EMPTY);
    if (rest.length === 0) return { kind: 'pass', bytes: EMPTY, progress: false };
    const verdict = this.#look(rest);
    if (verdict === 'error') return { kind: 'error', bytes: EMPTY, malformed: false };
    return { kind: 'pass', bytes: verdict === 'pass' ? rest : EMPTY, progress: false };
  }

  /** Keeps the beginning of an event until the rest of it has come. */
  #wait(rest: Buffer, bytes: Uint8Array, progress: boolean): SseStep {
    if (rest.length > 0) this.#pending.push(rest);
    this.#pendingBytes += rest.length;
    if (this.#pendingBytes > MAX_EVENT_BYTES) return { kind: 'error', bytes, malformed: true };
    return { kind: 'pass', bytes, progress };
  }

  #withPending(fresh: Buffer): Buffer {
    if (this.#pending.length === 0) return fresh;
    const bytes = Buffer.concat([...this.#pending, fresh]);
    this.#pending = [];
    this.#pendingBytes = 0;
    return bytes;
  }

  #look(bytes: Buffer): 'pass' | 'drop' | 'error' {
    if (this.#done) return 'drop';
    const { data, type, malformed } = readEvent(bytes);
    if (malformed) return 'error';
    const isError = type.toLowerCase().includes('error');
    if (data === null) return isError ? 'error' : 'pass';
    if (isError) {
      this.#error = parsed(data);
      return 'error';
    }
    if (isDone(data)) {
      this.#done = true;
      return this.finished ? 'pass' : 'drop'; // a success marker without success is not handed on
    }
    this.#dataEvents++;
    if (this.#collect !== null || (type !== '' && type !== 'message') || isTelling(data)) return this.#learn(data);
    this.#ends.see(0);
    return 'pass';
  }

  #learn(data: Buffer): 'pass' | 'drop' | 'error' {
    const chunk = parsed(data);
    if (!isRecord(chunk)) return 'error';
    if (isSet(chunk.error) || chunk.object === 'error') {
      this.#error = chunk;
      return 'error';
    }
    const choices: readonly unknown[] | null = Array.isArray(chunk.choices) ? chunk.choices : null;
    for (const choice of choices ?? []) {
      if (!isRecord(choice)) continue;
      const reason = choice.finish_reason;
      if (isSet(choice.error) || reason === 'error') return 'error';
      if (typeof reason === 'string') this.#ends.end(choice.index);
      else this.#ends.see(choice.index);
    }
    this.#collect?.(chunk);
    const usage = readUsage(chunk);
    if (usage !== null) this.#usage = usage;
    // No piece of an answer: usage, which somebody may have asked for, or words of the engine's own, which nobody did.
    if (choices === null || choices.length === 0) {
      return isRecord(chunk.usage) ? (this.#keepUsage ? 'pass' : 'drop') : choices === null ? 'drop' : 'pass';
    }
    return 'pass';
  }
}

const EMPTY = Buffer.alloc(0);

function joined(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 0) return EMPTY;
  return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
}

/** The value; undefined when it is no JSON. The parser's own message quotes it and is dropped. */
function parsed(data: Buffer): unknown {
  try {
    return JSON.parse(data.toString('utf8'));
  } catch {
    return undefined;
  }
}

const isSet = (value: unknown) => value !== undefined && value !== null;

const BRACKET = 0x5b;
const isDone = (data: Buffer) => data[0] === BRACKET && data.toString('latin1').trim() === '[DONE]';

/**
 * A finish reason that is not null, an index other than 0, usage, an error; or any letter that is spelled by its number, under
 * which each of these may hide.
 */
const TELLING = /error|"usage"|"timings"|\\u|"finish_reason"\s*:\s*[^n\s]|"index"\s*:\s*(?:[^0\s]|0[^,}\s])/;

/** Must be parsed. Wrong positives cost a parse, wrong negatives do not occur. */
function isTelling(data: Buffer): boolean {
  if (data[0] !== 0x7b || data[data.length - 1] !== 0x7d) return true; // no object, or blanks around it
  const text = data.toString('latin1');
  return !text.includes('"choices"') || TELLING.test(text);
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
