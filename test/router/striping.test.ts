import { describe, expect, it } from 'vitest';
import type { RoutedProvider } from '../../main/router/types.ts';
import { coversExactly, EncoderFleet, randomFrom } from './encoders.ts';
import { accept, item, provider, routerWith } from './support.ts';

const RATES = { fast: 100, middle: 50, slow: 10 };
const SUM = 160;

function fleetOf(maxBatch: number, seed: number, rates: Readonly<Record<string, number>> = RATES): EncoderFleet {
  const providers = Object.keys(rates).map((name) => provider(name, { role: 'embedding', maxBatch }));
  const random = randomFrom(seed);
  return new EncoderFleet(routerWith(providers), rates, () => 0.9 + 0.2 * random());
}

/** Time of a job over `idealMs`; checks that every input was answered once. */
function run(fleet: EncoderFleet, units: number, idealMs: number): number {
  const id = `job-${fleet.nowMs}`;
  const start = fleet.nowMs;
  accept(fleet.router, item(id, { role: 'embedding', units, costTokens: units * 50 }), start);
  const end = fleet.until(id);
  expect(fleet.ended.get(id)?.kind).toBe('finished');
  expect(coversExactly(fleet.kept.get(id) ?? [], units)).toBe(true);
  return (end - start) / idealMs;
}

function warm(fleet: EncoderFleet): void {
  run(fleet, 512, 1);
}

function meanOf(runs: (seed: number) => number): number {
  const ratios = [1, 2, 3, 4, 5].map(runs);
  return ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length;
}

describe('a batch over encoders of 100, 50 and 10 inputs/s', () => {
  for (const units of [512, 5000]) {
    for (const maxBatch of [32, 64, 256]) {
      for (const known of [true, false]) {
        it(`${units} inputs, batches to ${maxBatch}, rates ${known ? 'known' : 'unknown'}: <= 1.10 x ideal`, () => {
          const ratio = meanOf((seed) => {
            const fleet = fleetOf(maxBatch, seed);
            if (known) warm(fleet);
            return run(fleet, units, (1000 * units) / SUM);
          });
          expect(ratio).toBeLessThanOrEqual(1.1);
        });
      }
    }
  }

  it.each([true, false])('64 inputs, rates known %s: <= 1.35 x ideal', (known) => {
    const ratio = meanOf((seed) => {
      const fleet = fleetOf(64, seed);
      if (known) warm(fleet);
      return run(fleet, 64, (1000 * 64) / SUM);
    });
    expect(ratio).toBeLessThanOrEqual(1.35);
  });

  it.each(['fast', 'middle', 'slow'])('512 inputs, %s three times slower than believed: <= 1.15 x ideal', (name) => {
    const ratio = meanOf((seed) => {
      const before = fleetOf(64, seed);
      warm(before);
      const rates = { ...RATES, [name]: RATES[name as keyof typeof RATES] / 3 };
      const after = new EncoderFleet(before.router, rates);
      after.nowMs = before.nowMs + 1000;
      const sum = Object.values(rates).reduce((total, rate) => total + rate, 0);
      return run(after, 512, (1000 * 512) / sum);
    });
    expect(ratio).toBeLessThanOrEqual(1.15);
  });

  it('512 inputs, the fastest dies halfway: <= 1.25 x ideal', () => {
    const ratio = meanOf((seed) => {
      const fleet = fleetOf(64, seed);
      warm(fleet);
      const halfMs = (1000 * 256) / SUM;
      const fast = fleet.encoders.get('fast');
      if (fast === undefined) throw new Error('no fast encoder');
      fast.deadFromMs = fleet.nowMs + halfMs;
      return run(fleet, 512, halfMs + (1000 * 256) / (SUM - 100));
    });
    expect(ratio).toBeLessThanOrEqual(1.25);
  });

  it.each(['fast', 'middle', 'slow'])('512 inputs, %s frozen 15 s from 40 %% on: <= 1.5 x ideal', (name) => {
    const ratio = meanOf((seed) => {
      const fleet = fleetOf(64, seed);
      warm(fleet);
      const idealMs = (1000 * 512) / SUM;
      const encoder = fleet.encoders.get(name);
      if (encoder === undefined) throw new Error('no such encoder');
      const rate = RATES[name as keyof typeof RATES];
      encoder.frozenFromMs = fleet.nowMs + 0.4 * idealMs;
      encoder.frozenUntilMs = encoder.frozenFromMs + 15_000;
      const restMs = (0.6 * 512 * 1000) / (SUM - rate);
      return run(fleet, 512, 0.4 * idealMs + restMs);
    });
    expect(ratio).toBeLessThanOrEqual(1.5);
  });
});

describe('several batches at once', () => {
  it('share encoders between projects, and each is answered whole', () => {
    const fleet = fleetOf(64, 7);
    for (const project of ['A', 'B', 'C']) {
      accept(fleet.router, item(project, { role: 'embedding', units: 300, costTokens: 15_000, project }), 0);
    }
    const ends = ['A', 'B', 'C'].map((id) => fleet.until(id));
    for (const id of ['A', 'B', 'C']) expect(coversExactly(fleet.kept.get(id) ?? [], 300)).toBe(true);
    // Equal jobs that start together and share fairly end together, within a fifth of the whole.
    expect(Math.max(...ends) / Math.min(...ends)).toBeLessThan(1.25);
  });

  it('let a single input through while a large batch runs', () => {
    const fleet = fleetOf(64, 3);
    accept(fleet.router, item('big', { role: 'embedding', units: 5000, costTokens: 250_000 }), 0);
    fleet.at(5000, () => {
      accept(fleet.router, item('one', { role: 'embedding', units: 1, costTokens: 50, class: 'interactive' }), 5000);
    });
    expect(fleet.until('one') - 5000).toBeLessThan(1200);
  });
});

it('leaves the second place at a single-slot engine to a chat that waits for it', () => {
  const engine = { node: 'n' as RoutedProvider['node'], slotPool: 'n/e', slots: 1 };
  const fleet = [provider('n', { ...engine, role: 'embedding' }), provider('n', engine)];
  const router = routerWith(fleet);
  const sim = new EncoderFleet(router, { n: 100 });
  run(sim, 64, 1);
  const start = sim.nowMs;
  accept(router, item('big', { role: 'embedding', units: 500, costTokens: 25_000 }), start);
  const [one, two] = router.decide(start);
  if (one?.kind !== 'dispatch' || two?.kind !== 'dispatch') throw new Error('two chunks were to be sent');
  accept(router, item('chat'), start + 1);
  expect(router.decide(start + 1)).toEqual([]);
  router.attemptEnded(one.attempt, { kind: 'success' }, start + 500);
  expect(router.decide(start + 500)).toEqual([]);
  router.attemptEnded(two.attempt, { kind: 'success' }, start + 1000);
  const next = router.decide(start + 1000).map((decision) => decision.request);
  expect(next).toContain('chat');
});
