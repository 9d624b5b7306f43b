import fc from 'fast-check';
import { expect, it } from 'vitest';
import { formatJoinCode, newJoinCode, parseJoinCode } from '../../agent/wire/joincode.ts';

it('is read back from what people make of it', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 10, maxLength: 10 }), (code) => {
      const text = formatJoinCode(code);
      expect(text).toMatch(/^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){3}$/);
      const forms = [
        text,
        text.toLowerCase(),
        text.replaceAll('-', ''),
        ` ${text.replaceAll('-', ' – ')}\n`,
        text.replaceAll('0', 'o').replaceAll('1', 'l'),
        text.replaceAll('0', 'O').replaceAll('1', 'I'),
      ];
      for (const form of forms) expect(parseJoinCode(form)).toEqual(code);
    }),
  );
});

it('has its bits in reading order', () => {
  // 5 bits a character: 00001 is 1, 11111 is Z.
  expect(formatJoinCode(Uint8Array.of(0x08, 0, 0, 0, 0, 0, 0, 0, 0, 0x1f))).toBe('1000-0000-0000-000Z');
});

it('is nothing when a character is missing, over or foreign', () => {
  for (const typed of [
    '',
    '1234-5678-9ABC-DEF',
    '1234-5678-9ABC-DEFGH',
    '1234-5678-9ABC-DEFU',
    'é234-5678-9ABC-DEFG',
    '-'.repeat(200),
  ]) {
    expect(parseJoinCode(typed)).toBeNull();
  }
});

it('is another one each time', () => {
  expect(new Set(Array.from({ length: 100 }, () => formatJoinCode(newJoinCode()))).size).toBe(100);
});
