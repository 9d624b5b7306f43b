import { type ReactElement, useId, useRef, useState } from 'react';
import { type NumberFault, type NumberRule, readNumber } from '../format/read-number.ts';
import { type I18n, useI18n } from '../i18n/i18n.tsx';

/** What is wrong with one field, in words. */
export function faultWords({ t, f }: I18n, fault: NumberFault, { min, max }: NumberRule): string {
  const most = (value: number) => f.number(value, Number.isInteger(value) ? 0 : 2);
  return t(`number.${fault}`, { min: most(min), max: most(max) });
}

/** The number fields of one form. Nothing may be sent while `read` finds one that is no number. */
export function useNumberFields<Name extends string>(rules: Readonly<Record<Name, NumberRule>>) {
  const [faults, setFaults] = useState<Partial<Record<Name, NumberFault>>>({});
  /** @returns the values, or null when a field is wrong: it has the focus, and says what is. */
  const read = (form: HTMLFormElement): Readonly<Record<Name, number | null>> | null => {
    const data = new FormData(form);
    const found: Partial<Record<Name, NumberFault>> = {};
    const values = {} as Record<Name, number | null>;
    for (const name of Object.keys(rules) as Name[]) {
      if (!data.has(name)) continue;
      const { value, fault } = readNumber(String(data.get(name)), rules[name]);
      values[name] = value;
      if (fault !== null) found[name] = fault;
    }
    setFaults(found);
    const [first] = Object.keys(found);
    if (first === undefined) return values;
    form.querySelector<HTMLInputElement>(`[name="${first}"]`)?.focus();
    return null;
  };
  const of = (name: Name) => ({
    name,
    rule: rules[name],
    fault: faults[name] ?? null,
    onEdit: () => setFaults((before) => ({ ...before, [name]: undefined })),
  });
  return { read, of };
}

/** A field for one figure with its label; a mistake is said under it and told to screen readers. */
export function NumberField(props: {
  readonly name: string;
  readonly label: string;
  readonly rule: NumberRule;
  readonly fault: NumberFault | null;
  readonly onEdit: () => void;
  readonly value: number | null;
  readonly placeholder?: string;
}): ReactElement {
  const i18n = useI18n();
  const { rule, fault } = props;
  const said = useId();
  // The text stays as it was typed, also when the value it began with changes meanwhile.
  const first = useRef(props.value);
  return (
    <div className="number-field">
      <label>
        {props.label}
        <input
          className="field num"
          name={props.name}
          inputMode={rule.whole ? 'numeric' : 'decimal'}
          autoComplete="off"
          placeholder={props.placeholder}
          defaultValue={first.current ?? ''}
          aria-invalid={fault !== null}
          aria-describedby={fault === null ? undefined : said}
          onChange={props.onEdit}
        />
      </label>
      {fault !== null && <FieldError id={said}>{faultWords(i18n, fault, rule)}</FieldError>}
    </div>
  );
}

/** Said under the field that it is about. */
export function FieldError(props: { readonly id: string; readonly children: string }): ReactElement {
  return (
    <small id={props.id} className="bad" role="alert">
      {props.children}
    </small>
  );
}
