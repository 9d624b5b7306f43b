import { describe, expect, it } from 'vitest';
import { type NumberRule, readNumber } from '../../renderer/format/read-number.ts';

const USD: NumberRule = { min: 0, max: 1e6, unit: 'usd' };
const read = (text: string, rule: NumberRule = USD) => {
  const { value, fault } = readNumber(text, rule);
  return fault ?? value;
};

describe('what a person writes into a field of figures', () => {
  it('is read where there is one way to read it', () => {
    for (const text of ['5', ' 5 ', '$5', '$ 5', '5 USD', '5usd', '5$', 'US$5', '5,00', '5.00', '5,0 $']) {
      expect(read(text), text).toBe(5);
    }
    expect([read('2,5'), read('0,125'), read('1 000'), read('1\u202f000,5')]).toEqual([2.5, 0.125, 1000, 1000.5]);
    expect(read('1,5 s', { min: 0, max: 10, unit: 'seconds' })).toBe(1.5);
    expect(read('20 tok/s', { min: 0, max: 100, unit: 'tokens' })).toBe(20);
    expect(read('60/min', { min: 1, max: 100, whole: true, unit: 'minute' })).toBe(60);
  });

  it('is a fault where it is none, and never "no limit"', () => {
    for (const text of [
      'abc',
      '$',
      '5 €',
      '5 USD per day',
      '5-6',
      '1e3',
      'Infinity',
      '0x10',
      '--5',
      '5 5',
      '1.2.3',
      '5 s',
    ]) {
      expect(read(text), text).toBe('strange');
    }
    expect([read('1,000'), read('12,500'), read('0,500')]).toEqual(['two-ways', 'two-ways', 0.5]);
    expect([read('-5'), read('$-5'), read('1000001')]).toEqual(['range', 'range', 'range']);
    expect(read('2.5', { min: 1, max: 9, whole: true })).toBe('whole');
  });

  it('may be nothing only where that means something', () => {
    expect([read(''), read('  '), read('', { ...USD, required: true })]).toEqual([null, null, 'missing']);
  });
});
