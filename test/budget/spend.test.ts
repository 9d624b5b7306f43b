import { describe, expect, it } from 'vitest';
import { Spend, upperEstimateUsd } from '../../main/budget/spend.ts';
import type { ProjectId } from '../../main/domain/ids.ts';
import { ask, makeBudget, NOON } from './driver.ts';

const HOUR = 3_600_000;
const none = { dayUsd: null, monthUsd: null };

describe('spend caps', () => {
  it('count the upper estimate while a call runs and its reported cost afterwards', () => {
    const spend = new Spend();
    spend.setCaps('role', 'rlm', { dayUsd: 1, monthUsd: null });
    expect(spend.check('rlm', 'A', 0.6, NOON)).toBeNull();
    spend.reserve('c1', 'rlm', 'A', 0.6, NOON);
    expect(spend.check('rlm', 'B', 0.6, NOON)).toMatchObject({
      reason: 'spend_cap',
      scope: 'role',
      id: 'rlm',
      period: 'day',
    });
    expect(spend.check('embedding', 'A', 0.6, NOON)).toBeNull();
    spend.settle('c1', 0.1);
    spend.settle('c1', 5);
    expect(spend.total('role', 'rlm', 'day', NOON)).toEqual({ spentUsd: 0.1, reservedUsd: 0 });
    expect(spend.check('rlm', 'B', 0.9, NOON)).toBeNull();
    expect(spend.check('rlm', 'B', 0.91, NOON)).not.toBeNull();
  });

  it('let the estimate stand when no cost is reported', () => {
    const spend = new Spend();
    spend.reserve('c1', 'rlm', 'A', 0.25, NOON);
    spend.settle('c1', null);
    expect(spend.total('project', 'A', 'month', NOON).spentUsd).toBe(0.25);
  });

  it('begin anew with the UTC day and month', () => {
    const spend = new Spend();
    spend.setCaps('project', 'A', { dayUsd: 1, monthUsd: 1.5 });
    spend.reserve('c1', 'rlm', 'A', 1, NOON);
    spend.settle('c1', 1);
    // NOON is 30 November: eleven hours later it is the same day, twelve later December.
    expect(spend.check('rlm', 'A', 0.4, NOON + 11 * HOUR)).toMatchObject({ period: 'day' });
    expect(spend.check('rlm', 'A', 1, NOON + 12 * HOUR)).toBeNull();
    const dayBefore = NOON - 24 * HOUR;
    spend.reserve('c2', 'rlm', 'A', 0.4, dayBefore);
    spend.settle('c2', 0.4);
    expect(spend.check('rlm', 'A', 0.2, dayBefore)).toMatchObject({ period: 'month' });
  });

  it('refuse a model of unknown price where a cap is set, and only there', () => {
    const spend = new Spend();
    spend.setCaps('role', 'rlm', { dayUsd: 1, monthUsd: null });
    expect(spend.check('rlm', 'A', null, NOON)).toMatchObject({ reason: 'price_unknown' });
    expect(spend.check('reranker', 'A', null, NOON)).toBeNull();
    spend.setCaps('role', 'rlm', none);
    expect(spend.check('rlm', 'A', null, NOON)).toBeNull();
  });

  it('survive a restart as JSON, with what was running counted as spent, and forget old months', () => {
    const spend = new Spend();
    spend.reserve('old', 'rlm', 'A', 9, Date.UTC(2026, 8, 30));
    spend.settle('old', 9);
    spend.reserve('last', 'rlm', 'A|odd', 2, Date.UTC(2026, 9, 31));
    spend.settle('last', 2);
    spend.reserve('c1', 'rlm', 'A', 0.5, NOON);
    spend.settle('c1', 0.5);
    spend.reserve('c2', 'rlm', 'A', 0.25, NOON);
    const again = new Spend(JSON.parse(JSON.stringify(spend.state(NOON))));
    expect(again.total('role', 'rlm', 'day', NOON)).toEqual({ spentUsd: 0.75, reservedUsd: 0 });
    expect(again.total('project', 'A|odd', 'month', Date.UTC(2026, 9, 5)).spentUsd).toBe(2);
    expect(JSON.stringify(spend.state(NOON))).not.toContain('2026-09');
    expect(again.report(NOON)).toContainEqual({
      scope: 'project',
      id: 'A',
      day: { spentUsd: 0.75, reservedUsd: 0 },
      month: { spentUsd: 0.75, reservedUsd: 0 },
      caps: none,
      reached: null,
    });
  });

  it('outlive a clock that is a year ahead for a while, whether anything was spent there or not', () => {
    for (const spentThere of [0, 2]) {
      const spend = new Spend();
      const year = 365 * 24 * HOUR;
      spend.setCaps('project', 'A', { dayUsd: null, monthUsd: 1 });
      spend.reserve('c1', 'rlm', 'A', 0.9, NOON);
      spend.settle('c1', 0.9);
      spend.reserve('c2', 'rlm', 'B', spentThere, NOON + year);
      spend.settle('c2', spentThere);
      const again = new Spend(JSON.parse(JSON.stringify(spend.state(NOON + year))));
      again.setCaps('project', 'A', { dayUsd: null, monthUsd: 1 });
      again.state(NOON);
      expect(again.check('rlm', 'A', 0.5, NOON)).toMatchObject({ reason: 'spend_cap', period: 'month' });
    }
  });

  it('stop the call before it starts, with its own reason', () => {
    const budget = makeBudget({ override: 8 });
    budget.setCaps('project', 'A', { dayUsd: 0.05, monthUsd: null });
    const first = budget.acquire(ask('a', { estimateUsd: 0.04 }), 0);
    if (!first.granted) throw new Error('the first fits');
    expect(budget.acquire(ask('b', { estimateUsd: 0.04 }), 0)).toMatchObject({ reason: 'spend_cap' });
    expect(budget.acquire(ask('c', { estimateUsd: 0.04, project: 'B' as ProjectId }), 0).granted).toBe(true);
    budget.ended(first.permit.id, { kind: 'success', latencyMs: 100, costUsd: 0.001 }, 100);
    expect(budget.acquire(ask('b', { estimateUsd: 0.04 }), 100).granted).toBe(true);
  });

  it('estimate two bytes a token, all of the output, and a search per 100 documents', () => {
    const price = { promptUsd: 1e-6, completionUsd: 4e-6, requestUsd: 0.001 };
    // 1001 bytes: 501 tokens; 501e-6 + 1000 x 4e-6 + 0.001
    expect(upperEstimateUsd(price, { promptBytes: 1001, maxOutputTokens: 1000, documents: 0 })).toBeCloseTo(
      0.005501,
      9,
    );
    const free = { promptUsd: 0, completionUsd: 0, requestUsd: 0 };
    expect(upperEstimateUsd(free, { promptBytes: 10, maxOutputTokens: 0, documents: 101 })).toBeCloseTo(0.005, 9);
    expect(upperEstimateUsd(null, { promptBytes: 10, maxOutputTokens: 0, documents: 0 })).toBeNull();
  });
});

describe('a cap that is reached', () => {
  const reached = (spend: Spend, wallMs = NOON) => spend.report(wallMs).find(({ id }) => id === 'rlm')?.reached ?? null;
  const day = { reason: 'spend_cap', period: 'day', capUsd: 1, untilWallMs: NOON + 12 * HOUR };

  it('is one without room for the last call that was asked for, until its day or month is over', () => {
    const spend = new Spend();
    spend.setCaps('role', 'rlm', { dayUsd: 1, monthUsd: null });
    spend.reserve('c1', 'rlm', 'A', 0.5, NOON);
    expect(spend.check('rlm', 'A', 0.5, NOON)).toBeNull();
    expect(reached(spend)).toBeNull();
    expect(spend.check('rlm', 'A', 0.6, NOON)).toMatchObject({ reason: 'spend_cap' });
    expect(reached(spend)).toEqual(day);
    // Cheaper than estimated: there is room again.
    spend.settle('c1', 0.3);
    expect(reached(spend)).toBeNull();
    spend.reserve('c2', 'rlm', 'A', 0.7, NOON);
    spend.settle('c2', 0.7);
    expect(reached(spend)).toEqual(day);
    expect(reached(spend, NOON + 12 * HOUR)).toBeNull();
    spend.setCaps('role', 'rlm', { dayUsd: null, monthUsd: 1 });
    expect(reached(spend)).toEqual({ ...day, period: 'month', untilWallMs: Date.UTC(2026, 11, 1) });
    spend.setCaps('role', 'rlm', { dayUsd: 2, monthUsd: null });
    expect(reached(spend)).toBeNull();
  });

  it('is forgotten once a call has fitted, and tells a price that is not known', () => {
    const spend = new Spend();
    spend.setCaps('role', 'rlm', { dayUsd: 1, monthUsd: null });
    expect(spend.check('rlm', 'A', null, NOON)).toMatchObject({ reason: 'price_unknown' });
    expect(reached(spend)).toEqual({ ...day, reason: 'price_unknown' });
    spend.reserve('c1', 'rlm', 'A', 0.1, NOON);
    expect(reached(spend)).toBeNull();
  });

  it('is none that nobody has asked to pass: a cap of 0', () => {
    const spend = new Spend();
    spend.setCaps('role', 'rlm', { dayUsd: 0, monthUsd: null });
    expect(reached(spend)).toBeNull();
    expect(spend.check('rlm', 'A', 0.1, NOON)).toMatchObject({ reason: 'spend_cap' });
    expect(reached(spend)).toEqual({ ...day, capUsd: 0 });
  });
});
