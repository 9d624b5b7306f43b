import type { CallFailure } from '../../agent/wire/calls.ts';
import type { CallOpener } from '../../agent/wire/stream.ts';
import type { CallSize } from '../budget/spend.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { NodeId, RequestId, SpaceId } from '../domain/ids.ts';
import type {
  AnswerSink,
  ChatSink,
  ChatWork,
  Dispatcher,
  EmbedAnswer,
  EmbedWork,
  RequestContext,
  RerankAnswer,
  RerankWork,
  Route,
  RunningChat,
  RunningWork,
} from '../domain/work.ts';
import type { Router } from '../router/router.ts';
import type {
  AttemptId,
  AttemptOutcome,
  Decision,
  EndedResult,
  ItemTrace,
  PermitRef,
  RoutedProvider,
  RouterItem,
} from '../router/types.ts';
import { transportFailure } from './agent-calls.ts';
import { ChatJob, type ChatTimeouts } from './chat-job.ts';
import { EmbedJob } from './embed-job.ts';
import type { DispatchDecision, Job, JobHost } from './job.ts';
import { errorOf, outcomeOf } from './outcomes.ts';
import { abortedNow, type Recorded, type RecordsOptions, RequestRecords } from './request-records.ts';
import { RerankJob } from './rerank-job.ts';
import { type EmbedPreparation, prepareEmbed } from './space-resolution.ts';
import { TraceBuilder } from './trace.ts';

export interface DispatchOptions extends EmbedPreparation, RecordsOptions {
  readonly router: Router;
  readonly opener: (node: NodeId) => CallOpener | null;
  /** The same opener under a permit of the budget; absent: there is no cloud. */
  readonly withPermit?: (opener: CallOpener, permit: PermitRef, maxTokens: number | null) => CallOpener;
  /** Another upstream than the pinned one has answered for this provider. */
  readonly onWrongUpstream?: (provider: RoutedProvider) => void;
  /** As the operator has set them now. */
  readonly timeouts: () => ChatTimeouts;
  /**
   * Resolves when the fleet known from before has answered or has had its time. Work that comes earlier waits: right after a
   * start nobody is known to be ready, and a refusal would be wrong in a second.
   */
  readonly settled: Promise<void> | null;
}

interface Entry extends Recorded {
  lastFailure: { readonly failure: CallFailure; readonly offset: number } | null;
}

interface Running {
  readonly entry: Entry;
  readonly offset: number;
  readonly provider: RoutedProvider;
}

const NOTHING: RunningWork = { cancel() {}, resume() {} };

/** Drives the router: hands it events, carries out its decisions, wakes it in time. */
export class DispatchService implements Dispatcher, JobHost {
  readonly #options: DispatchOptions;
  readonly #records: RequestRecords;
  readonly #entries = new Map<RequestId, Entry>();
  readonly #attempts = new Map<AttemptId, Running>();
  #cancelWake: () => void = () => {};
  /** When the router is woken next; infinite: not at all. */
  #wakeAtMs = Number.POSITIVE_INFINITY;
  #scheduled = false;
  #stopped = false;
  #settled = false;

  constructor(options: DispatchOptions) {
    this.#options = options;
    this.#records = new RequestRecords(options);
    this.#settled = options.settled === null;
    options.settled?.then(() => {
      this.#settled = true;
    });
  }

  /** Refuses new work; resolves when what runs has ended, at the latest after `graceMs`, when the rest is failed. */
  async stop(graceMs: number): Promise<void> {
    this.#stopped = true;
    const { clock } = this.#options;
    const deadline = clock.nowMs() + graceMs;
    while (this.#entries.size > 0 && clock.nowMs() < deadline) {
      await new Promise<void>((resolve) => clock.after(50, resolve));
    }
    for (const [id, { job }] of [...this.#entries]) {
      this.#cancel(id);
      job.fail(new SwitchyardError('shutting_down'));
    }
    this.#cancelWake();
  }

  get running(): number {
    return this.#entries.size;
  }

  opener({ provider, permit }: DispatchDecision, maxTokens: number | null): CallOpener | null {
    const { opener, withPermit } = this.#options;
    const plain = opener(provider.node);
    return plain === null || permit === null || !withPermit ? plain : withPermit(plain, permit, maxTokens);
  }

  /** What a call for a waiting item may cost; nothing for an item that is unknown here. */
  sizeOf(item: RouterItem): CallSize {
    return this.#entries.get(item.context.id)?.job.size ?? { promptBytes: 0, maxOutputTokens: 0, documents: 0 };
  }

  chat(work: ChatWork, sink: ChatSink): RunningChat {
    const { timeouts, clock } = this.#options;
    const job = new ChatJob(work, sink, this, timeouts(), () => clock.nowMs());
    const running = this.#whenSettled(job, (error) => sink.onFailure(error));
    return {
      cancel: () => running.cancel(),
      resume: () => running.resume(),
      get usage() {
        return job.usage;
      },
    };
  }

  rerank(work: RerankWork, sink: AnswerSink<RerankAnswer>): RunningWork {
    const { timeouts, clock } = this.#options;
    const job = new RerankJob(work, sink, this, timeouts().firstByteMs, () => clock.nowMs());
    return this.#whenSettled(job, (error) => sink.onFailure(error));
  }

  /** Founding, counting and cutting come before the queue: they may wait for an encoder, and the client may leave meanwhile. */
  embed(work: EmbedWork, sink: AnswerSink<EmbedAnswer>): RunningWork {
    const { gate, clock, timeouts } = this.#options;
    const leave = new AbortController();
    let running: RunningWork = NOTHING;
    const begin = (prepared: Awaited<ReturnType<typeof prepareEmbed>>) => {
      if (leave.signal.aborted) return;
      // It may have been retired while its inputs were counted.
      if (gate.space(prepared.space.id)?.retiredAtMs !== null) {
        refuse(new SwitchyardError('space_mismatch'));
        return;
      }
      const job = new EmbedJob(prepared, sink, this, gate, timeouts().firstByteMs, () => clock.nowMs());
      running = this.#submit(job, (error) => sink.onFailure(error));
    };
    const refuse = (error: unknown) => {
      if (leave.signal.aborted) return;
      const known = error instanceof SwitchyardError ? error : new SwitchyardError('internal_error');
      this.#records.refused(work.context, known);
      sink.onFailure(known);
    };
    Promise.resolve(this.#options.settled)
      .then(() => prepareEmbed(work, this.#options, leave.signal))
      .then(begin, refuse);
    return {
      cancel: () => {
        leave.abort();
        running.cancel();
      },
      resume: () => running.resume(),
    };
  }

  /** Nobody answers in this space any more: what waits for it, or runs, would come to nothing. */
  spaceRetired(space: SpaceId): void {
    const { router, clock } = this.#options;
    for (const [id, entry] of [...this.#entries]) {
      if (spaceOf(entry.job) !== space) continue;
      const trace = router.traceOf(id, clock.nowMs());
      this.#cancel(id);
      const error = new SwitchyardError('space_mismatch');
      entry.job.fail(error);
      this.#records.ended(entry, {
        outcome: 'failed',
        code: error.code,
        trace: trace && abortedNow(trace),
        refused: [],
      });
    }
  }

  firstByte(attempt: AttemptId): void {
    this.#options.router.firstByte(attempt, this.#options.clock.nowMs());
  }

  ended(attempt: AttemptId, outcome: AttemptOutcome, failure: CallFailure | null): EndedResult {
    const known = this.#attempts.get(attempt);
    this.#attempts.delete(attempt);
    if (known && failure) known.entry.lastFailure = { failure, offset: known.offset };
    if (known && failure?.cloud?.wrongUpstream === true) this.#options.onWrongUpstream?.(known.provider);
    if (known && failure?.blame === 'fingerprint') this.#checkAnew(known);
    const result = this.#options.router.attemptEnded(attempt, outcome, this.#options.clock.nowMs());
    this.kick();
    return result;
  }

  /** Its agent met another process than the one that passed. Until the gate hears of that too, nothing would be checked. */
  #checkAnew({ entry, provider }: Running): void {
    const { gate } = this.#options;
    const space = spaceOf(entry.job);
    if (space && gate.admitted(provider.id, space)) gate.verify(provider.id);
  }

  /**
   * Nothing has been heard of a machine for a while: what it has not begun to answer moves on, long before its session is given
   * up. A cloud call stays until then: its agent may live and be paid for it.
   */
  nodeSilent(node: NodeId): void {
    for (const [attempt, running] of [...this.#attempts]) {
      const { job } = running.entry;
      const begun = job.item.task === 'chat' && job.firstByteAtMs !== null;
      if (running.provider.node !== node || running.provider.kind !== 'local' || begun) continue;
      job.abort(attempt);
      const failure = transportFailure('The machine fell silent.');
      this.ended(attempt, outcomeOf(failure), failure);
    }
  }

  /** The machine slept: whatever runs now is left out of latency statistics. */
  noteGap(): void {
    this.#records.gaps += 1;
  }

  /** Something the router looks at has changed: lets it decide before the next event of the loop. */
  kick(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#decide();
    });
  }

  #whenSettled(job: Job, refuse: (error: SwitchyardError) => void): RunningWork {
    if (this.#settled) return this.#submit(job, refuse);
    let left = false;
    let running: RunningWork = NOTHING;
    this.#options.settled?.then(() => {
      if (!left) running = this.#submit(job, refuse);
    });
    return {
      cancel: () => {
        left = true;
        running.cancel();
      },
      resume: () => running.resume(),
    };
  }

  #submit(job: Job, refuse: (error: SwitchyardError) => void): RunningWork {
    const { router, clock } = this.#options;
    if (this.#stopped) {
      refuse(new SwitchyardError('shutting_down'));
      return NOTHING;
    }
    const { id } = job.context;
    const entry: Entry = {
      job,
      trace: new TraceBuilder(),
      queueMs: null,
      attempts: 0,
      gapAtStart: this.#records.gaps,
      lastFailure: null,
    };
    const submitted = router.submit(job.item, clock.nowMs());
    if (!submitted.accepted) {
      const { code, retryAfterMs, reasons } = submitted;
      const error = errorOf(
        {
          kind: 'fail',
          request: id,
          code,
          retryAfterMs,
          reasons,
          failing: [],
          trace: emptyTrace(job.context, clock.nowMs()),
        },
        null,
        0,
      );
      this.#records.ended(entry, { outcome: 'failed', code: error.code, trace: null, refused: reasons });
      refuse(error);
      return NOTHING;
    }
    this.#entries.set(id, entry);
    this.#decide();
    return { cancel: () => this.#cancelled(id), resume: () => job.resume() };
  }

  #decide(): void {
    const { router, clock } = this.#options;
    for (const decision of router.decide(clock.nowMs())) this.#carryOut(decision);
    const now = clock.nowMs();
    const wake = router.nextWakeMs(now);
    // A timer that comes too early finds nothing to decide and is set again: cheaper than a new one after every request.
    if (wake === null || this.#wakeAtMs <= wake) return;
    this.#cancelWake();
    // Timers may fire a touch early; a millisecond more saves a turn that decides nothing.
    const delayMs = Math.max(1, Math.ceil(wake - now));
    this.#wakeAtMs = now + delayMs;
    this.#cancelWake = clock.after(delayMs, () => {
      this.#wakeAtMs = Number.POSITIVE_INFINITY;
      this.#decide();
    });
  }

  #carryOut(decision: Decision): void {
    const entry = this.#entries.get(decision.request);
    switch (decision.kind) {
      case 'dispatch':
        this.#dispatch(decision, entry);
        return;
      case 'abort':
        this.#abort(decision.attempt, entry);
        return;
      case 'finished':
        if (!entry) return;
        this.#entries.delete(decision.request);
        entry.job.finish();
        this.#records.ended(entry, { outcome: 'success', code: null, trace: decision.trace, refused: [] });
        return;
      case 'fail': {
        if (!entry) return;
        this.#entries.delete(decision.request);
        const { failure, offset } = entry.lastFailure ?? { failure: null, offset: 0 };
        const error = errorOf(decision, failure, offset);
        entry.job.fail(error);
        this.#records.ended(entry, {
          outcome: 'failed',
          code: error.code,
          trace: decision.trace,
          refused: decision.reasons,
        });
      }
    }
  }

  #dispatch(decision: DispatchDecision, entry: Entry | undefined): void {
    const { attempt, provider, explanation, range } = decision;
    if (!entry) {
      // The client left between two decisions of one batch.
      this.#options.router.attemptEnded(attempt, { kind: 'ignored' }, this.#options.clock.nowMs());
      return;
    }
    this.#attempts.set(attempt, { entry, offset: range?.start ?? 0, provider });
    entry.attempts += 1;
    // From arrival: what a first request waited for a verdict is waiting too.
    entry.queueMs ??= this.#options.clock.nowMs() - entry.job.context.arrivedAtMs;
    entry.trace.choice(explanation);
    const space = spaceOf(entry.job);
    if (space) {
      const verdict = this.#options.gate.verdict(provider.id, space);
      if (verdict) entry.trace.verdict(provider.id, verdict.kind, verdict.checkedAtMs);
    }
    const route: Route = {
      provider: provider.id,
      kind: provider.kind,
      nodeName: provider.nodeName,
      model: provider.model,
      queueMs: entry.queueMs,
    };
    entry.job.start(decision, route);
  }

  #abort(attempt: AttemptId, entry: Entry | undefined): void {
    entry?.job.abort(attempt);
    if (this.#attempts.delete(attempt)) {
      this.#options.router.attemptEnded(attempt, { kind: 'ignored' }, this.#options.clock.nowMs());
      this.kick();
    }
  }

  #cancelled(id: RequestId): void {
    const entry = this.#entries.get(id);
    if (!entry) return;
    const { router, clock } = this.#options;
    const trace = router.traceOf(id, clock.nowMs());
    this.#cancel(id);
    this.#records.ended(entry, {
      outcome: 'cancelled',
      code: 'client_closed',
      trace: trace && abortedNow(trace),
      refused: [],
    });
  }

  #cancel(id: RequestId): void {
    const entry = this.#entries.get(id);
    this.#entries.delete(id);
    const { router, clock } = this.#options;
    for (const attempt of router.cancel(id, clock.nowMs())) this.#abort(attempt, entry);
    this.kick();
  }
}

/** Without the width that its vectors may be cut to. */
function spaceOf({ item }: Job): SpaceId | null {
  return item.space === null ? null : (item.space.id.split('/')[0] as SpaceId);
}

function emptyTrace(context: RequestContext, nowMs: number): ItemTrace {
  return {
    request: context.id,
    role: context.role,
    project: context.project,
    class: context.class,
    submittedAtMs: nowMs,
    endedAtMs: nowMs,
    attempts: [],
  };
}
