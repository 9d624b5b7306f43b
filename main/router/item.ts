import type { ErrorCode } from '../domain/errors.ts';
import type { ProviderId } from '../domain/ids.ts';
import type { Shape } from './eligibility.ts';
import type { Explanation, SpillReason, WaitRecord } from './explanation.ts';
import type { ProviderState, SlotPool } from './fleet.ts';
import type { Chunk, StripedJob } from './job.ts';
import type { Lane } from './lane.ts';
import type { LaneQueue } from './queue.ts';
import type { RoleState } from './role.ts';
import type { AttemptId, AttemptOutcome, InputRange, ItemTrace, PermitRef, RouterItem } from './types.ts';

const NO_ATTEMPTS: readonly Attempt[] = [];
const NOBODY: readonly ProviderId[] = [];
const NO_SETBACKS: Explanation['before'] = [];
/** Enough to understand a retry; the trace has every attempt. */
const KEPT_SETBACKS = 8;

/** One call on a provider, from dispatch until the upstream call has really ended. Doubles as its record on the trace. */
export class Attempt {
  readonly id: AttemptId;
  readonly item: ItemState;
  readonly provider: ProviderState;
  /** Whose slot it holds, even if its provider moves to another engine meanwhile. */
  readonly pool: SlotPool;
  readonly range: InputRange | null;
  readonly chunk: Chunk | null;
  readonly copyOf: AttemptId | null;
  readonly permit: PermitRef | null;
  readonly startedAtMs: number;
  firstByteAtMs: number | null = null;
  endedAtMs: number | null = null;
  outcome: AttemptOutcome['kind'] | null = null;
  code: ErrorCode | null = null;
  /** Since then its answer no longer counts; it still holds its slot and permit. */
  abortedAtMs: number | null = null;

  constructor(
    id: AttemptId,
    item: ItemState,
    provider: ProviderState,
    work: { readonly chunk: Chunk | null; readonly copyOf: AttemptId | null; readonly permit: PermitRef | null },
    nowMs: number,
  ) {
    this.id = id;
    this.item = item;
    this.provider = provider;
    this.pool = provider.pool;
    this.chunk = work.chunk;
    this.range = work.chunk === null ? null : { start: work.chunk.start, count: work.chunk.count };
    this.copyOf = work.copyOf;
    this.permit = work.permit;
    this.startedAtMs = nowMs;
  }

  get aborted(): boolean {
    return this.abortedAtMs !== null;
  }
}

/** One request on its way through the router. Kept small: a hundred thousand of them may wait. */
export class ItemState {
  readonly item: RouterItem;
  readonly role: RoleState;
  /** Order of arrival. */
  readonly seq: number;
  /** Of its class, highest first. */
  readonly rank: number;
  readonly submittedAtMs: number;
  /** When it leaves the queue unserved. */
  deadlineAtMs: number;
  job: StripedJob | null;

  lane: Lane | null = null;
  /** Where it waits; null: not waiting. */
  queue: LaneQueue | null = null;
  nextInQueue: ItemState | null = null;
  previousInQueue: ItemState | null = null;
  nextFresh: ItemState | null = null;
  previousFresh: ItemState | null = null;
  /** Pulse of its role at which no local, no cloud provider wanted a chunk of it. */
  shunnedLocal = -1;
  shunnedCloud = -1;

  spill: SpillReason | null = null;
  localFailed = false;
  cloudClosed: Shape['cloudClosed'] = null;
  wait: WaitRecord | null = null;

  attempts: readonly Attempt[] = NO_ATTEMPTS;
  live = 0;
  failedBy: readonly ProviderId[] = NOBODY;
  busyAnswers = 0;
  /** Since when every answer to it was "busy", or came from another process than the one that had passed. */
  turnedAwaySinceMs: number | null = null;
  /** The session to its machine went away under it once: that says little of the provider, which may have it again. */
  sessionLost = false;
  firstByteSent = false;
  done = false;
  /** The newest attempts that ended without success. */
  setbacks: Explanation['before'] = NO_SETBACKS;

  constructor(
    item: RouterItem,
    role: RoleState,
    seq: number,
    rank: number,
    job: StripedJob | null,
    submittedAtMs: number,
    deadlineAtMs: number,
  ) {
    this.item = item;
    this.role = role;
    this.seq = seq;
    this.rank = rank;
    this.job = job;
    this.submittedAtMs = submittedAtMs;
    this.deadlineAtMs = deadlineAtMs;
  }

  get everDispatched(): boolean {
    return this.attempts.length > 0;
  }

  /** Least that its next dispatch charges its project; a striped chunk is charged in full once its size is known. */
  get entryCost(): number {
    return this.job === null ? this.item.costTokens : Math.max(1, Math.ceil(this.item.costTokens / this.item.units));
  }

  began(attempt: Attempt): void {
    if (this.attempts === NO_ATTEMPTS) this.attempts = [attempt];
    else (this.attempts as Attempt[]).push(attempt);
    this.live += 1;
  }

  ended(attempt: Attempt, outcome: AttemptOutcome, nowMs: number): void {
    this.live -= 1;
    attempt.endedAtMs = nowMs;
    attempt.outcome = outcome.kind;
    attempt.code = 'code' in outcome ? outcome.code : null;
    if (!attempt.aborted) {
      const turnedAway = outcome.kind === 'busy' || outcome.kind === 'fingerprint';
      this.turnedAwaySinceMs = turnedAway ? (this.turnedAwaySinceMs ?? nowMs) : null;
    }
    if (outcome.kind === 'success') return;
    const setback = { provider: attempt.provider.id, outcome: outcome.kind, code: attempt.code };
    this.setbacks = [...this.setbacks, setback].slice(-KEPT_SETBACKS);
  }

  trace(nowMs: number): ItemTrace {
    const { context } = this.item;
    return {
      request: context.id,
      role: context.role,
      project: context.project,
      class: context.class,
      submittedAtMs: this.submittedAtMs,
      endedAtMs: nowMs,
      attempts: this.attempts.map((attempt) => ({
        attempt: attempt.id,
        provider: attempt.provider.id,
        range: attempt.range,
        copyOf: attempt.copyOf,
        startedAtMs: attempt.startedAtMs,
        firstByteAtMs: attempt.firstByteAtMs,
        abortedAtMs: attempt.abortedAtMs,
        endedAtMs: attempt.endedAtMs,
        outcome: attempt.outcome,
        code: attempt.code,
      })),
    };
  }
}
