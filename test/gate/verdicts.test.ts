import { describe, expect, it } from 'vitest';
import type { VerdictKind } from '../../main/domain/verdict.ts';
import { anchorTexts } from '../../main/gate/probes.ts';
import { effectiveThreshold } from '../../main/gate/space.ts';
import type { Verdict } from '../../main/gate/verdict.ts';
import { GateBench, roles } from './bench.ts';
import type { Faults } from './encoders.ts';
import { addEncoder, type EncoderOptions } from './fake-port.ts';

/** The verdict on an encoder with the given faults in a space that a faultless one founded. */
async function judged(options: Omit<EncoderOptions, 'name'>, settings = roles()): Promise<Verdict> {
  const bench = new GateBench();
  const founder = addEncoder(bench.port, { name: 'founder' });
  await bench.start([founder], settings);
  const space = bench.space();
  const other = addEncoder(bench.port, { name: 'other', ...options });
  bench.gate.onProviders([founder, other]);
  expect(bench.gate.pending(other.provider.id, space.id)).toBe(true);
  await bench.rest();
  const verdict = bench.gate.verdict(other.provider.id, space.id);
  if (verdict === null) throw new Error('no verdict');
  expect(bench.gate.pending(other.provider.id, space.id)).toBe(false);
  // Whatever was found, it was found on probes alone, and only a pass opens the door.
  const { base, otherTail, otherHead } = space.probes.overLimit;
  const probes = new Set([...anchorTexts(space.probes).map(({ text }) => text), base, otherTail, otherHead]);
  expect(bench.port.engine(other.provider.id).seen.filter((text) => !probes.has(text))).toEqual([]);
  expect(bench.admits(other.provider.id)).toBe(verdict.kind === 'pass');
  return verdict;
}

const faulty = (faults: Faults, limit: number | null = 96) => judged({ faults, limit });

describe('an encoder with one fault gets the kind that names it', () => {
  const cases: readonly (readonly [string, Faults, number | null, VerdictKind])[] = [
    ['the same weights on another machine', {}, 96, 'pass'],
    ['fine quantisation (cosine about 0.9995)', { quantisation: 0.03 }, 96, 'pass'],
    ['coarse quantisation (cosine about 0.98)', { quantisation: 0.2 }, 96, 'vector-incompatible'],
    ['another pooling', { pooling: 'late' }, 96, 'vector-incompatible'],
    ['a prefix before every text', { prefix: 'query: ' }, null, 'vector-incompatible'],
    ['another model of equal width', { seed: 2 }, 96, 'vector-incompatible'],
    ['another width', { width: 48 }, 96, 'dimension-mismatch'],
    ['reads half the window and says nothing', { cutAt: 48 }, null, 'silent-truncation'],
    ['reads nine tenths of the window and says nothing', { cutAt: 87 }, null, 'silent-truncation'],
    ['reads only the end of long texts', { cutFrontAt: 48 }, null, 'silent-truncation'],
    ['reads exactly the window and cuts what is longer', { cutAt: 96 }, null, 'silent-truncation'],
    ['one vector for everything', { constant: true }, null, 'collapsed'],
    ['one vector for all capitals', { capitalsCollapse: true }, 96, 'collapsed'],
    ['another vector in a batch', { batchLeak: 0.1 }, 96, 'batch-inconsistent'],
    ['another vector in a batch of 16 and more', { batchLeak: 0.1, leaksIn: 'large' }, 96, 'batch-inconsistent'],
    ['another vector among texts of one length', { batchLeak: 0.1, leaksIn: 'equal' }, 96, 'batch-inconsistent'],
    ['another vector among texts of several lengths', { batchLeak: 0.1, leaksIn: 'unequal' }, 96, 'batch-inconsistent'],
    ['one vector for every text with an accent', { accentsCollapse: true }, 96, 'collapsed'],
    ['another vector at each call', { jitter: 0.05 }, 96, 'unstable'],
    ['NaN in one vector', { spoil: { text: 'hello world', value: Number.NaN } }, 96, 'vector-incompatible'],
    ['infinity in one vector', { spoil: { text: '.', value: Number.POSITIVE_INFINITY } }, 96, 'vector-incompatible'],
  ];
  it.each(cases)('%s', async (_what, faults, limit, kind) => {
    expect((await faulty(faults, limit)).kind).toBe(kind);
  });

  it('raw vectors in a role that does not normalise', async () => {
    const raw = roles({ normalise: false });
    expect((await judged({ faults: { scale: 3 } }, raw)).kind).toBe('scale-mismatch');
    expect((await judged({ faults: { scale: 1.005 } }, raw)).kind).toBe('pass');
    expect((await judged({ faults: { scale: 3 } })).kind).toBe('pass');
  });

  it('a larger window than the space promises does no harm', async () => {
    expect((await judged({ limit: null })).kind).toBe('pass');
  });

  it('a shorter window is refused: it would refuse what the space promises to read', async () => {
    const verdict = await judged({ limit: 95 });
    expect(verdict.kind).toBe('probe-failed');
    expect(verdict.sentence).toContain('limit 96 tokens');
  });
});

it('a prefix shows in short texts and a cut in long ones: each names its worst probe', async () => {
  const prefixed = await faulty({ prefix: 'query: ' }, null);
  expect(prefixed.worst?.text.length).toBeLessThan(20);
  const cut = await faulty({ cutAt: 48 }, null);
  expect(cut.worst?.id).toMatch(/^(window|switch|long)/);
});

it('a role may raise the threshold of its space, never lower it', async () => {
  // 0.03 of noise: cosine about 1 / sqrt(1 + 0.0009) = 0.99955.
  const faults: Faults = { quantisation: 0.03 };
  expect((await judged({ faults }, roles({ threshold: 0.9999 }))).kind).toBe('vector-incompatible');
  expect((await judged({ faults }, roles({ threshold: 0.999 }))).kind).toBe('pass');
  const bench = new GateBench();
  await bench.start([addEncoder(bench.port, { name: 'founder' })], roles({ threshold: 0.5 }));
  expect(bench.space().threshold).toBe(0.99);
  expect(effectiveThreshold(bench.space(), 0.5)).toBe(0.99);
  expect(effectiveThreshold(bench.space(), 0.995)).toBe(0.995);
  expect(effectiveThreshold({ ...bench.space(), threshold: 0.998 }, 0.995)).toBe(0.998);
  // 0.2 of noise: 1 / sqrt(1.04) = 0.9806.
  expect((await judged({ faults: { quantisation: 0.2 } }, roles({ threshold: 0.5 }))).kind).toBe('vector-incompatible');
});

it('a verdict keeps what a person needs to follow it', async () => {
  const verdict = await faulty({ quantisation: 0.2 });
  expect(verdict.minCosine).toBeCloseTo(1 / Math.sqrt(1.04), 2);
  expect(verdict.meanCosine).toBeGreaterThanOrEqual(verdict.minCosine ?? 1);
  expect(verdict.centredMin).toBeLessThan(0.98);
  expect(verdict.worst).toMatchObject({ cosine: verdict.minCosine });
  expect(verdict.worst?.anchorNorm).toBeCloseTo(1, 5);
  expect(verdict.worst?.providerNorm).toBeCloseTo(1, 5);
  expect(verdict.worst?.anchorHead).toHaveLength(8);
  expect(verdict.fingerprint?.processMark).toBe('mark-other');
  expect(verdict.regime).toBe('local');
  expect(verdict.sentence).toContain('found a space of its own');
});

it('another width names both widths', async () => {
  const verdict = await faulty({ width: 48 });
  expect(verdict.checks[0]).toEqual({ check: 'width', state: 'fail', figure: 48, threshold: 64 });
  expect(verdict.sentence).toContain('48 numbers, the space has 64');
});

describe('a small batch limit', () => {
  it('is kept, and batches are still compared', async () => {
    const bench = new GateBench();
    const founder = addEncoder(bench.port, { name: 'founder' });
    await bench.start([founder]);
    const small = addEncoder(bench.port, { name: 'small', provider: { maxBatch: 4 }, faults: { batchLeak: 0.1 } });
    const sizes: number[] = [];
    bench.port.engine(small.provider.id).onCall = (texts) => sizes.push(texts.length);
    bench.gate.onProviders([founder, small]);
    await bench.rest();
    expect(bench.kind(small)).toBe('batch-inconsistent');
    expect(Math.max(...sizes)).toBe(4);
  });

  it('of one leaves nothing to compare and passes', async () => {
    expect((await judged({ provider: { maxBatch: 1 }, faults: { batchLeak: 0.1 } })).kind).toBe('pass');
  });
});

it('fewer vectors than texts are no measurement', async () => {
  const bench = new GateBench();
  const founder = addEncoder(bench.port, { name: 'founder' });
  await bench.start([founder]);
  const other = addEncoder(bench.port, { name: 'other' });
  bench.port.engine(other.provider.id).losesLast = true;
  bench.gate.onProviders([founder, other]);
  await bench.rest();
  expect(bench.kind(other)).toBe('probe-failed');
  expect(bench.gate.verdict(other.provider.id, bench.space().id)?.sentence).toContain('another number of vectors');
});

describe('an engine that cannot be measured', () => {
  const failing = (failure: { blame: 'engine' | 'transport' | 'caller'; code: string }) => async () => {
    const bench = new GateBench();
    const founder = addEncoder(bench.port, { name: 'founder' });
    await bench.start([founder]);
    const other = addEncoder(bench.port, { name: 'other' });
    bench.port.engine(other.provider.id).failure = { ...failure, retryAfterMs: null };
    bench.gate.onProviders([founder, other]);
    await bench.rest();
    return bench.gate.verdict(other.provider.id, bench.space().id);
  };

  it.each([
    [{ blame: 'engine', code: 'engine_error' }, 'failed on a probe'],
    [{ blame: 'engine', code: 'engine_invalid_response' }, 'not a vector'],
    [{ blame: 'transport', code: 'engine_unreachable' }, 'could not be reached'],
    [{ blame: 'caller', code: 'engine_refused' }, 'refused a probe'],
  ] as const)('%o', async (failure, words) => {
    const verdict = await failing(failure)();
    expect(verdict?.kind).toBe('probe-failed');
    expect(verdict?.sentence).toContain(words);
  });
});
