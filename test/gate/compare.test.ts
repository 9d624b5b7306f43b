import { describe, expect, it } from 'vitest';
import {
  centredCosines,
  closestPair,
  cosine,
  cutRows,
  firstUnusable,
  least,
  matrix,
  misplaced,
  normDeviation,
  row,
  rowCosines,
  worstIndex,
} from '../../main/gate/compare.ts';

const of = (...rows: readonly (readonly number[])[]) =>
  matrix(Float32Array.from(rows.flat()), rows.length, rows[0]?.length ?? 0);

describe('cosine', () => {
  it('is the angle, whatever the lengths', () => {
    // 3-4-5: (3,4)·(4,3) = 24, over 5 * 5.
    expect(cosine([3, 4], [40, 30])).toBeCloseTo(0.96, 12);
    expect(cosine([1, 0], [0, 5])).toBe(0);
    expect(cosine([1, 2], [-1, -2])).toBeCloseTo(-1, 12);
  });

  it('is NaN for a zero vector, for NaN, for infinity and for unequal widths', () => {
    expect(cosine([0, 0], [1, 1])).toBeNaN();
    expect(cosine([Number.NaN, 1], [1, 1])).toBeNaN();
    expect(cosine([Number.POSITIVE_INFINITY, 1], [1, 1])).toBeNaN();
    expect(cosine([1, 1], [1, 1, 1])).toBeNaN();
  });

  it('survives vectors whose squares of squares leave the range of doubles', () => {
    expect(cosine([1e100, 0], [1e100, 0])).toBe(1);
    expect(cosine([1e-100, 0], [1e-100, 0])).toBe(1);
  });
});

describe('the least of many', () => {
  it('is NaN as soon as one is, and for none at all', () => {
    expect(least(Float64Array.of(0.9, 0.2, 0.5))).toBe(0.2);
    expect(least(Float64Array.of(0.9, Number.NaN, 0.1))).toBeNaN();
    expect(least(new Float64Array(0))).toBeNaN();
    expect(worstIndex(Float64Array.of(0.9, Number.NaN, 0.1))).toBe(1);
    expect(worstIndex(Float64Array.of(0.9, 0.2, 0.5))).toBe(1);
  });

  it('counts a missing row as NaN', () => {
    expect([...rowCosines(of([1, 0]), of([1, 0], [0, 1]))]).toEqual([1, Number.NaN]);
  });
});

describe('centred cosines', () => {
  it('see what a shared direction hides', () => {
    // All vectors are nearly (1, 0, 0); what tells them apart lies in y and z, and the provider swaps it.
    const anchor = of([1, 0.01, 0], [1, -0.01, 0]);
    const provider = of([1, 0, 0.01], [1, 0, -0.01]);
    expect(least(rowCosines(provider, anchor))).toBeGreaterThan(0.9998);
    // The mean is (1, 0, 0) but for rounding, so (0, 1, 0) meets (0, 0, 1).
    expect(Math.abs(least(centredCosines(provider, anchor)))).toBeLessThan(0.01);
  });

  it('see a shift that all of a provider share', () => {
    const anchor = of([1, 0.1], [1, -0.1]);
    const shifted = of([1, 0.15], [1, -0.05]);
    // Around the anchor's mean y is 0.1 and -0.1; shifted they are 0.15 and -0.05: the signs stay, a mean of their own
    // would make them equal, and larger shifts turn the sign.
    expect(least(centredCosines(of([1, 0.25], [1, 0.05]), anchor))).toBeLessThan(0);
    expect(least(centredCosines(shifted, anchor))).toBeGreaterThan(0.9);
  });

  it('do not depend on the lengths of raw vectors', () => {
    const anchor = of([1, 0.2], [1, -0.2], [1, 0.4]);
    const scaled = of([7, 1.4], [0.5, -0.1], [3, 1.2]);
    expect(least(centredCosines(scaled, anchor))).toBeCloseTo(1, 5);
  });
});

describe('neighbours', () => {
  it('name each row that lies nearer to another anchor', () => {
    const anchor = of([1, 0], [0, 1], [1, 1]);
    expect(misplaced(anchor, anchor)).toEqual([]);
    expect(misplaced(of([0, 1], [0, 1], [1, 1]), anchor)).toEqual([0]);
    expect(misplaced(of([1, 0], [0, 0], [1, 1]), anchor)).toEqual([1]);
  });

  it('find the two rows most alike, and any that cannot be compared', () => {
    const pair = closestPair(of([1, 0], [0, 1], [1, 0.1]));
    expect([pair.a, pair.b]).toEqual([0, 2]);
    expect(pair.cosine).toBeCloseTo(1 / Math.sqrt(1.01), 6);
    expect(closestPair(of([1, 0], [0, 0], [1, 0.1])).cosine).toBeNaN();
  });
});

describe('norms', () => {
  it('deviate relative to the anchor', () => {
    expect(normDeviation(of([3, 4], [0, 1]), of([3, 4], [0, 2]))).toBeCloseTo(0.5, 12);
    expect(normDeviation(of([0, 3], [0, 1]), of([0, 2], [0, 1]))).toBeCloseTo(0.5, 12);
    expect(normDeviation(of([0, Number.NaN]), of([0, 2]))).toBeNaN();
  });

  it('make zero, NaN and infinity unusable', () => {
    expect(firstUnusable(of([1, 0], [0, 1]))).toBe(-1);
    expect(firstUnusable(of([1, 0], [0, 0]))).toBe(1);
    expect(firstUnusable(of([1, Number.NaN], [0, 0]))).toBe(0);
    expect(firstUnusable(of([1, 0], [Number.NEGATIVE_INFINITY, 0]))).toBe(1);
  });
});

it('a cut keeps the leading numbers and scales them to length one', () => {
  const cut = cutRows(of([3, 4, 12], [0, 2, 5]), 2);
  expect([...row(cut, 0)].map((x) => x.toFixed(6))).toEqual(['0.600000', '0.800000']);
  expect([...row(cut, 1)]).toEqual([0, 1]);
});

it('numbers that do not fill the rows are refused', () => {
  expect(() => matrix(new Float32Array(5), 2, 3)).toThrow(RangeError);
});
