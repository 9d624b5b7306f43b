import { describe, expect, it } from 'vitest';
import { scoresBytes, vectorsBytes } from '../../../agent/engines/answer-bounds.ts';
import { within } from '../../../agent/engines/deadline.ts';
import { jsonOf } from '../../../agent/engines/json-answer.ts';
import { ManualClock } from '../../session/manual-clock.ts';

/** Resolves never; rejects with the reason when the signal fires. */
const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });

describe('work within a time', () => {
  it('ends with the time, although it would go on', async () => {
    const clock = new ManualClock();
    const work = within(clock, 1000, new AbortController().signal, untilAborted);
    clock.advance(1000);
    await expect(work).rejects.toMatchObject({ failure: { code: 'engine_timeout', blame: 'engine' } });
  });

  it('ends when its caller leaves, before it began or while it runs', async () => {
    const clock = new ManualClock();
    const gone = AbortSignal.abort('gone');
    await expect(within(clock, 1000, gone, async (signal) => signal.throwIfAborted())).rejects.toBe('gone');
    const caller = new AbortController();
    const work = within(clock, 1000, caller.signal, untilAborted);
    caller.abort('left');
    await expect(work).rejects.toBe('left');
  });

  it('gives its result and forgets the time', async () => {
    const clock = new ManualClock();
    let signal: AbortSignal | null = null;
    const result = await within(clock, 1000, new AbortController().signal, async (bound) => {
      signal = bound;
      return 7;
    });
    clock.advance(2000);
    expect(result).toBe(7);
    expect(signal).toMatchObject({ aborted: false });
  });
});

describe('a JSON answer', () => {
  const padded = (json: string) => ({ body: Buffer.from(`${json}${' '.repeat(64 * 1024)}`) });

  it('that nests like no answer is none, and costs no parse', () => {
    expect(jsonOf(padded(`${'['.repeat(64)}${']'.repeat(64)}`))).toBeDefined();
    expect(jsonOf(padded(`${'['.repeat(65)}${']'.repeat(65)}`))).toBeUndefined();
    expect(jsonOf(padded(`${'{"a":['.repeat(33)}${']}'.repeat(33)}`))).toBeUndefined();
  });

  it('may have any brackets in its texts', () => {
    const texts = ['['.repeat(100), `\\"${'{'.repeat(100)}`, `"\\\\"${'['.repeat(100)}`, '\\'];
    expect(jsonOf(padded(JSON.stringify({ texts })))).toEqual({ texts });
  });

  it('that breaks off inside a text is none', () => {
    expect(jsonOf({ body: Buffer.from(`["${'x'.repeat(70_000)}`) })).toBeUndefined();
  });

  it('has room for the numbers that are due, written as long as numbers are', () => {
    const longest = `${'-0.00000012345678901234'.padEnd(25, '5')},\n    `; // 31 bytes
    expect(vectorsBytes(256, 1024)).toBeGreaterThan(256 * 1024 * longest.length);
    expect(vectorsBytes(256, 1024)).toBeLessThan(10 * 1024 * 1024);
    expect(vectorsBytes(1, null)).toBe(vectorsBytes(1, 8192));
    expect(scoresBytes(100, 10_000)).toBeLessThan(200_000);
  });
});
