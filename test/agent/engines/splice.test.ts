import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { splice, topLevelMembers } from '../../../agent/engines/splice.ts';

const bytes = (text: string) => Buffer.from(text);
const text = (body: Buffer | null) => body?.toString() ?? null;

describe('splicing single members of a JSON body', () => {
  it('replaces a value and leaves every other byte alone', () => {
    const body = '{ "model" : "role:local",\n "temperature":1.50, "x":{"model":"inner"}, "t":"\\u00e9" }';
    expect(text(splice(bytes(body), [{ key: 'model', how: 'set', json: '"m"' }]))).toBe(
      '{ "model" : "m",\n "temperature":1.50, "x":{"model":"inner"}, "t":"\\u00e9" }',
    );
  });

  it('adds what is missing when told to set, not when told to replace', () => {
    const set = [{ key: 'a', how: 'set', json: '1' }] as const;
    expect(text(splice(bytes('{}'), set))).toBe('{"a":1}');
    expect(text(splice(bytes(' { } '), set))).toBe(' {"a":1 } ');
    expect(text(splice(bytes('{"b":2}'), set))).toBe('{"b":2,"a":1}');
    expect(text(splice(bytes('{"b":2}'), [{ key: 'a', how: 'replace', json: '1' }]))).toBe('{"b":2}');
  });

  it.each([
    ['{"a":1,"b":2,"c":3}', 'a', '{"b":2,"c":3}'],
    ['{"a":1,"b":2,"c":3}', 'b', '{"a":1,"c":3}'],
    ['{"a":1,"b":2,"c":3}', 'c', '{"a":1,"b":2}'],
    ['{"a":1}', 'a', '{}'],
    ['{"a":1,"a":2}', 'a', '{}'],
  ])('takes a member out of %s (%s)', (body, key, left) => {
    expect(text(splice(bytes(body), [{ key, how: 'remove' }]))).toBe(left);
  });

  it('finds a name however it is escaped, and is not fooled by names inside strings', () => {
    const body = '{"note":"\\",\\"model\\":\\"x","mod\\u0065l":"a"}';
    expect(text(splice(bytes(body), [{ key: 'model', how: 'set', json: '"b"' }]))).toBe(
      '{"note":"\\",\\"model\\":\\"x","mod\\u0065l":"b"}',
    );
  });

  it.each([
    '',
    '[]',
    '"x"',
    '{',
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,',
    '{"a":"',
    '{"a":[1',
    '{a:1}',
    '{"a" 1}',
    'null',
  ])('returns null for what is no object: %s', (body) => {
    expect(splice(bytes(body), [{ key: 'a', how: 'set', json: '1' }])).toBeNull();
  });

  it('means what an edit of the parsed object means, for any object and any spelling', () => {
    const spacing = fc.constantFrom<string | number>('', 1, '\t', 3);
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.string(),
        fc.jsonValue(),
        spacing,
        (object, key, value, space) => {
          const body = bytes(JSON.stringify(object, null, space));
          const set = splice(body, [{ key, how: 'set', json: JSON.stringify(value) }]);
          const parsed = JSON.parse(JSON.stringify(object)) as Record<string, unknown>;
          expect(new Map(Object.entries(JSON.parse(text(set) ?? '') as object))).toEqual(
            new Map(Object.entries(parsed)).set(key, JSON.parse(JSON.stringify(value))),
          );
          const some = Object.keys(object)[0] ?? 'none';
          const removed = splice(body, [{ key: some, how: 'remove' }]);
          const expected = new Map(Object.entries(parsed));
          expected.delete(some);
          expect(new Map(Object.entries(JSON.parse(text(removed) ?? '') as object))).toEqual(expected);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('never throws and never runs away, whatever the bytes are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (body) => {
        topLevelMembers(body);
        splice(body, [{ key: 'a', how: 'set', json: '1' }]);
      }),
      { numRuns: 2000 },
    );
  });
});
