import { isRecord } from './sse.ts';

/**
 * Puts the events of a stream together into the answer that the same request would have had without `stream`. Not-streamed
 * calls are sent as streams, because that is what can be stopped: llama.cpp (b11669, measured) computes a not-streamed answer
 * to its end after the client has left, and OpenRouter bills it.
 */
export class ChatAssembler {
  readonly #top = new Map<string, unknown>();
  readonly #choices = new Map<number, Choice>();

  add(chunk: unknown): void {
    if (!isRecord(chunk)) return;
    for (const [key, value] of Object.entries(chunk)) {
      if (key === 'choices') this.#addChoices(value);
      else if (value !== null || !this.#top.has(key)) this.#top.set(key, value);
    }
  }

  /** @returns the answer as a JSON value; null when there was no choice */
  answer(): Record<string, unknown> | null {
    if (this.#choices.size === 0) return null;
    const object = this.#top.get('object');
    const choices = [...this.#choices.entries()].sort(([a], [b]) => a - b).map(([, choice]) => choice.value());
    const rest = Object.fromEntries([...this.#top].filter(([key]) => key !== 'object'));
    return { ...rest, object: object === 'chat.completion.chunk' ? 'chat.completion' : object, choices };
  }

  #addChoices(choices: unknown): void {
    if (!Array.isArray(choices)) return;
    for (const choice of choices) {
      if (!isRecord(choice)) continue;
      const index = typeof choice.index === 'number' ? choice.index : 0;
      const known = this.#choices.get(index) ?? new Choice(index);
      this.#choices.set(index, known);
      known.add(choice);
    }
  }
}

/** Members of a delta that name something; all other strings are pieces of a text. */
const NAMES = new Set(['role', 'id', 'type', 'index']);

class Choice {
  readonly #index: number;
  readonly #members = new Map<string, unknown>();
  #message: Record<string, unknown> | null = null;
  #logprobs: Record<string, unknown> | null = null;
  #text: string | null = null;

  constructor(index: number) {
    this.#index = index;
  }

  add(choice: Record<string, unknown>): void {
    for (const [key, value] of Object.entries(choice)) {
      if (key === 'delta' && isRecord(value)) this.#message = merged(this.#message ?? {}, value);
      else if (key === 'text' && typeof value === 'string') this.#text = (this.#text ?? '') + value;
      else if (key === 'logprobs' && isRecord(value)) this.#logprobs = joinedLists(this.#logprobs ?? {}, value);
      else if (key !== 'index' && (value !== null || !this.#members.has(key))) this.#members.set(key, value);
    }
  }

  value(): Record<string, unknown> {
    const { delta: _, ...members } = Object.fromEntries(this.#members);
    const logprobs = this.#logprobs === null ? {} : { logprobs: this.#logprobs };
    if (this.#text !== null) return { ...members, ...logprobs, index: this.#index, text: this.#text };
    return { ...members, ...logprobs, index: this.#index, message: finishedMessage(this.#message ?? {}) };
  }
}

function merged(into: Record<string, unknown>, delta: Record<string, unknown>): Record<string, unknown> {
  const result = { ...into };
  for (const [key, value] of Object.entries(delta)) {
    if (key === '__proto__') continue; // no member of an answer, whoever sent it
    const before = result[key];
    if (value === null || value === undefined) result[key] = before ?? null;
    else if (typeof value === 'string' && typeof before === 'string' && !NAMES.has(key)) result[key] = before + value;
    else if (Array.isArray(value)) result[key] = mergedList(Array.isArray(before) ? before : [], value);
    else if (isRecord(value)) result[key] = merged(isRecord(before) ? before : {}, value);
    else result[key] = value;
  }
  return result;
}

/** Tool calls and the like: items with an `index` are pieces of the item of that index, others follow one another. */
function mergedList(into: readonly unknown[], pieces: readonly unknown[]): unknown[] {
  const result = [...into];
  for (const piece of pieces) {
    if (!isRecord(piece) || typeof piece.index !== 'number') {
      result.push(piece);
      continue;
    }
    const at = result.findIndex((item) => isRecord(item) && item.index === piece.index);
    const before = at < 0 ? {} : result[at];
    const item = merged(isRecord(before) ? before : {}, piece);
    if (at < 0) result.push(item);
    else result[at] = item;
  }
  return result;
}

function joinedLists(into: Record<string, unknown>, more: Record<string, unknown>): Record<string, unknown> {
  const result = { ...into };
  for (const [key, value] of Object.entries(more)) {
    const before = result[key];
    result[key] = Array.isArray(value) && Array.isArray(before) ? [...before, ...value] : (value ?? before ?? null);
  }
  return result;
}

/** As a whole answer has it: a role, a content (null beside tool calls), and tool calls without their stream index. */
function finishedMessage(message: Record<string, unknown>): Record<string, unknown> {
  const { role, content, tool_calls: calls, ...rest } = message;
  const toolCalls = Array.isArray(calls)
    ? calls.map((call) =>
        isRecord(call) ? Object.fromEntries(Object.entries(call).filter(([key]) => key !== 'index')) : call,
      )
    : null;
  return {
    role: role ?? 'assistant',
    content: content ?? (toolCalls === null ? '' : null),
    ...rest,
    ...(toolCalls === null ? {} : { tool_calls: toolCalls }),
  };
}
