import type { Clock } from '../../main/domain/time.ts';
import type { EngineDefinition, Identity, Load } from './adapter.ts';
import type { Connection } from './connections.ts';
import type { ChatHead, EmbedRoute, EngineDialect, EngineFacts, EngineSign } from './dialect.ts';
import { DialectAdapter } from './dialect-adapter.ts';
import type { EngineHttp, HttpAnswer } from './engine-http.ts';
import { EngineFailure } from './failure.ts';
import type { Evidence } from './identify.ts';
import { jsonOf } from './json-answer.ts';
import { ModelFacts } from './model-facts.ts';
import { countByEmbedding } from './ollama-count.ts';
import {
  Embedded,
  inputLimit,
  Processes,
  readShow,
  Show,
  type ShownModel,
  type Tag,
  Tags,
  Version,
} from './ollama-facts.ts';
import { streamEdits } from './openai-routes.ts';
import type { CountTokens } from './refusals.ts';
import { noSign } from './socket-marks.ts';
import type { Edit } from './splice.ts';
import { post } from './trials.ts';
import { readRows } from './vectors.ts';

const TIMEOUT_MS = 1500;
const DIGEST_TIMEOUT_MS = 5000;
const SMALL_BYTES = 4 * 1024 * 1024;
/** The wire carries so many models of one engine. */
const MAX_MODELS = 512;
/** `OLLAMA_NUM_PARALLEL`, which no route tells; requests above it would wait in Ollama without a limit. */
const SLOTS = 1;
const MAX_BATCH = 64;
/** A name that Ollama takes from anybody, also when it listens on loopback alone. */
const KNOWN_HOST = { host: 'localhost' } as const;

const GREETING = 'Ollama is running';

export function ollamaDefinition(clock: Clock): EngineDefinition {
  return {
    kind: 'ollama',
    identify,
    create: (http, speed) => new DialectAdapter(new OllamaDialect(http), http, speed, clock),
  };
}

/** Its greeting, which nobody else sends, and its version. Its further routes are copied by others. */
async function identify(evidence: Evidence): Promise<Identity | null> {
  let headers = {};
  let root = await evidence.get('/');
  if (root?.status === 403 && root.text === '') {
    headers = KNOWN_HOST;
    root = await evidence.get('/', headers);
  }
  if (root?.text !== GREETING) return null;
  const version = Version.safeParse((await evidence.get('/api/version', headers))?.json);
  return version.success ? { version: version.data.version, loading: false } : null;
}

/**
 * Never sends options: a request whose options differ from those of the loaded model makes Ollama load it anew, for everybody.
 * The window is what the operator configured (Modelfile, OLLAMA_CONTEXT_LENGTH).
 */
class OllamaDialect implements EngineDialect {
  readonly kind = 'ollama';
  readonly signHolds = 'each-socket';
  readonly rerank = null;
  readonly #http: EngineHttp;
  /** By digest: what a model is does not change under one. */
  readonly #shown = new Map<string, ShownModel>();
  #headers: Readonly<Record<string, string>> = {};
  #models = new Map<string, { readonly facts: ModelFacts; readonly shown: ShownModel }>();

  constructor(http: EngineHttp) {
    this.#http = http;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.#headers;
  }

  /** `/api/embed` can be told not to cut; `/v1/embeddings` always cuts, silently. */
  readonly embed: EmbedRoute = {
    path: '/api/embed',
    maxBytes: Number.POSITIVE_INFINITY,
    body: (model, inputs) =>
      Buffer.concat([
        Buffer.from(`{"model":${JSON.stringify(model)},"truncate":false,"input":`),
        inputs,
        Buffer.from('}'),
      ]),
    read: (answer, demand) => {
      const parsed = Embedded.safeParse(jsonOf(answer));
      if (!parsed.success) throw new EngineFailure('engine_invalid_response');
      return { batch: readRows(parsed.data.embeddings, demand), promptTokens: parsed.data.prompt_eval_count ?? null };
    },
  };

  async inspect(): Promise<EngineFacts> {
    const version = Version.safeParse(jsonOf(await this.#get('/api/version')));
    const tags = await this.#tags();
    if (!version.success) throw new EngineFailure('engine_invalid_response');
    const windows = await this.#windows();
    const models = new Map<string, { readonly facts: ModelFacts; readonly shown: ShownModel }>();
    for (const tag of tags.slice(0, MAX_MODELS)) {
      const shown = await this.#show(tag);
      if (shown === null || shown.tasks.length === 0) continue;
      models.set(tag.name, { facts: factsOf(tag, shown), shown });
    }
    this.#models = models;
    this.#renew(windows);
    const all = [...models.values()].map(({ facts }) => facts);
    return { version: version.data.version, slots: SLOTS, models: all };
  }

  async pulse(): Promise<EngineSign> {
    await this.#findHost();
    const tags = await this.#tags();
    this.#renew(await this.#windows());
    // The list is ordered by time of change, which a model that was used or copied may alter.
    const names = tags.map(({ name, digest }) => `${name} ${digest}`).sort();
    return { state: 'ready', identity: JSON.stringify(names) };
  }

  /** Ollama tells no queue; the agent's own count is all there is. */
  async load(): Promise<Load> {
    return { running: null, queued: null };
  }

  sign(connection: Connection, signal?: AbortSignal): Promise<string | null> {
    const options = { headers: this.#headers, ...(signal === undefined ? {} : { signal }) };
    return noSign(this.#http, connection, '/api/version', options);
  }

  /** A model pulled again under its name serves from the next request on; nothing else shows it. */
  async digestNow(connection: Connection, model: ModelFacts, signal: AbortSignal): Promise<string | null> {
    const options = { timeoutMs: DIGEST_TIMEOUT_MS, maxBytes: SMALL_BYTES, signal, headers: this.#headers };
    const tags = readTags(await this.#http.fetchOn(connection, '/api/tags', options));
    const tag = tags.find(({ name }) => name === model.report.model);
    return tag === undefined ? null : digestOf(tag);
  }

  chatEdits(head: ChatHead): readonly Edit[] {
    return [{ key: 'options', how: 'remove' }, { key: 'keep_alive', how: 'remove' }, ...streamEdits(head)];
  }

  counter(model: ModelFacts): CountTokens {
    return (texts, signal, timeoutMs) =>
      countByEmbedding(this.#http, this.embed, model, texts, { signal, timeoutMs, headers: this.#headers });
  }

  async #show(tag: Tag): Promise<ShownModel | null> {
    const key = `${tag.name} ${tag.digest}`;
    const known = this.#shown.get(key);
    if (known !== undefined) return known;
    const { status, json } = await post(this.#http, '/api/show', { model: tag.name }, { headers: this.#headers });
    const parsed = Show.safeParse(json);
    if (status !== 200 || !parsed.success) return null; // removed since it was listed
    const shown = readShow(parsed.data);
    this.#shown.set(key, shown);
    return shown;
  }

  /** Allocated window of each loaded model. */
  async #windows(): Promise<ReadonlyMap<string, number | null>> {
    const parsed = Processes.safeParse(jsonOf(await this.#get('/api/ps')));
    if (!parsed.success) throw new EngineFailure('engine_invalid_response');
    return new Map((parsed.data.models ?? []).map(({ name, context_length: tokens }) => [name, tokens || null]));
  }

  #renew(windows: ReadonlyMap<string, number | null>): void {
    for (const [name, { facts, shown }] of this.#models) {
      const loaded = facts.report.remoteHost !== null || windows.has(name);
      const allocated = windows.get(name) ?? null;
      const embeds = shown.tasks.includes('embed');
      const limit = embeds ? inputLimit(shown, allocated) : null;
      // Not loaded, and no parameter: what Ollama will allocate depends on the memory it finds then.
      const context = allocated ?? shown.contextParameter ?? (loaded ? shown.trainedTokens : null);
      facts.update({ loaded, contextTokens: embeds ? limit : context, maxInputTokens: limit });
    }
  }

  async #tags(): Promise<readonly Tag[]> {
    return readTags(await this.#get('/api/tags'));
  }

  async #findHost(): Promise<void> {
    if (this.#headers !== KNOWN_HOST && (await this.#get('/')).status === 403) this.#headers = KNOWN_HOST;
  }

  #get(path: string): Promise<HttpAnswer> {
    return this.#http.probe(path, { timeoutMs: TIMEOUT_MS, maxBytes: SMALL_BYTES, headers: this.#headers });
  }
}

function readTags(answer: HttpAnswer): readonly Tag[] {
  const parsed = Tags.safeParse(jsonOf(answer));
  if (!parsed.success) throw new EngineFailure('engine_invalid_response');
  return parsed.data.models ?? [];
}

const digestOf = ({ digest }: Tag) => (digest === '' ? null : digest);

function factsOf(tag: Tag, { tasks, width }: ShownModel): ModelFacts {
  return new ModelFacts({
    model: tag.name,
    digest: digestOf(tag),
    tasks: [...tasks],
    width,
    maxBatch: MAX_BATCH,
    tokenCounting: tasks.includes('embed') ? 'exact' : 'none',
    sizeBytes: tag.size ?? null,
    remoteHost: remoteOf(tag),
  });
}

const remoteOf = ({ remote_host: host }: Tag) => (host === undefined || host === '' ? null : host);
