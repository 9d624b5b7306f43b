import { QUEUE_DEADLINE_MS } from '../domain/classes.ts';
import type { ProviderId, RequestId } from '../domain/ids.ts';
import { defaultRoleSettings, ROLE_IDS, type RoleId } from '../domain/roles.ts';
import { Affinity } from './affinity.ts';
import { FleetState } from './fleet-state.ts';
import { ItemState } from './item.ts';
import { StripedJob } from './job.ts';
import type { Lane } from './lane.ts';
import { ItemLifecycle } from './lifecycle.ts';
import { Matcher } from './matcher.ts';
import { Outcomes } from './outcomes.ts';
import { OVERFLOW_CHECK_MS } from './overflow.ts';
import { refusedSubmit, retryAfterOf, verdictOnNobody } from './refusals.ts';
import { reviewBackup, reviewQueue } from './review.ts';
import { RoleState } from './role.ts';
import type { Router, RouterOptions } from './router.ts';
import { RunningAttempts } from './running.ts';
import { rankOf } from './running-time.ts';
import { type RouterSnapshot, takeSnapshot } from './snapshot.ts';
import type {
  AttemptId,
  AttemptOutcome,
  Decision,
  EndedResult,
  ItemTrace,
  RoutedProvider,
  RouterItem,
  RouterRoleSettings,
  RouterSettings,
  SubmitResult,
} from './types.ts';

const DEFAULTS: RouterSettings = { queueBound: 1000, conversations: 10_000 };
/** Retry-After of a full queue whose pace is unknown. */
const FULL_RETRY_MS = 5000;

/**
 * The router: submitted items, their attempts, and what is to happen next. Events change its state, `decide` matches waiting
 * work with free slots; both are deterministic, so that the same events at the same times give the same decisions.
 */
export class RouterCore implements Router {
  private readonly settings: RouterSettings;
  private readonly roles: readonly RoleState[];
  private readonly byRole: ReadonlyMap<RoleId, RoleState>;
  private readonly fleet = new FleetState();
  private readonly lifecycle: ItemLifecycle;
  private readonly running: RunningAttempts;
  private readonly outcomes: Outcomes;
  private readonly matcher: Matcher;
  private cloudRetryAtMs: number | null = null;
  private nextSeq = 0;

  constructor(options: RouterOptions) {
    this.settings = { ...DEFAULTS, ...options.settings };
    this.roles = ROLE_IDS.map((id) => new RoleState(id, defaultRoleSettings(id)));
    this.byRole = new Map(this.roles.map((role) => [role.id, role]));
    this.running = new RunningAttempts(this.roles, this.fleet, options.permits);
    this.lifecycle = new ItemLifecycle(this.running);
    this.outcomes = new Outcomes(this.roles, this.fleet, this.running, this.lifecycle);
    this.matcher = new Matcher(this.roles, options.permits, new Affinity(this.settings.conversations), this.lifecycle);
  }

  setProviders(providers: readonly RoutedProvider[], nowMs: number): void {
    this.fleet.update(providers, this.roles, nowMs);
  }

  setRole(id: RoleId, settings: RouterRoleSettings, nowMs: number): void {
    const role = this.roleOf(id);
    role.settings = settings;
    role.stale = true;
    if (settings.enabled) return;
    for (const item of [...role.waiting()]) this.lifecycle.fail(item, 'role_disabled', {}, nowMs);
  }

  submit(item: RouterItem, nowMs: number): SubmitResult {
    const { context } = item;
    if (this.lifecycle.items.has(context.id)) throw new RangeError('a request id is submitted once');
    const role = this.roleOf(context.role);
    if (!role.settings.enabled) return refusedSubmit('role_disabled', null, []);
    this.lifecycle.freshen(role, nowMs);
    const { queueBound } = this.settings;
    if (role.queue.size >= queueBound || role.queue.sizeOf(context.project) >= Math.ceil(queueBound / 4)) {
      return refusedSubmit('queue_full', this.fullRetryMs(role, nowMs), []);
    }
    const rank = rankOf(context.class);
    const job = item.task === 'embed' ? new StripedJob(item.units, nowMs) : null;
    const deadlineAtMs = nowMs + QUEUE_DEADLINE_MS[context.class];
    const state = new ItemState(item, role, this.nextSeq, rank, job, nowMs, deadlineAtMs);
    let lane = role.laneOf(state);
    state.wait = role.waitOf(lane, role.aheadOfNew(lane, rank), context.policy === 'backup', nowMs);
    if (reviewBackup(state, lane, nowMs)) lane = role.laneOf(state);
    if (!lane.hopeful(deadlineAtMs, nowMs)) {
      return refusedSubmit(verdictOnNobody(lane), retryAfterOf(role, lane, nowMs), lane.refused);
    }
    this.nextSeq += 1;
    this.lifecycle.items.set(context.id, state);
    if (job !== null) role.jobs.add(state);
    role.queue.insert(state, lane);
    role.watchHope(lane, nowMs);
    return { accepted: true };
  }

  cancel(request: RequestId, nowMs: number): readonly AttemptId[] {
    const item = this.lifecycle.items.get(request);
    if (item === undefined) return [];
    this.lifecycle.forget(item);
    const aborted: AttemptId[] = [];
    for (const attempt of item.attempts) {
      if (attempt.endedAtMs !== null || attempt.aborted) continue;
      attempt.abortedAtMs = nowMs;
      aborted.push(attempt.id);
    }
    return aborted;
  }

  firstByte(id: AttemptId, nowMs: number): void {
    const attempt = this.running.find(id);
    if (attempt === null || attempt.aborted) return;
    attempt.firstByteAtMs ??= nowMs;
    // The client of an embedding sees nothing before the last chunk: other providers may still be tried.
    if (attempt.item.job === null) attempt.item.firstByteSent = true;
  }

  attemptEnded(id: AttemptId, outcome: AttemptOutcome, nowMs: number): EndedResult {
    const attempt = this.running.end(id, nowMs);
    if (attempt === null) return { keep: false, range: null };
    return this.outcomes.settle(attempt, outcome, nowMs);
  }

  probed(id: ProviderId, ok: boolean, nowMs: number): void {
    const provider = this.fleet.find(id);
    if (provider === null || !provider.parking.probed(ok, nowMs)) return;
    this.roleOf(provider.routed.role).stale = true;
    this.fleet.poolChanged(provider.pool, this.roles);
  }

  permitsChanged(): void {
    this.cloudRetryAtMs = Number.NEGATIVE_INFINITY;
  }

  decide(nowMs: number): readonly Decision[] {
    for (const role of this.roles) {
      this.lifecycle.freshen(role, nowMs);
      this.lifecycle.expire(role, nowMs);
      if (nowMs >= role.tickAtMs) this.tick(role, nowMs);
    }
    this.matcher.local(nowMs);
    this.cloudRetryAtMs = this.matcher.cloud(nowMs);
    for (const role of this.roles) if (role.embeds) this.matcher.copies(role, nowMs);
    return this.lifecycle.takeDecisions();
  }

  nextWakeMs(nowMs: number): number | null {
    if (this.lifecycle.hasDecisions) return nowMs;
    let wakeMs = this.cloudRetryAtMs ?? Number.POSITIVE_INFINITY;
    for (const role of this.roles) wakeMs = Math.min(wakeMs, role.wakeMs());
    return wakeMs === Number.POSITIVE_INFINITY ? null : Math.max(wakeMs, nowMs);
  }

  traceOf(request: RequestId, nowMs: number): ItemTrace | null {
    return this.lifecycle.items.get(request)?.trace(nowMs) ?? null;
  }

  snapshot(nowMs: number): RouterSnapshot {
    for (const role of this.roles) this.lifecycle.freshen(role, nowMs);
    return takeSnapshot(this.roles, nowMs);
  }

  private tick(role: RoleState, nowMs: number): void {
    role.tickAtMs = nowMs + OVERFLOW_CHECK_MS;
    role.pulse += 1;
    if (role.embeds) role.refreshSpeeds();
    reviewQueue(role, nowMs);
  }

  /** When a place in the queue should be free: the wait of one more, at least a second. */
  private fullRetryMs(role: RoleState, nowMs: number): number {
    const busiest = [...role.lanes.values()].reduce<Lane | null>(
      (most, lane) => (most === null || lane.total > most.total ? lane : most),
      null,
    );
    const waitMs = busiest === null ? null : role.waitOf(busiest, 0, false, nowMs).waitMs;
    return Math.min(30_000, Math.max(1000, Math.ceil(waitMs ?? FULL_RETRY_MS)));
  }

  private roleOf(id: RoleId): RoleState {
    const role = this.byRole.get(id);
    if (role === undefined) throw new RangeError(`no role ${id}`);
    return role;
  }
}
