import type { IncomingHttpHeaders } from 'node:http';
import type { IncomingCall } from '../wire/stream.ts';
import type { EngineKind } from './adapter.ts';
import { isComplaint } from './complaints.ts';
import type { HttpAnswer } from './engine-http.ts';
import { EngineFailure } from './failure.ts';
import { jsonOf } from './json-answer.ts';
import type { ModelFacts } from './model-facts.ts';
import { isRecord } from './sse.ts';
import { type RankedTexts, readRanked, readTexts } from './texts.ts';

const COUNT_TIMEOUT_MS = 10_000;
const LONGEST_RETRY_S = 3600;
/** The wire carries so many failing inputs. */
const MAX_FAILING = 2048;

/** An engine's own words. They are read for what they mean and go no further. */
interface Said {
  readonly message: string;
  /** `type`, `error_type` or `code`, whatever it has. */
  readonly type: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

const text = (value: unknown) => (typeof value === 'string' ? value.slice(0, 4096) : '');

/**
 * Every form in use: nested `{error: {message, type, code}}` (OpenAI, llama.cpp, vLLM, LM Studio), `{error: "text", error_type}` (Ollama,
 * TGI, TEI), and flat `{message, type, code}` (TEI's and older vLLM's OpenAI routes).
 */
function said(body: unknown): Said {
  const top = isRecord(body) ? body : {};
  if (typeof top.error === 'string') return { message: text(top.error), type: text(top.error_type), fields: top };
  const fields = isRecord(top.error) ? top.error : top;
  const type = text(fields.type) || text(fields.error_type) || text(fields.code);
  return { message: text(fields.message), type, fields };
}

/** Limits named in an engine's refusal of something too long; null: it names none. */
export interface TooLong {
  readonly limitTokens: number | null;
  readonly tokens: number | null;
}

const FORMS: readonly RegExp[] = [
  /input \((?<tokens>\d+) tokens\) is too large to process.*batch size: (?<limit>\d+)/, // llama.cpp, physical batch
  /input is too large to process|larger than the max context size/, // llama.cpp, several inputs together
  /maximum (?:context|model) length (?:is|of) (?<limit>\d+)/, // vLLM
  /must have less than (?<limit>\d+) tokens\. Given: (?<tokens>\d+)/, // TEI, TGI
  /`inputs` tokens \+ `max_new_tokens` must be <= (?<limit>\d+)/, // TGI
  /input length exceeds the (?:maximum )?context length/, // Ollama
  /context length of only (?<limit>\d+) tokens/, // LM Studio
  /exceeds? the (?:available |maximum )?context (?:size|length|window)/, // forks
];

/** Recognises "longer than I can take", which arrives as 400, 413, 422 or 500, or as the first event of a stream. */
export function tooLongOf(body: unknown): TooLong | null {
  const { message, type, fields } = said(body);
  if (type === 'exceed_context_size_error') {
    return { limitTokens: countOf(fields.n_ctx), tokens: countOf(fields.n_prompt_tokens) };
  }
  for (const form of FORMS) {
    const groups = form.exec(message);
    if (groups === null) continue;
    return { limitTokens: countOf(groups.groups?.limit), tokens: countOf(groups.groups?.tokens) };
  }
  return type === 'context_length_exceeded' || fields.code === 'context_length_exceeded'
    ? { limitTokens: null, tokens: null }
    : null;
}

function countOf(value: unknown): number | null {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= 1e9 ? number : null;
}

const NO_MODEL = /\bmodel\b.*(?:does not exist|not found|not loaded)/i;
const NO_SUCH_TASK = /does not support (?:chat|completions?|embed\w*|generate|scor\w+|rerank\w*)/i;

/** What an answer that is not 2xx means. */
export function refused(
  status: number,
  body: unknown,
  headers: IncomingHttpHeaders,
  tooLong: 'input_too_long' | 'context_too_long',
  kind: EngineKind,
): EngineFailure {
  const { message, type } = said(body);
  const engineStatus = status;
  const refusal = tooLongOf(body);
  if (refusal !== null) return new EngineFailure(tooLong, { engineStatus, limitTokens: refusal.limitTokens });
  if (status === 429 || type === 'overloaded' || (status === 503 && !isIll(type))) {
    const seconds = Number(headers['retry-after']);
    const given = Number.isFinite(seconds) && seconds > 0;
    const retryAfterMs = Math.min(seconds, LONGEST_RETRY_S) * 1000;
    return new EngineFailure('engine_busy', { engineStatus, ...(given ? { retryAfterMs } : {}) });
  }
  if (status === 401 || status === 403) {
    return new EngineFailure('engine_error', { engineStatus }, 'The engine wants a key of its own.');
  }
  if (NO_MODEL.test(message)) return new EngineFailure('model_missing', { engineStatus });
  if (status === 404 || status === 405 || status === 501 || NO_SUCH_TASK.test(message)) {
    return new EngineFailure('unsupported_task', { engineStatus });
  }
  const isEmpty = type === 'empty' || type === 'Empty' || /(?:inputs?|content)\S* cannot be empty/i.test(message);
  if (tooLong === 'input_too_long' && isEmpty) return new EngineFailure('empty_input', { engineStatus });
  // 424: TGI's and TEI's backend has failed. 499: the engine thinks that we left.
  const isCallers = status < 500 ? status >= 400 && status !== 424 && status !== 499 : isComplaint(kind, message);
  return new EngineFailure(isCallers ? 'engine_refused' : 'engine_error', { engineStatus });
}

/** TGI and TEI say 503 for a backend that is dead, not busy. */
const isIll = (type: string) => type === 'unhealthy' || type === 'healthcheck';

/** Tokens of each text as the model counts them, special ones included. */
export type CountTokens = (texts: readonly string[], signal: AbortSignal, timeoutMs: number) => Promise<number[]>;

/**
 * Inputs were refused as a whole. If that was for their length, finds out which of them, so that the caller can be told, and
 * learns the limit. `count` null: the engine cannot count.
 */
export async function refusedInputs(
  answer: HttpAnswer,
  call: IncomingCall,
  model: ModelFacts,
  count: CountTokens | null,
  kind: EngineKind,
): Promise<EngineFailure> {
  const body = jsonOf(answer);
  const refusal = tooLongOf(body);
  if (refusal === null) return refused(answer.status, body, answer.headers, 'input_too_long', kind);
  if (refusal.limitTokens !== null) model.learnLimit(refusal.limitTokens);
  const limit = model.report.maxInputTokens;
  const { query, documents } = call.head.op === 'rerank' ? readRanked(call.body) : plain(call.body);
  // A token is at least one byte, so most texts need not be counted. A query counts towards each of its documents.
  const suspects = documents.flatMap((text, index) =>
    limit === null || Buffer.byteLength(query) + Buffer.byteLength(text) + 4 > limit ? [{ text, index }] : [],
  );
  const counts = await counted(suspects, query, call.signal, count);
  const own = query === '' ? 0 : (counts?.at(-1) ?? 0) - 1; // both carry a begin and an end; joined they share one
  const failing = suspects.flatMap(({ index }, i) => {
    const tokens = counts === null ? null : (counts[i] ?? 0) + own;
    return tokens === null || limit === null || tokens > limit ? [{ index, tokens }] : [];
  });
  const engineStatus = answer.status;
  return new EngineFailure('input_too_long', {
    engineStatus,
    limitTokens: limit,
    failing: failing.slice(0, MAX_FAILING),
  });
}

async function counted(
  suspects: readonly { readonly text: string }[],
  query: string,
  signal: AbortSignal,
  count: CountTokens | null,
): Promise<readonly number[] | null> {
  if (count === null) return null;
  const texts = suspects.map(({ text }) => text);
  return count(query === '' ? texts : [...texts, query], signal, COUNT_TIMEOUT_MS).catch(() => null);
}

const plain = (body: Uint8Array): RankedTexts => ({ query: '', documents: readTexts(body) });
