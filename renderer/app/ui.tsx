import { createContext, useContext } from 'react';
import type { UiStore } from '../state/ui-store.ts';

export const UiContext = createContext<UiStore | null>(null);

export function useUi(): UiStore {
  const value = useContext(UiContext);
  if (!value) throw new Error('no ui store around this component');
  return value;
}
