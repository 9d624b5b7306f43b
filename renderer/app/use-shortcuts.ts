import { useEffect, useRef } from 'react';
import { onKey, type Pending, type ShortcutAction } from './shortcuts.ts';

const TYPES_TEXT = 'input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable]';

/** Listens on the window. While a dialog is open only Ctrl or Cmd with K is heard. */
export function useShortcuts(singleKeys: boolean, act: (action: ShortcutAction) => void): void {
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
          atMs: event.timeStamp,
        },
        singleKeys,
      );
      pending = next.pending;
      if (!next.action) return;
      event.preventDefault();
      latest.current(next.action);
    };
    window.addEventListener('keydown', listener);
    return () => window.removeEventListener('keydown', listener);
  }, [singleKeys]);
}

/** The page's filter, wherever it is. */
export function focusFilter(): void {
  document.querySelector<HTMLInputElement>('[data-filter]')?.focus();
}
