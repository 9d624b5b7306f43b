import { ERRORS, type ErrorCode } from './errors.ts';
import { ERRORS_FR } from './errors-fr.ts';
import { CLOUD, REFUSALS } from './sentences/cloud.ts';
import { ENROLMENT, ENROLMENT_DETAILS, ENROLMENT_STEPS } from './sentences/enrolment.ts';
import { AGENTS, FLEET } from './sentences/fleet.ts';
import { FOUNDING, GATE } from './sentences/gate.ts';
import { HOUSE, TITLES } from './sentences/house.ts';
import { INELIGIBLE, ROUTING } from './sentences/routing.ts';
import type { Language, Sentence } from './sentences/sentence.ts';

export type { Language } from './sentences/sentence.ts';

/** Every sentence that the control plane says, by its code. What is not here it cannot say; an entry has every language. */
export const SENTENCES = {
  ...INELIGIBLE,
  ...ROUTING,
  ...CLOUD,
  ...REFUSALS,
  ...GATE,
  ...FOUNDING,
  ...FLEET,
  ...AGENTS,
  ...ENROLMENT_STEPS,
  ...ENROLMENT_DETAILS,
  ...ENROLMENT,
  ...HOUSE,
  ...TITLES,
} as const satisfies Record<string, Sentence>;
export type SentenceCode = keyof typeof SENTENCES;

export type Figures = Readonly<Record<string, string | number>>;

type Hole<Text extends string> = Text extends `${infer Name}|${string}` ? Name : Text;
type Holes<Text extends string> = Text extends `${string}{${infer Inside}}${infer Rest}`
  ? Hole<Inside> | Holes<Rest>
  : never;
/** What a sentence of this code must be told: nothing, or a value for each of its holes. */
export type FiguresOf<Code extends SentenceCode> = {
  readonly [Name in Holes<(typeof SENTENCES)[Code]['en']>]: string | number;
};

/** One sentence by code and figures, with its English beside it. */
export interface SaidPart {
  readonly code: string;
  readonly sentence: string;
  readonly params?: Figures | undefined;
}

/** Over the wire: a code and figures for who speaks another language, the whole in English for who does not ask. */
export interface Said extends SaidPart {
  /** What follows the first sentence; `sentence` has it too. */
  readonly more?: readonly SaidPart[] | undefined;
}

/** How figures are written; a console has its own for its language and its clock. */
export interface Writing {
  number(value: number, digits?: number): string;
  duration(ms: number): string;
  clock(atMs: number): string;
  moment(atMs: number): string;
  usd(value: number): string;
  bytes(value: number): string;
  cosine(value: number): string;
}

const isSentenceCode = (code: string): code is SentenceCode => Object.hasOwn(SENTENCES, code);

/** The sentence of a code, in English, ready for the wire. */
export function said<Code extends SentenceCode>(
  code: Code,
  ...[params]: Holes<(typeof SENTENCES)[Code]['en']> extends never ? [] : [FiguresOf<Code>]
): Said {
  const sentence = fill(SENTENCES[code].en, params ?? {}, 'en', PLAIN.en) ?? SENTENCES[code].en;
  return params === undefined ? { code, sentence } : { code, sentence, params };
}

/** The members of a thing that keeps its sentence and, beside it, how it is said in another language. */
export function told({ sentence, ...says }: Said): {
  readonly sentence: string;
  readonly says: Omit<Said, 'sentence'>;
} {
  return { sentence, says };
}

/** Several sentences as one. */
export function together(first: Said, ...rest: readonly Said[]): Said {
  const [head, ...more] = [first, ...rest].flatMap(partsOf);
  if (head === undefined) return first;
  return { ...head, sentence: [head, ...more].map(({ sentence }) => sentence).join(' '), more };
}

/** What an error says: our sentence of the refusal where it has one, else that of its code. */
export function saidOf(error: {
  readonly code: ErrorCode;
  readonly message: string;
  readonly says: Said | null;
}): Said {
  return error.says ?? { code: error.code, sentence: error.message };
}

const AGENT_CODES = new Map(Object.entries(AGENTS).map(([code, { en }]) => [en as string, code]));

/** A fixed sentence of an agent, known by its text; null: it said something else, which stays as it is. */
export function knownFrom(sentence: string): SaidPart | null {
  const code = AGENT_CODES.get(sentence);
  return code === undefined ? null : { code, sentence };
}

/**
 * What was said, in a language. A sentence unknown here, or one whose figures did not come along, stays in its English; so does
 * English without figures, which is what was said.
 */
export function sayIn(language: Language, told: Said, writing: Writing): string {
  const { more = [] } = told;
  const first = sayPart(language, told, writing);
  if (first === null) return told.sentence;
  return [first, ...more.map((part) => sayPart(language, part, writing) ?? part.sentence)].join(' ');
}

/** `sayIn` where there is no console: figures as plain as can be, times in UTC. */
export const sayPlainly = (language: Language, told: Said): string => sayIn(language, told, PLAIN[language]);

function sayPart(language: Language, { code, sentence, params }: SaidPart, writing: Writing): string | null {
  // An error and a reason may share a code: what was said tells which one it is.
  const error = Object.hasOwn(ERRORS, code) ? (code as ErrorCode) : null;
  const isError = error !== null && (!isSentenceCode(code) || ERRORS[error].sentence === sentence);
  if (language === 'en' && params === undefined) return null;
  if (isError) return language === 'en' ? null : ERRORS_FR[error];
  if (!isSentenceCode(code)) return null;
  return fill(SENTENCES[code][language], params ?? {}, language, writing);
}

/** A composed sentence without its composition: each part with its own English. */
function partsOf({ more, ...head }: Said): readonly SaidPart[] {
  if (more === undefined) return [head];
  const own = isSentenceCode(head.code) ? fill(SENTENCES[head.code].en, head.params ?? {}, 'en', PLAIN.en) : null;
  return [{ ...head, sentence: own ?? head.sentence }, ...more];
}

/** Null when a hole has no figure. */
function fill(template: string, params: Figures, language: Language, writing: Writing): string | null {
  let whole = true;
  const text = template.replace(
    /\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g,
    (hole, name: string, one?: string, many?: string) => {
      const value = Object.hasOwn(params, name) ? params[name] : undefined;
      if (value === undefined) whole = false;
      if (one !== undefined) return isOne(value, language) ? one : (many ?? one);
      return value === undefined ? hole : write(name, value, writing);
    },
  );
  return whole ? text : null;
}

/** French counts 0 and 1,5 as singular. */
function isOne(value: string | number | undefined, language: Language): boolean {
  return language === 'fr' ? Math.abs(Number(value)) < 2 : value === 1;
}

function write(name: string, value: string | number, writing: Writing): string {
  if (typeof value === 'string') return value;
  if (name.endsWith('AtMs')) return writing.clock(value);
  if (name.endsWith('OnMs')) return writing.moment(value);
  if (name.endsWith('Ms')) return writing.duration(value);
  if (name.endsWith('Usd')) return writing.usd(value);
  if (name.endsWith('Bytes')) return writing.bytes(value);
  if (name.endsWith('Percent')) return `${writing.number(value, 1)} %`;
  if (/cosine$/i.test(name)) return writing.cosine(value);
  return writing.number(value, Number.isInteger(value) ? 0 : 1);
}

function plain(point: string): Writing {
  const number = (value: number, digits = 0) => value.toFixed(digits).replace('.', point);
  return {
    number,
    duration: (ms) => {
      if (ms < 60_000) return `${number(Math.round(ms / 100) / 10, Math.round(ms / 100) % 10 === 0 ? 0 : 1)} s`;
      return ms < 3_600_000 ? `${number(Math.floor(ms / 60_000))} min` : `${number(Math.floor(ms / 3_600_000))} h`;
    },
    clock: (atMs) => `${new Date(atMs).toISOString().slice(11, 19)} UTC`,
    moment: (atMs) => new Date(atMs).toISOString(),
    usd: (value) => `${number(value, 2)} USD`,
    bytes: (value) => `${number(value)} B`,
    // Cut, not rounded: a refusal at 0.98996 must not read 0.9900.
    cosine: (value) => number(Math.floor(value * 1e4 + 1e-6) / 1e4, 4),
  };
}

const PLAIN: Readonly<Record<Language, Writing>> = { en: plain('.'), fr: plain(',') };
