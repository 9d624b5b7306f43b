import { createContext, useCallback, useContext, useEffect, useState } from 'react';
import { PAGE_IDS } from '../../preload/contract/names.ts';
import { filtersOf, type Place, parsePlace, placeHash } from '../state/ui-store.ts';

export interface Navigation {
  readonly place: Place;
  readonly filters: readonly string[];
  go(page: Place['page'], target?: string | null, filters?: readonly string[]): void;
}

export const NavigationContext = createContext<Navigation | null>(null);

export function useNavigation(): Navigation {
  const value = useContext(NavigationContext);
  if (!value) throw new Error('no navigation around this component');
  return value;
}

/** The place is the address's fragment, so that Back works and a place can be kept as a bookmark. */
export function usePlace(): Navigation {
  const [here, setHere] = useState(readHash);
  useEffect(() => {
    const onHash = () => setHere(readHash());
    window.addEventListener('hashchange', onHash);
    return () => window.removeEventListener('hashchange', onHash);
  }, []);
  const go = useCallback((page: Place['page'], target: string | null = null, filters: readonly string[] = []) => {
    window.location.hash = placeHash(page, target, filters);
  }, []);
  return { ...here, go };
}

function readHash() {
  const { hash } = window.location;
  return { place: parsePlace(hash, PAGE_IDS), filters: filtersOf(hash) };
}
