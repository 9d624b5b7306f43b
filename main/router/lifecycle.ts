import { QUEUE_DEADLINE_MS } from '../domain/classes.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { RequestId } from '../domain/ids.ts';
import type { Explanation } from './explanation.ts';
import type { ProviderState } from './fleet.ts';
import type { Attempt, ItemState } from './item.ts';
import type { Chunk } from './job.ts';
import type { Lane } from './lane.ts';
import type { MatchSink } from './matcher.ts';
import type { ItemFate } from './outcomes.ts';
import { retryAfterOf, verdictOnNobody } from './refusals.ts';
import { reviewBackup } from './review.ts';
import type { RoleState } from './role.ts';
import type { RunningAttempts } from './running.ts';
import type { AttemptId, Decision, PermitRef } from './types.ts';

/** An item's way from queue to attempts and back, to its end: carries out matches and outcomes, and says so in decisions. */
export class ItemLifecycle implements MatchSink, ItemFate {
  readonly items = new Map<RequestId, ItemState>();
  private readonly running: RunningAttempts;
  private outbox: Decision[] = [];

  constructor(running: RunningAttempts) {
    this.running = running;
  }

  get hasDecisions(): boolean {
    return this.outbox.length > 0;
  }

  takeDecisions(): readonly Decision[] {
    const decisions = this.outbox;
    this.outbox = [];
    return decisions;
  }

  begin(item: ItemState, provider: ProviderState, size: number, permit: PermitRef | null, why: Explanation): void {
    const { role, job } = item;
    const nowMs = why.atMs;
    const id = this.running.reserveId();
    const first = !item.everDispatched;
    let chunk: Chunk | null = null;
    if (job !== null) {
      const rate = provider.rate.perSecond;
      const expectedAtMs = rate === null ? null : nowMs + (1000 * (provider.inputsInFlight + size)) / rate;
      chunk = job.take(size, id, { id: provider.id, local: provider.local, expectedAtMs }, nowMs);
    }
    const attempt = this.running.start(id, item, provider, { chunk, copyOf: null, permit }, nowMs);
    if (job === null || job.left === 0) role.queue.remove(item);
    else if (first) role.queue.noLongerFresh(item);
    this.renewDeadline(item, nowMs);
    this.dispatched(attempt, why);
  }

  beginCopy(item: ItemState, provider: ProviderState, chunk: Chunk, of: AttemptId, why: Explanation): void {
    const id = this.running.reserveId();
    item.job?.copy(chunk, id, provider.id);
    this.dispatched(this.running.start(id, item, provider, { chunk, copyOf: of, permit: null }, why.atMs), why);
  }

  closeCloud(item: ItemState, reason: 'spend_cap' | 'cloud_off', nowMs: number): void {
    item.cloudClosed = reason;
    this.requeue(item, 'no_provider', nowMs);
  }

  private dispatched(attempt: Attempt, why: Explanation): void {
    const { item } = attempt;
    this.outbox.push({
      kind: 'dispatch',
      attempt: attempt.id,
      request: item.item.context.id,
      provider: attempt.provider.routed,
      range: attempt.range,
      copyOf: attempt.copyOf,
      permit: attempt.permit,
      queuedMs: attempt.startedAtMs - item.submittedAtMs,
      explanation: why,
    });
  }

  finish(item: ItemState, nowMs: number): void {
    this.forget(item);
    this.outbox.push({ kind: 'finished', request: item.item.context.id, trace: item.trace(nowMs) });
  }

  fail(
    item: ItemState,
    code: ErrorCode,
    more: { readonly failing?: readonly number[]; readonly retryAfterMs?: number | null },
    nowMs: number,
  ): void {
    if (item.done) return;
    const reasons = item.role.laneOf(item).refused;
    this.forget(item);
    for (const attempt of item.attempts) if (attempt.endedAtMs === null && !attempt.aborted) this.abort(attempt, nowMs);
    this.outbox.push({
      kind: 'fail',
      request: item.item.context.id,
      code,
      retryAfterMs: more.retryAfterMs ?? null,
      reasons,
      failing: more.failing ?? [],
      trace: item.trace(nowMs),
    });
  }

  requeue(item: ItemState, code: ErrorCode, nowMs: number): void {
    const { role } = item;
    this.freshen(role, nowMs);
    if (item.done) return;
    let lane = role.laneOf(item);
    if (item.item.context.policy === 'backup') {
      item.wait = role.waitOf(lane, role.aheadOfNew(lane, item.rank - 1), true, nowMs);
      if (reviewBackup(item, lane, nowMs)) lane = role.laneOf(item);
    }
    if (item.queue === null) role.queue.insert(item, lane);
    else if (item.queue.lane !== lane) role.queue.move(item, lane);
    // Being turned away is no service: without a bound a full provider would be asked for ever.
    this.renewDeadline(item, item.live > 0 ? nowMs : (item.turnedAwaySinceMs ?? nowMs));
    role.watchHope(lane, nowMs);
    if (!lane.hopeful(item.deadlineAtMs, nowMs)) this.fail(item, code, this.retryLater(item, lane, nowMs), nowMs);
  }

  abort(attempt: Attempt, nowMs: number): void {
    attempt.abortedAtMs = nowMs;
    this.outbox.push({ kind: 'abort', attempt: attempt.id, request: attempt.item.item.context.id });
  }

  /** It has ended: out of the queue and out of mind; attempts that still run are the caller's to abort. */
  forget(item: ItemState): void {
    item.done = true;
    item.role.queue.remove(item);
    item.role.jobs.delete(item);
    this.items.delete(item.item.context.id);
  }

  /** Brings a role up to date with fleet and clock; ends what nobody can serve any more. */
  freshen(role: RoleState, nowMs: number): void {
    if (!role.freshen(nowMs) && nowMs < role.hopeAtMs) return;
    role.tickAtMs = nowMs;
    role.hopeAtMs = Number.POSITIVE_INFINITY;
    const hopeless: { item: ItemState; lane: Lane }[] = [];
    for (const lane of role.lanes.values()) {
      if (lane.total === 0 || lane.eligible.length > 0) continue;
      role.watchHope(lane, nowMs);
      for (const item of role.waiting()) {
        if (item.queue?.lane === lane && !lane.hopeful(item.deadlineAtMs, nowMs)) hopeless.push({ item, lane });
      }
    }
    for (const { item, lane } of hopeless) {
      const code = item.setbacks.at(-1)?.code ?? verdictOnNobody(lane);
      this.fail(item, code, this.retryLater(item, lane, nowMs), nowMs);
    }
  }

  /** Deadlines run to the first dispatch; an item that came back gets a new one, which counts only while nothing of it runs. */
  expire(role: RoleState, nowMs: number): void {
    for (const queue of role.queue.classes) {
      for (let item = queue.firstFresh; item !== null && item.deadlineAtMs <= nowMs; item = queue.firstFresh) {
        this.fail(item, 'queue_timeout', {}, nowMs);
      }
    }
    if (nowMs < role.returnedDueMs) return;
    role.returnedDueMs = Number.POSITIVE_INFINITY;
    for (const item of [...role.queue.returned]) {
      if (item.live > 0 || item.deadlineAtMs > nowMs) this.renewDeadline(item, item.live > 0 ? nowMs : null);
      else this.fail(item, 'queue_timeout', {}, nowMs);
    }
  }

  /** @param fromMs null: the deadline stays, and is only kept in view */
  private renewDeadline(item: ItemState, fromMs: number | null): void {
    if (fromMs !== null) item.deadlineAtMs = fromMs + QUEUE_DEADLINE_MS[item.item.context.class];
    if (item.queue !== null) item.role.returnedDueMs = Math.min(item.role.returnedDueMs, item.deadlineAtMs);
  }

  private retryLater(item: ItemState, lane: Lane, nowMs: number): { retryAfterMs: number | null } {
    return { retryAfterMs: retryAfterOf(item.role, lane, nowMs) };
  }
}
