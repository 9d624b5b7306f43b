/** What a field of figures takes. Bounds are those of the contract, in the unit of the field. */
export interface NumberRule {
  readonly min: number;
  readonly max: number;
  readonly whole?: boolean;
  /** An empty field is a mistake; else it means "none". */
  readonly required?: boolean;
  readonly unit?: Unit;
}
export type Unit = 'usd' | 'seconds' | 'tokens' | 'minute';

export type NumberFault = 'missing' | 'strange' | 'two-ways' | 'range' | 'whole';
export type NumberRead =
  | { readonly value: number | null; readonly fault: null }
  | { readonly value: null; readonly fault: NumberFault };

/** What people write around a figure of this unit. Another unit is another figure: "5 €" is no USD. */
const AROUND: Readonly<Record<Unit, { readonly before?: RegExp; readonly after: RegExp }>> = {
  usd: { before: /^(?:US\$|\$|USD)\s*/i, after: /\s*(?:US\$|\$|USD)$/i },
  seconds: { after: /\s*(?:s|sec|seconds?|secondes?)$/i },
  tokens: { after: /\s*(?:tok(?:ens?)?|jetons?)\s*\/\s*s$/i },
  minute: { after: /\s*(?:\/\s*min(?:ute)?|per minute|par minute|rpm|tpm)$/i },
};
/** Digits in groups as French and ISO write them, or in one piece; a comma is a point. */
const FIGURE = /^-?(?:\d+|\d{1,3}(?:[ \u00a0\u202f]\d{3})+)(?:[.,]\d+)?$/;
/** 1,000 is a thousand to some and one to others. */
const TWO_WAYS = /^-?[1-9]\d{0,2}(?:,\d{3})+$/;

/** Reads what a person wrote. What cannot be read for certain is a fault, never "no limit". */
export function readNumber(text: string, rule: NumberRule): NumberRead {
  const faulty = (fault: NumberFault): NumberRead => ({ value: null, fault });
  const around = rule.unit && AROUND[rule.unit];
  const trimmed = text.trim();
  if (trimmed === '') return rule.required ? faulty('missing') : { value: null, fault: null };
  const before = around?.before ? trimmed.replace(around.before, '') : trimmed;
  const bare = around ? before.replace(around.after, '') : before;
  if (TWO_WAYS.test(bare)) return faulty('two-ways');
  if (!FIGURE.test(bare)) return faulty('strange');
  const value = Number(bare.replace(/[ \u00a0\u202f]/g, '').replace(',', '.'));
  if (value < rule.min || value > rule.max) return faulty('range');
  if (rule.whole && !Number.isInteger(value)) return faulty('whole');
  return { value, fault: null };
}
