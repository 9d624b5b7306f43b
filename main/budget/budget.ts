import { SwitchyardError } from '../domain/errors.ts';
import type { NodeId, ProjectId } from '../domain/ids.ts';
import { told } from '../domain/said.ts';
import type { Clock, Random } from '../domain/time.ts';
import { type Ceiling, ceilingOf, isOverride } from './ceiling.ts';
import { type CallTarget, Circuits, type OpenCircuit } from './circuits.ts';
import { type BudgetState, describe } from './describe.ts';
import { Diary } from './diary.ts';
import { InFlight } from './in-flight.ts';
import { Latency } from './latency.ts';
import { Limit } from './limit.ts';
import { ageOf, type BudgetMemory } from './memory.ts';
import type { CallOutcome, Decision, Permit, PermitAsk, Reaction, RefusalReason, Refused } from './permit.ts';
import type { BudgetRecord, BudgetSnapshot } from './snapshot.ts';
import { Spend, type SpendLine, type SpendScope, type SpendState } from './spend.ts';
import { Suggestion } from './suggestion.ts';
import { type AccountFacts, NOTHING_KNOWN, trustedRpm } from './trust.ts';
import { type DeclaredAsk, Waiting } from './waiting.ts';
import { StartWindow } from './window.ts';

/** From the abort of a streamed call until its upstream has surely ended. */
const ABORT_MS = 250;
/** An agent that lost its session aborts its cloud calls within this time. */
const LOST_MS = 5000;

export interface BudgetOptions {
  /** For days (UTC), resets and records; intervals come from the `nowMs` of each call. */
  readonly clock: Pick<Clock, 'wallMs'>;
  readonly random: Random;
  readonly nowMs: number;
  readonly override?: number | null;
  /** Assumed until a call is measured. */
  readonly latencyMs?: number;
  readonly spend?: SpendState | null;
  /** Of an earlier run. */
  readonly memory?: BudgetMemory | null;
  readonly records?: readonly BudgetRecord[];
  /** What a call has cost is known, however it ended; once for each call that cost something. */
  onSpent?(permit: Permit, usd: number): void;
}

/**
 * The one pool above all cloud providers: a permit is one cloud request in flight. Every method takes the monotonic time,
 * which must not go backwards; nothing happens by itself, so a shell looks again at `nextWakeMs`.
 */
export class Budget {
  readonly #clock: Pick<Clock, 'wallMs'>;
  readonly #onSpent: (permit: Permit, usd: number) => void;
  readonly #latency: Latency;
  readonly #limit: Limit;
  readonly #window = new StartWindow();
  readonly #circuits = new Circuits();
  readonly #waiting = new Waiting();
  readonly #spend: Spend;
  readonly #suggestion = new Suggestion();
  readonly #inFlight = new InFlight();
  readonly #diary: Diary;
  #facts: AccountFacts = NOTHING_KNOWN;
  #discoveredAtMs: number | null = null;
  #override: number | null;
  #ceiling: Ceiling;
  #paused = false;
  /**
   * Begins the ids of permits: an agent that reads a cancelled call to its end may name one of an earlier run of this process, which
   * must not give back one of this run.
   */
  readonly #run: string;
  #nextPermit = 1;
  /** An earlier run has found out what the account carries: the first reading of `/key` does not lift it. */
  #remembers = false;
  /** Grows with everything learnt. */
  #learnt = 0;
  /** Row of the refusal that the limit is learning from. */
  #cause = '';
  #nowMs: number;

  constructor(options: BudgetOptions) {
    this.#clock = options.clock;
    this.#onSpent = (permit, usd) => options.onSpent?.(permit, usd);
    this.#run = Math.floor(options.clock.wallMs()).toString(36);
    this.#nowMs = options.nowMs;
    this.#diary = new Diary((atMs) => this.#wallOf(atMs), options.records);
    this.#override = options.override ?? null;
    if (this.#override !== null) checkOverride(this.#override);
    const memory = options.memory ?? null;
    const ageMs = ageOf(memory, options.clock.wallMs());
    const known = memory !== null && ageMs !== null ? { of: memory, ageMs } : null;
    this.#latency = new Latency(known?.of.latencyMs ?? null, options.latencyMs);
    this.#spend = new Spend(options.spend ?? null);
    this.#ceiling = ceilingOf(this.#facts, this.#override, this.#latency.ms);
    this.#limit = new Limit({
      ceiling: this.#ceiling.free,
      nowMs: options.nowMs,
      random: options.random,
      record: (event) => {
        this.#learnt++;
        this.#diary.note(event.kind === 'cut' ? { ...event, cause: this.#cause } : event);
      },
      memory: known === null ? null : { of: known.of.limit, ageMs: known.ageMs },
    });
    if (known === null) return;
    this.#remembers = true;
    this.#window.remember(known.of.starts, known.ageMs, options.nowMs);
  }

  /** A permit for this work, or the reason why not. A refused ask waits for its turn until it is granted or withdrawn. */
  acquire(ask: PermitAsk, nowMs: number): Decision {
    this.advance(nowMs);
    const stopped = this.#stops(ask, nowMs);
    if (stopped !== null) {
      this.#waiting.leave(ask.project, ask.id);
      return stopped;
    }
    this.#waiting.join(ask, nowMs);
    const held = this.#holds(ask, nowMs);
    this.#observe(nowMs);
    if (held !== null) return held;
    this.#waiting.grant(ask);
    this.#window.record(nowMs);
    this.#learnt++;
    const id = `${this.#run}-${this.#nextPermit++}`;
    const permit: Permit = { id, ask, cuts: this.#limit.cuts, startedAtMs: nowMs };
    this.#inFlight.add(permit);
    this.#spend.reserve(permit.id, ask.role, ask.project, ask.estimateUsd, this.#clock.wallMs());
    this.#observe(nowMs);
    return { granted: true, permit };
  }

  /** Why nothing may go to this target now, permits, turns and spend caps aside; null: it is open. */
  closure(target: CallTarget, nowMs: number): Refused | null {
    this.advance(nowMs);
    if (this.#paused) return refuse('cloud_paused');
    const circuit = this.#circuits.check(target, nowMs);
    if (circuit !== null) return refuse(circuit.reason, circuit.untilMs);
    return !target.free && this.#ceiling.paid === 0 ? refuse('credit_exhausted') : null;
  }

  /**
   * Everything that waits for the cloud now, one ask for each kind of work that is told apart; replaces what was declared
   * before. A declared ask stays waiting also when it has been granted, until it is no longer declared.
   */
  declare(asks: readonly DeclaredAsk[], nowMs: number): void {
    this.advance(nowMs);
    this.#waiting.declare(asks, nowMs);
    this.#observe(nowMs);
  }

  /** The work has left the queue without a permit. */
  withdraw(project: ProjectId, id: string): void {
    this.#waiting.leave(project, id);
  }

  /**
   * The upstream call has really ended, and this is how. Once for each permit; a permit that is back already stays back, but
   * the account still learns from the outcome.
   */
  ended(permitId: string, outcome: CallOutcome, nowMs: number): Reaction {
    this.advance(nowMs);
    const permit = this.#inFlight.find(permitId);
    if (permit === null) return { source: null, cut: false };
    const reaction = this.#learn(permit, outcome, nowMs);
    this.#giveBack(permit, nowMs);
    this.#settle(permit.id, outcome.costUsd);
    this.#observe(nowMs);
    return reaction;
  }

  /** The upstream call has ended; how it did follows with `ended`, or never, and then its estimate counts as spent. */
  release(permitId: string, nowMs: number): void {
    this.advance(nowMs);
    const permit = this.#inFlight.find(permitId);
    if (permit !== null) this.#giveBack(permit, nowMs);
  }

  /** A granted permit was not used: nothing was sent. */
  unused(permitId: string, nowMs: number): void {
    this.release(permitId, nowMs);
    this.#settle(permitId, 0);
  }

  /**
   * The call was aborted. Its permit returns 250 ms later; `readsOn`: the upstream does not stop on abort, the agent reads to
   * the end and the permit stays until `ended`. `costUsd`: what the aborted call cost, where that can be told.
   */
  cancelled(
    permitId: string,
    nowMs: number,
    how: { readonly readsOn?: boolean; readonly costUsd?: number | null } = {},
  ): void {
    this.advance(nowMs);
    if (!this.#inFlight.isOut(permitId)) return;
    if (how.costUsd !== undefined && how.costUsd !== null) this.#book(permitId, how.costUsd);
    if (how.readsOn !== true) this.#inFlight.returnAt(permitId, nowMs + ABORT_MS);
  }

  /** The session broke under this call; its agent aborts it within 5 s. */
  callLost(permitId: string, nowMs: number): void {
    this.advance(nowMs);
    this.#inFlight.returnAt(permitId, nowMs + LOST_MS);
  }

  /** The permit is in use: its call runs, or has not surely ended. */
  holds(permitId: string): boolean {
    return this.#inFlight.isOut(permitId);
  }

  /** Whose call it is, while its outcome is of interest. */
  agentOf(permitId: string): NodeId | null {
    return this.#inFlight.find(permitId)?.ask.agent ?? null;
  }

  /** The session with an agent is lost: it aborts its cloud calls, whose permits return 5 s later. */
  agentLost(agent: NodeId, nowMs: number): void {
    this.advance(nowMs);
    for (const { id } of this.#inFlight.ofAgent(agent)) this.#inFlight.returnAt(id, nowMs + LOST_MS);
  }

  /** `/key` was read. The first reading sets what is used at once; later ones move only the ceiling. */
  discovered(facts: AccountFacts, nowMs: number): void {
    this.advance(nowMs);
    const first = this.#discoveredAtMs === null && !this.#remembers;
    this.#learnt++;
    this.#discoveredAtMs = nowMs;
    this.#facts = facts;
    this.#circuits.discovered(facts.creditUsd);
    this.#moveCeiling(first, nowMs);
  }

  /**
   * The operator's figure, 1 to 256; null gives the ceiling back to discovery.
   * @throws SwitchyardError `invalid_request` for anything else.
   */
  setOverride(override: number | null, nowMs: number): void {
    if (override !== null) checkOverride(override);
    this.advance(nowMs);
    this.#override = override;
    this.#moveCeiling(override !== null, nowMs);
  }

  setPaused(paused: boolean, nowMs: number): void {
    this.advance(nowMs);
    // Resuming also says that money is there again, whether or not a person had paused.
    if (!paused) this.#circuits.resumed();
    if (this.#paused === paused) return;
    this.#paused = paused;
    this.#diary.note({ kind: paused ? 'paused' : 'resumed', atMs: nowMs });
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** An agent has applied another key. */
  keyChanged(agent: NodeId, nowMs: number): void {
    this.advance(nowMs);
    this.#circuits.keyChanged(agent);
  }

  setCaps(
    scope: SpendScope,
    id: string,
    caps: { readonly dayUsd: number | null; readonly monthUsd: number | null },
  ): void {
    this.#spend.setCaps(scope, id, caps);
  }

  /** Grows with each change of `spendState` or `memory` worth saving. */
  get revision(): number {
    return this.#spend.revision + this.#learnt;
  }

  /** What the next run should know of the account; null: nothing was found out yet. */
  memory(nowMs: number): BudgetMemory | null {
    this.advance(nowMs);
    if (this.#discoveredAtMs === null && !this.#remembers) return null;
    return {
      atWallMs: this.#clock.wallMs(),
      latencyMs: this.#latency.measuredMs,
      limit: this.#limit.memory(nowMs),
      starts: this.#window.ages(nowMs),
    };
  }

  /** Spending and caps of roles and projects, as `snapshot` has them. */
  spendLines(): readonly SpendLine[] {
    return this.#spend.report(this.#clock.wallMs());
  }

  spendState(): SpendState {
    return this.#spend.state(this.#clock.wallMs());
  }

  /** Nobody will be there to hear how what runs has ended: it counts as estimated. */
  bookRunning(): void {
    for (const id of this.#spend.running()) this.#book(id, null);
  }

  /** Lets the clock do its part: steps, returns, reopened circuits. Every method calls it. */
  advance(nowMs: number): void {
    if (nowMs < this.#nowMs) return;
    for (const { permit, atMs } of this.#inFlight.due(nowMs)) this.#giveBack(permit, atMs);
    for (const id of this.#inFlight.overdue(nowMs)) this.#settle(id, null);
    this.#nowMs = nowMs;
    this.#limit.advance(nowMs);
    this.#circuits.prune(nowMs);
    this.#waiting.advance(nowMs);
    this.#observe(nowMs);
  }

  /** When the clock alone may let work start next; null: only an event can. */
  nextWakeMs(nowMs: number): number | null {
    this.advance(nowMs);
    const rpm = trustedRpm(this.#facts);
    const opens = rpm === null ? null : this.#window.opensAtMs(nowMs, windowSize(rpm));
    const times = [
      this.#limit.nextChangeMs(nowMs),
      this.#circuits.nextChangeMs(nowMs),
      this.#waiting.claimLapsesMs(),
      opens !== null && opens > nowMs ? opens : null,
      this.#inFlight.nextReturnMs(),
    ].filter((time) => time !== null);
    return times.length === 0 ? null : Math.max(nowMs, Math.min(...times));
  }

  /** The last cuts, steps and closures, and how many there have ever been. */
  get diary(): Pick<Diary, 'records' | 'recorded' | 'lasting'> {
    return this.#diary;
  }

  snapshot(nowMs: number): BudgetSnapshot {
    this.advance(nowMs);
    const wall = (atMs: number) => this.#wallOf(atMs);
    const rpm = trustedRpm(this.#facts);
    const cooling = this.#limit.isCooling(nowMs);
    const creditOff = this.#circuits.creditOff(nowMs);
    const nextStep = this.#limit.nextStepMs;
    const state = this.#state(nowMs);
    const usable = this.#usable();
    const situation = {
      state,
      paused: this.#paused,
      creditOff,
      ceiling: this.#ceiling,
      facts: this.#facts,
      latencyMs: this.#latency.ms,
      latencyMeasured: this.#latency.measuredMs !== null,
      effective: this.#limit.effective,
      usable,
      plateau: this.#limit.plateau,
      cooldownUntilWallMs: cooling ? wall(this.#limit.cooldownUntilMs) : null,
      nextStepWallMs: nextStep === null ? null : wall(nextStep),
    };
    const share = this.#waiting.share(usable);
    return {
      state,
      ...told(describe(situation)),
      ceiling: this.#ceiling.paid,
      ceilingSource: this.#ceiling.source,
      effective: this.#limit.effective,
      usable,
      inFlight: this.#waiting.held,
      waiting: this.#waiting.waiting,
      override: this.#override,
      paused: this.#paused,
      facts: this.#discoveredAtMs === null ? null : this.#facts,
      discoveredAtWallMs: this.#discoveredAtMs === null ? null : wall(this.#discoveredAtMs),
      rpmTrusted: rpm !== null,
      latencyMs: this.#latency.ms,
      latencyMeasured: this.#latency.measuredMs !== null,
      cuts: this.#limit.cuts,
      plateau: this.#limit.plateau,
      cooldownUntilMs: cooling ? this.#limit.cooldownUntilMs : null,
      cooldownUntilWallMs: situation.cooldownUntilWallMs,
      nextStepWallMs: situation.nextStepWallMs,
      window: rpm === null ? null : { limit: windowSize(rpm), starts: this.#window.count(nowMs) },
      suggestion: this.#ceiling.source === 'default' ? this.#suggestion.offer(this.#ceiling.paid, nowMs) : null,
      share: Number.isFinite(share) ? share : null,
      projects: this.#waiting.projects(),
      circuits: this.#circuits.open(nowMs).map((circuit) => describeCircuit(circuit, wall)),
      spend: this.spendLines(),
      records: this.#diary.records,
    };
  }

  #state(nowMs: number): BudgetState {
    if (this.#paused || this.#ceiling.paid === 0 || this.#circuits.creditOff(nowMs) !== null) return 'off';
    const state = this.#limit.state(nowMs);
    // Remembered is more than may be used before the first reading of `/key`: nobody sees that climb.
    return state === 'ramping' && this.#limit.effective >= this.#ceiling.free ? 'steady' : state;
  }

  #usable(): number {
    return Math.min(this.#limit.effective, this.#ceiling.free);
  }

  #stops(ask: PermitAsk, nowMs: number): Refused | null {
    const closed = this.closure(ask, nowMs);
    if (closed !== null) return closed;
    const spend = this.#spend.check(ask.role, ask.project, ask.free ? 0 : ask.estimateUsd, this.#clock.wallMs());
    return spend === null ? null : refuse(spend.reason);
  }

  #holds(ask: PermitAsk, nowMs: number): Refused | null {
    if (this.#limit.isCooling(nowMs)) return refuse('account_cooling', this.#limit.cooldownUntilMs);
    const rpm = trustedRpm(this.#facts);
    if (rpm !== null) {
      const opensAtMs = this.#window.opensAtMs(nowMs, windowSize(rpm));
      if (opensAtMs > nowMs) return refuse('rate_window', opensAtMs);
    }
    const usable = this.#usable();
    if (this.#waiting.held >= usable) return refuse('no_permit');
    return this.#waiting.isTurnOf(ask, usable, nowMs) ? null : refuse('not_its_turn', this.#waiting.claimLapsesMs());
  }

  #learn(permit: Permit, outcome: CallOutcome, nowMs: number): Reaction {
    const target: CallTarget = permit.ask;
    if (outcome.kind === 'success') {
      this.#circuits.succeeded(target);
      this.#latency.add(outcome.latencyMs);
      this.#ceiling = ceilingOf(this.#facts, this.#override, this.#latency.ms);
      this.#limit.drift(this.#ceiling.free);
      return { source: null, cut: false };
    }
    if (outcome.kind === 'ended') return { source: null, cut: false };
    const { refusal } = outcome;
    const source = this.#circuits.refused(target, refusal, nowMs, this.#clock.wallMs(), this.#facts.creditUsd);
    if (source.scope !== 'account') {
      if (source.scope !== 'none' && source.scope !== 'caller') {
        this.#diary.note({ kind: 'circuit', atMs: nowMs, name: source.name, subject: subjectOf(target, source.scope) });
      }
      return { source, cut: false };
    }
    this.#suggestion.reset();
    this.#cause = source.name;
    return { source, cut: this.#limit.refused(nowMs, permit.cuts, refusal.retryAfterMs ?? source.pauseMs) };
  }

  #moveCeiling(lift: boolean, nowMs: number): void {
    const before = this.#ceiling.paid;
    this.#ceiling = ceilingOf(this.#facts, this.#override, this.#latency.ms);
    this.#limit.discovered(this.#ceiling.free, lift, nowMs);
    if (before === this.#ceiling.paid) return;
    this.#suggestion.reset();
    this.#diary.note({ kind: 'ceiling', atMs: nowMs, from: before, to: this.#ceiling.paid });
  }

  #giveBack(permit: Permit, nowMs: number): void {
    if (this.#inFlight.giveBack(permit, nowMs)) this.#waiting.giveBack(permit.ask);
  }

  #settle(permitId: string, costUsd: number | null): void {
    this.#book(permitId, costUsd);
    this.#inFlight.settled(permitId);
  }

  #book(permitId: string, costUsd: number | null): void {
    const usd = this.#spend.settle(permitId, costUsd);
    const permit = this.#inFlight.find(permitId);
    if (usd > 0 && permit !== null) this.#onSpent(permit, usd);
  }

  #observe(nowMs: number): void {
    this.#suggestion.observe(
      this.#waiting.held >= this.#usable() && this.#waiting.held > 0 && this.#waiting.waiting > 0,
      nowMs,
    );
  }

  #wallOf(atMs: number): number {
    return Math.round(this.#clock.wallMs() + atMs - this.#nowMs);
  }
}

function refuse(reason: RefusalReason, untilMs: number | null = null): Refused {
  return { granted: false, reason, untilMs };
}

function windowSize(rpm: number): number {
  return Math.max(1, Math.floor(rpm));
}

function checkOverride(override: number): void {
  if (!isOverride(override)) {
    throw new SwitchyardError('invalid_request', 'The override must be a whole number from 1 to 256.');
  }
}

function subjectOf(target: CallTarget, scope: string): string | null {
  if (scope === 'model') return target.model;
  if (scope === 'provider') return target.upstream === null ? target.model : `${target.model} at ${target.upstream}`;
  return scope === 'key' ? target.agent : null;
}

function describeCircuit(circuit: OpenCircuit, wall: (atMs: number) => number) {
  return {
    reason: circuit.reason,
    subject: circuit.subject,
    sentence: circuit.sentence,
    untilWallMs: circuit.untilMs === null ? null : wall(circuit.untilMs),
  };
}
