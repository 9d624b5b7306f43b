import type { UseQueryResult } from '@tanstack/react-query';
import { useMemo, useRef } from 'react';
import type { HistoryView, Input, Output } from '../../preload/contract.ts';
import { useRead, useTopic } from './console.tsx';
import { RENEW_MS, withSamples } from './live-history.ts';
import { useNow } from './ticker.tsx';

/** A sample that came late is waited for so long before the edge of a chart leaves it behind. */
const SAMPLE_WAIT_MS = 3_000;

export interface LiveHistory {
  readonly overview: UseQueryResult<Output<'overview.get'>, Error>;
  /** The same object until there is something new to draw. */
  readonly history: HistoryView | null;
  /** Right edge of live charts, in whole steps: an edge that moves every second would have them drawn every second. */
  readonly endMs: number;
}

/** The history of a range with what was sampled since. */
export function useHistory(input: Input<'overview.get'>, stands = false): LiveHistory {
  const overview = useRead('overview.get', input, { everyMs: stands ? false : RENEW_MS[input.range] });
  const samples = useTopic('series');
  const now = useNow();
  const drawn = useRef<{ readonly base: HistoryView; readonly history: HistoryView } | null>(null);
  const base = overview.data?.history ?? null;
  const history = useMemo(() => {
    if (!base) return null;
    const next = withSamples(base, samples ?? []);
    const before = drawn.current;
    // Of two samples a second only one is taken; the other changes nothing.
    if (before?.base === base && before.history.atMs.at(-1) === next.atMs.at(-1)) return before.history;
    drawn.current = { base, history: next };
    return next;
  }, [base, samples]);
  const stepMs = history?.stepMs ?? 1000;
  const last = history?.atMs.at(-1) ?? 0;
  const fresh = input.range === '5m' && Math.abs(now - last) < SAMPLE_WAIT_MS;
  return { overview, history, endMs: fresh ? last : Math.ceil(now / stepMs) * stepMs };
}
