import { z } from 'zod';
import type { CallFailure } from '../../agent/wire/calls.ts';
import type { CallSize } from '../budget/spend.ts';
import type { SwitchyardError } from '../domain/errors.ts';
import type { AnswerSink, RequestContext, RerankAnswer, RerankWork, Route, WorkUsage } from '../domain/work.ts';
import type { AttemptId, RouterItem } from '../router/types.ts';
import { callWhole, transportFailure } from './agent-calls.ts';
import type { DispatchDecision, Job, JobHost } from './job.ts';
import { outcomeOf } from './outcomes.ts';

const MAX_ANSWER_BYTES = 4 << 20;
const Scores = z.object({ scores: z.array(z.number()) });
const encoder = new TextEncoder();

/** A rerank: one attempt at a time; the answer is complete or none. */
export class RerankJob implements Job {
  readonly context: RequestContext;
  readonly item: RouterItem;
  readonly size: CallSize;
  readonly #work: RerankWork;
  readonly #body: Uint8Array;
  readonly #sink: AnswerSink<RerankAnswer>;
  readonly #host: JobHost;
  readonly #timeoutMs: number;
  readonly #nowMs: () => number;
  #running: { readonly attempt: AttemptId; readonly controller: AbortController } | null = null;
  #scores: Float64Array | null = null;
  firstByteAtMs: number | null = null;
  usage: WorkUsage | null = null;
  route: Route | null = null;

  constructor(work: RerankWork, sink: AnswerSink<RerankAnswer>, host: JobHost, timeoutMs: number, nowMs: () => number) {
    this.context = work.context;
    this.#work = work;
    this.#sink = sink;
    this.#host = host;
    this.#timeoutMs = timeoutMs;
    this.#nowMs = nowMs;
    this.#body = encoder.encode(JSON.stringify({ query: work.query, documents: work.documents }));
    // The query is read again with each document.
    const queryBytes = Buffer.byteLength(work.query) * work.documents.length;
    const documents = work.documents.length;
    this.size = { promptBytes: this.#body.byteLength + queryBytes, maxOutputTokens: 0, documents };
    const queryTokens = estimateTokens(work.query);
    const lengths = work.documents.map(estimateTokens);
    this.item = {
      context: work.context,
      task: 'rerank',
      units: 1,
      neededTokens: queryTokens + lengths.reduce((longest, each) => Math.max(longest, each), 0),
      costTokens: Math.max(
        1,
        lengths.reduce((sum, each) => sum + each + queryTokens, 0),
      ),
      conversation: null,
      space: null,
    };
  }

  start(decision: DispatchDecision, route: Route): void {
    const { attempt, provider } = decision;
    this.route = route;
    const controller = new AbortController();
    this.#running = { attempt, controller };
    const count = this.#work.documents.length;
    callWhole(
      this.#host.opener(decision, null),
      { op: 'rerank', engine: provider.engine, model: provider.model, count, timeoutMs: this.#timeoutMs },
      this.#body,
      MAX_ANSWER_BYTES,
      controller.signal,
    ).then((answer) => {
      if (this.#running?.attempt !== attempt) return;
      this.#running = null;
      if (answer.failure !== null) {
        this.#host.ended(attempt, outcomeOf(answer.failure), answer.failure);
        return;
      }
      const scores = readScores(answer.body, count);
      if (!scores) {
        const failure: CallFailure = {
          ...transportFailure('The engine gave scores that cannot be used.'),
          blame: 'engine',
          code: 'engine_invalid_response',
        };
        this.#host.ended(attempt, outcomeOf(failure), failure);
        return;
      }
      this.firstByteAtMs = this.#nowMs();
      this.#scores = scores;
      this.usage = answer.trailers.usage ?? {
        promptTokens: this.item.costTokens,
        completionTokens: 0,
        exact: false,
        costUsd: null,
      };
      this.#host.ended(attempt, { kind: 'success' }, null);
    });
  }

  abort(attempt: AttemptId): void {
    if (this.#running?.attempt !== attempt) return;
    const { controller } = this.#running;
    this.#running = null;
    controller.abort();
  }

  finish(): void {
    if (!this.#scores || !this.route || !this.usage) return;
    const squashed = this.#scores.some((score) => score < 0 || score > 1);
    const scores = squashed ? this.#scores.map((score) => 1 / (1 + Math.exp(-score))) : this.#scores;
    this.#sink.onAnswer({ route: this.route, scores, squashed, usage: this.usage });
  }

  fail(error: SwitchyardError): void {
    this.#sink.onFailure(error);
  }

  resume(): void {}
}

/** ceil(UTF-8 bytes / 3): the estimate that the whole house uses where nobody counts. */
export function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 3);
}

function readScores(body: Uint8Array, count: number): Float64Array | null {
  try {
    const parsed = Scores.safeParse(JSON.parse(Buffer.from(body).toString('utf8')));
    if (!parsed.success || parsed.data.scores.length !== count) return null;
    return parsed.data.scores.every(Number.isFinite) ? Float64Array.from(parsed.data.scores) : null;
  } catch {
    return null;
  }
}
