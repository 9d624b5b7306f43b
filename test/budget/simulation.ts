import { ask, makeBudget, refusal } from './driver.ts';

export interface AccountModel {
  /** Calls in flight that the account carries; more are refused at once. */
  limitAt(ms: number): number;
  /** Starts per 60 s; null: no such limit. */
  readonly rpm: number | null;
  readonly latencyMs: number;
  /** Part of the calls that the client cancels half-way. */
  readonly cancelled: number;
}

export interface RunResult {
  readonly started: number;
  readonly refused: number;
  /** Permit-milliseconds used over the hidden limit, 1 s buckets. */
  readonly usedBySecond: readonly number[];
  readonly cuts: number;
  readonly starts: readonly number[];
  readonly held: readonly number[];
  readonly effective: readonly number[];
}

/** Deterministic uniform numbers (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Unbounded demand against an account with a hidden limit, event by event; a refusal takes 60 ms to come back. */
export function simulate(
  account: AccountModel,
  facts: { readonly creditUsd: number | null; readonly rpm: number | null },
  durationMs: number,
  seed = 1,
): RunResult {
  const now = { ms: 0 };
  const random = seeded(seed);
  const budget = makeBudget({ now, random });
  budget.discovered({ ...facts, isFreeTier: false }, 0);
  const events: { atMs: number; run: () => void }[] = [];
  const at = (atMs: number, run: () => void) => {
    let index = events.length;
    while (index > 0 && (events[index - 1]?.atMs ?? 0) > atMs) index--;
    events.splice(index, 0, { atMs, run });
  };
  let serving = 0;
  let started = 0;
  let minuteFrom = 0;
  let refused = 0;
  const starts: number[] = [];
  const served: number[] = [];
  const usedBySecond: number[] = [];
  const held: number[] = [];
  const effective: number[] = [];

  const send = (permitId: string) => {
    started++;
    starts.push(now.ms);
    while ((starts[minuteFrom] ?? now.ms) <= now.ms - 60_000) minuteFrom++;
    const inMinute = starts.length - minuteFrom;
    if (serving >= account.limitAt(now.ms) || (account.rpm !== null && inMinute > account.rpm)) {
      refused++;
      at(now.ms + 60, () => budget.ended(permitId, { kind: 'refused', refusal: refusal(), costUsd: 0 }, now.ms));
      return;
    }
    serving++;
    const lastsMs = account.latencyMs * (0.75 + random() / 2);
    if (random() < account.cancelled) {
      at(now.ms + lastsMs / 2, () => budget.cancelled(permitId, now.ms));
      // The upstream notices up to 250 ms later.
      at(now.ms + lastsMs / 2 + 200, () => {
        serving--;
      });
      return;
    }
    at(now.ms + lastsMs, () => {
      serving--;
      served.push(now.ms);
      budget.ended(permitId, { kind: 'success', latencyMs: lastsMs, costUsd: 0 }, now.ms);
    });
  };

  const pump = () => {
    for (;;) {
      const decision = budget.acquire(ask(`call${started}`), now.ms);
      if (!decision.granted) break;
      send(decision.permit.id);
    }
    const wake = budget.nextWakeMs(now.ms);
    if (wake !== null && wake > now.ms && !events.some((event) => event.atMs <= wake)) at(wake, () => undefined);
  };

  let second = 0;
  let lastMs = 0;
  let area = 0;
  pump();
  while (now.ms < durationMs) {
    const next = events.shift();
    if (next === undefined) throw new Error('the simulation has run dry: nobody will ever start again');
    while ((second + 1) * 1000 <= next.atMs) {
      second++;
      area += serving * (second * 1000 - lastMs);
      lastMs = second * 1000;
      usedBySecond.push(area / 1000);
      area = 0;
      held.push(budget.snapshot(now.ms).inFlight);
      effective.push(budget.snapshot(now.ms).effective);
    }
    area += serving * (next.atMs - lastMs);
    lastMs = next.atMs;
    now.ms = next.atMs;
    next.run();
    pump();
  }
  return { started, refused, usedBySecond, cuts: budget.snapshot(now.ms).cuts, starts, held, effective };
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
