import { describe, expect, it } from 'vitest';
import { createFormats } from '../../renderer/format/format.ts';

const en = createFormats('en', { now: 'now', ago: '{age} ago' }, 'UTC');
const fr = createFormats('fr', { now: 'maintenant', ago: 'il y a {age}' }, 'UTC');

describe('figures', () => {
  it('show unknown as a dash and zero as zero', () => {
    for (const show of [
      en.number,
      en.percent,
      en.duration,
      en.age,
      en.gigabytes,
      en.bytes,
      en.usd,
      en.cosine,
      en.clock,
    ]) {
      expect(show(null)).toBe('—');
      expect(show(undefined)).toBe('—');
      expect(show(0)).not.toBe('—');
    }
    expect(en.number(0)).toBe('0');
    expect(en.usd(0)).toBe('$0.00');
  });

  it('cut cosines instead of rounding them: what fails 0.99 must not read as 0.9900', () => {
    expect(en.cosine(0.98996)).toBe('0.9899');
    expect(en.cosine(0.99)).toBe('0.9900');
    expect(en.cosine(0.9994)).toBe('0.9994');
    expect(en.cosine(1)).toBe('1.0000');
    expect(en.cosine(-0.02)).toBe('-0.0200');
  });

  it('write durations in the unit that fits', () => {
    expect(en.duration(0.2)).toBe('0.2 ms');
    expect(en.duration(84)).toBe('84 ms');
    expect(en.duration(1840)).toBe('1.8 s');
    expect(en.duration(2000)).toBe('2 s');
    expect(en.duration(42_000)).toBe('42 s');
    expect(en.duration(4 * 60_000)).toBe('4 min');
    expect(en.duration(125 * 60_000)).toBe('2 h 5 min');
    expect(en.duration(30 * 3_600_000)).toBe('1 d');
  });

  it('write ages in whole seconds', () => {
    expect(en.age(400)).toBe('now');
    expect(en.age(5_900)).toBe('5 s ago');
    expect(fr.age(120_000)).toBe('il y a 2\u00a0min');
  });

  it('follow the language', () => {
    expect(en.number(1904)).toBe('1,904');
    expect(fr.number(58.2, 1)).toBe('58,2');
    expect(en.usd(3.12)).toBe('$3.12');
    expect(en.usd(0.0042)).toBe('$0.0042');
    expect([en.usd(0.00002), en.usd(0.0999), en.usd(0.1)]).toEqual(['<$0.0001', '$0.0999', '$0.10']);
    // What is left of 0.1 + 0.2 - 0.3 was not paid.
    expect([en.usd(0.1 + 0.2 - 0.3), en.usd(-1e-17)]).toEqual(['$0.00', '$0.00']);
    expect(en.gigabytes(31.2e9)).toBe('31.2');
    expect([en.bytes(118), en.bytes(2400), en.bytes(310e6)]).toEqual(['118 B', '2 kB', '310 MB']);
    expect(en.percent(0.774)).toBe('77 %');
    expect(en.clock(Date.UTC(2026, 0, 1, 0, 5, 9))).toBe('00:05:09');
  });

  it('in French count octets and days, with a comma, and no line ends before a unit', () => {
    expect([fr.bytes(118), fr.bytes(2400), fr.bytes(310e6), fr.bytes(31.24e9)]).toEqual([
      '118\u00a0o',
      '2\u00a0ko',
      '310\u00a0Mo',
      '31,2\u00a0Go',
    ]);
    expect(fr.gigabytes(31.2e9)).toBe('31,2');
    expect([fr.duration(84), fr.duration(1840), fr.duration(125 * 60_000), fr.duration(30 * 3_600_000)]).toEqual([
      '84\u00a0ms',
      '1,8\u00a0s',
      '2\u00a0h\u00a05\u00a0min',
      '1\u00a0j',
    ]);
    expect(fr.percent(0.774)).toBe('77\u00a0%');
    expect(fr.number(1904)).toBe('1\u202f904');
    expect(fr.usd(3.12)).toBe('3,12\u00a0$');
    expect(fr.cosine(0.98996)).toBe('0,9899');
    expect(fr.clock(Date.UTC(2026, 0, 1, 14, 5, 9))).toBe('14:05:09');
    expect(fr.moment(Date.UTC(2026, 10, 29, 21, 58, 0))).toBe('29 nov. 2026, 21:58:00');
  });
});
