import { type ReactElement, useId, useRef } from 'react';
import { FieldError } from './number-field.tsx';

/** A field for one line with its label; a mistake is said under it and told to screen readers. */
export function TextField(props: {
  readonly name: string;
  readonly label: string;
  readonly value: string;
  readonly fault: string | null;
  readonly onEdit: () => void;
}): ReactElement {
  const said = useId();
  const first = useRef(props.value);
  return (
    <div className="number-field">
      <label>
        {props.label}
        <input
          className="field mono"
          name={props.name}
          autoComplete="off"
          spellCheck={false}
          defaultValue={first.current}
          aria-invalid={props.fault !== null}
          aria-describedby={props.fault === null ? undefined : said}
          onChange={props.onEdit}
        />
      </label>
      {props.fault !== null && <FieldError id={said}>{props.fault}</FieldError>}
    </div>
  );
}
