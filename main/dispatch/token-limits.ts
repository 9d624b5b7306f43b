import { SwitchyardError } from '../domain/errors.ts';

/**
 * Counts tokens as the space's encoder does, special tokens included, one number per text; null when no provider of the
 * space can count now.
 */
export type CountTokens = (texts: readonly string[]) => Promise<readonly number[] | null>;

export interface FittedInputs {
  readonly texts: readonly string[];
  /** Per text; null where a text was short enough to need no count. */
  readonly tokens: readonly (number | null)[];
}

/** Rounds of the search for the longest prefix that fits. Each round is one call for all texts still too long. */
const CUT_ROUNDS = 12;

/** A token holds at least one byte and an encoder adds at most two special ones: such a text fits whatever the tokeniser. */
function surelyFits(text: string, limitTokens: number): boolean {
  return text.length + 2 <= limitTokens && Buffer.byteLength(text) + 2 <= limitTokens;
}

/**
 * Refuses texts over the space's limit before an engine can cut them silently, or with `truncate` cuts each once, at a
 * code point, to the longest prefix found that fits.
 *
 * @throws SwitchyardError input_too_long with `inputs: [{index, tokens, limit}]`; tokens is null when nobody could count.
 */
export async function fitInputs(
  texts: readonly string[],
  limitTokens: number,
  truncate: boolean,
  count: CountTokens,
): Promise<FittedInputs> {
  const tokens: (number | null)[] = texts.map(() => null);
  const unsure = texts.flatMap((text, index) => (surelyFits(text, limitTokens) ? [] : [index]));
  if (unsure.length === 0) return { texts, tokens };

  const counts = await count(unsure.map((index) => texts[index] ?? ''));
  if (counts === null) throw tooLong(unsure, tokens, limitTokens, true);
  unsure.forEach((index, at) => {
    tokens[index] = counts[at] ?? null;
  });
  const over = unsure.filter((index) => (tokens[index] ?? 0) > limitTokens);
  if (over.length === 0) return { texts, tokens };
  if (!truncate) throw tooLong(over, tokens, limitTokens, false);
  return cutToFit(texts, tokens, over, limitTokens, count);
}

async function cutToFit(
  texts: readonly string[],
  tokens: (number | null)[],
  over: readonly number[],
  limitTokens: number,
  count: CountTokens,
): Promise<FittedInputs> {
  const searches = over.map((index) => {
    const points = Array.from(texts[index] ?? '');
    const tokensNow = tokens[index] ?? 1;
    return {
      index,
      points,
      fits: 0,
      fitTokens: 0,
      fails: points.length,
      guess: guessLength(points.length, limitTokens, tokensNow),
    };
  });
  for (let round = 0; round < CUT_ROUNDS; round += 1) {
    const open = searches.filter(({ fits, fails }) => fails - fits > 1);
    if (open.length === 0) break;
    const counts = await count(open.map(({ points, guess }) => points.slice(0, guess).join('')));
    if (counts === null) throw tooLong(over, tokens, limitTokens, true);
    open.forEach((search, at) => {
      const counted = counts[at] ?? Number.POSITIVE_INFINITY;
      if (counted <= limitTokens) {
        search.fits = search.guess;
        search.fitTokens = counted;
      } else {
        search.fails = search.guess;
      }
      search.guess = Math.floor((search.fits + search.fails) / 2);
    });
  }
  const cut = [...texts];
  for (const { index, points, fits, fitTokens } of searches) {
    if (fits === 0) throw tooLong([index], tokens, limitTokens, false);
    cut[index] = points.slice(0, fits).join('');
    tokens[index] = fitTokens;
  }
  return { texts: cut, tokens };
}

function guessLength(length: number, limitTokens: number, tokens: number): number {
  return Math.max(1, Math.min(length - 1, Math.floor((length * limitTokens) / Math.max(1, tokens))));
}

function tooLong(
  indices: readonly number[],
  tokens: readonly (number | null)[],
  limitTokens: number,
  uncounted: boolean,
): SwitchyardError {
  const inputs = indices.slice(0, 100).map((index) => ({ index, tokens: tokens[index] ?? null, limit: limitTokens }));
  const first = inputs[0];
  const sentence = uncounted
    ? `Input ${first?.index} may be longer than the ${limitTokens} tokens of this space and no provider can count it now. Shorten it to ${limitTokens - 2} bytes or try again.`
    : `Input ${first?.index} has ${first?.tokens} tokens; this space takes ${limitTokens}. Shorten it or send truncate: true.`;
  return new SwitchyardError('input_too_long', sentence, { extra: { inputs } });
}
