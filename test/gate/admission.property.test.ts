import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Fingerprint } from '../../main/domain/verdict.ts';
import type { Encoder } from '../../main/gate/probe-port.ts';
import { GateBench, roles } from './bench.ts';
import type { Faults } from './encoders.ts';
import { addEncoder } from './fake-port.ts';

/**
 * The promise: no text before a pass. Whatever happens in whatever order, an answer is admitted only if the process that
 * gave it has been seen to pass, by probes this process answered itself, since it last gave a reason for doubt.
 */
type Step =
  | { readonly do: 'restart'; readonly who: number; readonly good: boolean; readonly report: boolean }
  | { readonly do: 'spoil' | 'mend' | 'answer' | 'stale' | 'leave' | 'come' | 'verify' | 'down'; readonly who: number }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'policy'; readonly local: boolean }
  | { readonly do: 'reboot' };

const who = fc.nat(2);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('restart' as const), who, good: fc.boolean(), report: fc.boolean() }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom('spoil', 'mend', 'answer', 'answer', 'stale', 'leave', 'come', 'verify', 'down'),
      who,
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(0, 0, 1000, 40_000, 22_000_000) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('policy' as const), local: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant({ do: 'reboot' as const }) },
);

const BAD: Faults = { pooling: 'late' };

class Model {
  bench = new GateBench();
  readonly encoders: Encoder[] = [];
  readonly present = [true, true, true];
  /** Fingerprints of processes that encode rightly; everything else must never be admitted. */
  readonly good = new Set<string>();
  marks = 0;
  policyLocal = false;
  admissions = 0;

  async start(): Promise<void> {
    for (const name of ['a', 'b', 'c']) this.encoders.push(addEncoder(this.bench.port, { name }));
    for (const { provider } of this.encoders) this.good.add(provider.fingerprint.processMark ?? '');
    await this.bench.start(this.encoders.slice(0, 1));
    this.publish();
    await this.bench.rest();
  }

  encoder(i: number): Encoder {
    const encoder = this.encoders[i];
    if (encoder === undefined) throw new Error('three encoders');
    return encoder;
  }

  publish(): void {
    this.bench.gate.onProviders(this.encoders.filter((_, i) => this.present[i]));
  }

  engine(i: number) {
    return this.bench.port.engine(this.encoder(i).provider.id);
  }

  report(i: number): void {
    const encoder = this.encoder(i);
    this.encoders[i] = { ...encoder, provider: { ...encoder.provider, fingerprint: this.engine(i).fingerprint } };
    this.publish();
  }

  /** What dispatch does with an answer: the verdict on it must never be yes for a process that encodes wrongly. */
  check(i: number, fingerprint: Fingerprint): void {
    const space = this.bench.gate.spaces()[0];
    if (space === undefined) return;
    const { id } = this.encoder(i).provider;
    const kindBefore = this.bench.gate.verdictFor(id, space.id);
    const admitted = this.bench.gate.admit(id, space.id, fingerprint);
    if (!admitted) return;
    this.admissions++;
    expect(kindBefore).toBe('pass');
    expect(this.good.has(fingerprint.processMark ?? '')).toBe(true);
    expect(this.bench.gate.verdict(id, space.id)?.fingerprint).toEqual(fingerprint);
  }

  async apply(step: Step): Promise<void> {
    const { bench } = this;
    switch (step.do) {
      case 'restart': {
        const mark = `m${this.marks++}`;
        const engine = this.engine(step.who);
        engine.fingerprint = { ...engine.fingerprint, processMark: mark };
        engine.faults = step.good ? {} : BAD;
        if (step.good) this.good.add(mark);
        if (step.report) this.report(step.who);
        break;
      }
      case 'spoil':
        this.engine(step.who).failure = { blame: 'engine', code: 'engine_error', retryAfterMs: null };
        break;
      case 'mend':
        this.engine(step.who).failure = null;
        this.report(step.who);
        break;
      case 'answer':
        this.check(step.who, this.engine(step.who).fingerprint);
        break;
      case 'stale':
        this.check(step.who, { ...this.engine(step.who).fingerprint, processMark: 'm-never' });
        break;
      case 'leave':
        this.present[step.who] = false;
        this.publish();
        break;
      case 'come':
        this.present[step.who] = true;
        this.report(step.who);
        break;
      case 'verify':
        if (this.present[step.who]) bench.gate.verify(this.encoder(step.who).provider.id);
        break;
      case 'down': {
        const encoder = this.encoder(step.who);
        this.encoders[step.who] = {
          ...encoder,
          provider: { ...encoder.provider, reachable: !encoder.provider.reachable },
        };
        this.publish();
        break;
      }
      case 'wait':
        await bench.clock.advance(step.ms);
        break;
      case 'policy':
        this.policyLocal = step.local;
        bench.gate.onRoles(roles({ policy: step.local ? 'local' : 'aggregate' }));
        break;
      case 'reboot':
        await bench.gate.stop();
        this.bench = new GateBench({ clock: bench.clock, port: bench.port, store: bench.store, seed: 3 });
        this.bench.gate.onRoles(roles({ policy: this.policyLocal ? 'local' : 'aggregate' }));
        this.publish();
        await this.bench.gate.start();
        break;
    }
    for (const i of [0, 1, 2]) this.check(i, this.engine(i).fingerprint);
  }
}

it('no sequence of events lets a process answer that has not passed', async () => {
  let admissions = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
      const model = new Model();
      await model.start();
      for (const one of steps) await model.apply(one);
      expect(model.bench.port.mostAtOnce).toBeLessThanOrEqual(1);
      admissions += model.admissions;
      await model.bench.gate.stop();
    }),
    { numRuns: 60, seed: 20270101 },
  );
  // The property would hold for a gate that never opens, too.
  expect(admissions).toBeGreaterThan(200);
}, 120_000);
