import { createHash } from 'node:crypto';
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
import { streamEdits } from './openai-routes.ts';
import { sumOf } from './prometheus.ts';
import { noSign } from './socket-marks.ts';
import type { Edit } from './splice.ts';
import { tryChat } from './trials.ts';
import { versionText } from './version-text.ts';

const TIMEOUT_MS = 1500;
const LOAD_TIMEOUT_MS = 5000;
const SMALL_BYTES = 4 * 1024 * 1024;
/** It takes up to `max_concurrent_requests` (128) and queues most of them; the router queues better. */
const MOST_SLOTS = 32;

const count = z.number().int().min(0).max(1e9);
const text = z.string().max(4096);

export const TgiInfo = z.object({
  model_id: z.string().min(1).max(512),
  model_sha: text.nullish(),
  router: text.optional(),
  version: versionText.optional(),
  max_input_tokens: count.optional(),
  max_total_tokens: count.optional(),
  max_concurrent_requests: count.optional(),
});
type TgiInfo = z.infer<typeof TgiInfo>;

export function tgiDefinition(clock: Clock): EngineDefinition {
  return {
    kind: 'tgi',
    identify,
    create: (http, speed) => new DialectAdapter(new TgiDialect(http), http, speed, clock),
  };
}

/** Its own name in `/info`, or there the two limits that only it has together. */
async function identify(evidence: Evidence): Promise<Identity | null> {
  const info = TgiInfo.safeParse((await evidence.get('/info'))?.json);
  if (!info.success) return null;
  const { router, max_input_tokens: input, max_total_tokens: total, version } = info.data;
  const isIt = router === 'text-generation-router' || ((input ?? 0) > 0 && (total ?? 0) > 0);
  return isIt ? { version: version ?? null, loading: false } : null;
}

/** Chat alone: it neither embeds nor ranks. */
class TgiDialect implements EngineDialect {
  readonly kind = 'tgi';
  readonly signHolds = 'each-socket';
  readonly embed = null;
  readonly rerank = null;
  readonly #http: EngineHttp;

  constructor(http: EngineHttp) {
    this.#http = http;
  }

  async inspect(): Promise<EngineFacts> {
    const info = await this.#info();
    const chats = await tryChat(this.#http, info.model_id);
    const told = JSON.stringify([info.model_id, info.model_sha ?? null]);
    const model = new ModelFacts({
      model: info.model_id,
      digest: createHash('sha256').update(told).digest('hex').slice(0, 32),
      tasks: chats ? ['chat'] : [],
      contextTokens: info.max_total_tokens ?? null,
      maxBatch: 1,
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
    return { running: sumOf(page, 'tgi_batch_current_size'), queued: sumOf(page, 'tgi_queue_size') };
  }

  sign(connection: Connection, signal?: AbortSignal): Promise<string | null> {
    return noSign(this.#http, connection, '/health', signal === undefined ? {} : { signal });
  }

  chatEdits(head: ChatHead): readonly Edit[] {
    return streamEdits(head);
  }

  counter(): null {
    return null;
  }

  async #info(): Promise<TgiInfo> {
    const info = TgiInfo.safeParse(jsonOf(await this.#get('/info')));
    if (!info.success) throw new EngineFailure('engine_invalid_response');
    return info.data;
  }

  #get(path: string, timeoutMs = TIMEOUT_MS) {
    return this.#http.probe(path, { timeoutMs, maxBytes: SMALL_BYTES });
  }
}
