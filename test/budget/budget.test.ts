import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Budget } from '../../main/budget/budget.ts';
import type { Permit } from '../../main/budget/permit.ts';
import type { NodeId, ProjectId } from '../../main/domain/ids.ts';
import { ROLE_IDS } from '../../main/domain/roles.ts';
import { ask, fill, makeBudget, refusal } from './driver.ts';

describe('permits', () => {
  it('of a cancelled call return 250 ms after the abort', () => {
    const budget = makeBudget({ override: 2 });
    const [first] = fill(budget, 0);
    budget.cancelled(first?.id ?? '', 100);
    expect(budget.snapshot(349).inFlight).toBe(2);
    expect(budget.nextWakeMs(349)).toBe(350);
    expect(budget.snapshot(350).inFlight).toBe(1);
  });

  it('of a cancelled call whose upstream goes on return at its end', () => {
    const budget = makeBudget({ override: 2 });
    const [first] = fill(budget, 0);
    budget.cancelled(first?.id ?? '', 100, { readsOn: true });
    expect(budget.snapshot(60_000).inFlight).toBe(2);
    budget.ended(first?.id ?? '', { kind: 'ended', costUsd: 0.01 }, 60_001);
    expect(budget.snapshot(60_001).inFlight).toBe(1);
  });

  it('of a lost agent return 5 s later, those of others stay', () => {
    const budget = makeBudget({ override: 4 });
    fill(budget, 0, 3);
    fill(budget, 0, 1, { agent: 'n2' as NodeId });
    budget.agentLost('n1' as NodeId, 1000);
    expect(budget.snapshot(5999).inFlight).toBe(4);
    expect(budget.snapshot(6000).inFlight).toBe(1);
  });

  it('return once, however often their end is told, and still teach', () => {
    const budget = makeBudget({ override: 4 });
    const [first] = fill(budget, 0);
    budget.release(first?.id ?? '', 10);
    expect(budget.snapshot(10).inFlight).toBe(3);
    expect(budget.ended(first?.id ?? '', { kind: 'refused', refusal: refusal(), costUsd: 0 }, 20).cut).toBe(true);
    expect(budget.ended(first?.id ?? '', { kind: 'refused', refusal: refusal(), costUsd: 0 }, 20).source).toBeNull();
    expect(budget.snapshot(20)).toMatchObject({ inFlight: 3, cuts: 1, effective: 2 });
  });

  it('are not given while paused', () => {
    const budget = makeBudget({ override: 4 });
    budget.setPaused(true, 0);
    expect(budget.acquire(ask('x'), 0)).toEqual({ granted: false, reason: 'cloud_paused', untilMs: null });
    expect(budget.snapshot(0)).toMatchObject({ state: 'off', sentence: 'The cloud is paused by the operator.' });
    budget.setPaused(false, 1);
    expect(budget.acquire(ask('x'), 1).granted).toBe(true);
  });
});

describe('what is learnt of an account', () => {
  const facts = { isFreeTier: false, rpm: null, creditUsd: null };

  it('a rate that is found later counts the starts made before', () => {
    const budget = makeBudget();
    const started = fill(budget, 0);
    expect(started).toHaveLength(4);
    budget.discovered({ ...facts, rpm: 60 }, 1000);
    expect(budget.snapshot(1000).window).toEqual({ limit: 60, starts: 4 });
    expect(budget.snapshot(61_000).window).toEqual({ limit: 60, starts: 0 });
  });

  it('a ceiling that falls does not lower what the account has shown to carry', () => {
    const budget = makeBudget();
    budget.discovered({ ...facts, creditUsd: 250 }, 0);
    budget.discovered({ ...facts, creditUsd: 30 }, 1000);
    expect(budget.snapshot(1000)).toMatchObject({ ceiling: 16, effective: 64, usable: 16 });
    budget.discovered({ ...facts, creditUsd: 250 }, 2000);
    expect(budget.snapshot(2000)).toMatchObject({ ceiling: 64, effective: 64, usable: 64 });
  });

  it('only calls that succeeded say how long one takes', () => {
    const budget = makeBudget({ override: 4 });
    const [first, second, third] = fill(budget, 0);
    const end = (permit: Permit | undefined, outcome: Parameters<Budget['ended']>[1]) =>
      budget.ended(permit?.id ?? '', outcome, 60_000);
    end(first, { kind: 'refused', refusal: refusal({ status: 503 }), costUsd: 0 });
    end(second, { kind: 'ended', costUsd: null });
    expect(budget.snapshot(60_000)).toMatchObject({ latencyMs: 2000, latencyMeasured: false });
    end(third, { kind: 'success', latencyMs: 1000, costUsd: 0 });
    // 0.8 x 2000 + 0.2 x 1000
    expect(budget.snapshot(60_000).latencyMs).toBeCloseTo(1800, 9);
    expect(budget.snapshot(60_000).latencyMeasured).toBe(true);
  });
});

describe('override', () => {
  it.each([0, -1, 257, 9999, 1.5, Number.NaN])('%s is refused', (override) => {
    const budget = makeBudget();
    expect(() => budget.setOverride(override, 0)).toThrow(expect.objectContaining({ code: 'invalid_request' }));
    expect(budget.snapshot(0).ceiling).toBe(4);
  });

  it('256 is accepted, and an account without credit stays off', () => {
    const budget = makeBudget();
    budget.setOverride(256, 0);
    expect(fill(budget, 0)).toHaveLength(256);
    budget.discovered({ creditUsd: 0, isFreeTier: false, rpm: null }, 1);
    expect(budget.acquire(ask('x'), 1)).toMatchObject({ reason: 'credit_exhausted' });
    expect(budget.snapshot(1)).toMatchObject({ ceiling: 0, ceilingSource: 'no-credit', state: 'off' });
  });
});

describe('sentences', () => {
  it('say where the number comes from', () => {
    const sentence = (set: (budget: Budget) => void) => {
      const budget = makeBudget();
      set(budget);
      return budget.snapshot(0).sentence;
    };
    const facts = { isFreeTier: false, rpm: null, creditUsd: null };
    expect(sentence(() => undefined)).toBe('4 permits: nothing could be discovered about the account.');
    expect(sentence((b) => b.setOverride(1, 0))).toBe('1 permit, set by the operator.');
    expect(sentence((b) => b.discovered({ ...facts, creditUsd: 412 }, 0))).toBe(
      '64 permits: the key may still spend 412.00 USD.',
    );
    expect(sentence((b) => b.discovered({ ...facts, rpm: 600 }, 0))).toBe(
      '20 permits: 600 requests per minute, 2 s per call assumed until one is measured.',
    );
    // 0.8 x 2 s + 0.2 x 1 s.
    expect(
      sentence((b) => {
        b.discovered({ ...facts, rpm: 600 }, 0);
        const decision = b.acquire(ask('x'), 0);
        if ('permit' in decision) b.ended(decision.permit.id, { kind: 'success', latencyMs: 1000, costUsd: 0 }, 0);
      }),
    ).toBe('18 permits: 600 requests per minute at 1.8 s per call.');
    expect(sentence((b) => b.discovered({ ...facts, creditUsd: 0 }, 0))).toBe(
      'The key may spend nothing more. Free models keep 4 permits.',
    );
  });

  it('say when it cools and climbs', () => {
    const now = { ms: 0 };
    const budget = makeBudget({ now, override: 8 });
    const permits = fill(budget, 0);
    budget.ended(permits[0]?.id ?? '', { kind: 'refused', refusal: refusal(), costUsd: 0 }, 0);
    // Cooling 2 / 2 + 0.5 x 2 = 2 s from noon.
    expect(budget.snapshot(0).sentence).toBe(
      'Cooling until 12:00:02 UTC: OpenRouter limited the account. Then 4 of 8 permits, set by the operator.',
    );
    now.ms = 2000;
    expect(budget.snapshot(2000).state).toBe('backing-off');
    now.ms = 17_000;
    expect(budget.snapshot(17_000).sentence).toBe(
      '5 of 8 permits, set by the operator. Climbing; next step at 12:00:32 UTC.',
    );
    expect(budget.snapshot(17_000).records).toEqual([
      {
        kind: 'cut',
        from: 8,
        to: 4,
        cause: 'account limit',
        atWallMs: Date.UTC(2026, 10, 30, 12),
        untilWallMs: Date.UTC(2026, 10, 30, 12, 0, 2),
      },
      { kind: 'step', from: 4, to: 5, atWallMs: Date.UTC(2026, 10, 30, 12, 0, 17) },
    ]);
  });
});

describe('suggestion', () => {
  it('offers twice as much after 10 full, clean minutes with work waiting when nothing could be discovered', () => {
    const budget = makeBudget();
    let running = fill(budget, 0);
    for (let ms = 0; ms <= 600_000; ms += 2000) {
      budget.acquire(ask('waits'), ms);
      expect(budget.snapshot(ms).suggestion).toBe(ms < 600_000 ? null : 8);
      for (const permit of running) budget.ended(permit.id, { kind: 'success', latencyMs: 2000, costUsd: 0 }, ms);
      running = [];
      for (let next = 0; next < 4; next++) {
        const decision = budget.acquire(next === 0 ? ask('waits') : ask(`n${ms}/${next}`), ms);
        if (decision.granted) running.push(decision.permit);
      }
      budget.acquire(ask('waits'), ms);
    }
    expect(budget.snapshot(600_000).effective).toBe(4);
  });

  it('offers nothing where credit is known or permits lie idle', () => {
    const known = makeBudget();
    known.discovered({ creditUsd: 5, isFreeTier: false, rpm: null }, 0);
    fill(known, 0);
    known.acquire(ask('waits'), 0);
    expect(known.snapshot(700_000).suggestion).toBeNull();
    const idle = makeBudget();
    fill(idle, 0, 3);
    expect(idle.snapshot(700_000).suggestion).toBeNull();
  });
});

describe('declared demand', () => {
  const declared = (project: string, role: (typeof ROLE_IDS)[number] = 'embedding') => ({
    id: `${role}|${project}`,
    project: project as ProjectId,
    role,
    class: 'normal' as const,
    arrivedAtMs: 0,
  });

  it('shares between projects that ask one after the other', () => {
    const budget = makeBudget({ override: 6 });
    budget.declare([declared('A'), declared('B')], 0);
    const order: string[] = [];
    for (let round = 0; round < 6; round++) {
      for (const project of ['A', 'B']) {
        if (budget.acquire(ask(`embedding|${project}`, { project: project as ProjectId }), 0).granted)
          order.push(project);
      }
    }
    expect(order.join('')).toBe('ABABAB');
  });

  it('a declared project that does not come is passed over until it asks itself', () => {
    const budget = makeBudget({ override: 1 });
    budget.declare([declared('gone'), declared('here')], 0);
    const here = ask('embedding|here', { project: 'here' as ProjectId });
    expect(budget.acquire(here, 0).granted).toBe(false);
    budget.declare([declared('gone'), declared('here')], 60);
    const decision = budget.acquire(here, 60);
    if (!decision.granted) throw new Error('its claim should have lapsed');
    budget.ended(decision.permit.id, { kind: 'success', latencyMs: 10, costUsd: 0 }, 70);
    expect(budget.acquire(here, 70).granted).toBe(true);
  });
});

describe('whatever happens', () => {
  const op = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        op: fc.constant('start' as const),
        project: fc.constantFrom(...'ABC'),
        role: fc.constantFrom(...ROLE_IDS),
      }),
    },
    { weight: 3, arbitrary: fc.record({ op: fc.constant('ok' as const), pick: fc.nat() }) },
    {
      weight: 2,
      arbitrary: fc.record({
        op: fc.constant('refuse' as const),
        pick: fc.nat(),
        retryAfterMs: fc.option(fc.integer({ min: 0, max: 30_000 })),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        op: fc.constant('status' as const),
        pick: fc.nat(),
        status: fc.constantFrom(402, 403, 404, 500, 503, 529),
      }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('cancel' as const), pick: fc.nat(), readsOn: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('lost' as const), agent: fc.constantFrom('n1', 'n2') }) },
    { weight: 4, arbitrary: fc.record({ op: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 20_000 }) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        op: fc.constant('discover' as const),
        creditUsd: fc.constantFrom(null, 0, 5, 60, 300),
        rpm: fc.constantFrom(null, -1, 1, 60, 600),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ op: fc.constant('override' as const), to: fc.option(fc.integer({ min: 1, max: 256 })) }),
    },
  );

  it('never over usable at a grant, nothing started while cooling, no permit leaked, one cut per burst', () => {
    fc.assert(
      fc.property(fc.array(op, { maxLength: 120 }), (ops) => {
        const now = { ms: 0 };
        const budget = makeBudget({ now });
        const running = new Map<string, Permit>();
        let serial = 0;
        let effectiveBefore = 4;
        for (const step of ops) {
          const before = budget.snapshot(now.ms);
          const permits = [...running.values()];
          const picked = 'pick' in step ? permits[step.pick % Math.max(1, permits.length)] : undefined;
          if (step.op === 'wait') now.ms += step.ms;
          else if (step.op === 'start') {
            const agent = (serial % 2 === 0 ? 'n1' : 'n2') as NodeId;
            const wanted = ask(`s${serial++}`, { project: step.project as ProjectId, role: step.role, agent });
            const decision = budget.acquire(wanted, now.ms);
            if (decision.granted) {
              running.set(decision.permit.id, decision.permit);
              expect(before.inFlight).toBeLessThan(before.usable);
              expect(before.state).not.toBe('cooling');
              expect(before.state).not.toBe('off');
            } else budget.withdraw(wanted.project, wanted.id);
          } else if (step.op === 'lost') {
            budget.agentLost(step.agent as NodeId, now.ms);
            for (const permit of permits) if (permit.ask.agent === step.agent) running.delete(permit.id);
          } else if (step.op === 'discover') {
            budget.discovered({ creditUsd: step.creditUsd, rpm: step.rpm, isFreeTier: false }, now.ms);
          } else if (step.op === 'override') budget.setOverride(step.to, now.ms);
          else if (picked !== undefined) {
            running.delete(picked.id);
            if (step.op === 'ok') budget.ended(picked.id, { kind: 'success', latencyMs: 700, costUsd: 0 }, now.ms);
            else if (step.op === 'cancel') {
              budget.cancelled(picked.id, now.ms, { readsOn: step.readsOn });
              if (step.readsOn) budget.ended(picked.id, { kind: 'ended', costUsd: null }, now.ms);
            } else {
              const what = step.op === 'refuse' ? { retryAfterMs: step.retryAfterMs } : { status: step.status };
              const { cut } = budget.ended(picked.id, { kind: 'refused', refusal: refusal(what), costUsd: 0 }, now.ms);
              // Cut exactly when the call had started after the last cut.
              if (step.op === 'refuse') expect(cut).toBe(picked.cuts === before.cuts);
              else expect(cut).toBe(false);
            }
          }
          const after = budget.snapshot(now.ms);
          expect(after.effective).toBeGreaterThanOrEqual(1);
          expect(after.effective).toBeLessThanOrEqual(256);
          expect(after.cuts - before.cuts).toBeLessThanOrEqual(1);
          expect(after.inFlight).toBe(after.projects.reduce((sum, line) => sum + line.held, 0));
          effectiveBefore = after.effective;
        }
        expect(effectiveBefore).toBeGreaterThanOrEqual(1);
        for (const permit of running.values()) budget.ended(permit.id, { kind: 'ended', costUsd: 0 }, now.ms);
        now.ms += 5000;
        expect(budget.snapshot(now.ms)).toMatchObject({ inFlight: 0, projects: [] });
      }),
      { numRuns: 1000 },
    );
  });

  it('wakes up whenever the clock alone would let work start', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 3000 }), { minLength: 3, maxLength: 30 }), (pauses) => {
        const now = { ms: 0 };
        const budget = makeBudget({ now, override: 3 });
        for (const pause of pauses) {
          now.ms += pause;
          const [permit] = fill(budget, now.ms, 1);
          if (permit !== undefined) {
            budget.ended(permit.id, { kind: 'refused', refusal: refusal(), costUsd: 0 }, now.ms);
          }
          const wake = budget.nextWakeMs(now.ms);
          const free = fill(budget, now.ms, 1);
          if (free.length === 0) {
            expect(wake).not.toBeNull();
            now.ms = wake ?? now.ms;
            const [first] = fill(budget, now.ms, 1);
            expect(first).toBeDefined();
            if (first !== undefined) budget.unused(first.id, now.ms);
          } else for (const extra of free) budget.unused(extra.id, now.ms);
        }
      }),
      { numRuns: 200 },
    );
  });
});
