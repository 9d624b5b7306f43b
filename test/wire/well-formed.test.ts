import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallHead, ResponseHead, Trailers } from '../../agent/wire/calls.ts';
import { callHeadOf, responseHeadOf, trailersOf } from '../../agent/wire/well-formed.ts';

const chat = {
  op: 'chat',
  engine: '127.0.0.1:8080',
  model: 'm',
  stream: true,
  wantsUsage: false,
  path: '/v1/chat/completions',
  firstByteMs: 600_000,
  betweenTokensMs: 60_000,
};
const embed = {
  op: 'embed',
  engine: 'e',
  model: 'm',
  count: 64,
  width: 2560,
  cut: null,
  normalise: true,
  processMark: '12@34',
  timeoutMs: 600_000,
};
const cloud = { permit: 'p', role: 'rlm', pin: null, maxTokens: null };
const others = [
  { ...chat, cloud },
  { op: 'rerank', engine: 'e', model: 'm', count: 2, timeoutMs: 5 },
  { op: 'tokenize', engine: 'e', model: 'm', count: 2, timeoutMs: 5 },
];
const response = { status: 200, contentType: 'text/event-stream', count: null, width: 7 };
const fingerprint = { engine: 'vllm', version: null, modelDigest: 'x', upstream: null, pin: null, processMark: '1@2' };
const usage = { promptTokens: 1, completionTokens: 2, exact: true, costUsd: 0.5 };
const trailers = { usage, fingerprint, engineMs: 1.5, firstByteMs: null, tokensPerSecond: 3, finished: true };

/** Around every limit of the schemas, and of every kind. */
const value = fc.constantFrom<unknown>(
  ...[null, undefined, true, '', 'chat', 'embed', 'x'.repeat(512), 'x'.repeat(513), 0, -0, -1, 1.5, 1e9, 1e9 + 1],
  ...[2 ** 53, Number.NaN, Number.POSITIVE_INFINITY, [], {}, usage, fingerprint, cloud, new Date(0)],
);
const name = fc.constantFrom('more', '__proto__', 'cloud', 'toString');

/** A valid value with members, at any depth, taken away, added or replaced. */
function spoilt(bases: readonly object[]): fc.Arbitrary<unknown> {
  const change = fc.record({
    at: fc.nat(),
    inner: fc.boolean(),
    how: fc.constantFrom('drop', 'add', 'set'),
    name,
    value,
  });
  return fc.tuple(fc.constantFrom(...bases), fc.array(change, { maxLength: 3 })).map(([base, changes]) => {
    const whole: Record<string, unknown> = structuredClone(base) as Record<string, unknown>;
    for (const { at, inner, how, name: added, value: shared } of changes) {
      const put = structuredClone(shared);
      const below = Object.values(whole).find((member) => typeof member === 'object' && member !== null);
      const place = inner && below !== undefined ? (below as Record<string, unknown>) : whole;
      const names = Object.keys(place);
      const known = names[at % Math.max(1, names.length)] ?? added;
      if (how === 'drop') delete place[known];
      else
        Object.defineProperty(place, how === 'add' ? added : known, {
          value: put,
          enumerable: true,
          configurable: true,
          writable: true,
        });
    }
    return whole;
  });
}

const checks = [
  ['a call', callHeadOf, CallHead, [chat, embed, ...others]],
  ['a response head', responseHeadOf, ResponseHead, [response]],
  ['trailers', trailersOf, Trailers, [trailers, { ...trailers, usage: null }]],
] as const;

describe.each(checks)('%s', (_, check, schema, bases) => {
  it('is what the schema makes of it, however it is spoilt', () => {
    fc.assert(
      fc.property(fc.oneof(spoilt(bases), value), (given) => {
        expect(check(given)).toEqual(schema.safeParse(given).data ?? null);
      }),
      { numRuns: 5000 },
    );
  });

  it('as both ends write it is taken as it is, without a copy', () => {
    for (const base of bases) if (!others.includes(base as never)) expect(check(base)).toBe(base);
  });
});
