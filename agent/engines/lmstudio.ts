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
import { OPENAI_EMBED, streamEdits } from './openai-routes.ts';
import { noSign } from './socket-marks.ts';
import type { Edit } from './splice.ts';
import { tryEmbedding } from './trials.ts';

const TIMEOUT_MS = 1500;
const SMALL_BYTES = 4 * 1024 * 1024;
const MAX_BATCH = 64;

const count = z.number().int().min(0).max(1e15);
const text = z.string().max(4096);
const name = z.string().min(1).max(512);

const Instance = z.object({
  id: text,
  config: z.object({ context_length: count.optional(), parallel: count.optional() }).default({}),
});
const Current = z.object({
  models: z
    .array(
      z.object({
        type: text,
        key: name,
        size_bytes: count.nullish(),
        quantization: z.object({ name: text.nullish() }).nullish(),
        format: text.nullish(),
        loaded_instances: z.array(Instance).max(256),
      }),
    )
    .max(512),
});
/** `/api/v0`, of releases before 0.4. */
const Older = z.object({
  data: z
    .array(
      z.object({
        id: name,
        type: text,
        state: text,
        quantization: text,
        loaded_context_length: count.optional(),
      }),
    )
    .max(512),
});

/** One model, whichever interface told it. */
interface Told {
  readonly model: string;
  readonly task: 'chat' | 'embed' | null;
  readonly loaded: boolean;
  readonly contextTokens: number | null;
  readonly parallel: number;
  readonly sizeBytes: number | null;
  readonly quantization: string;
}

export function lmstudioDefinition(clock: Clock): EngineDefinition {
  return {
    kind: 'lmstudio',
    identify,
    create: (http, speed) => new DialectAdapter(new LmstudioDialect(http), http, speed, clock),
  };
}

/** Its own list of models, with their loaded instances or states: no other server has either. */
async function identify(evidence: Evidence): Promise<Identity | null> {
  const told =
    read((await evidence.get('/api/v1/models'))?.json) ?? readOlder((await evidence.get('/api/v0/models'))?.json);
  return told === null ? null : { version: null, loading: false };
}

function read(body: unknown): readonly Told[] | null {
  const parsed = Current.safeParse(body);
  if (!parsed.success) return null;
  return parsed.data.models.map(
    ({ key, type, size_bytes: size, quantization, format, loaded_instances: instances }) => {
      const windows = instances.flatMap(({ config }) => config.context_length ?? []);
      return {
        model: key,
        task: taskOf(type),
        loaded: instances.length > 0,
        contextTokens: windows.length > 0 ? Math.min(...windows) : null,
        parallel: Math.max(1, ...instances.map(({ config }) => config.parallel ?? 1)),
        sizeBytes: size ?? null,
        quantization: `${format ?? ''} ${quantization?.name ?? ''}`,
      };
    },
  );
}

function readOlder(body: unknown): readonly Told[] | null {
  const parsed = Older.safeParse(body);
  if (!parsed.success) return null;
  return parsed.data.data.map(({ id, type, state, quantization, loaded_context_length: window }) => ({
    model: id,
    task: taskOf(type),
    loaded: state === 'loaded',
    contextTokens: window ?? null,
    parallel: 1,
    sizeBytes: null,
    quantization,
  }));
}

function taskOf(type: string): Told['task'] {
  if (type === 'llm' || type === 'vlm') return 'chat';
  return type === 'embedding' || type === 'embeddings' ? 'embed' : null;
}

/** Loads models when they are asked for, and puts others out: only what is loaded is tried. */
class LmstudioDialect implements EngineDialect {
  readonly kind = 'lmstudio';
  readonly signHolds = 'each-socket';
  readonly embed = OPENAI_EMBED;
  readonly rerank = null;
  readonly #http: EngineHttp;
  #facts = new Map<string, ModelFacts>();

  constructor(http: EngineHttp) {
    this.#http = http;
  }

  async inspect(): Promise<EngineFacts> {
    const told = await this.#models();
    const facts = new Map<string, ModelFacts>();
    for (const each of told) {
      if (each.task === null) continue;
      const tried = each.task === 'embed' && each.loaded;
      const width = tried ? await tryEmbedding(this.#http, each.model) : null;
      facts.set(each.model, factsOf(each, each.task, width));
    }
    this.#facts = facts;
    const slots = Math.max(1, ...told.map(({ parallel }) => parallel));
    return { version: null, slots, models: [...facts.values()] };
  }

  async pulse(): Promise<EngineSign> {
    const told = await this.#models();
    for (const { model, loaded, contextTokens, task } of told) {
      const maxInputTokens = task === 'embed' ? contextTokens : null;
      this.#facts.get(model)?.update({ loaded, contextTokens, maxInputTokens });
    }
    const lasting = told.map(({ model, task, quantization, parallel }) =>
      JSON.stringify([model, task, quantization, parallel]),
    );
    return { state: 'ready', identity: lasting.sort().join() };
  }

  /** It tells neither. */
  async load(): Promise<Load> {
    return { running: null, queued: null };
  }

  sign(connection: Connection, signal?: AbortSignal): Promise<string | null> {
    return noSign(this.#http, connection, '/v1/models', signal === undefined ? {} : { signal });
  }

  chatEdits(head: ChatHead): readonly Edit[] {
    return streamEdits(head);
  }

  /** It has no tokeniser route. */
  counter(): null {
    return null;
  }

  async #models(): Promise<readonly Told[]> {
    const told = read(await this.#json('/api/v1/models')) ?? readOlder(await this.#json('/api/v0/models'));
    if (told === null) throw new EngineFailure('engine_invalid_response');
    return told;
  }

  async #json(path: string): Promise<unknown> {
    return jsonOf(await this.#http.probe(path, { timeoutMs: TIMEOUT_MS, maxBytes: SMALL_BYTES }));
  }
}

function factsOf(told: Told, task: 'chat' | 'embed', width: number | null): ModelFacts {
  const { model, contextTokens, loaded, sizeBytes, quantization } = told;
  const digest = createHash('sha256')
    .update(JSON.stringify([model, quantization, sizeBytes]))
    .digest('hex');
  return new ModelFacts({
    model,
    digest: digest.slice(0, 32),
    tasks: [task],
    contextTokens,
    maxInputTokens: task === 'embed' ? contextTokens : null,
    width,
    maxBatch: MAX_BATCH,
    loaded,
    sizeBytes,
  });
}
