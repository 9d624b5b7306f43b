import type { Clock } from '../../main/domain/time.ts';
import type { EngineDefinition, Identity, Load } from './adapter.ts';
import type { Connection } from './connections.ts';
import type { ChatHead, EngineDialect, EngineFacts, EngineSign } from './dialect.ts';
import { DialectAdapter } from './dialect-adapter.ts';
import type { EngineHttp } from './engine-http.ts';
import { EngineFailure } from './failure.ts';
import type { Evidence } from './identify.ts';
import { jsonOf } from './json-answer.ts';
import { errorType, identityOf, Models, Props, SlotList } from './llamacpp-facts.ts';
import { countTokens, inspectModel } from './llamacpp-models.ts';
import type { ModelFacts } from './model-facts.ts';
import { JINA_RERANK, OPENAI_EMBED, streamEdits } from './openai-routes.ts';
import { sumOf } from './prometheus.ts';
import type { CountTokens } from './refusals.ts';
import type { Edit } from './splice.ts';

const PULSE_TIMEOUT_MS = 1500;
/** `/slots` waits for the step that is being computed; a long prompt on a slow machine takes its time. */
const LOAD_TIMEOUT_MS = 5000;
const SMALL_BYTES = 4 * 1024 * 1024;

export function llamacppDefinition(clock: Clock): EngineDefinition {
  return {
    kind: 'llama.cpp',
    identify,
    create: (http, speed) => new DialectAdapter(new LlamacppDialect(http), http, speed, clock),
  };
}

/**
 * The `Server` header and two members of `/props` that nobody imitates. Its Ollama-like routes are never asked: they are
 * copies, and Ollama itself answers `/` with its name.
 */
async function identify(evidence: Evidence): Promise<Identity | null> {
  const root = await evidence.get('/');
  if (root?.text === 'Ollama is running') return null;
  const health = await evidence.get('/health');
  const named = health?.server === 'llama.cpp';
  if (named && health.status === 503 && errorType(health.json) === 'unavailable_error')
    return { version: null, loading: true };
  const props = await evidence.get('/props');
  const parsed = Props.safeParse(props?.json);
  if (parsed.success) return { version: parsed.data.build_info, loading: false };
  const guarded = ['authentication_error', 'not_supported_error'].includes(errorType(props?.json));
  return named && guarded ? { version: null, loading: false } : null;
}

class LlamacppDialect implements EngineDialect {
  readonly kind = 'llama.cpp';
  readonly signHolds = 'each-answer';
  readonly embed = OPENAI_EMBED;
  readonly rerank = JINA_RERANK;
  readonly #http: EngineHttp;
  #hasMetrics = false;

  constructor(http: EngineHttp) {
    this.#http = http;
  }

  async inspect(): Promise<EngineFacts> {
    const props = Props.safeParse(await this.#json('/props', PULSE_TIMEOUT_MS));
    const models = Models.safeParse(await this.#json('/v1/models', PULSE_TIMEOUT_MS));
    if (!props.success || !models.success) throw new EngineFailure('engine_invalid_response');
    this.#hasMetrics = props.data.endpoint_metrics === true;
    const facts: ModelFacts[] = [];
    for (const model of models.data.data) {
      // Router mode: asking a model that is not loaded would load it and push another out.
      if (model.status !== undefined && model.status.value !== 'loaded') continue;
      facts.push(await inspectModel(this.#http, props.data, model));
    }
    return { version: props.data.build_info, slots: props.data.total_slots, models: facts };
  }

  async pulse(): Promise<EngineSign> {
    const answer = await this.#http.probe('/props', { timeoutMs: PULSE_TIMEOUT_MS, maxBytes: SMALL_BYTES });
    if (answer.status === 503) return { state: 'loading', identity: '' };
    const props = Props.safeParse(jsonOf(answer));
    if (!props.success) throw new EngineFailure('engine_invalid_response');
    return { state: 'ready', identity: identityOf(props.data) };
  }

  async load(): Promise<Load> {
    const slots = SlotList.safeParse(await this.#json('/slots', LOAD_TIMEOUT_MS));
    const running = slots.success ? slots.data.filter((slot) => slot.is_processing).length : null;
    if (!this.#hasMetrics) return { running, queued: null };
    const metrics = await this.#http.probe('/metrics', { timeoutMs: LOAD_TIMEOUT_MS, maxBytes: SMALL_BYTES });
    return { running, queued: sumOf(metrics.body.toString('utf8'), 'llamacpp:requests_deferred') };
  }

  /** `media_marker` is drawn by each process at random, and is seen through a proxy too. */
  async sign(connection: Connection, signal?: AbortSignal): Promise<string | null> {
    const answer = await this.#http.fetchOn(connection, '/props', {
      timeoutMs: LOAD_TIMEOUT_MS,
      maxBytes: SMALL_BYTES,
      ...(signal === undefined ? {} : { signal }),
    });
    if (answer.status === 503) {
      throw new EngineFailure('engine_busy', { engineStatus: 503 }, 'The model is being loaded.');
    }
    const props = Props.safeParse(jsonOf(answer));
    if (!props.success) throw new EngineFailure('engine_invalid_response');
    return props.data.media_marker ?? null;
  }

  /** A stream needs no `stream_options`: the timings of its last chunk tell the tokens, so it stays as the client ordered it. */
  chatEdits(head: ChatHead): readonly Edit[] {
    return head.stream ? [] : streamEdits(head);
  }

  counter(): CountTokens {
    return (texts, signal, timeoutMs) => countTokens(this.#http, texts, signal, timeoutMs);
  }

  async #json(path: string, timeoutMs: number): Promise<unknown> {
    return jsonOf(await this.#http.probe(path, { timeoutMs, maxBytes: SMALL_BYTES }));
  }
}
