import type { EngineHttp, FetchOptions } from './engine-http.ts';
import { jsonOf } from './json-answer.ts';
import { readScores } from './scores.ts';
import { isRecord } from './sse.ts';
import { readVectors } from './vectors.ts';

/** A first call may wait behind a full queue or for a model to warm up. */
const TRIAL_TIMEOUT_MS = 60_000;
const MAX_BYTES = 4 * 1024 * 1024;

/** One tiny request; for finding out what an engine can do, never for anybody's work. */
export async function post(
  http: EngineHttp,
  path: string,
  body: object,
  options: Pick<FetchOptions, 'headers'> = {},
): Promise<{ readonly status: number; readonly json: unknown }> {
  const bytes = Buffer.from(JSON.stringify(body));
  const answer = await http.fetch(path, { ...options, body: bytes, timeoutMs: TRIAL_TIMEOUT_MS, maxBytes: MAX_BYTES });
  return { status: answer.status, json: jsonOf(answer) };
}

/** @returns the width of the model's vectors, null when it does not embed. */
export async function tryEmbedding(http: EngineHttp, model: string): Promise<number | null> {
  const { status, json } = await post(http, '/v1/embeddings', { model, input: ['a'], encoding_format: 'base64' });
  if (status !== 200) return null;
  try {
    return readVectors(json, { count: 1, width: null, cut: null, normalise: false }).width;
  } catch {
    return null;
  }
}

export async function tryRerank(http: EngineHttp, model: string): Promise<boolean> {
  const { status, json } = await post(http, '/v1/rerank', { model, query: 'a', documents: ['a', 'b'] });
  if (status !== 200) return false;
  try {
    return readScores(json, 2).length === 2;
  } catch {
    return false;
  }
}

/** `more`: further members of the request, to learn whether the server bears them. */
export async function tryChat(http: EngineHttp, model: string, more: object = {}): Promise<boolean> {
  const messages = [{ role: 'user', content: 'a' }];
  const { status, json } = await post(http, '/v1/chat/completions', { model, messages, max_tokens: 1, ...more });
  if (status !== 200) return false;
  return 'stream' in more || (isRecord(json) && Array.isArray(json.choices) && json.choices.length > 0);
}
