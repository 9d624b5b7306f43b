import type { Clock } from '../../main/domain/time.ts';
import type { CallHead, Trailers } from '../wire/calls.ts';
import type { ModelReport } from '../wire/control.ts';
import type { IncomingCall } from '../wire/stream.ts';
import type { EngineAdapter, EngineDefinition, Identity, Inspection, Load, Pulse, ServedCall } from './adapter.ts';
import { chatTrailers, relayChat } from './chat-relay.ts';
import type { Connection } from './connections.ts';
import type { EngineHttp } from './engine-http.ts';
import { SocketReplaced } from './exchange.ts';
import { EngineFailure, failureOf } from './failure.ts';
import type { Evidence } from './identify.ts';
import { jsonOf, promptTokensOf } from './json-answer.ts';
import { errorType, gauge, identityOf, Models, Props, SlotList } from './llamacpp-facts.ts';
import { LlamacppMarks } from './llamacpp-marks.ts';
import { inspectModel, type ModelFacts } from './llamacpp-models.ts';
import { countTokens, refused, refusedInputs } from './llamacpp-refusals.ts';
import { readScores } from './scores.ts';
import type { SpeedSignals } from './speed.ts';
import { type Edit, splice } from './splice.ts';
import { isRecord } from './sse.ts';
import { readTexts, sendVectors } from './texts.ts';
import { readVectors } from './vectors.ts';

const PULSE_TIMEOUT_MS = 1500;
/** `/slots` waits for the step that is being computed; a long prompt on a slow machine takes its time. */
const LOAD_TIMEOUT_MS = 5000;
const SMALL_BYTES = 4 * 1024 * 1024;
const AS_STREAM: readonly Edit[] = [
  { key: 'stream', how: 'set', json: 'true' },
  { key: 'stream_options', how: 'set', json: '{"include_usage":true}' },
];
/** 256 vectors 8,192 wide as base64, with room. */
const VECTORS_BYTES = 64 * 1024 * 1024;

export function llamacppDefinition(clock: Clock): EngineDefinition {
  return {
    kind: 'llama.cpp',
    identify,
    create: (http, speed) => new LlamacppAdapter(http, speed, clock),
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

class LlamacppAdapter implements EngineAdapter {
  readonly kind = 'llama.cpp';
  readonly #http: EngineHttp;
  readonly #speed: SpeedSignals;
  readonly #clock: Clock;
  readonly #marks: LlamacppMarks;
  #props: Props | null = null;
  #models = new Map<string, ModelFacts>();
  #mark: string | null = null;

  constructor(http: EngineHttp, speed: SpeedSignals, clock: Clock) {
    this.#http = http;
    this.#speed = speed;
    this.#clock = clock;
    this.#marks = new LlamacppMarks(http);
  }

  get processMark(): string | null {
    return this.#mark;
  }

  get models(): readonly ModelReport[] {
    return [...this.#models.values()].map((fact) => ({ ...fact.report, ...this.#speed.of(fact.report.model) }));
  }

  async inspect(): Promise<Inspection> {
    const props = Props.safeParse(await this.#json('/props', PULSE_TIMEOUT_MS));
    const models = Models.safeParse(await this.#json('/v1/models', PULSE_TIMEOUT_MS));
    if (!props.success || !models.success) throw new EngineFailure('engine_invalid_response');
    const connection = this.#http.take();
    try {
      this.#mark = (await this.#marks.read(connection)).mark;
    } finally {
      this.#http.giveBack(connection);
    }
    const facts = new Map<string, ModelFacts>();
    for (const model of models.data.data) {
      // Router mode: asking a model that is not loaded would load it and push another out.
      if (model.status !== undefined && model.status.value !== 'loaded') continue;
      facts.set(model.id, await inspectModel(this.#http, props.data, model));
    }
    this.#props = props.data;
    this.#models = facts;
    return { version: props.data.build_info, slots: Math.max(1, props.data.total_slots) };
  }

  async pulse(): Promise<Pulse> {
    const answer = await this.#http.probe('/props', { timeoutMs: PULSE_TIMEOUT_MS, maxBytes: SMALL_BYTES });
    if (answer.status === 503) return { state: 'loading', changed: true };
    const props = Props.safeParse(jsonOf(answer));
    if (!props.success) throw new EngineFailure('engine_invalid_response');
    return { state: 'ready', changed: this.#props === null || identityOf(props.data) !== identityOf(this.#props) };
  }

  async load(): Promise<Load> {
    const slots = SlotList.safeParse(await this.#json('/slots', LOAD_TIMEOUT_MS));
    const running = slots.success ? slots.data.filter((slot) => slot.is_processing).length : null;
    if (this.#props?.endpoint_metrics !== true) return { running, queued: null };
    const metrics = await this.#http.probe('/metrics', { timeoutMs: LOAD_TIMEOUT_MS, maxBytes: SMALL_BYTES });
    return { running, queued: gauge(metrics.body.toString('utf8'), 'llamacpp:requests_deferred ') };
  }

  async serve(call: IncomingCall): Promise<ServedCall> {
    try {
      call.end(await this.#serve(call));
      return 'success';
    } catch (error) {
      if (call.signal.aborted) return 'other';
      const failure = failureOf(error);
      call.fail(failure);
      return failure.blame === 'engine' || failure.blame === 'transport' ? 'engine-failed' : 'other';
    }
  }

  #serve(call: IncomingCall): Promise<Trailers> {
    const { head } = call;
    const model = this.#models.get(head.model);
    if (model === undefined) throw new EngineFailure('model_missing');
    if (head.op !== 'tokenize' && !model.report.tasks.includes(head.op)) throw new EngineFailure('unsupported_task');
    switch (head.op) {
      case 'chat':
        return this.#chat(call, head, model);
      case 'embed':
        return this.#embed(call, head, model);
      case 'rerank':
        return this.#rerank(call, head, model);
      case 'tokenize':
        return this.#tokenize(call, head, model);
    }
  }

  async #chat(call: IncomingCall, head: CallHead & { op: 'chat' }, model: ModelFacts): Promise<Trailers> {
    const { stream, wantsUsage, path, firstByteMs, betweenTokensMs } = head;
    // A stream is ordered as the client ordered it: no stream_options are added, because the last chunk's timings tell the
    // tokens. A whole answer is ordered as a stream, which is what the engine stops when the connection closes.
    const body = splice(call.body, [
      { key: 'model', how: 'set', json: JSON.stringify(head.model) },
      { key: 'switchyard', how: 'remove' },
      ...(stream ? [] : AS_STREAM),
    ]);
    if (body === null) throw new EngineFailure('engine_refused');
    const exchange = { path, body, stream, keepUsage: wantsUsage, firstByteMs, betweenMs: betweenTokensMs };
    const outcome = await relayChat(this.#http, exchange, call, this.#clock, (status, answer, headers) =>
      refused(status, answer, headers, 'context_too_long'),
    );
    if (outcome.firstByteMs !== null) this.#speed.firstByte(head.model, outcome.firstByteMs);
    if (outcome.tokensPerSecond !== null && outcome.usage !== null) {
      const { completionTokens } = outcome.usage;
      this.#speed.tokens(head.model, completionTokens, (completionTokens / outcome.tokensPerSecond) * 1000);
    }
    return chatTrailers(outcome, this.#fingerprint(model, this.#mark));
  }

  async #embed(call: IncomingCall, head: CallHead & { op: 'embed' }, model: ModelFacts): Promise<Trailers> {
    const startedMs = this.#clock.nowMs();
    const prefix = `{"model":${JSON.stringify(head.model)},"encoding_format":"base64","input":`;
    const body = Buffer.concat([Buffer.from(prefix), call.body, Buffer.from('}')]);
    const connection = this.#http.take();
    try {
      const { answer, mark } = await this.#embedOn(connection, body, call, head);
      if (answer.status !== 200) throw await refusedInputs(this.#http, answer, call, model);
      const parsed = jsonOf(answer);
      if (isRecord(parsed) && parsed.error !== undefined)
        throw new EngineFailure('engine_error', { engineStatus: 200 });
      const batch = readVectors(parsed, head);
      const engineMs = this.#clock.nowMs() - startedMs;
      const promptTokens = promptTokensOf(parsed);
      this.#speed.tokens(head.model, promptTokens ?? 0, engineMs);
      await sendVectors(call, batch);
      return {
        usage: promptTokens === null ? null : { promptTokens, completionTokens: 0, exact: true, costUsd: null },
        fingerprint: this.#fingerprint(model, mark),
        engineMs,
        firstByteMs: null,
        tokensPerSecond: null,
        finished: true,
      };
    } finally {
      this.#http.giveBack(connection);
    }
  }

  /**
   * The process is known before it sees a text, and is still the same when its vectors have come: behind a proxy the engine
   * can change without the connection noticing.
   */
  async #embedOn(connection: Connection, body: Buffer, call: IncomingCall, head: CallHead & { op: 'embed' }) {
    for (let attempt = 1; ; attempt++) {
      const before = await this.#marks.of(connection, call.signal);
      if (head.processMark !== null && head.processMark !== before.mark) throw new EngineFailure('fingerprint_changed');
      try {
        const answer = await this.#http.fetchOn(connection, '/v1/embeddings', {
          body,
          timeoutMs: head.timeoutMs,
          maxBytes: VECTORS_BYTES,
          signal: call.signal,
          generation: before.generation,
        });
        const after = await this.#marks.read(connection, call.signal);
        if (after.mark !== before.mark) throw new EngineFailure('fingerprint_changed');
        return { answer, mark: after.mark };
      } catch (error) {
        // The kept socket was closed before a text went out; the new one is looked at first, once.
        if (!(error instanceof SocketReplaced) || attempt > 1) throw error;
      }
    }
  }

  async #rerank(call: IncomingCall, head: CallHead & { op: 'rerank' }, model: ModelFacts): Promise<Trailers> {
    const startedMs = this.#clock.nowMs();
    const body = splice(call.body, [{ key: 'model', how: 'set', json: JSON.stringify(head.model) }]);
    if (body === null) throw new EngineFailure('engine_refused');
    const answer = await this.#http.fetch('/v1/rerank', {
      body,
      timeoutMs: head.timeoutMs,
      maxBytes: SMALL_BYTES,
      signal: call.signal,
    });
    if (answer.status !== 200) throw await refusedInputs(this.#http, answer, call, model);
    const parsed = jsonOf(answer);
    const scores = readScores(parsed, head.count);
    const engineMs = this.#clock.nowMs() - startedMs;
    const promptTokens = promptTokensOf(parsed);
    this.#speed.tokens(head.model, promptTokens ?? 0, engineMs);
    call.respond({ status: 200, contentType: 'application/json', count: head.count, width: null });
    call.write(Buffer.from(JSON.stringify({ scores })));
    return {
      usage: promptTokens === null ? null : { promptTokens, completionTokens: 0, exact: true, costUsd: null },
      fingerprint: this.#fingerprint(model, this.#mark),
      engineMs,
      firstByteMs: null,
      tokensPerSecond: null,
      finished: true,
    };
  }

  async #tokenize(call: IncomingCall, head: CallHead & { op: 'tokenize' }, model: ModelFacts): Promise<Trailers> {
    const startedMs = this.#clock.nowMs();
    const tokens = await countTokens(this.#http, readTexts(call.body), call.signal, head.timeoutMs);
    call.respond({ status: 200, contentType: 'application/json', count: tokens.length, width: null });
    call.write(Buffer.from(JSON.stringify({ tokens })));
    return {
      usage: null,
      fingerprint: this.#fingerprint(model, this.#mark),
      engineMs: this.#clock.nowMs() - startedMs,
      firstByteMs: null,
      tokensPerSecond: null,
      finished: true,
    };
  }

  #fingerprint(model: ModelFacts, processMark: string | null): Trailers['fingerprint'] {
    return {
      engine: this.kind,
      version: this.#props?.build_info ?? null,
      modelDigest: model.report.digest,
      upstream: null,
      pin: null,
      processMark,
    };
  }

  async #json(path: string, timeoutMs: number): Promise<unknown> {
    return jsonOf(await this.#http.probe(path, { timeoutMs, maxBytes: SMALL_BYTES }));
  }
}
