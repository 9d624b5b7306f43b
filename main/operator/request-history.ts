import { type FilterToken, matchesAll, parseToken } from '../../preload/contract/request-filter.ts';
import type { Output, ParsedInput, RequestView } from '../../preload/contract.ts';
import type { RequestTrace } from '../dispatch/trace.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { ProjectId, ProviderId, RequestId } from '../domain/ids.ts';
import type { RequestSummary } from '../domain/observation.ts';
import { isRoleId } from '../domain/roles.ts';
import type { TraceFilter } from '../store/ports.ts';
import type { House } from './house.ts';
import { requestView } from './request-views.ts';

type Filter = ParsedInput<'requests.list'>;

/** Rows read from disk at a time, and how often, for a filter that the store has no index for. */
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
  const nothing = { requests: [], more: false, lookedTo: null };
  const tokens = tokensOf(filter);
  const wanted = withTokens(storeFilter(filter), tokens, house);
  // Outcomes of running requests are never stored.
  if (wanted === null || filter.outcome === 'queued' || filter.outcome === 'running') return nothing;
  const named = before === undefined ? await namedById(tokens, house) : null;
  if (named) return matchesAll(named, tokens) ? { ...nothing, requests: [named] } : nothing;
  let after: string | undefined;
  if (before !== undefined) {
    const { summary } = await findTrace(before as RequestId, house);
    after = `${Math.floor(summary.arrivedAtMs)}.${summary.id}`;
  }
  const requests: RequestView[] = [];
  let last: RequestSummary | null = null;
  const page = (more: boolean) => ({
    requests,
    more,
    lookedTo: more && last ? { id: last.id, atMs: Math.round(last.arrivedAtMs) } : null,
  });
  const scans = overflowed !== undefined || tokens.length > 0;
  for (let read = 0; read < SCAN_PAGES; read += 1) {
    const rows = scans ? SCAN_ROWS : limit - requests.length;
    const { items, next } = await house.store.traces.list(wanted, rows, after);
    for (const summary of items) {
      // The page is full, and this one is for the next: it was not looked at.
      if (requests.length === limit) return page(true);
      last = summary;
      if (overflowed !== undefined && summary.overflowed !== overflowed) continue;
      const view = requestView(summary, house);
      if (matchesAll(view, tokens)) requests.push(view);
    }
    if (next === null) return page(false);
    after = next;
    if (requests.length === limit) break;
  }
  return page(true);
}

function tokensOf({ matching }: Filter): readonly FilterToken[] {
  return (matching ?? '').split('\n').flatMap((line) => parseToken(line) ?? []);
}

/** The request whose whole id is among the words: no other can match. */
async function namedById(tokens: readonly FilterToken[], house: House): Promise<RequestView | null> {
  const id = tokens.find(({ field, value }) => (field === 'id' || field === null) && value.startsWith('req_'))?.value;
  if (id === undefined) return null;
  try {
    return requestView((await findTrace(id as RequestId, house)).summary, house);
  } catch (error) {
    // A piece of an id, perhaps.
    if (error instanceof SwitchyardError && error.code === 'request_not_found') return null;
    throw error;
  }
}

/** What of the words an index of the store knows, so that few rows are read for a rare match; null: nothing can match. */
function withTokens(filter: TraceFilter, tokens: readonly FilterToken[], house: House): TraceFilter | null {
  const found: { -readonly [Name in keyof TraceFilter]: TraceFilter[Name] } = { ...filter };
  for (const { field, value } of tokens) {
    if (field === 'role') {
      if (!isRoleId(value)) return null;
      found.role = value;
    } else if (field === 'outcome') {
      if (value !== 'ok' && value !== 'failed' && value !== 'cancelled') return null;
      found.outcome = value === 'ok' ? 'success' : value;
    } else if (field === 'error') found.code = value;
    else if (field === 'route' && (value === 'local' || value === 'cloud')) found.route = value;
    else if (field === 'project') {
      const named = house.store.access.projects().filter(({ name }) => name.toLowerCase().includes(value));
      if (named.length === 1 && named[0]) found.project = named[0].id;
    }
  }
  return found;
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
  const tokens = tokensOf(filter);
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
      (filter.overflowed === undefined || summary.overflowed === filter.overflowed) &&
      (tokens.length === 0 || matchesAll(requestView(summary, house), tokens))
    );
  });
  const more = rows.length > filter.limit;
  const requests = rows.slice(0, filter.limit).map((summary) => requestView(summary, house));
  const last = requests.at(-1);
  return { requests, more, lookedTo: more && last ? { id: last.id, atMs: last.atMs } : null };
}
