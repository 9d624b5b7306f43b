import type { HistoryView, SampleView, Series } from '../../preload/contract.ts';

/**
 * History with the live samples that came after it, for ranges whose step is near the samples' own. Coarser ranges are read again
 * instead: a bucket of minutes cannot be made from half-second samples without its past.
 */
export function withSamples(history: HistoryView, samples: readonly SampleView[]): HistoryView {
  const last = history.atMs.at(-1) ?? 0;
  if (history.range !== '5m') return history;
  const fresh: SampleView[] = [];
  let taken = last;
  for (const sample of samples) {
    if (sample.atMs < taken + 0.9 * history.stepMs) continue;
    fresh.push(sample);
    taken = sample.atMs;
  }
  if (fresh.length === 0) return history;
  const lookups = fresh.map((sample) => new Map(sample.values.map(({ id, value }) => [id, value])));
  const extend = (series: readonly Series[]): Series[] =>
    series.map(({ id, values }) => ({ id, values: [...values, ...lookups.map((values) => values.get(id) ?? null)] }));
  return {
    ...history,
    atMs: [...history.atMs, ...fresh.map((sample) => sample.atMs)],
    queue: extend(history.queue),
    latency: extend(history.latency),
    tooMany: extend(history.tooMany),
    permits: extend(history.permits),
  };
}

/** Length of each range in milliseconds. */
export const RANGE_MS = { '5m': 300_000, '1h': 3_600_000, '24h': 86_400_000 } as const;
/** How often a range is read again: about its step. */
export const RENEW_MS = { '5m': 15_000, '1h': 10_000, '24h': 60_000 } as const;
