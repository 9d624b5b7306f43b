import {
  type KeyboardEvent as KeyPress,
  type ReactElement,
  type ReactNode,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import { useI18n } from '../i18n/i18n.tsx';
import { copyText } from './clipboard.ts';
import { useFocusReturn } from './focus-place.ts';
import { Icon } from './icons.tsx';
import { Note } from './status.tsx';

/**
 * Radio buttons that stand side by side. With `deliberate`, arrows only move over them and Enter or the space bar chooses: where a
 * choice acts at once, passing by must not be one.
 */
export function Segments<Value extends string>(props: {
  readonly label: string;
  readonly value: Value;
  readonly options: readonly { readonly value: Value; readonly label: ReactNode; readonly title?: string }[];
  readonly disabled?: boolean;
  readonly deliberate?: boolean;
  readonly onChange: (value: Value) => void;
}): ReactElement {
  const name = useId();
  const onKey = (event: KeyPress<HTMLFieldSetElement>) => {
    const step = ARROWS[event.key];
    const radios = [...event.currentTarget.querySelectorAll('input')];
    const at = radios.indexOf(event.target as HTMLInputElement);
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    if (step !== undefined) radios[(at + step + radios.length) % radios.length]?.focus();
    else if (event.key === 'Enter' && radios[at]?.checked === false) radios[at].click();
    else return;
    event.preventDefault();
  };
  return (
    <fieldset className="segments" disabled={props.disabled ?? false} onKeyDown={props.deliberate ? onKey : undefined}>
      <legend className="visually-hidden">{props.label}</legend>
      {props.options.map((option) => (
        <label key={option.value} title={option.title}>
          <input
            type="radio"
            name={name}
            value={option.value}
            checked={option.value === props.value}
            onChange={() => props.onChange(option.value)}
          />
          {option.label}
        </label>
      ))}
    </fieldset>
  );
}

const ARROWS: Readonly<Record<string, 1 | -1>> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

export function Check(props: {
  readonly label: ReactNode;
  readonly checked: boolean;
  readonly disabled?: boolean;
  readonly onChange: (checked: boolean) => void;
}): ReactElement {
  return (
    <label className="check">
      <input
        type="checkbox"
        checked={props.checked}
        disabled={props.disabled ?? false}
        onChange={(event) => props.onChange(event.target.checked)}
      />
      <span>{props.label}</span>
    </label>
  );
}

export function CopyButton({ text, label }: { readonly text: string; readonly label: string }): ReactElement {
  const { t } = useI18n();
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(false), 1500);
    return () => clearTimeout(timer);
  }, [done]);
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={done ? t('copy.done') : label}
      title={label}
      onClick={() => setDone(copyText(text))}
    >
      <Icon name={done ? 'check' : 'copy'} />
    </button>
  );
}

/** Text to take away. */
export function Snippet({ text, label }: { readonly text: string; readonly label: string }): ReactElement {
  return (
    <div className="snippet">
      <section className="code" aria-label={label}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
        <pre tabIndex={0}>{text}</pre>
      </section>
      <CopyButton text={text} label={label} />
    </div>
  );
}

/** Escape goes to the innermost open thing: a dialog closes itself, a side panel by this. */
export function useEscape(onEscape: () => void): void {
  const latest = useRef(onEscape);
  latest.current = onEscape;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'Escape' || event.defaultPrevented || document.querySelector('dialog[open]')) return;
      latest.current();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
}

/** What a row opened: beside the table on wide windows, over it on narrow ones. Takes focus, and gives it back. */
export function Side(props: {
  readonly title: string;
  readonly head?: ReactNode;
  readonly onClose: () => void;
  readonly children: ReactNode;
}): ReactElement {
  const { t } = useI18n();
  const panel = useRef<HTMLElement>(null);
  useEscape(props.onClose);
  useFocusReturn();
  useEffect(() => panel.current?.focus({ preventScroll: true }), []);
  return (
    <aside className="side" ref={panel} tabIndex={-1} aria-label={props.title}>
      <header>
        <h3>{props.title}</h3>
        {props.head}
        <button type="button" className="icon-button" aria-label={t('action.close')} onClick={props.onClose}>
          <Icon name="close" />
        </button>
      </header>
      {props.children}
    </aside>
  );
}

/**
 * A modal question or form. The browser keeps focus inside and closes on Escape; closed, focus is where it was before. With `held`
 * only its own button closes it, and Escape says that sentence: what stands there is not shown again.
 */
export function Sheet(props: {
  readonly title: string;
  readonly wide?: boolean;
  readonly held?: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}): ReactElement {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useFocusReturn();
  // Before the effects of what is inside, so that a field in it can ask for the keyboard.
  useLayoutEffect(() => {
    const element = dialog.current;
    if (element && !element.open) element.showModal();
    return () => element?.close();
  }, []);
  const isHeld = props.held !== undefined;
  const [told, setTold] = useState(false);
  useEffect(() => {
    if (!isHeld) return;
    // At the key, not at the dialog's own question: the browser asks that once and closes at the second Escape whatever was said.
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'Escape') return;
      event.preventDefault();
      setTold(true);
      dialog.current?.querySelector<HTMLElement>('.button.primary')?.focus();
    };
    window.addEventListener('keydown', onKey, { capture: true });
    return () => window.removeEventListener('keydown', onKey, { capture: true });
  }, [isHeld]);
  return (
    <dialog
      ref={dialog}
      className={props.wide ? 'wide' : undefined}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        if (isHeld) setTold(true);
        else props.onClose();
      }}
    >
      <div className="body">
        <h3 id={heading}>{props.title}</h3>
        {props.children}
        {isHeld && told && (
          <Note tone="bad" alert>
            {props.held}
          </Note>
        )}
      </div>
    </dialog>
  );
}
