import type { PageId } from '../../preload/contract.ts';

/** `g` then a letter goes to a page. */
export const PAGE_LETTERS: Readonly<Record<string, PageId>> = {
  o: 'overview',
  f: 'fleet',
  r: 'roles',
  t: 'gate',
  b: 'budget',
  q: 'requests',
  k: 'keys',
  e: 'events',
  s: 'settings',
};
/** The second key must follow the first within this. */
export const SEQUENCE_MS = 1200;

export type ShortcutAction =
  | { readonly do: 'go'; readonly page: PageId }
  | { readonly do: 'filter' | 'help' | 'palette' | 'rows' };

export interface KeyPress {
  readonly key: string;
  readonly command: boolean;
  readonly alt: boolean;
  /** The focus is where text is typed. */
  readonly typing: boolean;
  /** Nothing has the focus that arrows would mean something to. */
  readonly free: boolean;
  readonly atMs: number;
}

/** When `g` was pressed, if a letter may still follow. */
export type Pending = number | null;

/**
 * What a key does. Single keys do nothing while text is typed or when they are turned off (people who speak to their computer
 * trigger them by accident); Ctrl or Cmd with K always works.
 */
export function onKey(
  pending: Pending,
  press: KeyPress,
  singleKeys: boolean,
): { readonly pending: Pending; readonly action: ShortcutAction | null } {
  const nothing = { pending: null, action: null };
  if (press.command) {
    return press.key.toLowerCase() === 'k' ? { pending: null, action: { do: 'palette' } } : nothing;
  }
  // Arrows are no letter: they go on where single keys are off.
  if (!press.alt && !press.typing && press.free && (press.key === 'ArrowDown' || press.key === 'ArrowUp')) {
    return { pending: null, action: { do: 'rows' } };
  }
  if (press.alt || press.typing || !singleKeys) return nothing;
  if (pending !== null && press.atMs - pending <= SEQUENCE_MS) {
    const page = Object.hasOwn(PAGE_LETTERS, press.key) ? PAGE_LETTERS[press.key] : undefined;
    return page ? { pending: null, action: { do: 'go', page } } : nothing;
  }
  if (press.key === 'g') return { pending: press.atMs, action: null };
  if (press.key === '/') return { pending: null, action: { do: 'filter' } };
  if (press.key === 'j' || press.key === 'k') return { pending: null, action: { do: 'rows' } };
  if (press.key === '?') return { pending: null, action: { do: 'help' } };
  return nothing;
}
