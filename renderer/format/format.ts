/**
 * Figures as an operator reads them. Unknown is a dash, never 0. Every function is pure; `Formats` is made once per language.
 */
export const UNKNOWN = '—';
type Maybe = number | null | undefined;

/** What was paid is never shown as nothing. */
const LEAST_USD = 0.0001;
const NOTHING_USD = 1e-9;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** French counts octets and days (jours), and lets no line end between a figure and its unit. */
const UNITS = {
  en: { space: ' ', day: 'd', bytes: ['B', 'kB', 'MB', 'GB'] },
  fr: { space: '\u00a0', day: 'j', bytes: ['o', 'ko', 'Mo', 'Go'] },
} as const;

export interface Formats {
  readonly locale: string;
  /** Whole or with the given digits after the point. */
  number(value: Maybe, digits?: number): string;
  /** 0 to 1 -> "77 %". */
  percent(share: Maybe): string;
  /** Two significant units at most: "84 ms", "1.8 s", "2 s", "12 s", "4 min", "2 h 5 min", "3 d" (in French "3 j"). */
  duration(ms: Maybe): string;
  /** "42 s ago"; under a second "now". */
  age(ms: Maybe): string;
  /** Gigabytes without unit, for a column whose head names it. */
  gigabytes(bytes: Maybe): string;
  /** With unit: "118 B", "310 MB"; in French "310 Mo". */
  bytes(bytes: Maybe): string;
  /** A figure in a unit that is written alike in every language: "61 °C". */
  unit(value: Maybe, unit: string): string;
  usd(value: Maybe): string;
  /** Cut, not rounded, at four digits: 0.98996 must not read as a pass of 0.99. */
  cosine(value: Maybe): string;
  /** "14:05:09", 24 hours, local. */
  clock(atMs: Maybe): string;
  /** Day and time, local, for a tip. */
  moment(atMs: Maybe): string;
}

export interface FormatWords {
  readonly now: string;
  /** With `{age}`. */
  readonly ago: string;
}

export function createFormats(locale: string, words: FormatWords, timeZone?: string): Formats {
  const cache = new Map<number, Intl.NumberFormat>();
  const digitsFormat = (digits: number) => {
    let format = cache.get(digits);
    if (!format) {
      format = new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits });
      cache.set(digits, format);
    }
    return format;
  };
  const zone = timeZone === undefined ? {} : { timeZone };
  const clock = new Intl.DateTimeFormat(locale, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    ...zone,
  });
  const moment = new Intl.DateTimeFormat(locale, {
    dateStyle: 'medium',
    timeStyle: 'medium',
    hourCycle: 'h23',
    ...zone,
  });
  const dollars = (digits: number) =>
    new Intl.NumberFormat(locale, {
      style: 'currency',
      currency: 'USD',
      currencyDisplay: 'narrowSymbol',
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
    });
  const usdCents = dollars(2);
  const usdFine = dollars(4);
  const number = (value: number, digits = 0) => digitsFormat(digits).format(value);
  const units = UNITS[locale.startsWith('fr') ? 'fr' : 'en'];
  const measured = (value: number, digits: number, unit: string) => `${number(value, digits)}${units.space}${unit}`;
  const known = (value: Maybe, show: (value: number) => string) =>
    value === null || value === undefined || Number.isNaN(value) ? UNKNOWN : show(value);

  const duration = (ms: number): string => {
    if (ms > 0 && ms < 10 && !Number.isInteger(ms)) return measured(ms, 1, 'ms');
    if (ms < SECOND) return measured(Math.round(ms), 0, 'ms');
    if (ms < 10 * SECOND) return measured(ms / SECOND, ms % SECOND === 0 ? 0 : 1, 's');
    if (ms < MINUTE) return measured(Math.floor(ms / SECOND), 0, 's');
    if (ms < HOUR) return measured(Math.floor(ms / MINUTE), 0, 'min');
    if (ms < DAY) {
      const minutes = Math.floor((ms % HOUR) / MINUTE);
      const hours = measured(Math.floor(ms / HOUR), 0, 'h');
      return ms < 10 * HOUR && minutes > 0 ? `${hours}${units.space}${measured(minutes, 0, 'min')}` : hours;
    }
    return measured(Math.floor(ms / DAY), 0, units.day);
  };

  return {
    locale,
    number: (value, digits) => known(value, (v) => number(v, digits)),
    percent: (share) => known(share, (v) => measured(Math.round(v * 100), 0, '%')),
    duration: (ms) => known(ms, (v) => duration(Math.max(0, v))),
    age: (ms) =>
      known(ms, (v) =>
        v < SECOND
          ? words.now
          : words.ago.replace('{age}', v < MINUTE ? measured(Math.floor(v / SECOND), 0, 's') : duration(v)),
      ),
    gigabytes: (bytes) => known(bytes, (v) => number(v / 1e9, 1)),
    bytes: (bytes) =>
      known(bytes, (v) => {
        const [one, kilo, mega, giga] = units.bytes;
        if (v < 1e3) return measured(v, 0, one);
        if (v < 1e6) return measured(v / 1e3, 0, kilo);
        return v < 1e9 ? measured(v / 1e6, 0, mega) : measured(v / 1e9, 1, giga);
      }),
    unit: (value, unit) => known(value, (v) => measured(v, 0, unit)),
    usd: (value) =>
      known(value, (v) => {
        // Less than a billionth is what sums of fractions leave over.
        if (Math.abs(v) < NOTHING_USD) return usdCents.format(0);
        if (v > 0 && v < LEAST_USD) return `<${usdFine.format(LEAST_USD)}`;
        return (Math.abs(v) < 0.1 ? usdFine : usdCents).format(v);
      }),
    cosine: (value) => known(value, (v) => number(Math.floor(v * 1e4 + 1e-6) / 1e4, 4)),
    clock: (atMs) => known(atMs, (v) => clock.format(v)),
    moment: (atMs) => known(atMs, (v) => moment.format(v)),
  };
}
