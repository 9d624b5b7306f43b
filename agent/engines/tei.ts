import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '../../main/domain/time.ts';
import type { EngineDefinition, Identity, Load } from './adapter.ts';
import type { Connection } from './connections.ts';
import type { EmbedRoute, EngineDialect, EngineFacts, EngineSign, RerankRoute } from './dialect.ts';
import { DialectAdapter } from './dialect-adapter.ts';
import type { EngineHttp, HttpAnswer } from './engine-http.ts';
import { EngineFailure } from './failure.ts';
import type { Evidence } from './identify.ts';
import { jsonOf } from './json-answer.ts';
import { ModelFacts } from './model-facts.ts';
import { sumOf } from './prometheus.ts';
import type { CountTokens } from './refusals.ts';
import { readScores } from './scores.ts';
import { noSign } from './socket-marks.ts';
import type { Edit } from './splice.ts';
import { post } from './trials.ts';
import { readRows } from './vectors.ts';
import { versionText } from './version-text.ts';

const TIMEOUT_MS = 1500;
const LOAD_TIMEOUT_MS = 5000;
const SMALL_BYTES = 4 * 1024 * 1024;
const TOKENS_BYTES = 64 * 1024 * 1024;
/** A body may have 2 MB. */
const MAX_BODY_BYTES = 1_900_000;
/** It batches by tokens and takes up to 512 requests, most of which would only queue. */
const MOST_SLOTS = 8;
const DEFAULT_BATCH = 32;

const count = z.number().int().min(0).max(1e9);
const text = z.string().max(4096);

const TeiInfo = z.object({
  model_id: z.string().min(1).max(512),
  model_sha: text.nullish(),
  model_dtype: text.nullish(),
  model_type: z.record(z.string(), z.unknown()),
  served_model_name: text.nullish(),
  version: versionText.optional(),
  max_client_batch_size: count,
  max_concurrent_requests: count.optional(),
  max_input_length: count,
  max_total_tokens: z.undefined().optional(),
});
type TeiInfo = z.infer<typeof TeiInfo>;

export function teiDefinition(clock: Clock): EngineDefinition {
  return {
    kind: 'tei',
    identify,
    create: (http, speed) => new DialectAdapter(new TeiDialect(http), http, speed, clock),
  };
}

/** `/info` with a model type and a batch size, and without the total that makes it TGI's. */
async function identify(evidence: Evidence): Promise<Identity | null> {
  const info = TeiInfo.safeParse((await evidence.get('/info'))?.json);
  return info.success ? { version: info.data.version ?? null, loading: false } : null;
}

/** Its native routes, because only they can be told not to cut: its OpenAI route follows `--auto-truncate`, on by default. */
class TeiDialect implements EngineDialect {
  readonly kind = 'tei';
  readonly signHolds = 'each-socket';
  readonly #http: EngineHttp;
  #maxBatch = DEFAULT_BATCH;

  constructor(http: EngineHttp) {
    this.#http = http;
  }

  readonly embed: EmbedRoute = {
    path: '/embed',
    maxBytes: MAX_BODY_BYTES,
    body: (_, inputs) => Buffer.concat([Buffer.from('{"truncate":false,"inputs":'), inputs, Buffer.from('}')]),
    read: (answer, demand) => ({ batch: readRows(jsonOf(answer), demand), promptTokens: computed(answer) }),
  };

  get rerank(): RerankRoute {
    return {
      path: '/rerank',
      maxDocuments: this.#maxBatch,
      body: (_, query, texts) => Buffer.from(JSON.stringify({ query, texts, truncate: false, raw_scores: false })),
      read: (answer, documents) => ({ scores: readRanks(jsonOf(answer), documents), promptTokens: computed(answer) }),
    };
  }

  async inspect(): Promise<EngineFacts> {
    const info = await this.#info();
    this.#maxBatch = Math.max(1, info.max_client_batch_size);
    const width = 'embedding' in info.model_type ? await this.#tryEmbedding() : null;
    const ranks = 'reranker' in info.model_type;
    const served = info.served_model_name ?? '';
    const model = new ModelFacts({
      model: info.model_id,
      aliases: served === '' || served === info.model_id || served.length > 512 ? [] : [served],
      digest: digestOf(info),
      tasks: [...(width === null ? [] : ['embed' as const]), ...(ranks ? ['rerank' as const] : [])],
      contextTokens: info.max_input_length,
      maxInputTokens: info.max_input_length,
      width,
      maxBatch: this.#maxBatch,
      tokenCounting: 'exact',
      loaded: true,
    });
    const slots = Math.min(info.max_concurrent_requests ?? MOST_SLOTS, MOST_SLOTS);
    return { version: info.version ?? null, slots, models: [model] };
  }

  async pulse(): Promise<EngineSign> {
    const health = await this.#get('/health');
    if (health.status >= 500) throw new EngineFailure('engine_error', { engineStatus: health.status });
    return { state: 'ready', identity: JSON.stringify(await this.#info()) };
  }

  async load(): Promise<Load> {
    const page = (await this.#get('/metrics', LOAD_TIMEOUT_MS)).body.toString('utf8');
    return { running: null, queued: sumOf(page, 'te_queue_size') };
  }

  sign(connection: Connection, signal?: AbortSignal): Promise<string | null> {
    return noSign(this.#http, connection, '/health', signal === undefined ? {} : { signal });
  }

  chatEdits(): readonly Edit[] {
    return [];
  }

  counter(): CountTokens {
    return async (texts, signal, timeoutMs) => {
      const counts: number[] = [];
      for (let from = 0; from < texts.length; from += this.#maxBatch) {
        const inputs = texts.slice(from, from + this.#maxBatch);
        const body = Buffer.from(JSON.stringify({ inputs, add_special_tokens: true }));
        const answer = await this.#http.fetch('/tokenize', { body, timeoutMs, maxBytes: TOKENS_BYTES, signal });
        const rows = jsonOf(answer);
        if (answer.status !== 200 || !Array.isArray(rows) || rows.length !== inputs.length)
          throw new EngineFailure('unsupported_task', { engineStatus: answer.status });
        for (const row of rows) {
          if (!Array.isArray(row)) throw new EngineFailure('engine_invalid_response');
          counts.push(row.length);
        }
      }
      return counts;
    };
  }

  async #tryEmbedding(): Promise<number | null> {
    const { status, json } = await post(this.#http, '/embed', { inputs: ['a'] });
    if (status !== 200) return null;
    try {
      return readRows(json, { count: 1, width: null, cut: null, normalise: false }).width;
    } catch {
      return null;
    }
  }

  async #info(): Promise<TeiInfo> {
    const info = TeiInfo.safeParse(jsonOf(await this.#get('/info')));
    if (!info.success) throw new EngineFailure('engine_invalid_response');
    return info.data;
  }

  #get(path: string, timeoutMs = TIMEOUT_MS) {
    return this.#http.probe(path, { timeoutMs, maxBytes: SMALL_BYTES });
  }
}

/** Tokens read, as the engine counted them. */
function computed({ headers }: HttpAnswer): number | null {
  const value = headers['x-compute-tokens'];
  const tokens = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : null;
  return tokens;
}

/** `[{index, score}]`. @throws EngineFailure as `readScores` */
function readRanks(answer: unknown, documents: number): number[] {
  const ranks: readonly unknown[] = Array.isArray(answer) ? answer : [];
  const results = ranks.map((rank) => {
    const { index, score } = (typeof rank === 'object' && rank !== null ? rank : {}) as Record<string, unknown>;
    return { index, relevance_score: score };
  });
  return readScores({ results }, documents);
}

/** Over what it tells of the weights and of what it does with them; the pooling is among it. */
function digestOf({ model_id, model_sha, model_dtype, model_type }: TeiInfo): string {
  const told = JSON.stringify([model_id, model_sha ?? null, model_dtype ?? null, model_type]);
  return createHash('sha256').update(told).digest('hex').slice(0, 32);
}
