import { useEffect, useState } from 'react';

/** Where the keyboard stood last outside of anything modal. */
let last: Element | null = null;

/** Remembers where the keyboard stands. Returns what ends that. */
export function watchFocus(document: Document): () => void {
  const onFocus = (event: FocusEvent) => {
    if (event.target instanceof Element && !event.target.closest('dialog')) last = event.target;
  };
  document.addEventListener('focusin', onFocus);
  return () => document.removeEventListener('focusin', onFocus);
}

/**
 * What has the keyboard now. A control that is switched off while its question is on the way lost it, and is still what was used;
 * nothing is, when a person left the place on purpose.
 */
function placeNow(): Element | null {
  const active = document.activeElement;
  if (active && active !== document.body) return active;
  return last?.matches(':disabled') || !last?.isConnected ? last : null;
}

/**
 * For what opens over or beside a page and takes the keyboard: gives it back on closing to the control that opened it, or to the
 * page when that one is gone or off. Leaves it alone when something else took it meanwhile.
 */
export function useFocusReturn(): void {
  // Asked for while rendering: by the time of an effect, the opener may be gone by the same change.
  const [opener] = useState(placeNow);
  useEffect(
    () => () => {
      const active = document.activeElement;
      if (opener === null || (active && active !== document.body)) return;
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus({ preventScroll: true });
      if (document.activeElement !== opener) focusPage();
    },
    [opener],
  );
}

/** The page itself: the next Tab is its first control. */
export function focusPage(): void {
  document.querySelector('main')?.focus({ preventScroll: true });
}
