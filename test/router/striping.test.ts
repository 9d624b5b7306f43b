import { describe, expect, it } from 'vitest';
import type { RoutedProvider } from '../../main/router/types.ts';
import { coversExactly, EncoderFleet, randomFrom } from './encoders.ts';
import {
  accept,
  broken,
  busy,
  cloud,
  type Dispatch,
  dispatches,
  failures,
  item,
  ok,
  only,
  provider,
  routerWith,
  send,
} from './support.ts';

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

describe('copies of the last chunks', () => {
  /** One job whose last chunk, at the slow encoder, has just been copied by the idle fast one. */
  function copied() {
    const router = routerWith(['fast', 'slow'].map((name) => provider(name, { role: 'embedding' })));
    const sim = new EncoderFleet(router, { fast: 100, slow: 10 });
    run(sim, 200, 1);
    sim.rest();
    const start = sim.nowMs;
    let decisions = send(router, start, item('job', { role: 'embedding', units: 20, costTokens: 100 }));
    let slow: Dispatch | undefined;
    for (let atMs = start + 10; atMs < start + 100; atMs += 10) {
      const sent = dispatches(decisions);
      const copy = sent.find(({ copyOf }) => copyOf !== null);
      slow = sent.find(({ provider: { nodeName } }) => nodeName === 'slow') ?? slow;
      if (copy !== undefined && slow !== undefined) {
        expect(copy).toMatchObject({ copyOf: slow.attempt, range: slow.range });
        return { router, slow, copy, atMs };
      }
      for (const { attempt, provider: to } of sent) if (to.nodeName === 'fast') router.attemptEnded(attempt, ok, atMs);
      decisions = router.decide(atMs);
    }
    throw new Error('no copy was made');
  }

  it('the first answer wins, the other is aborted and discarded', () => {
    const { router, slow, copy, atMs } = copied();
    expect(router.attemptEnded(copy.attempt, ok, atMs + 30).keep).toBe(true);
    expect(router.decide(atMs + 30).map(({ kind }) => kind)).toEqual(['abort', 'finished']);
    expect(router.attemptEnded(slow.attempt, ok, atMs + 31).keep).toBe(false);
  });

  it('while one of the two still works, the failure of the other re-queues nothing', () => {
    const { router, slow, copy, atMs } = copied();
    router.attemptEnded(slow.attempt, broken, atMs + 5);
    expect(router.decide(atMs + 5)).toEqual([]);
    expect(router.attemptEnded(copy.attempt, ok, atMs + 30).keep).toBe(true);
    expect(router.decide(atMs + 30).map(({ kind }) => kind)).toEqual(['finished']);
  });

  it('are never made of or by the cloud', () => {
    const fleet = [provider('fast', { role: 'embedding' }), cloud('slow', { role: 'embedding', slots: 1 })];
    const router = routerWith(fleet);
    const sim = new EncoderFleet(router, { fast: 100, slow: 10 });
    run(sim, 200, 1);
    expect(sim.copies).toBe(0);
  });
});

describe('a chunk that fails', () => {
  const embed = (units: number) => item('job', { role: 'embedding', units, costTokens: units });

  it('goes back to the front, to another provider', () => {
    const router = routerWith(['a', 'b'].map((name) => provider(name, { role: 'embedding', maxBatch: 4, slots: 4 })));
    const [one, two] = dispatches(send(router, 0, embed(100)));
    if (one === undefined || two === undefined) throw new Error('both were to take a chunk');
    expect([one.range, two.range]).toEqual([
      { start: 0, count: 4 },
      { start: 4, count: 4 },
    ]);
    router.attemptEnded(one.attempt, broken, 10);
    expect(dispatches(router.decide(10))).toEqual([]);
    router.attemptEnded(two.attempt, ok, 100);
    const next = dispatches(router.decide(100)).find(({ provider: { id } }) => id === two.provider.id);
    expect(next?.range).toEqual({ start: 0, count: 4 });
  });

  it('three times ends the request, naming its inputs, and aborts what else runs', () => {
    const router = routerWith([provider('a', { role: 'embedding', maxBatch: 2 })]);
    let now = 0;
    let decisions = send(router, now, embed(6));
    for (let n = 0; failures(decisions).length === 0 && n < 9; n += 1) {
      const one = only(dispatches(decisions));
      expect(one.range).toEqual({ start: 0, count: 1 });
      router.attemptEnded(one.attempt, { ...broken, failing: [0] }, now + 1);
      decisions = router.decide(now + 1);
      if (decisions.length > 0) continue;
      // Parked after two failures in a row: the trial is due 20 s later.
      now = router.snapshot(now + 1).providers[0]?.parkedUntilMs ?? Number.NaN;
      decisions = router.decide(now);
    }
    expect(only(failures(decisions))).toMatchObject({ code: 'engine_error', failing: [0] });
  });

  it('by the fault of the caller ends the request with the absolute index', () => {
    const router = routerWith(['a', 'b'].map((name) => provider(name, { role: 'embedding', maxBatch: 4 })));
    const [one, two] = dispatches(send(router, 0, embed(100)));
    if (one === undefined || two === undefined) throw new Error('both were to take a chunk');
    router.attemptEnded(two.attempt, { kind: 'callerFault', code: 'input_too_long', failing: [2] }, 10);
    expect(router.decide(10)).toMatchObject([
      { kind: 'abort', attempt: one.attempt },
      { kind: 'fail', code: 'input_too_long', failing: [6] },
    ]);
  });

  it('because the engine is busy counts against nobody', () => {
    const router = routerWith([provider('a', { role: 'embedding', maxBatch: 4 })]);
    let decisions = send(router, 0, embed(4));
    for (let n = 0; n < 6; n += 1) {
      const one = only(dispatches(decisions));
      router.attemptEnded(one.attempt, busy(), n * 2000);
      expect(router.decide(n * 2000)).toEqual([]);
      decisions = router.decide((n + 1) * 2000);
    }
    expect(only(dispatches(decisions)).range).toEqual({ start: 0, count: 1 });
    expect(router.snapshot(12_000).providers[0]).toMatchObject({ failuresInRow: 0, parkedUntilMs: null });
  });
});

it('shuns a slow encoder only while the others are getting on', () => {
  const router = routerWith(['fast', 'slow'].map((name) => provider(name, { role: 'embedding' })));
  const single = (id: string) => item(id, { role: 'embedding' });
  for (const { attempt, provider: to } of dispatches(send(router, 0, single('u'), single('v')))) {
    router.attemptEnded(attempt, ok, to.nodeName === 'fast' ? 10 : 2000);
  }
  router.decide(2000);
  const start = 10_000;
  // Two chunks sit at the fast one and do not come back: the slow one (2 s an input) declines, then takes over.
  for (const id of ['x', 'y', 'z']) accept(router, single(id), start);
  expect(dispatches(router.decide(start)).map(({ provider: { nodeName } }) => nodeName)).toEqual(['fast', 'fast']);
  const later = [250, 500, 750, 1000, 1250, 1500].flatMap((ms) => dispatches(router.decide(start + ms)));
  expect(only(later.filter(({ copyOf }) => copyOf === null)).provider.nodeName).toBe('slow');
});

it('leaves the second place at a single-slot engine to a chat that waits for it', () => {
  const engine = { node: 'n' as RoutedProvider['node'], slotPool: 'n/e', slots: 1 };
  const fleet = [provider('n', { ...engine, role: 'embedding' }), provider('n', engine)];
  const router = routerWith(fleet);
  const sim = new EncoderFleet(router, { n: 100 });
  run(sim, 64, 1);
  sim.rest();
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
