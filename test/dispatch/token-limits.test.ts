import { describe, expect, it } from 'vitest';
import { fitInputs } from '../../main/dispatch/token-limits.ts';

/** One token a word, plus the two special ones. */
const countWords = async (texts: readonly string[]) =>
  texts.map((text) => text.split(/\s+/).filter(Boolean).length + 2);
const words = (count: number) => Array.from({ length: count }, (_, at) => `w${at}`).join(' ');

describe('fitInputs', () => {
  it('passes a text whose bytes cannot exceed the limit without asking anybody', async () => {
    const nobody = async () => {
      throw new Error('asked');
    };
    // 8 bytes and 2 special tokens are 10 tokens at the very most.
    const fitted = await fitInputs(['abcdefgh'], 10, false, nobody);
    expect(fitted.texts).toEqual(['abcdefgh']);
  });

  it('counts bytes, not characters: a text of 8 characters with 3 bytes each is unsure', async () => {
    let asked = 0;
    await fitInputs(['漢漢漢漢漢漢漢漢'], 10, false, async (texts) => {
      asked += texts.length;
      return texts.map(() => 10);
    });
    expect(asked).toBe(1);
  });

  it('takes a text of exactly the limit and refuses one token more, naming index, tokens and limit', async () => {
    await expect(fitInputs([words(126)], 128, false, countWords)).resolves.toMatchObject({ tokens: [128] });
    await expect(fitInputs(['short', words(127)], 128, false, countWords)).rejects.toMatchObject({
      code: 'input_too_long',
      extra: { inputs: [{ index: 1, tokens: 129, limit: 128 }] },
    });
  });

  it('refuses what nobody can count rather than letting an engine cut it', async () => {
    await expect(fitInputs([words(100)], 128, true, async () => null)).rejects.toMatchObject({
      code: 'input_too_long',
      extra: { inputs: [{ index: 0, tokens: null, limit: 128 }] },
    });
  });

  it('with truncate cuts once, to a prefix that fits and is close to the limit, and leaves the others alone', async () => {
    const long = words(500);
    const { texts, tokens } = await fitInputs(['short', long], 128, true, countWords);
    expect(texts[0]).toBe('short');
    expect(long.startsWith(texts[1] ?? '?')).toBe(true);
    expect(tokens[1]).toBeLessThanOrEqual(128);
    expect(tokens[1]).toBeGreaterThanOrEqual(126);
  });

  it('never cuts inside a code point', async () => {
    const emoji = '😀'.repeat(40);
    const onePerPoint = async (texts: readonly string[]) => texts.map((text) => Array.from(text).length + 2);
    const { texts } = await fitInputs([emoji], 12, true, onePerPoint);
    expect(texts[0]).toBe('😀'.repeat(10));
  });
});
