/**
 * One sentence in every language of the console. Holes are `{name}`; the end of a name says how its figure is written
 * (`waitMs` a span, `untilAtMs` a time of day, `checkedOnMs` a day and time, `creditUsd` money, `minCosine` a cosine), and `{count|permit|permits}` is the word
 * that fits a count.
 */
export interface Sentence {
  readonly en: string;
  readonly fr: string;
}

export type Language = keyof Sentence;
export const LANGUAGES = ['en', 'fr'] as const satisfies readonly Language[];
