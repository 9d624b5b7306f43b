import { createContext, useCallback, useContext, useEffect, useState } from 'react';
import { PAGE_IDS } from '../../preload/contract/names.ts';
import { type Place, parsePlace, placeHash } from '../state/ui-store.ts';

export interface Navigation {
  readonly place: Place;
  go(page: Place['page'], target?: string | null): void;
}

export const NavigationContext = createContext<Navigation | null>(null);

export function useNavigation(): Navigation {
  const value = useContext(NavigationContext);
  if (!value) throw new Error('no navigation around this component');
  return value;
}

/** The place is the address's fragment, so that Back works and a place can be kept as a bookmark. */
export function usePlace(): Navigation {
  const [place, setPlace] = useState<Place>(() => parsePlace(window.location.hash, PAGE_IDS));
  useEffect(() => {
    const onHash = () => setPlace(parsePlace(window.location.hash, PAGE_IDS));
    window.addEventListener('hashchange', onHash);
    return () => window.removeEventListener('hashchange', onHash);
  }, []);
  const go = useCallback((page: Place['page'], target: string | null = null) => {
    window.location.hash = placeHash(page, target);
  }, []);
  return { place, go };
}
