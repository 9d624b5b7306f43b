import type { Booked } from './cloud/budget-service.ts';
import type { RequestTrace } from './dispatch/trace.ts';
import type { RequestObserver } from './domain/observation.ts';
import type { SqliteStore } from './store/client.ts';
import type { Json } from './store/ports.ts';
import type { RecentRequests } from './telemetry/recent-requests.ts';
import type { TimeSeries } from './telemetry/time-series.ts';

/** Books the tokens of every request that ends. What it has cost is told apart. */
export function usageRecords(store: SqliteStore): RequestObserver {
  return {
    finished: (summary) =>
      store.usage.record({
        key: summary.keyId,
        project: summary.project,
        role: summary.role,
        model: summary.model,
        route: summary.route,
        atMs: summary.arrivedAtMs,
        success: summary.outcome === 'success',
        promptTokens: summary.usage?.promptTokens ?? 0,
        completionTokens: summary.usage?.completionTokens ?? 0,
        exact: summary.usage?.exact ?? false,
      }),
  };
}

/** Books what a cloud call has cost as the budget does: one that was left, failed or tried twice has cost as well, and may end later. */
export function costRecord(store: SqliteStore, { keyId, startedWallMs, usd, ...what }: Booked): void {
  store.usage.spent({ key: keyId, ...what, route: 'cloud', atMs: startedWallMs, costUsd: usd });
}

/** Keeps the trace of every request: the newest in memory, all of them in the store, what the gate stopped in its chart. */
export function traceRecords(store: SqliteStore, series: TimeSeries, requests: RecentRequests<RequestTrace>) {
  return (trace: RequestTrace): void => {
    requests.add(trace);
    // Texts that an encoder would have been given, had it agreed with the index.
    const stopped = trace.choices[0]?.refused.some(({ reason }) => reason === 'verdict_failed');
    if (stopped) series.fold('count.gate', trace.units, 'sum');
    const { summary, ...detail } = trace;
    store.traces.record({ summary, detail: detail as unknown as Json });
  };
}
