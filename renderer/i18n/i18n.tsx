import { createContext, type ReactNode, useContext, useMemo } from 'react';
import { ERRORS, ERRORS_FR, type Language, sayIn } from '../../preload/contract/names.ts';
import type { Reason, Says } from '../../preload/contract.ts';
import { createFormats, type Formats } from '../format/format.ts';
import { CallError } from '../transport/port.ts';
import { CATALOGUE, type MessageKey } from './catalogue.ts';
import { CONSOLE_ERRORS } from './errors.ts';

export type { Language };
export type Params = Readonly<Record<string, string | number>>;

export interface I18n {
  readonly language: Language;
  readonly f: Formats;
  t(key: MessageKey, params?: Params): string;
  /** A reason in the console's language where it is known there with all its figures, else in our English. */
  say(reason: Reason): string;
  /** The same for a sentence that stands beside what it says: events, and what needs a person. */
  sayBeside(sentence: string, says: Says | undefined): string;
  /** A provider as the control plane names it: "bge-m3 on attic". */
  named(provider: string): string;
  sayError(error: unknown): string;
}

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
  const say = (reason: Reason): string => sayIn(language, reason, f);
  const sayBeside = (sentence: string, says: Says | undefined): string =>
    says ? say({ ...says, sentence }) : sentence;
  const named = (provider: string): string => {
    const [, model, machine] = /^(.+) on (.+?)$/.exec(provider) ?? [];
    if (model && machine) return t('name.onMachine', { model, machine });
    const [, gone] = /^(.+) \(not in the fleet now\)$/.exec(provider) ?? [];
    return gone ? t('name.gone', { model: gone }) : provider;
  };
  const sayError = (error: unknown): string => {
    if (!(error instanceof CallError)) return t('error.internal');
    const own = Object.hasOwn(CONSOLE_ERRORS, error.code) ? CONSOLE_ERRORS[error.code] : undefined;
    if (own) return own[language];
    if (error.says && error.detail !== null) return sayBeside(error.detail, error.says);
    const known = Object.hasOwn(ERRORS, error.code) ? (error.code as keyof typeof ERRORS) : null;
    if (language === 'fr') return known ? ERRORS_FR[known] : (error.detail ?? t('error.internal'));
    return error.detail ?? (known ? ERRORS[known].sentence : t('error.internal'));
  };
  return { language, f, t, say, sayBeside, named, sayError };
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
