import { describe, expect, it } from 'vitest';
import { type Matrix, matrix, stack } from '../../main/gate/compare.ts';
import { evaluate, type Reference, type Rules } from '../../main/gate/evaluate.ts';
import type { Measurement } from '../../main/gate/measurement.ts';
import { sayingOf } from '../../main/gate/sentences.ts';
import { fingerprint } from './fake-port.ts';

const WIDTH = 16;
const COUNT = 6;
const probes = Array.from({ length: COUNT }, (_, i) => ({ id: `p${i}`, text: `probe ${i}` }));

/** Row i is the unit vector of axis i: every two are at right angles. */
function axes(count = COUNT): Matrix {
  const values = new Float32Array(count * WIDTH);
  for (let i = 0; i < count; i++) values[i * WIDTH + i] = 1;
  return matrix(values, count, WIDTH);
}

/** Row `at` turned away from its axis, in a direction no other row uses, so that its cosine becomes `cosine`. */
function turned(cosine: number, at = 0, source = axes()): Matrix {
  const values = source.values.slice();
  values[at * WIDTH + at] = cosine;
  values[at * WIDTH + 10 + at] = Math.sqrt(1 - cosine * cosine);
  return matrix(values, source.count, WIDTH);
}

function scaled(by: number, source = axes()): Matrix {
  return matrix(
    source.values.map((x) => x * by),
    source.count,
    WIDTH,
  );
}

function measured(change: Partial<Measurement> = {}): Measurement {
  const singles = change.singles ?? axes();
  return {
    fingerprint: fingerprint(),
    singles,
    batched: singles,
    before: axes(2),
    again: axes(2),
    overLimit: { answer: 'refused' },
    cuts: [],
    ...change,
  };
}

const anchor: Reference = { of: 'anchor', vectors: axes() };

function rules(change: Partial<Rules> = {}): Rules {
  return { threshold: 0.99, normalise: true, probes, equalLength: 0, first: null, ...change };
}

const kind = (measurement: Measurement, change: Partial<Rules> = {}, reference: Reference = anchor) =>
  evaluate(measurement, reference, rules(change)).kind;

const one = (...values: readonly number[]): Matrix =>
  matrix(
    Float32Array.from({ length: WIDTH }, (_, i) => values[i] ?? 0),
    1,
    WIDTH,
  );

describe('thresholds', () => {
  // Centring six axes shrinks what they have in common, so its bound is looked at alone below.
  it('minimum cosine: above 0.99 passes, at it does not', () => {
    const min = (cosine: number, threshold = 0.99) =>
      evaluate(measured({ singles: turned(cosine) }), anchor, rules({ threshold })).checks.find(
        ({ check }) => check === 'min-cosine',
      )?.state;
    expect(min(0.9901)).toBe('pass');
    expect(min(0.9899)).toBe('fail');
    // float32 cannot hold most cosines: the bound itself is taken from what was measured.
    const measuredMin = evaluate(measured({ singles: turned(0.995) }), anchor, rules()).minCosine ?? 0;
    expect(min(0.995, measuredMin)).toBe('fail');
    expect(min(0.995, measuredMin - 1e-9)).toBe('pass');
    expect(kind(measured({ singles: turned(0.9899) }))).toBe('vector-incompatible');
  });

  it('minimum cosine: a batch that strays counts like a single text', () => {
    const found = evaluate(measured({ batched: turned(0.9985) }), { of: 'anchor', vectors: axes() }, rules());
    expect(found.minCosine).toBeCloseTo(0.9985, 5);
    expect(found.kind).toBe('batch-inconsistent');
  });

  it('centred cosine: above 0.98', () => {
    // All rows share axis 15 with weight 3, so a turn of the small part hardly shows in the plain cosine.
    const share = (source: Matrix): Matrix => {
      const values = source.values.slice();
      for (let i = 0; i < source.count; i++) values[i * WIDTH + 15] = 3;
      return matrix(values, source.count, WIDTH);
    };
    const reference: Reference = { of: 'anchor', vectors: share(axes()) };
    const found = evaluate(measured({ singles: share(turned(0.95)) }), reference, rules());
    // Plain: (0.95 + 9) / 10.
    expect(found.minCosine).toBeCloseTo(0.995, 5);
    expect(found.centredMin).toBeLessThan(0.98);
    expect(found).toMatchObject({ kind: 'vector-incompatible', failed: 'centred' });
    expect(kind(measured({ singles: share(turned(0.999)) }), {}, reference)).toBe('pass');
  });

  it('batch: at least 0.999', () => {
    expect(kind(measured({ batched: turned(0.99901) }))).toBe('pass');
    expect(kind(measured({ batched: turned(0.99899) }))).toBe('batch-inconsistent');
  });

  it('the same text twice: at least 0.9999', () => {
    expect(kind(measured({ before: axes(2), again: turned(0.99991, 0, axes(2)) }))).toBe('pass');
    expect(kind(measured({ before: axes(2), again: turned(0.99989, 0, axes(2)) }))).toBe('unstable');
  });

  it('two probes: never above 0.9999', () => {
    // Row 1 is put at the given cosine from row 0; the anchor is the same, so only collapse can fail.
    const pair = (cosine: number): Matrix => {
      const values = axes().values.slice();
      values[WIDTH] = cosine;
      values[WIDTH + 1] = Math.sqrt(1 - cosine * cosine);
      return matrix(values, COUNT, WIDTH);
    };
    const against = (cosine: number) =>
      kind(measured({ singles: pair(cosine) }), {}, { of: 'anchor', vectors: pair(cosine) });
    expect(against(0.99989)).toBe('pass');
    expect(against(0.99991)).toBe('collapsed');
  });

  it('norms: within one per cent, unless the role normalises', () => {
    expect(kind(measured({ singles: scaled(1.0099) }), { normalise: false })).toBe('pass');
    expect(kind(measured({ singles: scaled(1.0101) }), { normalise: false })).toBe('scale-mismatch');
    expect(kind(measured({ singles: scaled(0.9899) }), { normalise: false })).toBe('scale-mismatch');
    expect(kind(measured({ singles: scaled(7) }), { normalise: true })).toBe('pass');
  });

  it('nearest anchor: each probe lies nearest to its own', () => {
    // Two anchors at 0.9995 from each other; the provider has them the wrong way round.
    const close = (first: number, second: number): Matrix => {
      const values = axes().values.slice();
      const set = (at: number, angle: number): void => {
        values.fill(0, at * WIDTH, (at + 1) * WIDTH);
        values[at * WIDTH] = Math.cos(angle);
        values[at * WIDTH + 12] = Math.sin(angle);
      };
      set(0, first);
      set(1, second);
      return matrix(values, COUNT, WIDTH);
    };
    const reference: Reference = { of: 'anchor', vectors: close(0, 0.03) };
    expect(kind(measured({ singles: close(0.001, 0.029) }), {}, reference)).toBe('pass');
    const swapped = evaluate(measured({ singles: close(0.03, 0) }), reference, rules());
    expect(swapped).toMatchObject({ kind: 'vector-incompatible', failed: 'nearest' });
  });
});

describe('what cannot be compared fails', () => {
  it.each([Number.NaN, Number.POSITIVE_INFINITY])('%s in one number of one vector', (value) => {
    const values = axes().values.slice();
    values[3] = value;
    const found = evaluate(measured({ singles: matrix(values, COUNT, WIDTH), batched: axes() }), anchor, rules());
    expect(found).toMatchObject({ kind: 'vector-incompatible', failed: 'usable', minCosine: null });
    // Each comparison fails by itself, too: what is not a number is above no bound.
    const failed = found.checks.filter(({ state }) => state === 'fail').map(({ check }) => check);
    expect(failed).toEqual(['min-cosine', 'centred', 'nearest', 'batch', 'collapse']);
    expect(JSON.parse(JSON.stringify(found.worst)).cosine).toBeNull();
  });

  it('a zero vector', () => {
    const values = axes().values.slice();
    values[0] = 0;
    expect(kind(measured({ singles: matrix(values, COUNT, WIDTH) }))).toBe('vector-incompatible');
  });

  it('NaN only when sent in a batch', () => {
    const values = axes().values.slice();
    values[5] = Number.NaN;
    expect(kind(measured({ batched: matrix(values, COUNT, WIDTH) }))).toBe('vector-incompatible');
  });

  it('NaN on repetition', () => {
    const again = matrix(
      Float32Array.from({ length: 2 * WIDTH }, () => Number.NaN),
      2,
      WIDTH,
    );
    expect(kind(measured({ again }))).toBe('unstable');
  });
});

describe('over the limit', () => {
  const vectors = (base: Matrix, otherTail: Matrix, otherHead: Matrix) =>
    measured({ overLimit: { answer: 'vectors', base, otherTail, otherHead } });

  it('whoever reads on may answer', () => {
    expect(kind(vectors(one(1), one(0.6, 0.8), one(0.6, 0, 0.8)))).toBe('pass');
  });

  it('an unseen tail or an unseen head is a silent cut', () => {
    expect(kind(vectors(one(1), one(1), one(0.6, 0.8)))).toBe('silent-truncation');
    expect(kind(vectors(one(1), one(0.6, 0.8), one(1)))).toBe('silent-truncation');
  });

  it('NaN or another width there is no answer', () => {
    expect(kind(vectors(one(Number.NaN), one(0.6, 0.8), one(1)))).toBe('silent-truncation');
    const short = matrix(Float32Array.of(1, 0), 1, 2);
    expect(kind(vectors(short, short, short))).toBe('silent-truncation');
  });
});

describe('several failures', () => {
  it('chance comes before everything', () => {
    const again = turned(0.5, 0, axes(2));
    expect(kind(measured({ again, batched: turned(0.9), singles: turned(0.5) }))).toBe('unstable');
  });

  it('a batch fault comes before the distance it causes', () => {
    expect(kind(measured({ batched: turned(0.5) }))).toBe('batch-inconsistent');
  });

  it('another direction comes before another scale', () => {
    expect(kind(measured({ singles: scaled(3, turned(0.5)) }), { normalise: false })).toBe('vector-incompatible');
  });

  it('long texts that collapse because they are cut are cut; short ones that collapse are collapsed', () => {
    const cut = measured({
      singles: stack([one(1), one(1), axes(COUNT)]),
      overLimit: { answer: 'vectors', base: one(1), otherTail: one(1), otherHead: one(0, 1) },
    });
    const long = (id: string) => ({ id, text: 'long '.repeat(60) });
    const reference: Reference = { of: 'anchor', vectors: stack([one(1), one(1), axes(COUNT)]) };
    const renamed = probes.map(({ id, text }) => ({ id: `q${id}`, text }));
    // Row 2 is axis 0 as well, so it is made long too: only long rows are alike.
    const texts = [long('a'), long('b'), long('c'), ...renamed.slice(1)];
    expect(kind(cut, { probes: texts }, reference)).toBe('silent-truncation');
    const short = [{ id: 'a', text: 'a' }, { id: 'b', text: 'b' }, ...renamed];
    expect(kind(cut, { probes: short }, reference)).toBe('collapsed');
  });
});

describe('drift', () => {
  const first = (sameProcess: boolean, vectors = axes()) => ({ first: { vectors, sameProcess } });

  it('in the process that gave the first vectors is called unstable, though the anchor is missed too', () => {
    expect(kind(measured({ singles: turned(0.9) }), first(true))).toBe('unstable');
  });

  it('in another process is what the anchor says', () => {
    expect(kind(measured({ singles: turned(0.9) }), first(false))).toBe('vector-incompatible');
  });

  it('is found where there is no anchor to compare with', () => {
    expect(kind(measured(), first(false), { of: 'nobody' })).toBe('pass-reduced');
    expect(kind(measured({ singles: turned(0.976) }), first(false), { of: 'nobody' })).toBe('unstable');
  });

  it('counts from the own first vectors, not from the anchor', () => {
    // Anchor and first lie 0.9951 apart on two sides; now 0.9951 from the anchor, on the far side of the first.
    const angle = Math.acos(0.9951);
    const at = (turn: number): Matrix => {
      const values = axes().values.slice();
      values[0] = Math.cos(turn);
      values[14] = Math.sin(turn);
      return matrix(values, COUNT, WIDTH);
    };
    const found = evaluate(measured({ singles: at(angle) }), anchor, rules(first(false, at(-angle))));
    expect(found.checks.find(({ check }) => check === 'min-cosine')?.state).toBe('pass');
    expect(found).toMatchObject({ kind: 'unstable', failed: 'drift' });
  });
});

describe('cut widths', () => {
  it('are served when they agree with the anchor cut alike; a failure costs that width alone', () => {
    const cut = matrix(
      Float32Array.from({ length: COUNT * 8 }, (_, i) => (i % 8 === Math.floor(i / 8) ? 1 : 0)),
      COUNT,
      8,
    );
    const wrong = matrix(
      Float32Array.from({ length: COUNT * 7 }, (_, i) => (i % 7 === (Math.floor(i / 7) + 1) % 7 ? 1 : 0)),
      COUNT,
      7,
    );
    const found = evaluate(measured({ cuts: [cut, wrong] }), anchor, rules());
    expect(found).toMatchObject({ kind: 'pass', cutWidths: [8] });
  });
});

it('a finding can be read: sentence, figures, both vectors’ norms and first numbers', () => {
  const found = evaluate(measured({ singles: turned(0.976, 2) }), anchor, rules());
  expect(sayingOf(found).sentence).toContain('smallest cosine 0.9760 at "p2"');
  expect(sayingOf(found).sentence).toContain('found a space of its own');
  expect(found.worst).toMatchObject({ id: 'p2', text: 'probe 2', anchorNorm: 1, anchorHead: [0, 0, 1, 0, 0, 0, 0, 0] });
  expect(found.worst?.providerHead[2]).toBeCloseTo(0.976, 5);
  // Twelve rows: each of six once alone and once in a batch, one of the six turned in both.
  expect(found.meanCosine).toBeCloseTo((5 + 0.976) / 6, 5);
});
