import { createStore, type StoreApi } from 'zustand/vanilla';
import type { PageId, Range } from '../../preload/contract.ts';

export interface UiState {
  /** Said once by the status line to those who listen. */
  readonly announcement: string;
  readonly helpOpen: boolean;
  readonly paletteOpen: boolean;
  /** What the palette asked a control of some page to do; taken by that control when it is there. */
  readonly asked: string | null;
  /** Of what was done from the palette. */
  readonly failure: unknown;
  readonly range: Range;
  /** A stretch drawn on a chart: the charts stand still on it until live is resumed. */
  readonly zoom: readonly [fromMs: number, toMs: number] | null;
}

export interface UiStore extends StoreApi<UiState> {
  readonly announce: (sentence: string) => void;
  readonly ask: (what: string) => void;
}

export function createUiStore(): UiStore {
  const store = createStore<UiState>(() => ({
    announcement: '',
    helpOpen: false,
    paletteOpen: false,
    asked: null,
    failure: null,
    range: '1h',
    zoom: null,
  }));
  return {
    ...store,
    announce: (announcement) => store.setState({ announcement }),
    ask: (asked) => store.setState({ asked }),
  };
}

export interface Place {
  readonly page: PageId | 'welcome';
  readonly target: string | null;
}

/** `#/fleet/node-1` -> page and target. Anything else is the overview. What a page is filtered by follows a `?`. */
export function parsePlace(hash: string, pages: readonly PageId[]): Place {
  const [, page = '', ...rest] = (hash.replace(/^#/, '').split('?', 1)[0] ?? '').split('/');
  const target = rest.length > 0 ? safeDecode(rest.join('/')) : null;
  if (page === 'welcome') return { page, target: null };
  const known = pages.find((id) => id === page);
  return known ? { page: known, target: target === '' ? null : target } : { page: 'overview', target: null };
}

export function placeHash(page: Place['page'], target: string | null = null, filters: readonly string[] = []): string {
  const place = target === null ? `#/${page}` : `#/${page}/${encodeURIComponent(target)}`;
  return filters.length === 0 ? place : `${place}?${filters.map((one) => `f=${encodeURIComponent(one)}`).join('&')}`;
}

/** What a page is filtered by: it stays over a reload, in a bookmark and on the way back. */
export function filtersOf(hash: string): readonly string[] {
  const asked = hash.indexOf('?');
  return asked < 0 ? [] : new URLSearchParams(hash.slice(asked + 1)).getAll('f');
}

function safeDecode(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}
