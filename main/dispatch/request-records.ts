import type { SwitchyardError } from '../domain/errors.ts';
import type { NodeId } from '../domain/ids.ts';
import type { RequestObserver, RequestSummary } from '../domain/observation.ts';
import type { Clock } from '../domain/time.ts';
import type { RequestContext } from '../domain/work.ts';
import type { ItemTrace, ProviderRefusal } from '../router/types.ts';
import type { Job } from './job.ts';
import { type RequestTrace, TraceBuilder } from './trace.ts';

export interface RecordsOptions {
  readonly clock: Clock;
  readonly observers: readonly RequestObserver[];
  readonly onTrace: (trace: RequestTrace) => void;
}

/** What is written down of a request while it is served. */
export interface Recorded {
  readonly job: Job;
  readonly trace: TraceBuilder;
  /** From arrival to the first dispatch, ms. */
  queueMs: number | null;
  attempts: number;
  gapAtStart: number;
}

export interface Ending {
  readonly outcome: RequestSummary['outcome'];
  readonly code: RequestSummary['code'];
  readonly trace: ItemTrace | null;
  readonly refused: readonly ProviderRefusal[];
}

/** Members of a summary that are known from the request alone. */
type FromContext =
  | 'id'
  | 'project'
  | 'keyId'
  | 'role'
  | 'class'
  | 'policy'
  | 'policyFrom'
  | 'requestedModel'
  | 'arrivedAtMs'
  | 'totalMs';

/** Tells observers how each request ended, and hands its trace on. */
export class RequestRecords {
  readonly #options: RecordsOptions;
  /** How often the machine has slept: what ran across a sleep is left out of latency statistics. */
  gaps = 0;

  constructor(options: RecordsOptions) {
    this.#options = options;
  }

  ended({ job, trace, queueMs, attempts, gapAtStart }: Recorded, ending: Ending): void {
    const { outcome, code, refused } = ending;
    const clockOffsetMs = this.#clockOffsetMs();
    const { context, item } = job;
    // Whoever gave a part of the answer has done that work, whether or not the rest has come.
    const answered = outcome === 'success' || job.firstByteAtMs !== null ? job.route : null;
    const summary = this.#summary(context, clockOffsetMs, {
      model: answered?.model ?? null,
      route: answered?.kind ?? null,
      provider: answered?.provider ?? null,
      node: answered ? nodeOf(answered.provider) : null,
      queueMs,
      firstByteMs: job.firstByteAtMs === null ? null : job.firstByteAtMs - context.arrivedAtMs,
      usage: job.usage,
      attempts,
      outcome,
      code,
      overflowed: answered?.kind === 'cloud' && trace.overflowed,
      acrossGap: this.gaps !== gapAtStart,
    });
    const units = { units: item.units, space: item.space?.id ?? null };
    this.#tell(summary, trace.build(context, summary, units, { trace: ending.trace, refused }, clockOffsetMs));
  }

  /** Refused before it had a job: over-long inputs, no space. */
  refused(context: RequestContext, error: SwitchyardError): void {
    const clockOffsetMs = this.#clockOffsetMs();
    const summary = this.#summary(context, clockOffsetMs, {
      model: null,
      route: null,
      provider: null,
      node: null,
      queueMs: null,
      firstByteMs: null,
      usage: null,
      attempts: 0,
      outcome: 'failed',
      code: error.code,
      overflowed: false,
      acrossGap: false,
    });
    const nothing = { trace: null, refused: [] };
    this.#tell(summary, new TraceBuilder().build(context, summary, { units: 0, space: null }, nothing, clockOffsetMs));
  }

  #clockOffsetMs(): number {
    const { clock } = this.#options;
    return clock.nowMs() - clock.wallMs();
  }

  #summary(context: RequestContext, clockOffsetMs: number, rest: Omit<RequestSummary, FromContext>): RequestSummary {
    const { id, project, role, arrivedAtMs } = context;
    return {
      id,
      project,
      keyId: context.keyId ?? null,
      role,
      class: context.class,
      policy: context.policy,
      policyFrom: context.policyFrom,
      requestedModel: context.model,
      arrivedAtMs: arrivedAtMs - clockOffsetMs,
      totalMs: this.#options.clock.nowMs() - arrivedAtMs,
      ...rest,
    };
  }

  #tell(summary: RequestSummary, trace: RequestTrace): void {
    for (const observer of this.#options.observers) observer.finished(summary);
    this.#options.onTrace(trace);
  }
}

function nodeOf(provider: string): NodeId {
  return decodeURIComponent(provider.split('~')[1] ?? '') as NodeId;
}

/** What still ran when the client left ends with that. */
export function abortedNow(trace: ItemTrace): ItemTrace {
  const { endedAtMs } = trace;
  return {
    ...trace,
    attempts: trace.attempts.map((attempt) =>
      attempt.endedAtMs !== null ? attempt : { ...attempt, abortedAtMs: endedAtMs, endedAtMs, outcome: 'ignored' },
    ),
  };
}
