import { z } from 'zod';
import { type CloudEnded, cloudModelName } from '../../agent/wire/cloud.ts';
import { Budget } from '../budget/budget.ts';
import { isOverride } from '../budget/ceiling.ts';
import { LASTING } from '../budget/diary.ts';
import type { BudgetMemory } from '../budget/memory.ts';
import type { CallOutcome, Permit, Reaction } from '../budget/permit.ts';
import type { BudgetRecord, BudgetSnapshot } from '../budget/snapshot.ts';
import type { SpendScope } from '../budget/spend.ts';
import type { AccountFacts } from '../budget/trust.ts';
import type { NodeId, ProjectId } from '../domain/ids.ts';
import type { RoleId, SpendCaps } from '../domain/roles.ts';
import type { Clock, Random } from '../domain/time.ts';
import type { BudgetStateStore, Json } from '../store/ports.ts';

const count = z.number().min(0).max(1e6);
/** OpenRouter may ask for a day's pause; jitter comes on top, and behind it the wait for a step. */
const distance = z.number().min(0).max(172_800_000);
const permits = z.number().int().min(0).max(256);
const Learnt: z.ZodType<BudgetMemory> = z.object({
  atWallMs: z.number(),
  latencyMs: count.nullable(),
  limit: z.object({
    effective: permits,
    ceiling: permits,
    plateau: z.object({ value: permits, waitMs: z.number().min(0).max(3_600_000) }).nullable(),
    baseMs: count,
    coolsForMs: distance,
    nextStepInMs: distance,
    /** Absent in what an older version has saved. */
    cleanForMs: z.number().min(0).nullable().default(null),
  }),
  starts: z.array(z.tuple([count, z.number().int().min(0).max(100_000)])).max(62),
});
const at = z.number().min(0).max(8.64e15);
const changed = { atWallMs: at, from: permits, to: permits };
const Recorded: z.ZodType<BudgetRecord> = z.discriminatedUnion('kind', [
  z.object({ ...changed, kind: z.literal('cut'), untilWallMs: at, cause: z.string() }),
  z.object({ ...changed, kind: z.enum(['step', 'ceiling']) }),
  z.object({ atWallMs: at, kind: z.literal('cooldown-extended'), untilWallMs: at }),
  z.object({ atWallMs: at, kind: z.literal('plateau'), value: permits.nullable() }),
  z.object({ atWallMs: at, kind: z.literal('circuit'), name: z.string(), subject: z.string().nullable() }),
  z.object({ atWallMs: at, kind: z.enum(['paused', 'resumed']) }),
]);
const Stored = z.object({
  version: z.literal(1),
  override: z.number().refine(isOverride).nullable(),
  paused: z.boolean(),
  /** One figure that is none does not take the others, or a pause, with it. */
  spent: z.record(z.string(), z.number().min(0).catch(0)),
  /** Absent before there was such a thing; what cannot be understood is learnt again. */
  learnt: Learnt.nullable().default(null).catch(null),
  records: z
    .array(Recorded)
    .max(2 * LASTING)
    .default([])
    .catch([]),
});

/** What one call has cost, as the caps count it. */
export interface Booked {
  /** API key behind it; null: none. */
  readonly keyId: string | null;
  readonly project: ProjectId;
  readonly role: RoleId;
  /** With its pin, as providers name it. */
  readonly model: string;
  readonly startedWallMs: number;
  readonly usd: number;
}

export interface BudgetServiceOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly store: BudgetStateStore;
  /** Work that was refused may start now: the router should look again. */
  onChange(): void;
  /** What a call has cost, also when its client had left. */
  onSpent?(booked: Booked): void;
}

/** The budget with its clock, its memory of spending, and the ends of cancelled calls. */
export class BudgetService {
  readonly #options: BudgetServiceOptions;
  readonly budget: Budget;
  /** Called when the permit of a cancelled call is back. */
  readonly #returned = new Map<string, () => void>();
  /** Permits whose call has been sent: they return when it has ended, whatever the router thinks. */
  readonly #sent = new Set<string>();
  readonly #listeners = new Set<() => void>();
  #cancelWake: () => void = () => {};
  #wakeAtMs = Number.POSITIVE_INFINITY;
  #savedRevision = 0;
  #override: number | null;
  #paused: boolean;
  #stopped = true;

  constructor(options: BudgetServiceOptions) {
    this.#options = options;
    const { clock, random, store } = options;
    const saved = store.load();
    const stored = Stored.safeParse(saved);
    this.#override = stored.success ? stored.data.override : null;
    // Whether it was paused, and what was spent under which override, is not known: it waits for a person.
    this.#paused = stored.success ? stored.data.paused : saved !== null;
    const nowMs = clock.nowMs();
    this.budget = new Budget({
      clock,
      random,
      nowMs,
      override: this.#override,
      spend: stored.success ? { version: 1, spent: stored.data.spent } : null,
      memory: stored.success ? stored.data.learnt : null,
      records: stored.success ? stored.data.records : [],
      onSpent: ({ ask, startedAtMs }, usd) => {
        const { keyId = null, project, role } = ask;
        const model = cloudModelName(ask.model, ask.upstream);
        const startedWallMs = clock.wallMs() - (clock.nowMs() - startedAtMs);
        options.onSpent?.({ keyId, project, role, model, startedWallMs, usd });
      },
    });
    if (this.#paused) this.budget.setPaused(true, nowMs);
  }

  start(): void {
    this.#stopped = false;
    this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelWake();
    this.budget.bookRunning();
    this.#save(true);
  }

  snapshot(): BudgetSnapshot {
    return this.budget.snapshot(this.#nowMs());
  }

  diary(): Budget['diary'] {
    return this.budget.diary;
  }

  /** @throws SwitchyardError `invalid_request` outside 1 to 256 */
  setOverride(override: number | null): void {
    this.budget.setOverride(override, this.#nowMs());
    this.#override = override;
    this.#save(true);
    this.#changed();
  }

  setPaused(paused: boolean): void {
    this.budget.setPaused(paused, this.#nowMs());
    this.#paused = paused;
    this.#save(true);
    this.#changed();
  }

  setCaps(scope: SpendScope, id: string, caps: SpendCaps): void {
    this.budget.setCaps(scope, id, caps);
    this.#changed();
  }

  discovered(facts: AccountFacts): void {
    this.budget.discovered(facts, this.#nowMs());
    this.#changed();
  }

  keyChanged(node: NodeId): void {
    this.budget.keyChanged(node, this.#nowMs());
    this.#changed();
  }

  /** The call of this permit goes out now. */
  sent(permit: Permit): void {
    this.#sent.add(permit.id);
    this.touched();
  }

  isSent(permitId: string): boolean {
    return this.#sent.has(permitId) && this.budget.holds(permitId);
  }

  /** The session broke under a call: its permit returns in 5 s. */
  callLost(permit: Permit): void {
    this.budget.callLost(permit.id, this.#nowMs());
    this.#changed();
  }

  /** Called whenever refused work may start. @returns its own unsubscribe. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** A cloud call has ended by itself. */
  ended(permit: Permit, outcome: CallOutcome): Reaction {
    const reaction = this.budget.ended(permit.id, outcome, this.#nowMs());
    this.#changed();
    return reaction;
  }

  /**
   * A cloud call was cancelled and the agent told. The permit stays until the agent says how it ended; `onReturned` is called
   * once it is back.
   */
  cancelled(permit: Permit, onReturned?: () => void): void {
    this.budget.cancelled(permit.id, this.#nowMs(), { readsOn: true });
    if (onReturned !== undefined) this.#returned.set(permit.id, onReturned);
    this.#changed();
  }

  /** The agent says that a cancelled call is over, or that its connection was closed just now. */
  onEnded(agent: NodeId, { permit, aborted, costUsd }: CloudEnded): void {
    // Calls of other agents are not its to end, or to price.
    if (this.budget.agentOf(permit) !== agent) return;
    const nowMs = this.#nowMs();
    if (aborted) this.budget.cancelled(permit, nowMs, { costUsd });
    else this.budget.ended(permit, { kind: 'ended', costUsd }, nowMs);
    this.#changed();
  }

  sessionLost(node: NodeId): void {
    this.budget.agentLost(node, this.#nowMs());
    this.#changed();
  }

  /** After anything that may have moved the next wake: permits granted by the router included. */
  touched(): void {
    this.#save(false);
    this.#schedule();
  }

  #changed(): void {
    this.#settleReturned();
    for (const permit of this.#sent) if (!this.budget.holds(permit)) this.#sent.delete(permit);
    this.touched();
    this.#options.onChange();
    for (const listener of [...this.#listeners]) listener();
  }

  #settleReturned(): void {
    for (const [permit, callback] of this.#returned) {
      if (this.budget.holds(permit)) continue;
      this.#returned.delete(permit);
      callback();
    }
  }

  #schedule(): void {
    if (this.#stopped) return;
    const nowMs = this.#nowMs();
    const wakeMs = this.budget.nextWakeMs(nowMs) ?? Number.POSITIVE_INFINITY;
    if (wakeMs === this.#wakeAtMs) return;
    this.#cancelWake();
    this.#wakeAtMs = wakeMs;
    if (wakeMs === Number.POSITIVE_INFINITY) return;
    // A timer may fire a fraction early; a day-long one would overflow the platform's.
    const delayMs = Math.min(Math.ceil(wakeMs - nowMs), 3_600_000);
    this.#cancelWake = this.#options.clock.after(delayMs, () => {
      this.#wakeAtMs = Number.POSITIVE_INFINITY;
      this.budget.advance(this.#nowMs());
      this.#changed();
    });
  }

  #save(always: boolean): void {
    const { revision } = this.budget;
    if (!always && revision === this.#savedRevision) return;
    this.#savedRevision = revision;
    const { spent } = this.budget.spendState();
    const learnt = this.budget.memory(this.#nowMs());
    const records = this.budget.diary.lasting;
    const { version, override, paused } = { version: 1, override: this.#override, paused: this.#paused };
    this.#options.store.save({ version, override, paused, spent, learnt, records } as unknown as Json);
  }

  #nowMs(): number {
    return this.#options.clock.nowMs();
  }
}
