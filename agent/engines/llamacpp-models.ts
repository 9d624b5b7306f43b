import type { ModelReport } from '../wire/control.ts';
import { countEach } from './count-each.ts';
import type { EngineHttp } from './engine-http.ts';
import { EngineFailure } from './failure.ts';
import { digestOf, type Model, type Props } from './llamacpp-facts.ts';
import { ModelFacts } from './model-facts.ts';
import { tooLongOf } from './refusals.ts';
import { isRecord } from './sse.ts';
import { post, tryChat, tryEmbedding, tryRerank } from './trials.ts';

/** llama.cpp's own default of `--ubatch-size`, assumed when the server does not say. */
const DEFAULT_BATCH_TOKENS = 512;
/** One request may carry any number of inputs; beyond this a failure costs too much work. */
const MAX_BATCH = 256;

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
  });
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
  const refusal = tooLongOf(json);
  return Math.min(context, refusal === null ? DEFAULT_BATCH_TOKENS : (refusal.limitTokens ?? DEFAULT_BATCH_TOKENS));
}

/** Tokens of each text, special tokens included. */
export function countTokens(
  http: EngineHttp,
  texts: readonly string[],
  signal: AbortSignal,
  timeoutMs: number,
): Promise<number[]> {
  return countEach(http, '/tokenize', texts, signal, timeoutMs, {
    body: (content) => ({ content, add_special: true }),
    read: (answer) => {
      if (!isRecord(answer) || !Array.isArray(answer.tokens)) throw new EngineFailure('unsupported_task');
      return answer.tokens.length;
    },
  });
}
