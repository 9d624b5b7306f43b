import { useEffect, useRef } from 'react';
import { onKey, type Pending, type ShortcutAction } from './shortcuts.ts';

const TYPES_TEXT = 'input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable]';

/** Links take no arrows; a page only scrolls by them, which a row that takes the focus does too. */
const FREE = 'body, main, nav a';

/** Listens on the window. While a dialog is open only Ctrl or Cmd with K is heard. */
export function useShortcuts(
  singleKeys: boolean,
  act: (action: Exclude<ShortcutAction, { do: 'rows' }>) => void,
): void {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    let pending: Pending = null;
    const listener = (event: KeyboardEvent) => {
      if (event.defaultPrevented) return;
      const typing = event.target instanceof Element && event.target.matches(TYPES_TEXT);
      const next = onKey(
        pending,
        {
          key: event.key,
          command: event.ctrlKey || event.metaKey,
          alt: event.altKey,
          typing: typing || document.querySelector('dialog[open]') !== null,
          free: event.target instanceof Element && event.target.matches(FREE),
          atMs: event.timeStamp,
        },
        singleKeys,
      );
      pending = next.pending;
      if (!next.action) return;
      if (next.action.do === 'rows') {
        // Without rows the page scrolls as ever.
        if (focusRow()) event.preventDefault();
        return;
      }
      event.preventDefault();
      latest.current(next.action);
    };
    window.addEventListener('keydown', listener);
    return () => window.removeEventListener('keydown', listener);
  }, [singleKeys]);
}

/** The row that Tab would stop at: the first, or the one that was left. */
function focusRow(): boolean {
  const row = document.querySelector<HTMLElement>('main tr.openable[tabindex="0"]');
  row?.focus();
  return row !== null;
}

/** The page's filter, wherever it is. */
export function focusFilter(): void {
  document.querySelector<HTMLInputElement>('[data-filter]')?.focus();
}
