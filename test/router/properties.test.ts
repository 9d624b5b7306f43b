import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dispatches, item, ok, provider, routerWith } from './support.ts';
import { type Step, World } from './world.ts';

const step = fc.tuple(fc.nat({ max: 12 }), fc.nat({ max: 1_000_000 }), fc.nat({ max: 1_000_000 }));
const run = fc.record({ shape: fc.nat({ max: 255 }), steps: fc.array(step, { minLength: 10, maxLength: 250 }) });

function play(shape: number, steps: readonly Step[]): World {
  const world = new World(shape);
  for (const one of steps) world.step(one);
  world.drain();
  return world;
}

describe('under random faults', () => {
  it('loses nothing, answers nothing twice, leaks no slot or permit, and every choice replays', () => {
    fc.assert(
      fc.property(run, ({ shape, steps }) => {
        play(shape, steps);
      }),
      { numRuns: 1000 },
    );
  }, 120_000);

  it('decides the same when the same happens at the same times', () => {
    fc.assert(
      fc.property(run, ({ shape, steps }) => {
        expect(play(shape, steps).log).toEqual(play(shape, steps).log);
      }),
      { numRuns: 100 },
    );
  }, 60_000);
});

describe('starvation', () => {
  const classes = ['interactive', 'normal', 'batch'] as const;
  const load = fc.record({
    slots: fc.integer({ min: 1, max: 4 }),
    costs: fc.array(fc.integer({ min: 1, max: 60_000 }), { minLength: 2, maxLength: 6 }),
    lone: fc.record({ cost: fc.integer({ min: 1, max: 60_000 }), rank: fc.nat({ max: 2 }) }),
  });

  it('has an end: one item of any class is dispatched although every other project always has interactive work', () => {
    fc.assert(
      fc.property(load, ({ slots, costs, lone }) => {
        const router = routerWith([provider('a', { slots })], { settings: { queueBound: 1000 } });
        let nowMs = 0;
        let sequence = 0;
        const flood = (): void => {
          costs.forEach((costTokens, n) => {
            sequence += 1;
            router.submit(item(`f${sequence}`, { project: `p${n}`, costTokens, class: 'interactive' }), nowMs);
          });
        };
        flood();
        flood();
        const options = { project: 'lone', costTokens: lone.cost, class: classes[lone.rank] ?? 'normal' } as const;
        router.submit(item('lone', options), nowMs);
        const running = [...dispatches(router.decide(nowMs))];
        // Every project's turn of the round spends a quantum of 4,096 and at most one item more; a lower class then waits
        // until the others have run nine times as long as its own calls, which have not begun.
        const rounds = Math.ceil(lone.cost / 4096) + 1;
        const most = Math.max(...costs.map((cost) => Math.ceil(4096 / cost) + 1)) * costs.length * rounds + 20 * slots;
        let dispatched = running.length;
        let found = running.some(({ request }) => request === 'lone');
        while (!found && dispatched <= most) {
          const first = running.shift();
          if (first === undefined) throw new Error('nothing runs');
          // Far inside every deadline: only the order is looked at.
          nowMs += 0.5 / 1024;
          router.attemptEnded(first.attempt, ok, nowMs);
          flood();
          for (const next of dispatches(router.decide(nowMs))) {
            running.push(next);
            dispatched += 1;
            if (next.request === 'lone') found = true;
          }
        }
        expect(found).toBe(true);
      }),
      { numRuns: 200 },
    );
  }, 60_000);
});
