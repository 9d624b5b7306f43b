import type { OverLimitTexts, ProbeText } from './probes.ts';

/** Tokens of each text, special tokens included; null when nobody can count. */
export type CountTokens = (texts: readonly string[]) => Promise<readonly number[] | null>;

/** Below this an encoder reads too little for window texts to mean anything. */
export const MIN_LIMIT_TOKENS = 16;

export interface WindowTexts {
  /** Of limit - 1 and of limit tokens: the last texts that must be read whole. */
  readonly within: readonly ProbeText[];
  readonly overLimit: OverLimitTexts;
  /** False: made by bytes, one byte counting as a token, because nobody could count. */
  readonly counted: boolean;
}

/** Four topics without a common content word, so that what an encoder has not read shows in its vector. */
const TOPICS = {
  river:
    'The river rose slowly through the night and the farmers moved their cattle to the higher fields before dawn came over the wet valley',
  court:
    'A judge asked both lawyers whether that contract had been signed freely because witnesses disagreed about dates money and promises made',
  kitchen:
    'Melt some butter with garlic then add sliced onions salt pepper lemon juice fresh herbs warm bread crumbs and two beaten eggs gently',
  orbit:
    'Astronauts repaired every solar panel outside their station while engineers watched telemetry fuel pressure temperature antennas and orbit',
} as const;
type Topic = keyof typeof TOPICS;

/** The first `count` words of an endless text on one topic; each round is numbered, so that no round repeats another. */
function words(topic: Topic, count: number): string {
  const list = TOPICS[topic].split(' ');
  const said: string[] = [];
  for (let i = 0; said.length < count; i++) {
    if (i > 0 && i % list.length === 0) said.push(String(i / list.length));
    if (said.length < count) said.push(list[i % list.length] ?? '');
  }
  return said.join(' ');
}

const CANDIDATES = 8;

/**
 * The largest number of words in [0, most] whose text has at most `limit` tokens. Counts eight lengths a call, so that a
 * window of 8,192 tokens takes five calls.
 */
async function longestFit(
  build: (words: number) => string,
  most: number,
  limit: number,
  count: CountTokens,
): Promise<{ readonly words: number; readonly tokens: number } | null> {
  let fits = { words: 0, tokens: 0 };
  let fails = most + 1;
  while (fails - fits.words > 1) {
    const step = Math.max(1, Math.floor((fails - fits.words) / (CANDIDATES + 1)));
    const lengths = Array.from({ length: CANDIDATES }, (_, i) => fits.words + (i + 1) * step).filter((n) => n < fails);
    const counts = await count(lengths.map(build));
    if (counts === null) return null;
    const over = lengths.findIndex((_, i) => !((counts[i] ?? Number.POSITIVE_INFINITY) <= limit));
    const last = over < 0 ? lengths.length - 1 : over - 1;
    const length = lengths[last];
    if (length !== undefined) fits = { words: length, tokens: counts[last] ?? 0 };
    fails = over < 0 ? fails : (lengths[over] ?? fails);
  }
  return fits;
}

/** Pieces that most vocabularies read as one token each, to fill up the last few. */
const FILLERS = [' a', ' the', ' of', '.', ',', ' 1'];

/** A text of exactly `limit` tokens where that can be hit, else of as many below as could be: half `first`, then `second`. */
async function fillWindow(first: Topic, second: Topic, limit: number, count: CountTokens): Promise<string | null> {
  const half = await longestFit((n) => words(first, n), limit, Math.floor(limit / 2), count);
  if (half === null) return null;
  const opening = words(first, Math.max(1, half.words));
  const build = (n: number): string => (n === 0 ? opening : `${opening} ${words(second, n)}`);
  const whole = await longestFit(build, limit, limit, count);
  if (whole === null) return null;
  let text = build(whole.words);
  let tokens = whole.tokens;
  while (tokens < limit) {
    const tries = FILLERS.map((filler) => text + filler);
    const counts = await count(tries);
    if (counts === null) return null;
    const best = counts.findIndex((value) => value > tokens && value <= limit);
    const chosen = tries[best];
    if (chosen === undefined) break;
    text = chosen;
    tokens = counts[best] ?? limit;
  }
  return text;
}

/** Enough words on `topic` for at least `tokens` tokens without the two special ones. */
async function atLeast(topic: Topic, tokens: number, count: CountTokens): Promise<string | null> {
  const fit = await longestFit((n) => words(topic, n), tokens + 4, tokens + 4, count);
  return fit === null ? null : words(topic, fit.words + 2);
}

/**
 * Texts at the window's edge, made with the founder's own tokeniser.
 *
 * @param limitTokens the limit of the space, special tokens included; at least 16
 */
export async function makeWindowTexts(limitTokens: number, count: CountTokens): Promise<WindowTexts> {
  const almost = await fillWindow('river', 'court', limitTokens - 1, count);
  const full = almost === null ? null : await fillWindow('kitchen', 'river', limitTokens, count);
  // Two neighbouring parts hold more than the limit, whichever end an encoder cuts.
  const part = Math.ceil(limitTokens / 2) + 2;
  const parts: string[] = [];
  for (const topic of ['river', 'court', 'kitchen', 'orbit'] as const) {
    const text = full === null ? null : await atLeast(topic, part, count);
    if (text !== null) parts.push(text);
  }
  if (almost === null || full === null || parts.length < 4) return windowTextsByBytes(limitTokens);
  return { within: within(almost, full), overLimit: overLimitTexts(parts), counted: true };
}

/** A text of b bytes has at most b + 2 tokens, and a text of w words at least w: enough to stay below and to go above. */
export function windowTextsByBytes(limitTokens: number): WindowTexts {
  const bytes = limitTokens - 2;
  const cut = (first: Topic, second: Topic, length: number): string => {
    const half = words(first, length).slice(0, Math.floor(length / 2));
    return `${half} ${words(second, length)}`.slice(0, length);
  };
  const parts = (['river', 'court', 'kitchen', 'orbit'] as const).map((topic) => words(topic, limitTokens));
  return {
    within: within(cut('river', 'court', bytes - 1), cut('kitchen', 'river', bytes)),
    overLimit: overLimitTexts(parts),
    counted: false,
  };
}

function within(almost: string, full: string): readonly ProbeText[] {
  return [
    { id: 'window-1', text: almost },
    { id: 'window', text: full },
  ];
}

function overLimitTexts([a, b, c, d]: readonly string[]): OverLimitTexts {
  return { base: `${a} ${b} ${c}`, otherTail: `${a} ${b} ${d}`, otherHead: `${d} ${b} ${c}` };
}
