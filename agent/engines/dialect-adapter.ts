import { randomBytes } from 'node:crypto';
import type { Clock } from '../../main/domain/time.ts';
import type { CallHead, Trailers } from '../wire/calls.ts';
import type { ModelReport } from '../wire/control.ts';
import type { IncomingCall } from '../wire/stream.ts';
import type { EngineAdapter, EngineKind, Inspection, Load, Pulse, ServedCall } from './adapter.ts';
import { scoresBytes, vectorsBytes } from './answer-bounds.ts';
import { chatTrailers, relayChat } from './chat-relay.ts';
import type { Connection } from './connections.ts';
import { within } from './deadline.ts';
import type { ChatHead, EmbedAnswer, EmbedRoute, EngineDialect } from './dialect.ts';
import type { EngineHttp, FetchOptions, HttpAnswer } from './engine-http.ts';
import { SocketReplaced } from './exchange.ts';
import { EngineFailure, failureOf } from './failure.ts';
import { jsonOf } from './json-answer.ts';
import type { ModelFacts } from './model-facts.ts';
import { refused, refusedInputs } from './refusals.ts';
import { type EmbedPart, OtherVectors, Sentinels } from './sentinel.ts';
import { type MarkedSocket, SocketMarks } from './socket-marks.ts';
import type { SpeedSignals } from './speed.ts';
import { splice } from './splice.ts';
import { isRecord } from './sse.ts';
import { type InputPart, inputParts, readRanked, readTexts, sendVectors } from './texts.ts';
import { joinBatches, type VectorDemand } from './vectors.ts';

type HeadOf<Op extends CallHead['op']> = CallHead & { readonly op: Op };

/** A call, and the signal of what is done for it: fires at its end by time, too. */
interface BoundCall {
  readonly call: IncomingCall;
  readonly signal: AbortSignal;
}

/** An engine served over HTTP, whatever its dialect: marks, models, and the way of each kind of call. */
export class DialectAdapter implements EngineAdapter {
  readonly kind: EngineKind;
  readonly #dialect: EngineDialect;
  readonly #http: EngineHttp;
  readonly #speed: SpeedSignals;
  readonly #clock: Clock;
  readonly #marks: SocketMarks;
  #models = new Map<string, ModelFacts>();
  #version: string | null = null;
  /** As inspected; null: whatever answers there now has to be inspected first. */
  #identity: string | null = null;
  #process: string | null = null;
  #mark: string | null = null;
  /** Chain of the inspected process; null: its mark is its own. */
  #chain: string | null = null;
  /** Neither pid nor sign: whoever answers is known by the vectors of known texts. */
  #isUnseen = false;
  readonly #sentinels = new Sentinels();
  #cancelBeat: () => void = () => {};

  constructor(dialect: EngineDialect, http: EngineHttp, speed: SpeedSignals, clock: Clock) {
    this.kind = dialect.kind;
    this.#dialect = dialect;
    this.#http = http;
    this.#speed = speed;
    this.#clock = clock;
    const token = randomBytes(6).toString('hex');
    this.#marks = new SocketMarks(http, (connection, signal) => dialect.sign(connection, signal), token);
  }

  get processMark(): string | null {
    return this.#mark;
  }

  get models(): readonly ModelReport[] {
    return [...this.#models.values()].map(({ report }) => ({
      ...report,
      ...this.#speed.of(report.model),
      // One place of each batch is the sentinel's.
      maxBatch: this.#isUnseen ? Math.max(1, report.maxBatch - 1) : report.maxBatch,
    }));
  }

  async inspect(): Promise<Inspection> {
    // The sign is read first: what changes while the rest is read shows at the next look.
    const { identity } = await this.#dialect.pulse();
    const { version, slots, models } = await this.#dialect.inspect();
    const embeds = models.some(({ report }) => report.tasks.includes('embed'));
    const { process, mark, chain } = await this.#marks.now(embeds);
    this.#identity = identity;
    this.#version = version;
    this.#process = process;
    this.#mark = mark;
    this.#chain = chain;
    this.#isUnseen = isUnseen({ process, chain });
    this.#models = new Map(models.map((facts) => [facts.report.model, facts]));
    return { version, slots: Math.max(1, slots) };
  }

  async pulse(): Promise<Pulse> {
    // Whether it answers or not: a witness that waits for its answer keeps its connection, one that idles loses it.
    this.#marks.beat();
    this.#cancelBeat();
    this.#cancelBeat = this.#clock.after(BEAT_MS, () => this.#marks.beat());
    const { state, identity } = await this.#dialect.pulse();
    const process = await this.#http.probedProcess;
    const moved = process !== null && this.#process !== null && process !== this.#process;
    const ended = this.#chain !== null && !this.#marks.isCurrent(this.#chain);
    return { state, changed: moved || ended || identity !== this.#identity };
  }

  load(): Promise<Load> {
    return this.#dialect.load();
  }

  async serve(call: IncomingCall): Promise<ServedCall> {
    try {
      call.end(await this.#serve(call));
      return 'success';
    } catch (error) {
      if (call.signal.aborted) return 'other';
      const failure = failureOf(error);
      call.fail(failure);
      if (failure.blame === 'fingerprint') return this.#identity === null ? 'moved' : 'other';
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

  async #chat(call: IncomingCall, head: ChatHead, model: ModelFacts): Promise<Trailers> {
    const { stream, wantsUsage, path, firstByteMs, betweenTokensMs } = head;
    const { headers = {} } = this.#dialect;
    const body = splice(call.body, [
      { key: 'model', how: 'set', json: JSON.stringify(head.model) },
      { key: 'switchyard', how: 'remove' },
      ...this.#dialect.chatEdits(head),
    ]);
    if (body === null) throw new EngineFailure('engine_refused');
    const exchange = { path, body, stream, keepUsage: wantsUsage, firstByteMs, betweenMs: betweenTokensMs, headers };
    const outcome = await relayChat(this.#http, exchange, call, this.#clock, (status, answer, answered) =>
      refused(status, answer, answered, 'context_too_long', this.kind),
    );
    if (outcome.firstByteMs !== null) this.#speed.firstByte(head.model, outcome.firstByteMs);
    if (outcome.tokensPerSecond !== null && outcome.usage !== null) {
      const { completionTokens } = outcome.usage;
      this.#speed.tokens(head.model, completionTokens, (completionTokens / outcome.tokensPerSecond) * 1000);
    }
    return chatTrailers(outcome, this.#fingerprint(model, this.#mark));
  }

  async #embed(call: IncomingCall, head: HeadOf<'embed'>, model: ModelFacts): Promise<Trailers> {
    const route = this.#dialect.embed;
    if (route === null) throw new EngineFailure('unsupported_task');
    const startedMs = this.#clock.nowMs();
    const connection = this.#http.take();
    try {
      const parts = inputParts(call.body, head.count, route.maxBytes);
      const { answers, mark } = await within(this.#clock, head.timeoutMs, call.signal, (signal) =>
        this.#embedOn(connection, route, parts, { call, signal }, head, model),
      );
      const engineMs = this.#clock.nowMs() - startedMs;
      const promptTokens = total(answers.map((answer) => answer.promptTokens));
      this.#speed.tokens(head.model, promptTokens ?? 0, engineMs);
      await sendVectors(call, joinBatches(answers.map(({ batch }) => batch)));
      return this.#finished(promptTokens, engineMs, this.#fingerprint(model, mark));
    } finally {
      this.#http.giveBack(connection);
    }
  }

  /**
   * The process is known before it sees a text, and is still the same when its vectors have come: behind a proxy the engine
   * can change without the connection noticing.
   */
  async #embedOn(
    connection: Connection,
    route: EmbedRoute,
    parts: readonly InputPart[],
    { call, signal }: BoundCall,
    head: HeadOf<'embed'>,
    model: ModelFacts,
  ): Promise<{ readonly answers: readonly EmbedAnswer[]; readonly mark: string | null }> {
    for (let attempt = 1; ; attempt++) {
      const before = await this.#marks.of(connection, signal);
      // A caller may know an older process than the one that was inspected; that says nothing of the engine.
      if (before.mark !== this.#mark) this.#identity = null;
      if (head.processMark !== null && head.processMark !== before.mark) throw new EngineFailure('fingerprint_changed');
      const { generation, chain } = before;
      const embed = async (
        { inputs, count }: InputPart,
        cut: number | null,
        refused: Refused,
      ): Promise<EmbedAnswer> => {
        const body = route.body(head.model, inputs);
        const maxBytes = vectorsBytes(count, head.width ?? model.report.width);
        const options = { body, timeoutMs: head.timeoutMs, maxBytes, signal, generation };
        const answer = await this.#http.fetchOn(connection, route.path, { ...options, ...this.#headers });
        if (answer.status !== 200) throw await refused(answer);
        return route.read(this.#noErrorIn(answer), { ...demandOf(head, count), cut });
      };
      const own: EmbedPart = (part) => embed(part, head.cut, (answer) => this.#refused(answer, call, model));
      const known: EmbedPart = (part) => embed(part, null, sentinelRefused);
      try {
        const answers: EmbedAnswer[] = [];
        const { maxBatch } = model.report;
        // A forwarder's pid says nothing, and one that is pointed elsewhere while the engine before lives on leaves the witnesses
        // with that one: where a connection leads shows in what it gives. For each request anew only behind what is unseen.
        const checked =
          chain === null
            ? null
            : await this.#sentinels.check(connection, chain, { model: head.model, maxBatch }, known);
        const watch = isUnseen(before) ? checked : null;
        for (const part of parts) answers.push(await (watch === null ? own(part) : watch(part, own)));
        await this.#isStill(before.mark, connection, model, signal);
        return { answers, mark: before.mark };
      } catch (error) {
        if (error instanceof OtherVectors) {
          this.#marks.endChain();
          this.#identity = null;
        }
        // The kept socket was closed before a text went out; the new one is looked at first, once.
        if (!(error instanceof SocketReplaced) || attempt > 1) throw error;
      }
    }
  }

  /** @throws EngineFailure `fingerprint_changed`: the vectors that have come may be anybody's */
  async #isStill(mark: string | null, connection: Connection, model: ModelFacts, signal: AbortSignal): Promise<void> {
    const { signHolds } = this.#dialect;
    const now = await (signHolds === 'each-answer'
      ? this.#marks.read(connection, signal)
      : this.#marks.of(connection, signal));
    const digest = await this.#dialect.digestNow?.(connection, model, signal);
    const otherDigest = digest !== undefined && digest !== model.report.digest;
    if (now.mark === mark && !otherDigest) return;
    this.#identity = null;
    throw new EngineFailure('fingerprint_changed');
  }

  async #rerank(call: IncomingCall, head: HeadOf<'rerank'>, model: ModelFacts): Promise<Trailers> {
    const route = this.#dialect.rerank;
    if (route === null) throw new EngineFailure('unsupported_task');
    const startedMs = this.#clock.nowMs();
    const { query, documents } = readRanked(call.body);
    const scores: number[] = [];
    const tokens: (number | null)[] = [];
    const step = Math.min(route.maxDocuments, Math.max(1, documents.length));
    const { timeoutMs } = head;
    await within(this.#clock, timeoutMs, call.signal, async (signal) => {
      for (let from = 0; from < documents.length; from += step) {
        const some = documents.slice(from, from + step);
        const body = route.body(head.model, query, some);
        const options = { body, timeoutMs, maxBytes: scoresBytes(some.length, body.length), signal };
        const answer = await this.#http.fetch(route.path, { ...options, ...this.#headers });
        if (answer.status !== 200) throw await this.#refused(answer, call, model);
        const part = route.read(this.#noErrorIn(answer), some.length);
        scores.push(...part.scores);
        tokens.push(part.promptTokens);
      }
    });
    if (scores.length !== head.count) throw new EngineFailure('engine_refused');
    const engineMs = this.#clock.nowMs() - startedMs;
    const promptTokens = total(tokens);
    this.#speed.tokens(head.model, promptTokens ?? 0, engineMs);
    this.#answerJson(call, head.count, { scores });
    return this.#finished(promptTokens, engineMs, this.#fingerprint(model, this.#mark));
  }

  async #tokenize(call: IncomingCall, head: HeadOf<'tokenize'>, model: ModelFacts): Promise<Trailers> {
    const count = this.#dialect.counter(model);
    if (count === null) throw new EngineFailure('unsupported_task');
    const startedMs = this.#clock.nowMs();
    const tokens = await within(this.#clock, head.timeoutMs, call.signal, (signal) =>
      count(readTexts(call.body), signal, head.timeoutMs),
    );
    this.#answerJson(call, tokens.length, { tokens });
    return this.#finished(null, this.#clock.nowMs() - startedMs, this.#fingerprint(model, this.#mark));
  }

  get #headers(): Pick<FetchOptions, 'headers'> {
    const { headers } = this.#dialect;
    return headers === undefined ? {} : { headers };
  }

  #refused(answer: HttpAnswer, call: IncomingCall, model: ModelFacts): Promise<EngineFailure> {
    return refusedInputs(answer, call, model, this.#dialect.counter(model), this.kind);
  }

  /** A 200 may be an error all the same. */
  #noErrorIn(answer: HttpAnswer): HttpAnswer {
    // Only an error is short; a megabyte of vectors is not parsed twice.
    if (answer.body.length > SHORT_BYTES) return answer;
    const parsed = jsonOf(answer);
    if (isRecord(parsed) && parsed.error !== undefined && parsed.error !== null) {
      throw new EngineFailure('engine_error', { engineStatus: 200 });
    }
    return answer;
  }

  #answerJson(call: IncomingCall, count: number, body: object): void {
    call.respond({ status: 200, contentType: 'application/json', count, width: null });
    call.write(Buffer.from(JSON.stringify(body)));
  }

  #finished(promptTokens: number | null, engineMs: number, fingerprint: Trailers['fingerprint']): Trailers {
    const usage = promptTokens === null ? null : { promptTokens, completionTokens: 0, exact: true, costUsd: null };
    return { usage, fingerprint, engineMs, firstByteMs: null, tokensPerSecond: null, finished: true };
  }

  #fingerprint(model: ModelFacts, processMark: string | null): Trailers['fingerprint'] {
    const modelDigest = model.report.digest;
    return { engine: this.kind, version: this.#version, modelDigest, upstream: null, pin: null, processMark };
  }
}

const SHORT_BYTES = 4096;
/** Once between two looks: some servers end a connection that idles for two seconds. */
const BEAT_MS = 1000;

type Refused = (answer: HttpAnswer) => Promise<EngineFailure> | EngineFailure;

/** Neither its process nor a sign of its own is to be had. */
function isUnseen({ process, chain }: Pick<MarkedSocket, 'process' | 'chain'>): boolean {
  return process === null && chain !== null;
}

/** Of a text that is not the caller's. */
function sentinelRefused({ status }: HttpAnswer): EngineFailure {
  return new EngineFailure(status === 429 || status === 503 ? 'engine_busy' : 'engine_error', { engineStatus: status });
}

function demandOf(head: HeadOf<'embed'>, count: number): VectorDemand {
  const { width, cut, normalise } = head;
  return { count, width, cut, normalise };
}

/** Null when any part did not say. */
function total(counts: readonly (number | null)[]): number | null {
  return counts.reduce<number | null>((sum, count) => (sum === null || count === null ? null : sum + count), 0);
}
