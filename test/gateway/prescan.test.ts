import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SwitchyardError } from '../../main/domain/errors.ts';
import { scanJson } from '../../main/gateway/json-body.ts';
import { JsonScanner, MAX_CONTAINERS } from '../../main/gateway/prescan.ts';

/** Scans a text in pieces of `size` bytes. @returns the code it is refused with; null when it is taken. */
function codeOf(text: string | Buffer, size = 1 << 20): string | null {
  const bytes = Buffer.from(text);
  const scanner = new JsonScanner();
  try {
    for (let at = 0; at < bytes.length; at += size) scanner.feed(bytes.subarray(at, at + size));
    scanner.end(bytes);
    return null;
  } catch (error) {
    return error instanceof SwitchyardError ? error.code : 'threw something else';
  }
}

function parses(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

describe('grammar', () => {
  it('takes what JSON.parse takes, in whatever pieces it comes', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 5 })),
        fc.integer({ min: 1, max: 7 }),
        fc.constantFrom('', ' ', '\n\t'),
        (value, size, indent) => {
          const text = JSON.stringify(value, null, indent);
          expect(codeOf(text, size)).toBeNull();
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('agrees with JSON.parse on texts that were damaged somewhere', () => {
    const damage = fc.tuple(
      fc.nat(),
      fc.constantFrom('', '"', '\\', '{', '}', '[', ']', ',', ':', '0', '-', '.', 'e', 'x', '\n', ' ', 'u'),
    );
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.jsonValue({ maxDepth: 3 })),
        fc.array(damage, { maxLength: 3 }),
        (value, damages) => {
          let text = JSON.stringify(value);
          for (const [where, put] of damages) {
            const at = where % (text.length + 1);
            text = text.slice(0, at) + put + text.slice(at + 1);
          }
          const code = codeOf(text, 3);
          if (code === 'duplicate_field') expect(parses(text)).toBe(true);
          else expect(code === null, text).toBe(parses(text));
        },
      ),
      { numRuns: 5000 },
    );
  });

  it.each([
    '{"a":01}',
    '{"a":1.}',
    '{"a":.5}',
    '{"a":+1}',
    '{"a":1e}',
    '{"a":-}',
    '{"a":NaN}',
    '{"a":tru}',
    "{'a':1}",
    '{"a":1,}',
    '{a:1}',
    '{"a":"\\x"}',
    '{"a":"\\u12g4"}',
    '{"a":"\t"}',
    '{} {}',
    '\ufeff{}',
    '[]',
    '"a"',
    '',
  ])('refuses %j', (text) => {
    expect(codeOf(text)).toBe('invalid_json');
    expect(codeOf(text, 1)).toBe('invalid_json');
  });

  it('refuses bytes that are no UTF-8', () => {
    expect(codeOf(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).toBe('invalid_json');
  });
});

describe('limits', () => {
  it('64 levels and 200,000 containers are the most', () => {
    const nested = (levels: number): string => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
    expect(codeOf(nested(64))).toBeNull();
    expect(codeOf(nested(65))).toBe('too_complex');
    const many = (containers: number): string =>
      `{"a":[${Array(containers - 2)
        .fill('{}')
        .join(',')}]}`;
    expect(codeOf(many(MAX_CONTAINERS))).toBeNull();
    expect(codeOf(many(MAX_CONTAINERS + 1))).toBe('too_complex');
  });

  it('are told before the grammar, and brackets inside strings do not count', () => {
    expect(codeOf('{},'.repeat(MAX_CONTAINERS + 1))).toBe('too_complex');
    expect(codeOf('{},'.repeat(MAX_CONTAINERS))).toBe('invalid_json');
    expect(codeOf(`{"a":"${'[{'.repeat(MAX_CONTAINERS)}"}`)).toBeNull();
    expect(codeOf(`x"${'\\"[{'.repeat(MAX_CONTAINERS)}"`)).toBe('invalid_json');
  });

  it('a thousand names too many are too complex', () => {
    const object = (names: number): string =>
      JSON.stringify(Object.fromEntries(Array.from({ length: names }, (_, at) => [`n${at}`, 0])));
    expect(codeOf(object(1024))).toBeNull();
    expect(codeOf(object(1025))).toBe('too_complex');
  });
});

describe('duplicates', () => {
  it.each([
    ['{"a":1,"a":2}', 'duplicate_field'],
    ['{"a":1,"\\u0061":2}', 'duplicate_field'],
    ['{"\\/":1,"/":2}', 'duplicate_field'],
    ['{"__proto__":1,"__proto__":2}', 'duplicate_field'],
    ['{"a":{"b":1,"b":2}}', null],
    ['{"a":1,"A":2}', null],
  ])('%s is %s', (text, expected) => {
    expect(codeOf(text)).toBe(expected);
  });
});

describe('members', () => {
  it('are found by name with the very bytes of their values', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 })),
        fc.constantFrom('', '  '),
        (value, indent) => {
          const body = scanJson(Buffer.from(JSON.stringify(value, null, indent)));
          for (const [name, member] of Object.entries(value)) {
            expect(JSON.stringify(body.value(name) ?? null)).toBe(JSON.stringify(member));
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  it('one is cut out wherever it stands, and what is left means the same', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.constantFrom('a', 'b', 'switchyard', 'c', 'd'), { minLength: 1 }),
        fc.jsonValue({ maxDepth: 3 }),
        fc.constantFrom('', ' ', '\n'),
        (names, value, space) => {
          const text = `${space}{${names.map((name) => `${space}"${name}"${space}:${space}${JSON.stringify(value)}${space}`).join(',')}}${space}`;
          const left = scanJson(Buffer.from(text)).without('switchyard');
          const expected = Object.fromEntries(
            names.filter((name) => name !== 'switchyard').map((name) => [name, value]),
          );
          expect(JSON.stringify(JSON.parse(left.toString()))).toBe(JSON.stringify(expected));
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('count their UTF-8 with escapes as what they stand for', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }).filter((text) => text.isWellFormed()),
        (text) => {
          const plain = Buffer.from(JSON.stringify({ a: text }));
          const escaped = Buffer.from(
            `{"a":"${Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"}`,
          );
          expect(scanJson(plain).utf8Bytes('a')).toBe(Buffer.byteLength(text) + 2);
          expect(scanJson(escaped).utf8Bytes('a')).toBe(Buffer.byteLength(text) + 2);
        },
      ),
    );
  });

  it('elements of arrays are counted by kind without being parsed', async () => {
    const body = scanJson(Buffer.from('{"input":[ "a" ,"b\\n", [1,[2]], {"x":[3]}, null]}'));
    expect(body.member('input')).toMatchObject({ kind: 'array', elementCount: 5, elementKinds: 1 | 2 | 4 | 32 });
    expect(body.element('input', 3)?.toString()).toBe('{"x":[3]}');
    expect(body.element('input', 5)).toBeNull();
    await expect(body.texts('input')).rejects.toMatchObject({ code: 'invalid_request' });
    expect(await scanJson(Buffer.from('{"input":["a","b\\n",{"text":"c"}]}')).texts('input')).toEqual([
      'a',
      'b\n',
      'c',
    ]);
  });
});
