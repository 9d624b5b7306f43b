import { useRef } from 'react';

/** The value of before while the new one says the same, so that what depends on it need not be made again. For small values. */
export function useSteady<Value>(value: Value): Value {
  const kept = useRef(value);
  if (kept.current !== value && JSON.stringify(kept.current) !== JSON.stringify(value)) kept.current = value;
  return kept.current;
}
