import { type InfiniteData, useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useRef, useState } from 'react';
import { type FilterToken, matchesAll, tokenText } from '../../preload/contract/request-filter.ts';
import type { Output, RequestView } from '../../preload/contract.ts';
import { useConsole, useTopic } from './console.tsx';

/** Rows read at a time. */
const PAGE_ROWS = 200;
/** Live rows held beyond what the live log keeps, so that a page left open has no hole; then the core is asked again. */
const MOST_HELD = 2000;

type Page = Output<'requests.list'>;

export interface RequestHistory {
  /** Newest first, without a hole: what is live on top of what was read. */
  readonly rows: readonly RequestView[];
  /** The core may have older ones. */
  readonly more: boolean;
  readonly lookedToMs: number | null;
  readonly asking: boolean;
  readonly error: unknown;
  readonly failedOlder: boolean;
  readonly loadOlder: () => void;
  readonly retry: () => void;
  /** Rows that are older than a list that stands still. */
  readonly before: (held: readonly RequestView[]) => readonly RequestView[];
  readonly newerThan: (held: readonly RequestView[]) => number;
}

/** Requests that match, as far back as was asked for. The live ones are matched here, the stored ones by the core. */
export function useRequestHistory(tokens: readonly FilterToken[]): RequestHistory {
  const { transport } = useConsole();
  const live = useTopic('requests');
  const matching = tokens.map(tokenText).join('\n');
  const stored = useInfiniteQuery<Page, Error, InfiniteData<Page>, readonly unknown[], string | null>({
    queryKey: ['requests.list', 'pages', matching],
    queryFn: ({ pageParam }) =>
      transport.call('requests.list', {
        limit: PAGE_ROWS,
        ...(matching === '' ? {} : { matching }),
        ...(pageParam === null ? {} : { before: pageParam }),
      }),
    initialPageParam: null,
    getNextPageParam: (page) => page.lookedTo?.id ?? null,
    // What was read long ago and what is live now may have a hole between them.
    gcTime: 0,
  });
  const held = useRef<readonly RequestView[]>([]);
  const [cut, setCut] = useState(false);
  const known = useMemo(() => {
    const merged = newestFirst(held.current, live ?? []);
    held.current = merged.slice(0, MOST_HELD);
    return { rows: held.current, cut: merged.length > MOST_HELD };
  }, [live]);
  const { refetch } = stored;
  // The oldest held rows went: the pages no longer meet them.
  useEffect(() => {
    if (!known.cut || cut) return;
    setCut(true);
    held.current = held.current.slice(0, MOST_HELD / 2);
    void refetch().then(() => setCut(false));
  }, [known.cut, cut, refetch]);

  const pages = stored.data?.pages;
  const last = pages?.at(-1);
  const lookedToMs = last?.lookedTo?.atMs ?? null;
  const [drawn, setDrawn] = useState({ matching, rows: PAGE_ROWS });
  const most = drawn.matching === matching ? drawn.rows : PAGE_ROWS;
  const all = useMemo(() => {
    const read = (pages ?? []).flatMap((page) => page.requests);
    const fresh = known.rows.filter(
      (row) => (lookedToMs === null || row.atMs >= lookedToMs) && matchesAll(row, tokens),
    );
    return newestFirst(read, fresh);
  }, [pages, known, lookedToMs, tokens]);
  // A page left open does not draw ever more rows: those that its newest push out are read again as older ones.
  const rows = useMemo(() => all.slice(0, most), [all, most]);
  const { fetchNextPage } = stored;
  return useMemo(
    () => ({
      rows,
      more: all.length > most || stored.hasNextPage,
      lookedToMs: all.length > most ? (rows.at(-1)?.atMs ?? null) : lookedToMs,
      asking: stored.isFetching,
      error: stored.error,
      failedOlder: stored.isFetchNextPageError,
      loadOlder: () => {
        setDrawn({ matching, rows: most + PAGE_ROWS });
        if (all.length < most + PAGE_ROWS && stored.hasNextPage) void fetchNextPage();
      },
      retry: () => void (stored.isFetchNextPageError ? fetchNextPage() : refetch()),
      before: (standing) => {
        const oldest = standing.at(-1);
        return oldest ? all.filter((row) => isOlder(row, oldest)).slice(0, Math.max(0, most - standing.length)) : rows;
      },
      newerThan: (standing) => {
        const newest = standing[0];
        return newest ? all.filter((row) => isOlder(newest, row)).length : all.length;
      },
    }),
    [
      all,
      rows,
      most,
      matching,
      lookedToMs,
      stored.hasNextPage,
      stored.isFetching,
      stored.error,
      stored.isFetchNextPageError,
      fetchNextPage,
      refetch,
    ],
  );
}

const isOlder = (a: RequestView, b: RequestView): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.id < b.id);

/** Two lists as one; of a row in both the later one's stays. */
export function newestFirst(older: readonly RequestView[], later: readonly RequestView[]): readonly RequestView[] {
  const known = new Map(older.map((row) => [row.id, row]));
  for (const row of later) known.set(row.id, row);
  return [...known.values()].sort((a, b) => (isOlder(a, b) ? 1 : -1));
}
