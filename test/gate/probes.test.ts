import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseProbeSet } from '../../main/gate/probes.ts';
import { makeWindowTexts, windowTextsByBytes } from '../../main/gate/window-texts.ts';
import { probeSet } from './bench.ts';
import { tokens } from './encoders.ts';

describe('the probe set', () => {
  const text = (id: string): string => probeSet.probes.find((probe) => probe.id === id)?.text ?? '';

  it('holds what encoders have been seen to trip over', () => {
    expect(probeSet.version).toBe(1);
    const all = probeSet.probes.map((probe) => probe.text);
    const count = (test: (text: string) => boolean): number => all.filter(test).length;
    // All capitals twice: one alone cannot collapse with another.
    expect(count((t) => /[A-Z]{3}/.test(t) && t === t.toUpperCase())).toBeGreaterThanOrEqual(2);
    expect(count((t) => /[éàçß]/.test(t))).toBeGreaterThanOrEqual(3);
    expect(count((t) => /\p{Script=Han}/u.test(t))).toBeGreaterThanOrEqual(1);
    expect(count((t) => /\p{Extended_Pictographic}/u.test(t))).toBeGreaterThanOrEqual(2);
    expect(count((t) => t.trim() === '')).toBe(1);
    expect(count((t) => /func |def |class |fn |function /.test(t))).toBeGreaterThanOrEqual(5);
    expect(text('near-dup-1')).not.toBe(text('near-dup-2'));
    expect(probeSet.equalLength).toHaveLength(16);
    expect(new Set(probeSet.equalLength.map((probe) => probe.text.split(' ').length))).toEqual(new Set([8]));
  });

  const file = JSON.parse(readFileSync(new URL('../../assets/probes.json', import.meta.url), 'utf8'));
  it.each([
    ['no version', { ...file, version: undefined }],
    ['no batch', { ...file, equalLengthBatch: { texts: [] } }],
    ['a text twice', { ...file, probes: [...file.probes, { ...file.probes[0], id: 'again' }] }],
    ['an id twice', { ...file, probes: [...file.probes, { ...file.probes[0], text: 'another' }] }],
    ['not an object', null],
  ])('is refused with %s', (_what, json) => {
    expect(() => parseProbeSet(json)).toThrow(/probe/);
  });
});

describe('window texts', () => {
  const count = async (texts: readonly string[]) => texts.map((text) => tokens(text).length);

  it.each([16, 17, 64, 128, 511, 512, 2048])('of %i tokens fill the window to the token', async (limit) => {
    const { within, overLimit, counted } = await makeWindowTexts(limit, count);
    expect(counted).toBe(true);
    expect(within.map(({ text }) => tokens(text).length)).toEqual([limit - 1, limit]);
    for (const text of Object.values(overLimit)) expect(tokens(text).length).toBeGreaterThan(limit);
  });

  it('over the limit differ only where a cut would hide it', async () => {
    const limit = 100;
    const { overLimit } = await makeWindowTexts(limit, count);
    const [base, otherTail, otherHead] = [overLimit.base, overLimit.otherTail, overLimit.otherHead].map(tokens);
    if (!base || !otherTail || !otherHead) throw new Error('three texts');
    expect(otherTail.slice(0, limit)).toEqual(base.slice(0, limit));
    expect(otherTail).not.toEqual(base);
    expect(otherHead.slice(-limit)).toEqual(base.slice(-limit));
    expect(otherHead.slice(0, 5)).not.toEqual(base.slice(0, 5));
  });

  it('take few calls of the tokeniser', async () => {
    let calls = 0;
    await makeWindowTexts(8192, async (texts) => {
      calls++;
      return count(texts);
    });
    expect(calls).toBeLessThan(60);
  });

  it('that cannot be hit to the token stay below', async () => {
    // A tokeniser that counts in steps of three.
    const steps = async (texts: readonly string[]) => texts.map((text) => 3 * Math.ceil(tokens(text).length / 3));
    const { within } = await makeWindowTexts(100, steps);
    const counts = await steps(within.map(({ text }) => text));
    expect(counts).toEqual([99, 99]);
  });

  it('of a tokeniser that gives up are made by bytes', async () => {
    let calls = 0;
    const { counted } = await makeWindowTexts(100, async (texts) => (++calls > 3 ? null : count(texts)));
    expect(counted).toBe(false);
  });

  it('made by bytes hold at most limit - 2 bytes; those over the limit at least so many words', () => {
    const { within, overLimit } = windowTextsByBytes(512);
    expect(within.map(({ text }) => Buffer.byteLength(text))).toEqual([509, 510]);
    expect(within[0]?.text.slice(0, 100)).not.toBe(within[1]?.text.slice(0, 100));
    for (const text of Object.values(overLimit)) expect(text.split(' ').length).toBeGreaterThan(512);
  });
});
