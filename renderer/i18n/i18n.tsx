import { createContext, type ReactNode, useContext, useMemo } from 'react';
import { ERRORS } from '../../preload/contract/names.ts';
import type { HealthView, Reason } from '../../preload/contract.ts';
import { createFormats, type Formats } from '../format/format.ts';
import { CallError } from '../transport/port.ts';
import { CATALOGUE, type MessageKey } from './catalogue.ts';
import { CONSOLE_ERRORS, ERRORS_FR } from './errors.ts';

export type Language = 'en' | 'fr';
export type Params = Readonly<Record<string, string | number>>;

export interface I18n {
  readonly language: Language;
  readonly f: Formats;
  t(key: MessageKey, params?: Params): string;
  /** A reason in the console's language where it is known there with all its figures, else in our English. */
  say(reason: Reason): string;
  /** The same for the title of what needs a person. */
  sayTitle(item: Pick<HealthView, 'code' | 'title' | 'params'>): string;
  sayError(error: unknown): string;
}

export const isMessageKey = (key: string): key is MessageKey => Object.hasOwn(CATALOGUE, key);

/** `{name}` -> its parameter; a figure is written as the language does. */
export function fill(template: string, params: Params, number: (value: number) => string): string {
  return template.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = Object.hasOwn(params, name) ? params[name] : undefined;
    if (value === undefined) return whole;
    return typeof value === 'number' ? number(value) : value;
  });
}

export function createI18n(language: Language): I18n {
  const f = createFormats(language, { now: CATALOGUE['time.now'][language], ago: CATALOGUE['time.ago'][language] });
  const number = (value: number) => f.number(value, Number.isInteger(value) ? 0 : 2);
  const t = (key: MessageKey, params: Params = {}) => fill(CATALOGUE[key][language], params, number);
  const say = (reason: Reason): string => {
    const key = `reason.${reason.code}`;
    if (language === 'en') return reason.sentence;
    if (!isMessageKey(key)) return french(reason.code) ?? reason.sentence;
    const said = t(key, reason.params ?? {});
    return said.includes('{') ? reason.sentence : said;
  };
  const sayTitle = ({ code, title, params }: Pick<HealthView, 'code' | 'title' | 'params'>): string => {
    // Every finding of the gate has a code of its own, and one title.
    const key = code.startsWith('gate_') ? 'health.gate' : `health.${code}`;
    if (language === 'en' || !isMessageKey(key)) return title;
    const said = t(key, params ?? {});
    return said.includes('{') ? title : said;
  };
  const sayError = (error: unknown): string => {
    if (!(error instanceof CallError)) return t('error.internal');
    const own = Object.hasOwn(CONSOLE_ERRORS, error.code) ? CONSOLE_ERRORS[error.code] : undefined;
    if (own) return own[language];
    if (language === 'fr') return french(error.code) ?? error.detail ?? t('error.internal');
    return error.detail ?? english(error.code) ?? t('error.internal');
  };
  return { language, f, t, say, sayTitle, sayError };
}

function french(code: string): string | undefined {
  return Object.hasOwn(ERRORS_FR, code) ? ERRORS_FR[code] : undefined;
}

function english(code: string): string | undefined {
  const table: Readonly<Record<string, { readonly sentence: string }>> = ERRORS;
  return Object.hasOwn(table, code) ? table[code]?.sentence : undefined;
}

const I18nContext = createContext<I18n | null>(null);

export function I18nProvider(props: { readonly language: Language; readonly children: ReactNode }) {
  const value = useMemo(() => createI18n(props.language), [props.language]);
  return <I18nContext value={value}>{props.children}</I18nContext>;
}

export function useI18n(): I18n {
  const value = useContext(I18nContext);
  if (!value) throw new Error('no language around this component');
  return value;
}
