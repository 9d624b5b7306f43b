import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EngineFailure } from '../../../agent/engines/failure.ts';
import { decodeBase64, hollowJson } from '../../../agent/engines/hollow-json.ts';
import { jsonOf } from '../../../agent/engines/json-answer.ts';
import { readVectors, readVectorsOf, type VectorDemand } from '../../../agent/engines/vectors.ts';

const STANDARD = /^[A-Za-z0-9+/]*={0,2}$/;

function strictly(text: string): Uint8Array | null {
  if (text.length === 0 || text.length % 4 !== 0 || !STANDARD.test(text)) return null;
  return Buffer.from(text, 'base64');
}

function decoded(text: string): Uint8Array | null {
  const source = Buffer.from(text, 'latin1');
  const target = Buffer.alloc(source.length + 8);
  const length = decodeBase64(source, 0, source.length, target, 4);
  return length === null ? null : target.subarray(4, 4 + length);
}

/** Base64 in which something may be wrong: a character of any kind put, at any place, in place of another. */
const nearlyBase64 = fc
  .tuple(
    fc.uint8Array({ minLength: 1, maxLength: 1600 }),
    fc.array(fc.tuple(fc.nat(), fc.constantFrom(...'=-_ \n*A+/\\\u00e9')), { maxLength: 3 }),
  )
  .map(([bytes, changes]) => {
    const letters = [...Buffer.from(bytes).toString('base64')];
    for (const [at, letter] of changes) letters[at % letters.length] = letter;
    return letters.join('');
  });

const floats = fc
  .array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 300, maxLength: 320 })
  .map((values) => Buffer.from(Float32Array.from(values).buffer).toString('base64'));

/** What an engine, or somebody who plays one, may put where a vector belongs. */
const embedding = fc.oneof(
  { weight: 6, arbitrary: floats },
  { weight: 1, arbitrary: nearlyBase64 },
  { weight: 1, arbitrary: fc.array(fc.integer({ min: -9, max: 9 }), { maxLength: 4 }) },
  { weight: 1, arbitrary: fc.constantFrom('\x7f0', '\x7f', '', 'AACAPw==', '"\\', null, 0) },
);
const item = fc.record(
  { index: fc.nat({ max: 3 }), embedding, note: fc.oneof(fc.string({ unit: 'binary' }), floats) },
  { requiredKeys: ['embedding'] },
);
const answer = fc.record(
  { object: fc.string(), data: fc.array(item, { maxLength: 4 }), usage: fc.constant({ prompt_tokens: 7 }) },
  { requiredKeys: ['data'] },
);

const outcome = async (read: () => unknown) => {
  try {
    return await read();
  } catch (error) {
    if (error instanceof EngineFailure) return error.failure;
    throw error;
  }
};

describe('base64 from the bytes of an answer', () => {
  it('is taken exactly when it is of the standard alphabet with its padding', () => {
    fc.assert(
      fc.property(nearlyBase64, (text) => {
        const expected = strictly(text);
        const got = decoded(text);
        expect(got === null ? null : [...got]).toEqual(expected === null ? null : [...expected]);
      }),
      { numRuns: 2000 },
    );
  });

  it.each(['', 'A', 'AAA', 'A===', '====', 'AA=A', '=AAA', 'AAA-', 'AA_A', 'AA A', 'AAA\n'])('is not %j', (text) => {
    expect(decoded(text)).toBeNull();
  });
});

describe('an answer whose vectors are taken from its bytes', () => {
  it('says what the same answer says when all of it is parsed, or fails for the same reason', async () => {
    const demands = fc.record<VectorDemand>({
      count: fc.integer({ min: 1, max: 4 }),
      width: fc.constantFrom(null, 300, 310),
      cut: fc.constantFrom(null, 8),
      normalise: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(answer, demands, fc.constantFrom(undefined, 1), async (said, demand, indent) => {
        const body = Buffer.from(JSON.stringify(said, null, indent));
        const fromBytes = await outcome(async () => (await readVectorsOf(body, demand)).batch);
        expect(fromBytes).toEqual(await outcome(() => readVectors(jsonOf({ body }), demand)));
      }),
      { numRuns: 500 },
    );
  });

  it('is no JSON where the whole is none', async () => {
    await fc.assert(
      fc.asyncProperty(answer, fc.nat(), fc.constantFrom('', '"', '}', '\\', ',,'), async (said, at, put) => {
        const text = JSON.stringify(said);
        const cut = at % (text.length + 1);
        const body = Buffer.from(text.slice(0, cut) + put + text.slice(put === '' ? cut + 1 : cut));
        const whole = jsonOf({ body });
        expect((await hollowJson(body)).value === undefined).toBe(whole === undefined);
      }),
      { numRuns: 1000 },
    );
  });

  const row = Buffer.from(new Float32Array(400).fill(0.5).buffer).toString('base64');

  it('cannot name a vector of another place by the mark that stands for it', async () => {
    for (const forged of ['"\x7f0"', '"\\u007f0"', '"\\u007F0"']) {
      const body = Buffer.from(`{"data":[{"embedding":"${row}"},{"embedding":${forged}}]}`);
      const demand = { count: 2, width: 400, cut: null, normalise: false };
      await expect(readVectorsOf(body, demand)).rejects.toThrow('cannot be read');
    }
  });

  it('gives vectors that lie behind each other as they lie, others in the order of their texts', async () => {
    const other = Buffer.from(new Float32Array(400).fill(0.25).buffer).toString('base64');
    const demand = { count: 2, width: 400, cut: null, normalise: false };
    for (const [first, second] of [
      [0, 1],
      [1, 0],
    ] as const) {
      const items = [`{"index":${first},"embedding":"${row}"}`, `{"embedding":"${other}","index":${second}}`];
      const { batch } = await readVectorsOf(Buffer.from(`{"data":[${items.join()}]}`), demand);
      expect(batch.values[first * 400]).toBe(0.5);
      expect(batch.values[second * 400]).toBe(0.25);
      expect(batch.values).toHaveLength(800);
    }
  });
});
