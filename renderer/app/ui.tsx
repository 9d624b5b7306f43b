import { createContext, useContext, useEffect, useRef } from 'react';
import { useStore } from 'zustand';
import type { UiStore } from '../state/ui-store.ts';

export const UiContext = createContext<UiStore | null>(null);

export function useUi(): UiStore {
  const value = useContext(UiContext);
  if (!value) throw new Error('no ui store around this component');
  return value;
}

/** For a control that the palette can press: does it once when it was asked for, also when the page opens only then. */
export function useAsked(what: string, act: () => void): void {
  const ui = useUi();
  const latest = useRef(act);
  latest.current = act;
  const isAsked = useStore(ui, (state) => state.asked === what);
  useEffect(() => {
    if (!isAsked) return;
    ui.setState({ asked: null });
    latest.current();
  }, [isAsked, ui]);
}
