import { z } from 'zod';
import type { Clock } from '../../main/domain/time.ts';
import type { EngineDefinition, Identity, Load } from './adapter.ts';
import type { Connection } from './connections.ts';
import type { ChatHead, EngineDialect, EngineFacts, EngineSign } from './dialect.ts';
import { DialectAdapter } from './dialect-adapter.ts';
import type { EngineHttp } from './engine-http.ts';
import { EngineFailure } from './failure.ts';
import type { Evidence } from './identify.ts';
import { jsonOf } from './json-answer.ts';
import { ModelFacts } from './model-facts.ts';
import { JINA_RERANK, OPENAI_EMBED, streamEdits } from './openai-routes.ts';
import { processStart } from './prometheus.ts';
import { noSign } from './socket-marks.ts';
import type { Edit } from './splice.ts';
import { tryChat, tryEmbedding, tryRerank } from './trials.ts';

const TIMEOUT_MS = 1500;
const SIGN_TIMEOUT_MS = 5000;
const SMALL_BYTES = 8 * 1024 * 1024;
/** A server that tells nothing of itself is given little at once. */
const SLOTS = 4;
const MAX_BATCH = 64;
/** Trying a model may load it and put another out, so a proxy's long list is not tried to its end. */
const MOST_MODELS = 16;

const count = z.number().int().min(1).max(1e9);
const Model = z.object({
  id: z.string().min(1).max(512),
  /** Names under which servers state the window. */
  max_model_len: count.nullish(),
  context_length: count.nullish(),
  context_window: count.nullish(),
});
type Model = z.infer<typeof Model>;
const Models = z.object({ object: z.literal('list').optional(), data: z.array(Model).max(4096) });

interface Tried {
  readonly facts: ModelFacts;
  readonly usage: boolean;
}

export function openaiDefinition(clock: Clock): EngineDefinition {
  return {
    kind: 'openai',
    identify,
    create: (http, speed) => new DialectAdapter(new OpenaiDialect(http), http, speed, clock),
  };
}

/** Any OpenAI list of models, after everything that can be told for certain has been ruled out. */
async function identify(evidence: Evidence): Promise<Identity | null> {
  const models = Models.safeParse((await evidence.get('/v1/models'))?.json);
  return models.success ? { version: null, loading: false } : null;
}

/** What it can do is found by trying, once for each model; nothing else it says is believed. */
class OpenaiDialect implements EngineDialect {
  readonly kind = 'openai';
  readonly signHolds = 'each-socket';
  readonly embed = OPENAI_EMBED;
  readonly rerank = JINA_RERANK;
  readonly #http: EngineHttp;
  #tried = new Map<string, Tried>();
  #hasMetrics = false;

  constructor(http: EngineHttp) {
    this.#http = http;
  }

  async inspect(): Promise<EngineFacts> {
    const models = (await this.#models()).slice(0, MOST_MODELS);
    const metrics = await this.#http
      .probe('/metrics', { timeoutMs: TIMEOUT_MS, maxBytes: SMALL_BYTES })
      .catch(() => null);
    this.#hasMetrics = metrics?.status === 200 && processStart(metrics.body.toString('utf8')) !== null;
    const tried = new Map<string, Tried>();
    for (const model of models) tried.set(model.id, await this.#try(model));
    this.#tried = tried;
    const facts = [...tried.values()].map((each) => each.facts).filter(({ report }) => report.tasks.length > 0);
    return { version: null, slots: SLOTS, models: facts };
  }

  async pulse(): Promise<EngineSign> {
    return { state: 'ready', identity: JSON.stringify(await this.#models()) };
  }

  async load(): Promise<Load> {
    return { running: null, queued: null };
  }

  async sign(connection: Connection, signal?: AbortSignal): Promise<string | null> {
    const aborted = signal === undefined ? {} : { signal };
    if (!this.#hasMetrics) return noSign(this.#http, connection, '/v1/models', aborted);
    const options = { timeoutMs: SIGN_TIMEOUT_MS, maxBytes: SMALL_BYTES, ...aborted };
    const answer = await this.#http.fetchOn(connection, '/metrics', options);
    return answer.status === 200 ? processStart(answer.body.toString('utf8')) : null;
  }

  chatEdits(head: ChatHead): readonly Edit[] {
    return streamEdits(head, this.#tried.get(head.model)?.usage === true);
  }

  counter(): null {
    return null;
  }

  async #try(model: Model): Promise<Tried> {
    const window = model.max_model_len ?? model.context_length ?? model.context_window ?? null;
    const width = await tryEmbedding(this.#http, model.id);
    const ranks = width === null && (await tryRerank(this.#http, model.id));
    const reads = width !== null || ranks;
    const chats = !reads && (await tryChat(this.#http, model.id));
    // Some servers refuse members that they do not know; then tokens are estimated.
    const asking = { stream: true, stream_options: { include_usage: true } };
    const usage = chats && (await tryChat(this.#http, model.id, asking));
    const facts = new ModelFacts({
      model: model.id,
      tasks: [
        ...(chats ? ['chat' as const] : []),
        ...(width === null ? [] : ['embed' as const]),
        ...(ranks ? ['rerank' as const] : []),
      ],
      contextTokens: window,
      maxInputTokens: reads ? window : null,
      width,
      maxBatch: MAX_BATCH,
      loaded: null,
    });
    return { facts, usage };
  }

  async #models(): Promise<readonly Model[]> {
    const models = Models.safeParse(
      jsonOf(await this.#http.probe('/v1/models', { timeoutMs: TIMEOUT_MS, maxBytes: SMALL_BYTES })),
    );
    if (!models.success) throw new EngineFailure('engine_invalid_response');
    return models.data.data;
  }
}
