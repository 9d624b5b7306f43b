import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { chatLimit, nextProject, shareOf } from '../../main/budget/fair.ts';
import type { PermitAsk } from '../../main/budget/permit.ts';
import { Waiting } from '../../main/budget/waiting.ts';
import type { ProjectId } from '../../main/domain/ids.ts';
import { ask, fill, makeBudget } from './driver.ts';

const Vectors = z.object({
  permits: z.array(
    z.object({
      n: z.string(),
      usable: z.number(),
      steps: z.array(
        z.union([
          z.tuple([z.literal('usable'), z.number(), z.string(), z.string()]),
          z.tuple([z.enum(['want', 'end']), z.string(), z.number(), z.string(), z.string()]),
        ]),
      ),
    }),
  ),
});
const vectors = Vectors.parse(JSON.parse(readFileSync(new URL('../cases/fair.json', import.meta.url), 'utf8')));

/** A pool that grants as long as it can, and says to whom in order. */
class Pool {
  readonly waiting = new Waiting();
  readonly queued: PermitAsk[] = [];
  readonly running = new Map<string, PermitAsk[]>();
  usable: number;
  wanted = 0;

  constructor(usable: number) {
    this.usable = usable;
  }

  want(project: string, count: number): void {
    for (let index = 0; index < count; index++) {
      const wanted = ask(`${project}${++this.wanted}`, { project: project as ProjectId });
      this.queued.push(wanted);
      this.waiting.join(wanted, 0);
    }
    if (!this.running.has(project)) this.running.set(project, []);
  }

  end(project: string, count: number): void {
    const running = this.running.get(project) ?? [];
    for (const ended of running.splice(0, count)) this.waiting.giveBack(ended);
  }

  pump(): string {
    let grants = '';
    for (;;) {
      const index = this.queued.findIndex((candidate) => this.waiting.isTurnOf(candidate, this.usable, 0));
      const granted = this.queued[index];
      if (granted === undefined) return grants;
      this.queued.splice(index, 1);
      this.waiting.grant(granted);
      this.running.get(granted.project)?.push(granted);
      grants += granted.project;
    }
  }

  held(): string {
    return [...this.running].map(([project, running]) => `${project}${running.length}`).join(' ');
  }
}

describe('fair share', () => {
  it.each(vectors.permits)('$n', ({ usable, steps }) => {
    const pool = new Pool(usable);
    for (const step of steps) {
      const [grants, held] = step[0] === 'usable' ? [step[2], step[3]] : [step[3], step[4]];
      if (step[0] === 'usable') pool.usable = step[1];
      else if (step[0] === 'want') pool.want(step[1], step[2]);
      else pool.end(step[1], step[2]);
      expect([step, pool.pump(), pool.held()]).toEqual([step, grants, held]);
    }
  });

  it('never grants over the share while another waits below it, and serves every waiting project in k grants', () => {
    const op = fc.oneof(
      fc.record({
        op: fc.constant('want' as const),
        project: fc.constantFrom(...'ABCDE'),
        count: fc.integer({ min: 1, max: 9 }),
      }),
      fc.record({
        op: fc.constant('end' as const),
        project: fc.constantFrom(...'ABCDE'),
        count: fc.integer({ min: 1, max: 4 }),
      }),
      fc.record({
        op: fc.constant('usable' as const),
        project: fc.constant(''),
        count: fc.integer({ min: 1, max: 12 }),
      }),
    );
    fc.assert(
      fc.property(fc.array(op, { maxLength: 60 }), (ops) => {
        const pool = new Pool(6);
        for (const { op, project, count } of ops) {
          if (op === 'usable') pool.usable = count;
          else pool[op](project, count);
          for (;;) {
            const share = pool.waiting.share(pool.usable);
            const before = new Map(pool.waiting.projects().map((line) => [line.project, line]));
            const index = pool.queued.findIndex((candidate) => pool.waiting.isTurnOf(candidate, pool.usable, 0));
            const granted = pool.queued[index];
            if (granted === undefined) break;
            expect(pool.waiting.held).toBeLessThan(pool.usable);
            expect(before.get(granted.project)?.held ?? 0).toBeLessThan(share);
            pool.queued.splice(index, 1);
            pool.waiting.grant(granted);
            pool.running.get(granted.project)?.push(granted);
          }
          // Nothing free is left lying while somebody waits.
          expect(pool.waiting.held >= pool.usable || pool.waiting.waiting === 0).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('inside a project the higher class goes first, then age', () => {
    const budget = makeBudget({ override: 1 });
    const [first] = fill(budget, 0, 1);
    const old = ask('old', { arrivedAtMs: 1 });
    const young = ask('young', { arrivedAtMs: 5 });
    const urgent = ask('urgent', { class: 'interactive', arrivedAtMs: 9 });
    for (const wanted of [young, old, urgent])
      expect(budget.acquire(wanted, 10)).toMatchObject({ reason: 'no_permit' });
    budget.ended(first?.id ?? '', { kind: 'success', latencyMs: 2000, costUsd: 0 }, 20);
    expect(budget.acquire(young, 20)).toMatchObject({ reason: 'not_its_turn' });
    expect(budget.acquire(old, 20)).toMatchObject({ reason: 'not_its_turn' });
    const decision = budget.acquire(urgent, 20);
    if (!decision.granted) throw new Error('the interactive one should go first');
    budget.ended(decision.permit.id, { kind: 'success', latencyMs: 2000, costUsd: 0 }, 30);
    expect(budget.acquire(young, 30)).toMatchObject({ reason: 'not_its_turn' });
    expect(budget.acquire(old, 30).granted).toBe(true);
  });

  it('work that does not come for its turn holds the others up for 50 ms only', () => {
    const budget = makeBudget({ override: 1 });
    const [first] = fill(budget, 0, 1);
    const gone = ask('gone', { project: 'B' as ProjectId });
    const here = ask('here', { project: 'A' as ProjectId });
    budget.acquire(gone, 1);
    budget.acquire(here, 2);
    budget.ended(first?.id ?? '', { kind: 'success', latencyMs: 2000, costUsd: 0 }, 100);
    expect(budget.acquire(here, 100)).toEqual({ granted: false, reason: 'not_its_turn', untilMs: 150 });
    expect(budget.nextWakeMs(100)).toBe(150);
    expect(budget.acquire(here, 149).granted).toBe(false);
    expect(budget.nextWakeMs(150)).not.toBe(150);
    expect(budget.acquire(here, 150).granted).toBe(true);
  });

  it('from 4 usable permits on chat leaves one to the other roles', () => {
    expect([1, 2, 3, 4, 8].map(chatLimit)).toEqual([1, 2, 3, 3, 7]);
    const budget = makeBudget({ override: 4 });
    expect(fill(budget, 0, 10, { role: 'code-assistant' })).toHaveLength(3);
    expect(fill(budget, 0, 10, { role: 'rlm', project: 'B' as ProjectId })).toHaveLength(0);
    expect(fill(budget, 0, 10, { role: 'reranker' })).toHaveLength(1);
    const small = makeBudget({ override: 3 });
    expect(fill(small, 0, 10, { role: 'code-assistant' })).toHaveLength(3);
  });

  it('counts what idle projects hold', () => {
    const demands = [
      { project: 'L' as ProjectId, held: 1, waiting: false, grantable: true, servedAt: 1, waitingSince: 0 },
      { project: 'A' as ProjectId, held: 5, waiting: true, grantable: true, servedAt: 2, waitingSince: 1 },
      { project: 'B' as ProjectId, held: 1, waiting: true, grantable: true, servedAt: 3, waitingSince: 2 },
    ];
    // (8 - 1) / 2 = 3.5
    expect(shareOf(8, demands)).toBe(4);
    expect(nextProject(8, demands)).toBe('B');
    expect(nextProject(7, demands)).toBeNull();
  });
});
