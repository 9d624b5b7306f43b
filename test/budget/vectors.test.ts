import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Budget } from '../../main/budget/budget.ts';
import { ceilingOf, creditCeiling, rateCeiling } from '../../main/budget/ceiling.ts';
import type { Permit } from '../../main/budget/permit.ts';
import { isFunded, isTrustedRpm } from '../../main/budget/trust.ts';
import { fill, makeBudget, refusal } from './driver.ts';

const Facts = z.object({
  credit: z.number().nullish(),
  rpm: z.number().nullish(),
  override: z.number().nullish(),
  latencyMs: z.number().optional(),
  discovered: z.boolean().optional(),
});
const Step = z
  .tuple([z.number(), z.string()])
  .rest(z.unknown())
  .transform(([atMs, op, ...args]) => ({ atMs, op, args }));
const Vectors = z.object({
  creditCeiling: z.array(z.tuple([z.number().nullable(), z.number()])),
  trust: z.array(z.tuple([z.number().nullable(), z.boolean(), z.boolean(), z.number()])),
  latencyCeiling: z.array(z.tuple([z.number(), z.number(), z.number()])),
  cases: z.array(
    z.object({ name: z.string(), init: Facts, random: z.array(z.number()).optional(), steps: z.array(Step) }),
  ),
});
const vectors = Vectors.parse(JSON.parse(readFileSync(new URL('../cases/budget.json', import.meta.url), 'utf8')));

describe('ceilings', () => {
  it.each(vectors.creditCeiling)('credit %s gives %i', (creditUsd, expected) => {
    expect(creditCeiling(creditUsd) ?? 4).toBe(expected);
    expect(ceilingOf({ creditUsd, isFreeTier: null, rpm: null }, null, 2000).paid).toBe(expected);
  });

  it.each(vectors.trust)('rpm %s, funded %s: trusted %s, ceiling %i', (rpm, funded, trusted, expected) => {
    const facts = { rpm, creditUsd: funded ? 500 : null, isFreeTier: !funded };
    expect(isFunded(facts)).toBe(funded);
    expect(isTrustedRpm(facts)).toBe(trusted);
    expect(ceilingOf(facts, null, 2000).paid).toBe(expected);
  });

  it.each(vectors.latencyCeiling)('%i per minute at %i ms gives %i', (rpm, latencyMs, expected) => {
    expect(rateCeiling(rpm, latencyMs)).toBe(expected);
  });
});

describe('runs', () => {
  it.each(vectors.cases)('$name', ({ init, random = [], steps }) => {
    const now = { ms: 0 };
    const draws = [...random];
    const budget = makeBudget({
      now,
      random: () => {
        const next = draws.shift();
        if (next === undefined) throw new Error('more cuts than expected');
        return next;
      },
      ...(init.latencyMs === undefined ? {} : { latencyMs: init.latencyMs }),
    });
    if (init.discovered !== false) discover(budget, init, 0);
    const calls: Permit[] = [];
    for (const { atMs, op, args } of steps) {
      now.ms = atMs;
      run(budget, calls, atMs, op, args);
    }
    expect(draws).toEqual([]);
  });
});

function run(budget: Budget, calls: Permit[], atMs: number, op: string, args: readonly unknown[]): void {
  if (op === 'fill') {
    const [max, started] = z.tuple([z.number().nullable(), z.number()]).parse(args);
    const permits = fill(budget, atMs, max ?? undefined);
    expect(permits, `started at ${atMs}`).toHaveLength(started);
    calls.push(...permits);
  } else if (op === 'see') {
    const snapshot = budget.snapshot(atMs);
    expect({ ...snapshot, cooldownUntil: snapshot.cooldownUntilMs, at: atMs }).toMatchObject(
      z.looseObject({}).parse(args[0]),
    );
  } else if (op === 'discover') {
    discover(budget, Facts.parse(args[0]), atMs);
  } else {
    for (const id of ids(z.string().parse(args[0]))) {
      const permit = calls[id - 1];
      if (permit === undefined) throw new Error(`no call ${id}`);
      if (op === 'ok')
        budget.ended(permit.id, { kind: 'success', latencyMs: z.number().parse(args[1]), costUsd: 0 }, atMs);
      else if (op === 'cancel') budget.cancelled(permit.id, atMs);
      else if (op === 'refuse') {
        const retryAfterMs = z.number().optional().parse(args[1]) ?? null;
        budget.ended(permit.id, { kind: 'refused', refusal: refusal({ retryAfterMs }), costUsd: 0 }, atMs);
      } else throw new Error(`unknown step ${op}`);
    }
  }
}

function discover(budget: Budget, facts: z.infer<typeof Facts>, atMs: number): void {
  if (facts.credit !== undefined || facts.rpm !== undefined) {
    budget.discovered({ creditUsd: facts.credit ?? null, isFreeTier: null, rpm: facts.rpm ?? null }, atMs);
  }
  if (facts.override !== undefined) budget.setOverride(facts.override, atMs);
}

function ids(range: string): number[] {
  const [first = 0, last = first] = range.split('-').map(Number);
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
