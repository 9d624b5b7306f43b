import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Keyring } from '../../main/store/keyring.ts';
import { key32 } from './support.ts';

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
const one = base64(key32(1));
const two = base64(key32(2));

const messageOf = (text: string): string => {
  try {
    Keyring.parse(text, 'SWITCHYARD_KEYRING');
  } catch (error) {
    return error instanceof Error ? error.message : '';
  }
  return 'accepted';
};

describe('the keyring', () => {
  it('reads entries in any order; the highest version is the newest', () => {
    const ring = Keyring.parse(` 1:${one} , 12:${two}\n`, 'SWITCHYARD_KEYRING');
    expect(ring.newest.version).toBe(12);
    expect(ring.newest.key).toEqual(key32(2));
    expect(ring.get(1)).toEqual(key32(1));
    expect(ring.get(2)).toBeNull();
  });

  it('writes what it reads', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(
          fc.record({
            version: fc.integer({ min: 1, max: 0xffff_ffff }),
            key: fc.uint8Array({ minLength: 32, maxLength: 32 }),
          }),
          { minLength: 1, maxLength: 5, selector: ({ version }) => version },
        ),
        (entries) => {
          const ring = new Keyring(entries);
          expect(Keyring.parse(ring.text(), 'x').entries()).toEqual(ring.entries());
        },
      ),
    );
  });

  it.each([
    ['nothing', '', 'it is empty'],
    ['blanks', ' \n', 'it is empty'],
    ['no colon', one, 'entry 1 is not VERSION:BASE64'],
    ['an empty entry', `1:${one},`, 'entry 2 is not VERSION:BASE64'],
    ['version 0', `0:${one}`, 'the version of entry 1'],
    ['a leading zero', `01:${one}`, 'the version of entry 1'],
    ['a version with a sign', `+1:${one}`, 'the version of entry 1'],
    ['a version past 32 bits', `4294967296:${one}`, 'the version of entry 1'],
    ['the same version twice', `1:${one},1:${two}`, 'entry 2 repeats'],
    ['31 bytes', `1:${base64(new Uint8Array(31))}`, 'entry 1 is not 32 bytes'],
    ['33 bytes', `1:${base64(new Uint8Array(33))}`, 'entry 1 is not 32 bytes'],
    ['no padding', `1:${one.replace(/=+$/, '')}`, 'not canonical base64'],
    ['the URL alphabet', `1:${base64(key32(0xfb)).replaceAll('+', '-').replaceAll('/', '_')}`, 'not canonical base64'],
    ['stray bits behind the last byte', `1:${one.replace(/.=$/, 'F=')}`, 'not canonical base64'],
    ['a blank inside', `1:${one.slice(0, 10)} ${one.slice(10)}`, 'not canonical base64'],
  ])('refuses %s', (_what, text, reason) => {
    expect(messageOf(text)).toContain(reason);
  });

  it('never quotes what it was given', () => {
    const secret = base64(Uint8Array.from({ length: 32 }, (_, at) => at * 7 + 3));
    const wrong = [
      secret,
      `x:${secret}`,
      `1:${secret}!`,
      `1:${secret},1:${secret}`,
      `0:${secret}`,
      `1:${secret}${secret}`,
    ];
    for (const text of wrong) {
      const message = messageOf(text);
      expect(message).toMatch(/^SWITCHYARD_KEYRING cannot be used: /);
      for (let at = 0; at + 6 <= secret.length; at += 1) expect(message).not.toContain(secret.slice(at, at + 6));
    }
  });
});
