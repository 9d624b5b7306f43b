import type { ErrorCode } from '../domain/errors.ts';
import { afterAttempt, MAX_PROVIDERS, MIN_BUSY_MS } from './attempts.ts';
import type { ProviderState } from './fleet.ts';
import type { FleetState } from './fleet-state.ts';
import type { Attempt, ItemState } from './item.ts';
import type { RoleState } from './role.ts';
import type { RunningAttempts } from './running.ts';
import type { AttemptOutcome, EndedResult } from './types.ts';
import { serviceMean } from './wait.ts';

/** What an outcome may do to an item; the core carries it out. */
export interface ItemFate {
  finish(item: ItemState, nowMs: number): void;
  fail(
    item: ItemState,
    code: ErrorCode,
    more: { failing?: readonly number[]; retryAfterMs?: number | null },
    nowMs: number,
  ): void;
  /** Back into the queue, at its old place; fails with `code` when nobody is left who might serve it. */
  requeue(item: ItemState, code: ErrorCode, nowMs: number): void;
  abort(attempt: Attempt, nowMs: number): void;
}

/** Most indices that an error names. */
const NAMED_INPUTS = 2048;

/** What providers and items learn from the end of an attempt. */
export class Outcomes {
  private readonly roles: readonly RoleState[];
  private readonly fleet: FleetState;
  private readonly running: RunningAttempts;
  private readonly fate: ItemFate;

  constructor(roles: readonly RoleState[], fleet: FleetState, running: RunningAttempts, fate: ItemFate) {
    this.roles = roles;
    this.fleet = fleet;
    this.running = running;
    this.fate = fate;
  }

  /** @returns whether the answer counts. The attempt has given back its slot already. */
  settle(attempt: Attempt, outcome: AttemptOutcome, nowMs: number): EndedResult {
    const { item, range } = attempt;
    item.ended(attempt, outcome, nowMs);
    // Nobody learns from what we aborted ourselves, except that another process answers there now.
    if (!attempt.aborted || outcome.kind === 'fingerprint') this.learn(attempt, outcome, nowMs);
    if (item.job !== null && attempt.chunk !== null) {
      item.job.attemptOver(attempt.chunk, attempt.id, attempt.provider.id);
    }
    if (attempt.aborted || item.done) return { keep: false, range };
    return {
      keep: item.job === null ? this.whole(attempt, outcome, nowMs) : this.chunk(attempt, outcome, nowMs),
      range,
    };
  }

  private learn(attempt: Attempt, outcome: AttemptOutcome, nowMs: number): void {
    const { provider } = attempt;
    switch (outcome.kind) {
      case 'success':
        provider.serviceMs = serviceMean(provider.serviceMs, nowMs - attempt.startedAtMs);
        if (attempt.range !== null) provider.rate.completed(attempt.range.count, attempt.startedAtMs, nowMs);
        this.answered(provider);
        return;
      case 'callerFault':
        this.answered(provider);
        return;
      case 'busy':
        this.busy(provider, nowMs + Math.max(MIN_BUSY_MS, outcome.retryAfterMs ?? 0));
        return;
      case 'failed':
        for (const silent of this.silenced(provider, outcome.silent)) silent.parking.failed(true, nowMs);
        if (outcome.silent === 'no') provider.parking.failed(false, nowMs);
        this.changed(provider, outcome.silent !== 'no');
        return;
      case 'fingerprint':
        // Without a gate to look at it again, only time and a trial can tell.
        if (provider.embeds) this.voidVerdict(provider, nowMs);
        else if (provider.parking.failed(true, nowMs)) this.changed(provider, false);
        return;
      case 'ignored':
        return;
    }
  }

  private answered(provider: ProviderState): void {
    if (provider.parking.answered()) this.changed(provider, false);
    // A first measured rate lets a single slot take a second chunk.
    else if (provider.embeds) this.fleet.poolChanged(provider.pool, this.roles);
  }

  /** A busy local engine is busy for all its models; a throttled upstream speaks for itself only. */
  private busy(provider: ProviderState, untilMs: number): void {
    const concerned = provider.local ? provider.pool.members : [provider];
    for (const member of concerned) member.busyUntilMs = Math.max(member.busyUntilMs, untilMs);
    this.changed(provider, true);
  }

  private silenced(provider: ProviderState, silent: 'no' | 'engine' | 'node'): readonly ProviderState[] {
    if (silent === 'no') return [];
    if (silent === 'engine') return [...provider.pool.members];
    return [...this.fleet.all()].filter(({ routed }) => routed.node === provider.routed.node);
  }

  private changed(provider: ProviderState, others: boolean): void {
    for (const role of this.roles) if (others || role.id === provider.routed.role) role.stale = true;
    this.fleet.poolChanged(provider.pool, this.roles);
  }

  /** The process that was checked is gone: whatever it still answers is not vectors of the space. */
  private voidVerdict(provider: ProviderState, nowMs: number): void {
    provider.voidVerdict(nowMs);
    this.changed(provider, false);
    for (const other of this.running.all()) {
      if (other.provider !== provider || other.aborted || other.chunk === null) continue;
      this.fate.abort(other, nowMs);
      this.chunkReturns(other, null, 'no_provider', nowMs);
    }
  }

  private whole(attempt: Attempt, outcome: AttemptOutcome, nowMs: number): boolean {
    const { item, provider } = attempt;
    if (outcome.kind === 'failed' || outcome.kind === 'fingerprint') {
      // After a sleep every session is made anew: a request may go back to the machine it was on, but only once.
      const lost = provider.local && outcome.kind === 'failed' && outcome.silent === 'node';
      if (item.sessionLost || !lost) item.failedBy = [...item.failedBy, provider.id];
      item.sessionLost ||= lost;
      if (provider.local) item.localFailed = true;
    }
    if (outcome.kind === 'busy' && provider.local) item.busyAnswers += 1;
    const next = afterAttempt(outcome.kind, {
      failedProviders: item.failedBy.length,
      busyAnswers: item.busyAnswers,
      firstByteSent: item.firstByteSent,
    });
    const code = codeOf(outcome);
    if (next === 'done') this.fate.finish(item, nowMs);
    else if (next === 'retry') this.fate.requeue(item, code, nowMs);
    else if (item.firstByteSent && !('code' in outcome)) this.fate.fail(item, 'stream_interrupted', {}, nowMs);
    else this.fate.fail(item, code, { retryAfterMs: retryAfter(attempt, outcome, nowMs) }, nowMs);
    return next === 'done';
  }

  private chunk(attempt: Attempt, outcome: AttemptOutcome, nowMs: number): boolean {
    const { item, chunk } = attempt;
    if (item.job === null || chunk === null || chunk.settled) return false;
    if (outcome.kind === 'success') {
      item.job.answer(chunk, nowMs);
      for (const id of chunk.live) {
        const other = this.running.find(id);
        if (other !== null && !other.aborted) this.fate.abort(other, nowMs);
      }
      if (item.job.finished) this.fate.finish(item, nowMs);
      return true;
    }
    if (outcome.kind === 'callerFault') {
      this.fate.fail(item, outcome.code, { failing: absolute(attempt, outcome.failing) }, nowMs);
      return false;
    }
    const failed = outcome.kind === 'failed';
    if (failed && attempt.provider.local) item.localFailed = true;
    this.chunkReturns(attempt, failed ? absolute(attempt, outcome.failing) : null, codeOf(outcome), nowMs);
    return false;
  }

  /** @param failing absolute indices when it counts as a failure of the provider; null: it counts against nobody */
  private chunkReturns(attempt: Attempt, failing: readonly number[] | null, code: ErrorCode, nowMs: number): void {
    const { item, chunk } = attempt;
    if (item.job === null || chunk === null || chunk.settled) return;
    const live = chunk.live.some((id) => this.running.find(id)?.aborted === false);
    if (live) return;
    const piece = item.job.giveBack(chunk, failing === null ? null : attempt.provider.id);
    if (piece.failures >= MAX_PROVIDERS) this.fate.fail(item, code, { failing: failing ?? [] }, nowMs);
    else this.fate.requeue(item, code, nowMs);
  }
}

function codeOf(outcome: AttemptOutcome): ErrorCode {
  if ('code' in outcome) return outcome.code;
  return outcome.kind === 'busy' ? 'engine_busy' : 'no_provider';
}

function retryAfter(attempt: Attempt, outcome: AttemptOutcome, nowMs: number): number | null {
  return outcome.kind === 'busy' ? Math.max(MIN_BUSY_MS, attempt.provider.busyUntilMs - nowMs) : null;
}

/** Indices of the request; all of the range when the provider did not say which. */
function absolute(attempt: Attempt, failing: readonly number[] | undefined): readonly number[] {
  const { range } = attempt;
  if (range === null) return failing ?? [];
  const inside = failing?.filter((index) => index >= 0 && index < range.count) ?? [];
  const relative = inside.length > 0 ? inside : Array.from({ length: range.count }, (_, index) => index);
  return relative.slice(0, NAMED_INPUTS).map((index) => range.start + index);
}
