import { createContext, useContext } from 'react';
import { useStore } from 'zustand';
import { createStore, type StoreApi } from 'zustand/vanilla';

/** The wall clock, once a second, shared by everything that shows an age. */
export interface Ticker {
  readonly store: StoreApi<number>;
  stop(): void;
}

export function startTicker(page: Window): Ticker {
  const store = createStore<number>(() => Date.now());
  const timer = page.setInterval(() => store.setState(Date.now(), true), 1000);
  return { store, stop: () => page.clearInterval(timer) };
}

export const TickerContext = createContext<StoreApi<number> | null>(null);

/** Milliseconds since the epoch, renewed every second. */
export function useNow(): number {
  const store = useContext(TickerContext);
  if (!store) throw new Error('no ticker around this component');
  return useStore(store);
}
