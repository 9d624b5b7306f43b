import type { IncomingHttpHeaders } from 'node:http';
import type { IncomingCall } from '../wire/stream.ts';
import type { EngineHttp, HttpAnswer } from './engine-http.ts';
import { EngineFailure } from './failure.ts';
import { jsonOf } from './json-answer.ts';
import { refusalOf } from './llamacpp-facts.ts';
import type { ModelFacts } from './llamacpp-models.ts';
import { isRecord } from './sse.ts';
import { readTexts } from './texts.ts';

/** Texts counted at once: `/tokenize` takes one each. */
const AT_ONCE = 4;
const COUNT_TIMEOUT_MS = 10_000;
const MAX_BYTES = 64 * 1024 * 1024;
const LONGEST_RETRY_S = 3600;

/** What an answer that is not 2xx means: from its status and, for inputs that are too long, from its body. */
export function refused(
  status: number,
  body: unknown,
  headers: IncomingHttpHeaders,
  tooLong: 'input_too_long' | 'context_too_long',
): EngineFailure {
  const refusal = refusalOf(body);
  const engineStatus = status;
  if (refusal !== null) return new EngineFailure(tooLong, { engineStatus, limitTokens: refusal.limitTokens });
  if (status === 501 || status === 404) return new EngineFailure('unsupported_task', { engineStatus });
  if (status === 401 || status === 403) {
    return new EngineFailure('engine_error', { engineStatus }, 'The engine wants a key of its own.');
  }
  if (status === 429 || status === 503) {
    const seconds = Number(headers['retry-after']);
    const said = Number.isFinite(seconds) && seconds > 0;
    const retryAfterMs = Math.min(seconds, LONGEST_RETRY_S) * 1000;
    return new EngineFailure('engine_busy', { engineStatus, ...(said ? { retryAfterMs } : {}) });
  }
  return new EngineFailure(status >= 400 && status < 500 ? 'engine_refused' : 'engine_error', { engineStatus });
}

/** Tokens of each text, special tokens included. */
export async function countTokens(
  http: EngineHttp,
  texts: readonly string[],
  signal: AbortSignal,
  timeoutMs: number,
): Promise<number[]> {
  const counts = new Array<number>(texts.length).fill(0);
  let next = 0;
  const work = async () => {
    for (let i = next++; i < texts.length; i = next++) {
      const body = Buffer.from(JSON.stringify({ content: texts[i], add_special: true }));
      const parsed = jsonOf(await http.fetch('/tokenize', { body, timeoutMs, maxBytes: MAX_BYTES, signal }));
      if (!isRecord(parsed) || !Array.isArray(parsed.tokens)) throw new EngineFailure('unsupported_task');
      counts[i] = parsed.tokens.length;
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, texts.length) }, work));
  return counts;
}

/**
 * Inputs were refused as a whole. If that was for their length, finds out which of them, so that the caller can be told, and
 * learns the limit.
 */
export async function refusedInputs(
  http: EngineHttp,
  answer: HttpAnswer,
  call: IncomingCall,
  model: ModelFacts,
): Promise<EngineFailure> {
  const body = jsonOf(answer);
  const refusal = refusalOf(body);
  if (refusal === null) return refused(answer.status, body, answer.headers, 'input_too_long');
  const limit = refusal.limitTokens ?? model.report.maxInputTokens;
  if (limit !== null && refusal.kind === 'batch') model.learnLimit(limit);
  const { documents, query } = call.head.op === 'rerank' ? readRerank(call.body) : textsOf(call.body);
  // A token is at least one byte, so most texts need not be counted. A query counts towards each of its documents.
  const suspects = documents.flatMap((text, index) =>
    limit === null || Buffer.byteLength(query) + Buffer.byteLength(text) + 4 > limit ? [{ text, index }] : [],
  );
  const texts = suspects.map(({ text }) => text);
  const counts = await countTokens(http, query === '' ? texts : [...texts, query], call.signal, COUNT_TIMEOUT_MS).catch(
    () => null,
  );
  const own = query === '' ? 0 : (counts?.at(-1) ?? 0) - 1; // both carry a begin and an end; joined they share one
  const failing = suspects.flatMap(({ index }, i) => {
    const tokens = counts === null ? null : (counts[i] ?? 0) + own;
    return tokens === null || limit === null || tokens > limit ? [{ index, tokens }] : [];
  });
  return new EngineFailure('input_too_long', {
    engineStatus: answer.status,
    limitTokens: limit,
    failing: failing.slice(0, 2048),
  });
}

interface Inputs {
  readonly query: string;
  readonly documents: readonly string[];
}

const textsOf = (body: Uint8Array): Inputs => ({ query: '', documents: readTexts(body) });

function readRerank(body: Uint8Array): Inputs {
  const parsed = jsonOf({ body: Buffer.from(body) });
  if (!isRecord(parsed) || typeof parsed.query !== 'string' || !Array.isArray(parsed.documents)) {
    return { query: '', documents: [] };
  }
  return { query: parsed.query, documents: parsed.documents.map((text) => (typeof text === 'string' ? text : '')) };
}
