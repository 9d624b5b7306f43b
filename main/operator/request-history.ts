import type { Output, ParsedInput, RequestView } from '../../preload/contract.ts';
import type { RequestTrace } from '../dispatch/trace.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { ProjectId, ProviderId, RequestId } from '../domain/ids.ts';
import type { RequestSummary } from '../domain/observation.ts';
import type { TraceFilter } from '../store/ports.ts';
import type { House } from './house.ts';
import { requestView } from './request-views.ts';

type Filter = ParsedInput<'requests.list'>;

/** Rows read from disk per page of a filter that the store does not know (overflowed). */
const SCAN_ROWS = 500;
const SCAN_PAGES = 10;

/** @throws SwitchyardError request_not_found. */
export async function findTrace(id: RequestId, house: House): Promise<RequestTrace> {
  const recent = house.requests.get(id);
  if (recent) return recent;
  const stored = await house.store.traces.get(id);
  if (!stored) throw new SwitchyardError('request_not_found');
  const detail = stored.detail as unknown as Omit<RequestTrace, 'summary'> | { readonly omitted: true };
  if ('omitted' in detail) return withoutDetail(stored.summary);
  return { ...detail, summary: stored.summary };
}

/** Too large to keep: the figures stay, the choices are gone. */
function withoutDetail(summary: RequestSummary): RequestTrace {
  return {
    summary,
    maxWaitMs: 0,
    arrival: null,
    space: null,
    units: 1,
    verdicts: [],
    attempts: [],
    choices: [],
    choicesOmitted: 0,
    refused: [],
    clockOffsetMs: 0,
  };
}

/** Newest first, from disk; from memory (the newest thousand) while the database cannot be read. */
export async function listRequests(filter: Filter, house: House): Promise<Output<'requests.list'>> {
  try {
    return await fromDisk(filter, house);
  } catch (error) {
    if (error instanceof SwitchyardError && error.code === 'request_not_found') throw error;
    return fromMemory(filter, house);
  }
}

async function fromDisk(filter: Filter, house: House): Promise<Output<'requests.list'>> {
  const { limit, before, overflowed } = filter;
  // Outcomes of running requests are never stored.
  if (filter.outcome === 'queued' || filter.outcome === 'running') return { requests: [], more: false };
  let after: string | undefined;
  if (before !== undefined) {
    const { summary } = await findTrace(before as RequestId, house);
    after = `${Math.floor(summary.arrivedAtMs)}.${summary.id}`;
  }
  const requests: RequestView[] = [];
  for (let page = 0; page < SCAN_PAGES; page += 1) {
    const rows = overflowed === undefined ? limit - requests.length : SCAN_ROWS;
    const { items, next } = await house.store.traces.list(storeFilter(filter), rows, after);
    for (const summary of items) {
      if (overflowed !== undefined && summary.overflowed !== overflowed) continue;
      if (requests.length === limit) return { requests, more: true };
      requests.push(requestView(summary, house));
    }
    if (next === null) return { requests, more: false };
    after = next;
    if (requests.length === limit) break;
  }
  return { requests, more: true };
}

function storeFilter({
  role,
  project,
  route,
  outcome,
  providerId,
  model,
  errorCode,
  fromMs,
  toMs,
}: Filter): TraceFilter {
  return {
    ...(role ? { role } : {}),
    ...(project ? { project: project as ProjectId } : {}),
    ...(route ? { route } : {}),
    ...(outcome === 'ok' ? { outcome: 'success' } : {}),
    ...(outcome === 'failed' || outcome === 'cancelled' ? { outcome } : {}),
    ...(providerId ? { provider: providerId as ProviderId } : {}),
    ...(model ? { model } : {}),
    ...(errorCode ? { code: errorCode } : {}),
    ...(fromMs === undefined ? {} : { sinceMs: fromMs }),
    ...(toMs === undefined ? {} : { untilMs: toMs }),
  };
}

function fromMemory(filter: Filter, house: House): Output<'requests.list'> {
  const wanted = storeFilter(filter);
  const all = house.requests.list().map(({ summary }) => summary);
  const from = filter.before === undefined ? 0 : all.findIndex(({ id }) => id === filter.before) + 1;
  const rows = all.slice(from).filter((summary) => {
    return (
      (!wanted.role || summary.role === wanted.role) &&
      (!wanted.project || summary.project === wanted.project) &&
      (!wanted.route || summary.route === wanted.route) &&
      (!wanted.outcome || summary.outcome === wanted.outcome) &&
      (!wanted.provider || summary.provider === wanted.provider) &&
      (!wanted.model || summary.model === wanted.model) &&
      (!wanted.code || summary.code === wanted.code) &&
      (wanted.sinceMs === undefined || summary.arrivedAtMs >= wanted.sinceMs) &&
      (wanted.untilMs === undefined || summary.arrivedAtMs < wanted.untilMs) &&
      (filter.overflowed === undefined || summary.overflowed === filter.overflowed)
    );
  });
  return {
    requests: rows.slice(0, filter.limit).map((summary) => requestView(summary, house)),
    more: rows.length > filter.limit,
  };
}
