import type { ModelReport } from '../wire/control.ts';
import type { EngineHttp } from './engine-http.ts';
import { jsonOf } from './json-answer.ts';
import { digestOf, type Model, type Props, refusalOf } from './llamacpp-facts.ts';
import { readScores } from './scores.ts';
import { isRecord } from './sse.ts';
import { readVectors } from './vectors.ts';

/** A first call may wait behind a full queue or for a model to warm up. */
const TRIAL_TIMEOUT_MS = 60_000;
const MAX_BYTES = 4 * 1024 * 1024;
/** llama.cpp's own default of `--ubatch-size`, assumed when the server does not say. */
const DEFAULT_BATCH_TOKENS = 512;
/** One request may carry any number of inputs; beyond this a failure costs too much work. */
const MAX_BATCH = 256;

/** A model as reported, and what is learnt about it while it works. */
export class ModelFacts {
  #report: ModelReport;

  constructor(report: ModelReport) {
    this.#report = report;
  }

  get report(): ModelReport {
    return this.#report;
  }

  /** The engine itself has named a lower limit of one input. */
  learnLimit(tokens: number): void {
    const { maxInputTokens } = this.#report;
    if (maxInputTokens === null || tokens < maxInputTokens) this.#report = { ...this.#report, maxInputTokens: tokens };
  }
}

/**
 * What the model can do, found by one tiny request for each task: flags decide, and no route tells them. A server that embeds
 * or ranks is dedicated to that: llama.cpp's `--embeddings` and `--reranking` switch its other uses off or leave them untended,
 * so such a model is not offered for chat.
 */
export async function inspectModel(http: EngineHttp, props: Props, model: Model): Promise<ModelFacts> {
  const contextTokens = props.default_generation_settings.n_ctx;
  const ranks = await tryRerank(http, model.id);
  // A reranker answers embedding requests too, with what its scoring head makes of them.
  const width = ranks ? null : await tryEmbedding(http, model.id);
  const dedicated = width !== null || ranks;
  const chats = !dedicated && (await tryChat(http, model.id));
  const tasks: ModelReport['tasks'] = [];
  if (chats) tasks.push('chat');
  if (width !== null) tasks.push('embed');
  if (ranks) tasks.push('rerank');
  const path = width !== null ? 'embed' : 'rerank';
  return new ModelFacts({
    model: model.id,
    aliases: (model.aliases ?? []).filter((alias) => alias !== model.id && alias.length <= 512).slice(0, 32),
    digest: digestOf(props, model),
    tasks,
    contextTokens,
    maxInputTokens: dedicated ? await findLimit(http, model.id, contextTokens, path) : null,
    width,
    maxBatch: MAX_BATCH,
    tokenCounting: 'exact',
    loaded: true,
    sizeBytes: model.meta?.size ?? null,
    tokensPerSecond: null,
    ttftMs: null,
    remoteHost: null,
    trial: false,
  });
}

async function post(http: EngineHttp, path: string, body: object): Promise<{ status: number; json: unknown }> {
  const bytes = Buffer.from(JSON.stringify(body));
  const answer = await http.fetch(path, { body: bytes, timeoutMs: TRIAL_TIMEOUT_MS, maxBytes: MAX_BYTES });
  return { status: answer.status, json: jsonOf(answer) };
}

/** @returns the width of the model's vectors, null when it does not embed. */
async function tryEmbedding(http: EngineHttp, model: string): Promise<number | null> {
  const { status, json } = await post(http, '/v1/embeddings', { model, input: ['a'], encoding_format: 'base64' });
  if (status !== 200) return null;
  try {
    return readVectors(json, { count: 1, width: null, cut: null, normalise: false }).width;
  } catch {
    return null;
  }
}

async function tryRerank(http: EngineHttp, model: string): Promise<boolean> {
  const { status, json } = await post(http, '/v1/rerank', { model, query: 'a', documents: ['a', 'b'] });
  if (status !== 200) return false;
  try {
    return readScores(json, 2).length === 2;
  } catch {
    return false;
  }
}

async function tryChat(http: EngineHttp, model: string): Promise<boolean> {
  const messages = [{ role: 'user', content: 'a' }];
  const { status, json } = await post(http, '/v1/chat/completions', { model, messages, max_tokens: 1 });
  return status === 200 && isRecord(json) && Array.isArray(json.choices) && json.choices.length > 0;
}

/**
 * Longest single input. The physical batch, which bounds it, is told by no route, only by the refusal of an input that is
 * too long; so one is sent. The server refuses it before it computes anything.
 */
async function findLimit(http: EngineHttp, model: string, context: number, path: 'embed' | 'rerank'): Promise<number> {
  const text = 'a '.repeat(context + 8);
  const { json } =
    path === 'embed'
      ? await post(http, '/v1/embeddings', { model, input: [text] })
      : await post(http, '/v1/rerank', { model, query: 'a', documents: [text] });
  const refusal = refusalOf(json);
  return Math.min(context, refusal === null ? DEFAULT_BATCH_TOKENS : (refusal.limitTokens ?? DEFAULT_BATCH_TOKENS));
}
