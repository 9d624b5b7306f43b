import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EngineFailure } from '../../../agent/engines/failure.ts';
import { readScores } from '../../../agent/engines/scores.ts';
import { assemble, readRows, readVectors, type VectorDemand, vectorBytes } from '../../../agent/engines/vectors.ts';

const base64 = (row: readonly number[]) => Buffer.from(new Float32Array(row).buffer).toString('base64');
const answer = (rows: readonly unknown[]) => ({ data: rows.map((embedding, index) => ({ index, embedding })) });
const indexed = (indices: readonly unknown[]) => ({ data: indices.map((index) => ({ index, embedding: [1] })) });
const demand = (more: Partial<VectorDemand> = {}): VectorDemand => ({
  count: 2,
  width: null,
  cut: null,
  normalise: false,
  ...more,
});

function failing(body: unknown, wanted: VectorDemand): EngineFailure {
  try {
    readVectors(body, wanted);
  } catch (error) {
    if (error instanceof EngineFailure) return error;
  }
  throw new Error('it was taken');
}

describe('vectors out of an answer', () => {
  it('are the same as base64 and as numbers, in the order of the inputs', () => {
    const rows = [
      [1, 2, 3],
      [4, 5, 6],
    ];
    const turned = { data: [...answer(rows.map(base64)).data].reverse() };
    expect([...readVectors(turned, demand()).values]).toEqual([1, 2, 3, 4, 5, 6]);
    expect([...readVectors(answer(rows), demand()).values]).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('are in the order of the texts when an engine names no places at all', () => {
    expect([...readVectors({ data: [{ embedding: [1] }, { embedding: [2] }] }, demand()).values]).toEqual([1, 2]);
    expect([...readRows([[1], [2]], demand()).values]).toEqual([1, 2]);
  });

  it('are never assembled around a hole', () => {
    const holed = new Array<Float32Array | undefined>(2);
    holed[0] = Float32Array.of(1);
    expect(() => assemble(holed, demand())).toThrow('The engine left a vector out.');
  });

  it('are cut first and normalised then: (3, 4, 12) cut to two is (0.6, 0.8)', () => {
    const batch = readVectors(answer([[3, 4, 12]]), demand({ count: 1, cut: 2, normalise: true }));
    expect(batch.width).toBe(2);
    expect([...batch.values].map((value) => Number(value.toFixed(6)))).toEqual([0.6, 0.8]);
  });

  it('travel as little-endian float32', () => {
    expect([...vectorBytes(readVectors(answer([[1]]), demand({ count: 1 })))]).toEqual([0, 0, 0x80, 0x3f]);
  });

  it.each<[string, unknown, Partial<VectorDemand>, number[]]>([
    ['an error object', { error: { message: 'x' } }, {}, []],
    ['too few', answer([[1]]), {}, []],
    ['too many', answer([[1], [2], [3]]), {}, []],
    [
      'another width',
      answer([
        [1, 2],
        [1, 2, 3],
      ]),
      { width: 2 },
      [1],
    ],
    [
      'two widths',
      answer([
        [1, 2],
        [1, 2, 3],
      ]),
      {},
      [1],
    ],
    [
      'null in a row',
      answer([
        [1, 2],
        [1, null],
      ]),
      {},
      [1],
    ],
    ['NaN', answer([base64([1, Number.NaN]), base64([1, 2])]), {}, [0]],
    ['infinity', answer([base64([1, 2]), base64([Number.POSITIVE_INFINITY, 2])]), {}, [1]],
    [
      'zeros',
      answer([
        [1, 2],
        [0, 0],
      ]),
      {},
      [1],
    ],
    [
      'zeros after the cut',
      answer([
        [1, 2],
        [0, 2],
      ]),
      { cut: 1, normalise: true },
      [1],
    ],
    ['three bytes', answer([[1], 'AAAA']), {}, []],
    [
      'one place twice',
      {
        data: [
          { index: 0, embedding: [1] },
          { index: 0, embedding: [1] },
        ],
      },
      {},
      [],
    ],
    [
      'a place that does not exist',
      {
        data: [
          { index: 0, embedding: [1] },
          { index: 2, embedding: [1] },
        ],
      },
      {},
      [],
    ],
    ['a place between two', indexed([0, 0.5]), {}, []],
    ['a place before the first', indexed([0, -1]), {}, []],
    ['a place as text', indexed([0, '1']), {}, []],
    ['a place that is null', indexed([0, null]), {}, []],
    ['one place named and one not', indexed([0, undefined]), {}, []],
    ['base64 with a foreign character', answer([[1], `${base64([1]).slice(0, 4)}*${base64([1]).slice(4)}`]), {}, []],
    ['base64 of another alphabet', answer([base64([1]), '__9_Pw==']), {}, []],
    ['base64 without its padding', answer([base64([1]), base64([1]).replace(/=+$/, '')]), {}, []],
    ['base64 that goes on after its end', answer([base64([1]), `${base64([1])}${base64([1])}`]), {}, []],
    // 3e38 * sqrt(2) is beyond the largest float32, 3.4e38; 1e-44 * sqrt(2) is below the smallest normal one, 1.2e-38.
    [
      'a length beyond float32',
      answer([
        [3e38, 3e38],
        [1, 2],
      ]),
      { normalise: true },
      [0],
    ],
    [
      'a length too small for float32',
      answer([
        [1, 2],
        [1e-44, 1e-44],
      ]),
      { normalise: true },
      [1],
    ],
    ['nothing', undefined, {}, []],
  ])('are refused as a whole for %s, naming the rows', (_, body, more, indices) => {
    const { failure } = failing(body, demand(more));
    expect(failure).toMatchObject({ blame: 'engine', code: 'engine_invalid_response' });
    expect(failure.failing.map(({ index }) => index)).toEqual(indices);
  });

  it('have length 1 when normalised, whatever they were', () => {
    const value = fc.float({ noNaN: true, noDefaultInfinity: true, min: Math.fround(-1e15), max: Math.fround(1e15) });
    const row = fc
      .array(value, { minLength: 4, maxLength: 4 })
      .filter((values) => values.some((x) => Math.abs(x) > 1e-10));
    fc.assert(
      fc.property(row, (values) => {
        const batch = readVectors(answer([base64(values)]), demand({ count: 1, normalise: true }));
        const norm = Math.sqrt([...batch.values].reduce((sum, x) => sum + x * x, 0));
        expect(norm).toBeCloseTo(1, 5);
      }),
    );
  });
});

describe('scores out of an answer', () => {
  const scored = (pairs: readonly (readonly [unknown, unknown])[]) => ({
    results: pairs.map(([index, relevance_score]) => ({ index, relevance_score })),
  });

  it('come in the order of the documents, raw', () => {
    expect(
      readScores(
        scored([
          [2, 0.9],
          [0, -3.5],
          [1, 0],
        ]),
        3,
      ),
    ).toEqual([-3.5, 0, 0.9]);
  });

  it.each<[string, unknown]>([
    ['one is missing', scored([[0, 1]])],
    [
      'one comes twice',
      scored([
        [0, 1],
        [0, 1],
      ]),
    ],
    [
      'one is null, as JSON spells NaN',
      scored([
        [0, 1],
        [1, null],
      ]),
    ],
    [
      'an index is beyond the documents',
      scored([
        [0, 1],
        [2, 1],
      ]),
    ],
    ['there are none', {}],
  ])('are refused when %s', (_, body) => {
    expect(() => readScores(body, 2)).toThrow(EngineFailure);
  });
});
