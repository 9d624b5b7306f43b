import type { CallFailure } from '../../agent/wire/calls.ts';
import type { CallSize } from '../budget/spend.ts';
import type { SwitchyardError } from '../domain/errors.ts';
import type { RequestId, SpaceId } from '../domain/ids.ts';
import type { AnswerSink, EmbedAnswer, RequestContext, Route, WorkUsage } from '../domain/work.ts';
import type { Gate } from '../gate/gate-api.ts';
import type { Space } from '../gate/space.ts';
import type { AttemptId, RouterItem } from '../router/types.ts';
import { areUsable, callWhole, readVectors, transportFailure } from './agent-calls.ts';
import type { DispatchDecision, Job, JobHost } from './job.ts';
import { outcomeOf } from './outcomes.ts';
import { estimateTokens } from './rerank-job.ts';

const encoder = new TextEncoder();

/** Inputs of one cloud call at most, as the cloud's providers state it. */
const MAX_CLOUD_BATCH = 96;

/** An embedding request whose texts fit its space. */
export interface FittedEmbedWork {
  readonly context: RequestContext;
  readonly texts: readonly string[];
  /** Per text; null: short enough to need no count. */
  readonly tokens: readonly (number | null)[];
  readonly space: Space;
  /** Width asked for; the space's own unless `dimensions` cut it. */
  readonly width: number;
}

/** The name under which providers that passed the gate cut to a width are eligible for it. */
export function cutSpace(space: SpaceId, width: number): SpaceId {
  return `${space}/${width}` as SpaceId;
}

/** What an embedding request asks the gate around each chunk. */
export type EmbedGuard = Pick<Gate, 'admit' | 'pending' | 'record' | 'verdict'>;

/** An embedding request: any number of chunks at once, answers put where their inputs were. */
export class EmbedJob implements Job {
  readonly context: RequestContext;
  readonly item: RouterItem;
  readonly size: CallSize;
  readonly #work: FittedEmbedWork;
  readonly #sink: AnswerSink<EmbedAnswer>;
  readonly #host: JobHost;
  readonly #guard: EmbedGuard;
  readonly #timeoutMs: number;
  readonly #nowMs: () => number;
  readonly #running = new Map<AttemptId, AbortController>();
  /** Null until the first answer, which may be all of it. */
  #vectors: Float32Array | null = null;
  #promptTokens = 0;
  #completion = { exact: true, costUsd: null as number | null };
  firstByteAtMs: number | null = null;
  route: Route | null = null;

  constructor(
    work: FittedEmbedWork,
    sink: AnswerSink<EmbedAnswer>,
    host: JobHost,
    guard: EmbedGuard,
    timeoutMs: number,
    nowMs: () => number,
  ) {
    const { context, texts, tokens, space, width } = work;
    this.context = context;
    this.#work = work;
    this.#sink = sink;
    this.#host = host;
    this.#guard = guard;
    this.#timeoutMs = timeoutMs;
    this.#nowMs = nowMs;
    const bytes = texts.map((text) => Buffer.byteLength(text));
    const largest = MAX_CLOUD_BATCH * bytes.reduce((most, each) => Math.max(most, each), 0);
    const whole = bytes.reduce((sum, each) => sum + each, 0);
    this.size = { promptBytes: Math.min(whole, largest), maxOutputTokens: 0, documents: 0 };
    const estimates = texts.map((text, at) => tokens[at] ?? estimateTokens(text));
    this.item = {
      context,
      task: 'embed',
      units: texts.length,
      // The space's limit has been applied; what an engine calls its context window is that same limit.
      neededTokens: 0,
      costTokens: Math.max(
        1,
        estimates.reduce((sum, each) => sum + each, 0),
      ),
      conversation: null,
      space: { id: width === space.width ? space.id : cutSpace(space.id, width), regime: space.regime },
    };
  }

  get usage(): WorkUsage | null {
    return { promptTokens: this.#promptTokens, completionTokens: 0, ...this.#completion };
  }

  start(decision: DispatchDecision, route: Route): void {
    const { attempt, provider, range } = decision;
    if (!range) throw new Error('An embedding attempt has a range.');
    const { space, width, texts } = this.#work;
    const controller = new AbortController();
    this.#running.set(attempt, controller);
    const slice = texts.slice(range.start, range.start + range.count);
    callWhole(
      this.#host.opener(decision, null),
      {
        op: 'embed',
        engine: provider.engine,
        model: provider.model,
        count: slice.length,
        width: space.width,
        cut: width === space.width ? null : width,
        normalise: space.normalise,
        // The process that passed, not the one a heartbeat speaks of: the agent refuses before a text is seen by another.
        processMark: this.#guard.verdict(provider.id, space.id)?.fingerprint?.processMark ?? null,
        timeoutMs: this.#timeoutMs,
      },
      encoder.encode(JSON.stringify(slice)),
      slice.length * width * 4,
      controller.signal,
    ).then((answer) => {
      if (!this.#running.delete(attempt)) return;
      if (answer.failure !== null) {
        this.#host.ended(attempt, outcomeOf(answer.failure), answer.failure);
        return;
      }
      const rows = readVectors(answer.head, answer.body, slice.length);
      const fits = rows !== null && rows.width === width;
      if (!fits || !areUsable(rows)) {
        const failure: CallFailure = {
          ...transportFailure(
            fits
              ? 'The engine gave vectors that are not finite or have no length.'
              : 'The engine gave another number or width of vectors than asked for.',
          ),
          blame: 'engine',
          code: 'engine_invalid_response',
        };
        this.#host.ended(attempt, outcomeOf(failure), failure);
        return;
      }
      // The last look before a vector counts: the process that answered must be the one that was checked.
      if (!this.#guard.admit(provider.id, space.id, answer.trailers.fingerprint)) {
        // Where nothing is checked anew (its space was retired, its model has left the role) no verdict would ever lift the router's
        // doubt, which concerns every space: the gate's own word keeps the provider out of this one.
        const isDoubted = this.#guard.pending(provider.id, space.id);
        this.#host.ended(attempt, { kind: isDoubted ? 'fingerprint' : 'ignored' }, null);
        return;
      }
      const { usage } = answer.trailers;
      const { keep } = this.#host.ended(attempt, { kind: 'success' }, null);
      if (!keep) return;
      // Who reads the route wants to know whether anything has left the network.
      if (this.route === null || (this.route.kind === 'local' && route.kind === 'cloud')) this.route = route;
      this.#keep(rows.vectors, range.start * width);
      this.firstByteAtMs ??= this.#nowMs();
      this.#promptTokens += usage?.promptTokens ?? slice.reduce((sum, text) => sum + estimateTokens(text), 0);
      this.#completion.exact &&= usage?.exact ?? false;
      if (usage?.costUsd != null) this.#completion.costUsd = (this.#completion.costUsd ?? 0) + usage.costUsd;
      this.#guard.record({
        request: this.context.id as RequestId,
        space: space.id,
        provider: provider.id,
        from: range.start,
        to: range.start + range.count - 1,
      });
    });
  }

  abort(attempt: AttemptId): void {
    const controller = this.#running.get(attempt);
    if (!controller) return;
    this.#running.delete(attempt);
    controller.abort();
  }

  finish(): void {
    const { space, width, texts } = this.#work;
    if (!this.route) return;
    this.#sink.onAnswer({
      route: this.route,
      space: (width === space.width ? space.id : cutSpace(space.id, width)) as SpaceId,
      count: texts.length,
      width,
      vectors: this.#vectors ?? new Float32Array(0),
      usage: this.usage ?? { promptTokens: 0, completionTokens: 0, exact: false, costUsd: null },
    });
  }

  fail(error: SwitchyardError): void {
    this.#sink.onFailure(error);
  }

  resume(): void {}

  #keep(rows: Float32Array, at: number): void {
    const { texts, width } = this.#work;
    if (rows.length === texts.length * width) {
      this.#vectors = rows;
      return;
    }
    this.#vectors ??= new Float32Array(texts.length * width);
    this.#vectors.set(rows, at);
  }
}
