import { describe, expect, it } from 'vitest';
import { type CloudRefusal, type Scope, SOURCES, sourceOf } from '../../main/budget/sources.ts';
import type { NodeId } from '../../main/domain/ids.ts';
import { ask, fill, makeBudget, NOON, refusal } from './driver.ts';

const MIDNIGHT = Date.UTC(2026, 11, 1);

describe('who caused a refusal', () => {
  it.each<[string, Partial<CloudRefusal>, Scope]>([
    ['free daily', { limitSource: 'openrouter_free_tier_daily' }, 'free-models'],
    ['free minute', { limitSource: 'openrouter_free_tier_minute' }, 'free-models'],
    ['shared capacity', { limitSource: 'openrouter_shared_capacity' }, 'model'],
    ['admission control', { limitSource: 'openrouter_admission_control' }, 'account'],
    ['upstream pool', { limitSource: 'upstream_provider_shared_pool', fromProvider: true }, 'provider'],
    ['a plain 429', {}, 'account'],
    ['a 429 that names an upstream', { fromProvider: true }, 'provider'],
    ['a 429 of a source unknown here', { limitSource: 'openrouter_something_new' }, 'model'],
    ['capacity', { limitSource: 'openrouter_something_new', availability: 'capacity_exhausted' }, 'model'],
    ['in-flight budget', { status: 402, limitSource: 'openrouter_in_flight_budget' }, 'paid-wait'],
    ['credit', { status: 402, limitSource: 'openrouter_credits' }, 'credit'],
    ['key limit', { status: 402, limitSource: 'openrouter_key_limit' }, 'credit'],
    ['key limit as 403', { status: 403, limitSource: 'openrouter_key_limit' }, 'credit'],
    ['guardrail budget', { status: 403, limitSource: 'openrouter_guardrail_budget' }, 'credit'],
    ['workspace budget', { status: 403, limitSource: 'openrouter_workspace_budget' }, 'credit'],
    ['unnamed 402', { status: 402 }, 'credit'],
    ['401', { status: 401 }, 'key'],
    ['403', { status: 403 }, 'key'],
    ['moderation', { status: 403, moderated: true, fromProvider: true }, 'caller'],
    ['region', { status: 403, availability: 'region_restricted' }, 'provider'],
    ['an upstream that refuses OpenRouter', { status: 401, fromProvider: true }, 'provider'],
    ['503', { status: 503 }, 'provider'],
    ['529', { status: 529 }, 'provider'],
    ['502 of an upstream', { status: 502, fromProvider: true }, 'provider'],
    ['502', { status: 502 }, 'none'],
    ['500', { status: 500 }, 'none'],
    ['524', { status: 524 }, 'none'],
    ['pinned upstream away', { status: 404, availability: 'constraint_filtered' }, 'provider'],
    ['400', { status: 400 }, 'caller'],
    ['400 of an upstream', { status: 400, fromProvider: true }, 'caller'],
    ['413', { status: 413 }, 'caller'],
    ['422', { status: 422 }, 'caller'],
    ['anything', { status: 999 }, 'none'],
  ])('%s', (_, changes, scope) => {
    expect(sourceOf(refusal(changes)).scope).toBe(scope);
  });

  it('has a name and a sentence for each row, no two alike', () => {
    expect(new Set(SOURCES.map((row) => row.name)).size).toBe(SOURCES.length);
    for (const row of SOURCES) expect(row.sentence).toMatch(/^[A-Z].*\.$/);
  });
});

/** One call of `target` refused at 1 s with `changes`; permits 8. */
function refusedOnce(changes: Partial<CloudRefusal>, target: Parameters<typeof ask>[1] = {}) {
  const now = { ms: 0 };
  const budget = makeBudget({ now, override: 8 });
  const [permit] = fill(budget, 0, 1, target);
  now.ms = 1000;
  const reaction = budget.ended(permit?.id ?? '', { kind: 'refused', refusal: refusal(changes), costUsd: 0 }, 1000);
  return { budget, now, reaction };
}

describe('what a refusal stops', () => {
  it('admission control halves the account and waits at least Retry-After', () => {
    const { budget, reaction } = refusedOnce({ limitSource: 'openrouter_admission_control', retryAfterMs: 10_000 });
    expect(reaction.cut).toBe(true);
    // 10 s + 0.5 x min(2.5 s, 5 s)
    expect(budget.snapshot(1000)).toMatchObject({
      effective: 4,
      state: 'cooling',
      cooldownUntilMs: 12_250,
      inFlight: 0,
    });
    expect(fill(budget, 12_249)).toHaveLength(0);
    expect(fill(budget, 12_250)).toHaveLength(4);
  });

  it('a free daily limit stops free models until the reset and nothing else', () => {
    const reset = NOON + 5 * 3_600_000;
    const { budget, reaction } = refusedOnce(
      { limitSource: 'openrouter_free_tier_daily', resetAtWallMs: reset },
      { model: 'a/b:free', free: true },
    );
    expect(reaction.cut).toBe(false);
    expect(budget.acquire(ask('x', { model: 'c/d:free', free: true }), 2000)).toEqual({
      granted: false,
      reason: 'free_tier_limit',
      untilMs: 5 * 3_600_000,
    });
    expect(fill(budget, 2000)).toHaveLength(8);
    expect(budget.nextWakeMs(2000)).toBe(5 * 3_600_000);
    expect(budget.snapshot(2000)).toMatchObject({ effective: 8, state: 'steady' });
  });

  it('without a reset a daily limit ends at the next UTC midnight', () => {
    const { budget, now } = refusedOnce(
      { limitSource: 'openrouter_free_tier_daily' },
      { model: 'a/b:free', free: true },
    );
    now.ms = 2000;
    expect(budget.acquire(ask('x', { model: 'a/b:free', free: true }), 2000)).toMatchObject({
      untilMs: MIDNIGHT - NOON,
    });
  });

  it('shared capacity rests the model through every upstream', () => {
    const { budget } = refusedOnce({ limitSource: 'openrouter_shared_capacity', retryAfterMs: 7000 }, { model: 'a/b' });
    expect(budget.acquire(ask('x', { model: 'a/b', upstream: 'other' }), 7999)).toMatchObject({
      reason: 'model_cooling',
      untilMs: 8000,
    });
    expect(budget.acquire(ask('y', { model: 'a/c' }), 2000).granted).toBe(true);
    expect(budget.acquire(ask('z', { model: 'a/b' }), 8000).granted).toBe(true);
  });

  it('an upstream pool rests that upstream of that model only, on every machine', () => {
    const { budget } = refusedOnce(
      { limitSource: 'upstream_provider_shared_pool', fromProvider: true, retryAfterMs: 30_000 },
      { upstream: 'baseten' },
    );
    const other = { agent: 'n2' as NodeId };
    expect(budget.acquire(ask('x', { ...other, upstream: 'baseten' }), 2000)).toMatchObject({
      reason: 'provider_cooling',
      untilMs: 31_000,
    });
    expect(budget.acquire(ask('y', { ...other, upstream: 'nebius' }), 2000).granted).toBe(true);
  });

  it('503s without a hint double from 20 s to 5 min and a success forgives', () => {
    const now = { ms: 0 };
    const budget = makeBudget({ now, override: 8 });
    const pauses: number[] = [];
    for (let round = 0; round < 6; round++) {
      const [permit] = fill(budget, now.ms, 1);
      budget.ended(permit?.id ?? '', { kind: 'refused', refusal: refusal({ status: 503 }), costUsd: 0 }, now.ms);
      const decision = budget.acquire(ask('next'), now.ms);
      if (decision.granted || decision.untilMs === null) throw new Error('the upstream should rest');
      pauses.push((decision.untilMs - now.ms) / 1000);
      now.ms = decision.untilMs;
    }
    expect(pauses).toEqual([20, 40, 80, 160, 300, 300]);
    const [permit] = fill(budget, now.ms, 1);
    budget.ended(permit?.id ?? '', { kind: 'success', latencyMs: 1000, costUsd: 0 }, now.ms);
    const [again] = fill(budget, now.ms, 1);
    budget.ended(again?.id ?? '', { kind: 'refused', refusal: refusal({ status: 503 }), costUsd: 0 }, now.ms);
    expect(budget.acquire(ask('last'), now.ms)).toMatchObject({ untilMs: now.ms + 20_000 });
  });

  it('an in-flight 402 makes paid calls wait, free ones not, and cuts nothing', () => {
    const { budget } = refusedOnce({ status: 402, limitSource: 'openrouter_in_flight_budget', retryAfterMs: 120_000 });
    expect(budget.acquire(ask('x'), 2000)).toMatchObject({ reason: 'in_flight_budget', untilMs: 121_000 });
    expect(budget.acquire(ask('y', { free: true, model: 'a/b:free' }), 2000).granted).toBe(true);
    expect(budget.acquire(ask('x'), 121_000).granted).toBe(true);
    expect(budget.snapshot(121_000).cuts).toBe(0);
  });

  it('a credit 402 turns paid models off until there is more money or the operator resumes', () => {
    const now = { ms: 0 };
    const budget = makeBudget({ now });
    budget.discovered({ creditUsd: 3, isFreeTier: false, rpm: null }, 0);
    const [permit] = fill(budget, 0, 1);
    budget.ended(
      permit?.id ?? '',
      { kind: 'refused', refusal: refusal({ status: 402, limitSource: 'openrouter_credits' }), costUsd: 0 },
      10,
    );
    expect(budget.snapshot(10)).toMatchObject({ state: 'off', sentence: expect.stringContaining('credit is used up') });
    budget.discovered({ creditUsd: 3, isFreeTier: false, rpm: null }, 600_000);
    expect(budget.acquire(ask('x'), 600_000)).toMatchObject({ reason: 'credit_exhausted', untilMs: null });
    expect(budget.acquire(ask('y', { free: true, model: 'a/b:free' }), 600_000).granted).toBe(true);
    budget.discovered({ creditUsd: 20, isFreeTier: false, rpm: null }, 1_200_000);
    expect(budget.acquire(ask('x'), 1_200_000).granted).toBe(true);

    const [second] = fill(budget, 1_200_001, 1);
    budget.ended(second?.id ?? '', { kind: 'refused', refusal: refusal({ status: 402 }), costUsd: 0 }, 1_200_002);
    expect(budget.acquire(ask('z'), 1_200_003)).toMatchObject({ reason: 'credit_exhausted' });
    budget.setPaused(true, 1_200_004);
    budget.setPaused(false, 1_200_005);
    expect(budget.acquire(ask('z'), 1_200_006).granted).toBe(true);
  });

  it('a key limit is over when the key shows money again', () => {
    const { budget } = refusedOnce({ status: 402, limitSource: 'openrouter_key_limit' });
    budget.discovered({ creditUsd: 0, isFreeTier: false, rpm: null }, 2000);
    expect(budget.acquire(ask('x'), 2000).granted).toBe(false);
    budget.discovered({ creditUsd: 0.5, isFreeTier: false, rpm: null }, 3000);
    expect(budget.acquire(ask('x'), 3000).granted).toBe(true);
  });

  it('a 401 marks the key of that agent until it gets another', () => {
    const { budget } = refusedOnce({ status: 401 });
    expect(budget.acquire(ask('x'), 2000)).toMatchObject({ reason: 'key_refused', untilMs: null });
    expect(budget.acquire(ask('y', { agent: 'n2' as NodeId }), 2000).granted).toBe(true);
    budget.keyChanged('n1' as NodeId, 3000);
    expect(budget.acquire(ask('x'), 3000).granted).toBe(true);
  });

  it('every refusal gives its permit back', () => {
    for (const row of SOURCES) {
      const { budget } = refusedOnce({
        status: row.statuses?.[0] ?? 999,
        limitSource: row.limitSource === 'absent' ? null : row.limitSource,
      });
      expect([row.name, budget.snapshot(1000).inFlight]).toEqual([row.name, 0]);
    }
  });
});
