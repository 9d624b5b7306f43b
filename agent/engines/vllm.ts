import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '../../main/domain/time.ts';
import type { EngineDefinition, Identity, Load } from './adapter.ts';
import type { Connection } from './connections.ts';
import { countEach } from './count-each.ts';
import type { ChatHead, EngineDialect, EngineFacts, EngineSign } from './dialect.ts';
import { DialectAdapter } from './dialect-adapter.ts';
import type { EngineHttp } from './engine-http.ts';
import { EngineFailure } from './failure.ts';
import type { Evidence } from './identify.ts';
import { jsonOf } from './json-answer.ts';
import { ModelFacts } from './model-facts.ts';
import { JINA_RERANK, OPENAI_EMBED, streamEdits } from './openai-routes.ts';
import { processStart, sumOf } from './prometheus.ts';
import type { CountTokens } from './refusals.ts';
import type { Edit } from './splice.ts';
import { isRecord } from './sse.ts';
import { tryChat, tryEmbedding, tryRerank } from './trials.ts';

const TIMEOUT_MS = 1500;
const LOAD_TIMEOUT_MS = 5000;
const SMALL_BYTES = 8 * 1024 * 1024;
/** It batches by itself, as many as fit its memory, and tells no number: enough to fill it, few enough to stay quick. */
const SLOTS = 32;
const MAX_BATCH = 256;

const Version = z.object({ version: z.string().min(1).max(128) });
const Model = z.object({
  id: z.string().min(1).max(512),
  owned_by: z.string().max(512).optional(),
  root: z.string().max(4096).nullish(),
  parent: z.string().max(4096).nullish(),
  max_model_len: z.number().int().min(0).max(1e9).nullish(),
});
type Model = z.infer<typeof Model>;
const Models = z.object({ data: z.array(Model).max(512) });

export function vllmDefinition(clock: Clock): EngineDefinition {
  return {
    kind: 'vllm',
    identify,
    create: (http, speed) => new DialectAdapter(new VllmDialect(http), http, speed, clock),
  };
}

/**
 * Two signals: its version, and its metrics. Where the metrics cannot be read, owner and window of its models: alone they are
 * copied by forks and passed on by proxies. A page of metrics that is not vLLM's refutes it whatever its models say.
 */
async function identify(evidence: Evidence): Promise<Identity | null> {
  const version = Version.safeParse((await evidence.get('/version'))?.json);
  if (!version.success) return null;
  const metrics = await evidence.get('/metrics');
  const isPage = metrics?.status === 200 && /^# (?:HELP|TYPE) /m.test(metrics.text);
  if (isPage) return /^vllm:/m.test(metrics.text) ? { version: version.data.version, loading: false } : null;
  const models = Models.safeParse((await evidence.get('/v1/models'))?.json);
  const [first] = models.success ? models.data.data : [];
  const isOwner = first?.owned_by === 'vllm' && typeof first.max_model_len === 'number';
  return isOwner ? { version: version.data.version, loading: false } : null;
}

class VllmDialect implements EngineDialect {
  readonly kind = 'vllm';
  readonly signHolds = 'each-socket';
  readonly embed = OPENAI_EMBED;
  readonly rerank = JINA_RERANK;
  readonly #http: EngineHttp;

  constructor(http: EngineHttp) {
    this.#http = http;
  }

  async inspect(): Promise<EngineFacts> {
    const version = Version.safeParse(jsonOf(await this.#get('/version')));
    if (!version.success) throw new EngineFailure('engine_invalid_response');
    const models: ModelFacts[] = [];
    for (const model of await this.#models()) models.push(await this.#inspect(model, version.data.version));
    return { version: version.data.version, slots: SLOTS, models };
  }

  async pulse(): Promise<EngineSign> {
    const health = await this.#get('/health');
    // The server lives on when its engine has died, and says so.
    if (health.status >= 500) throw new EngineFailure('engine_error', { engineStatus: health.status });
    const models = await this.#models();
    return { state: 'ready', identity: JSON.stringify(models.map((model) => [model.id, digestOf(model, '')])) };
  }

  async load(): Promise<Load> {
    const page = (await this.#get('/metrics', LOAD_TIMEOUT_MS)).body.toString('utf8');
    return { running: sumOf(page, 'vllm:num_requests_running'), queued: sumOf(page, 'vllm:num_requests_waiting') };
  }

  async sign(connection: Connection, signal?: AbortSignal): Promise<string | null> {
    const options = { timeoutMs: LOAD_TIMEOUT_MS, maxBytes: SMALL_BYTES, ...(signal === undefined ? {} : { signal }) };
    const answer = await this.#http.fetchOn(connection, '/metrics', options);
    return answer.status === 200 ? processStart(answer.body.toString('utf8')) : null;
  }

  chatEdits(head: ChatHead): readonly Edit[] {
    return streamEdits(head);
  }

  counter(model: ModelFacts): CountTokens {
    return (texts, signal, timeoutMs) =>
      countEach(this.#http, '/tokenize', texts, signal, timeoutMs, {
        body: (prompt) => ({ model: model.report.model, prompt, add_special_tokens: true }),
        read: (answer) => {
          const count = isRecord(answer) ? answer.count : null;
          if (typeof count !== 'number' || !Number.isInteger(count)) throw new EngineFailure('unsupported_task');
          return count;
        },
      });
  }

  /** A model has the routes of its task alone; an encoder also ranks, by cosine, which is not what a reranker is. */
  async #inspect(model: Model, version: string): Promise<ModelFacts> {
    const window = model.max_model_len ?? null;
    const width = await tryEmbedding(this.#http, model.id);
    const ranks = width === null && (await tryRerank(this.#http, model.id));
    const chats = width === null && !ranks && (await tryChat(this.#http, model.id));
    const reads = width !== null || ranks;
    return new ModelFacts({
      model: model.id,
      digest: digestOf(model, version),
      tasks: [
        ...(chats ? ['chat' as const] : []),
        ...(width === null ? [] : ['embed' as const]),
        ...(ranks ? ['rerank' as const] : []),
      ],
      contextTokens: window,
      maxInputTokens: reads ? window : null,
      width,
      maxBatch: MAX_BATCH,
      tokenCounting: 'exact',
      loaded: true,
    });
  }

  async #models(): Promise<readonly Model[]> {
    const models = Models.safeParse(jsonOf(await this.#get('/v1/models')));
    if (!models.success) throw new EngineFailure('engine_invalid_response');
    return models.data.data;
  }

  #get(path: string, timeoutMs = TIMEOUT_MS) {
    return this.#http.probe(path, { timeoutMs, maxBytes: SMALL_BYTES });
  }
}

/** No digest of weights is offered: this one is over what the server tells of them. */
function digestOf({ id, root, parent, max_model_len: window }: Model, version: string): string {
  const told = JSON.stringify([version, id, root ?? null, parent ?? null, window ?? null]);
  return createHash('sha256').update(told).digest('hex').slice(0, 32);
}
