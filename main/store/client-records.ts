import { SwitchyardError } from '../domain/errors.ts';
import type { EventRecord } from '../domain/events.ts';
import type { RequestSummary } from '../domain/observation.ts';
import type { GateStore } from '../gate/store-port.ts';
import type { IdempotencyStore } from '../gateway/ports.ts';
import type { StoreCore } from './client.ts';
import type {
  BudgetStateStore,
  EventStore,
  Json,
  Page,
  SecretStore,
  SeriesStore,
  TraceStore,
  UsageStore,
} from './ports.ts';
import type { RowPage } from './repositories/records.ts';
import { type Cursor, parseCursor } from './repositories/statements.ts';
import { roleDocument } from './snapshot.ts';

const MAX_PAGE = 1000;

const pageLimit = (limit: number): number => Math.min(MAX_PAGE, Math.max(1, Math.floor(limit)));

function cursorOf(after: string | undefined): Cursor | null {
  if (after === undefined) return null;
  const cursor = parseCursor(after);
  if (!cursor) throw new SwitchyardError('invalid_request', 'The page mark is not one that a list gave.');
  return cursor;
}

function pageOf<Item>({ items, next }: RowPage): Page<Item> {
  return { items: items.map((item) => JSON.parse(item) as Item), next };
}

export function createTraceStore({ writer, callAfterRecords }: StoreCore): TraceStore {
  return {
    record: (trace) => writer.trace(trace),
    get: async (id) => {
      const found = await callAfterRecords('trace', id);
      if (!found) return null;
      return { summary: JSON.parse(found.summary) as RequestSummary, detail: JSON.parse(found.detail) as Json };
    },
    list: async (filter, limit, after) =>
      pageOf<RequestSummary>(await callAfterRecords('traces', filter, pageLimit(limit), cursorOf(after))),
  };
}

export function createEventStore({ writer, callAfterRecords }: StoreCore): EventStore {
  return {
    record: (event) => writer.event(event),
    list: async (filter, limit, after) =>
      pageOf<EventRecord>(await callAfterRecords('events', filter, pageLimit(limit), cursorOf(after))),
  };
}

export function createUsageStore({ writer, callAfterRecords }: StoreCore): UsageStore {
  return {
    record: (entry) => writer.use(entry),
    spent: (cost) => writer.spend(cost),
    query: ({ fromDay, toDay, project, key }) =>
      callAfterRecords('usage', { fromDay, toDay, project: project ?? null, key: key ?? null }),
  };
}

export function createSeriesStore({ writer, callAfterRecords }: StoreCore): SeriesStore {
  return {
    record: (step) => writer.step(step),
    load: async (range, sinceMs) => {
      const steps = await callAfterRecords('steps', range, sinceMs);
      return steps.map(({ atMs, values }) => ({
        range,
        atMs,
        values: new Map(Object.entries(JSON.parse(values) as Record<string, number>)),
      }));
    },
  };
}

export function createBudgetStateStore({ clock, snapshot, writer }: StoreCore): BudgetStateStore {
  return {
    load: () => snapshot.budget,
    save: (state) => {
      snapshot.budget = state;
      writer.budget(state, clock.wallMs());
    },
  };
}

export function createGateStore({ clock, snapshot, call, change, touchLastGood }: StoreCore): GateStore {
  const saved = async (answer: Promise<void>): Promise<void> => {
    await answer;
    touchLastGood();
  };
  return {
    load: () => call('loadGate'),
    saveSpace: async (space, role = null) => {
      if (role === null) return saved(call('saveSpace', space));
      const document = roleDocument(space.facts.role);
      const body = JSON.stringify(role.settings);
      await change(
        'roles',
        (version) => snapshot.putDocument(document, version, body),
        'saveSpaceWith',
        space,
        document,
        body,
        role.ifVersion,
        clock.wallMs(),
      );
    },
    saveVerdict: (verdict) => saved(call('saveVerdict', verdict)),
    saveFirst: (first) => saved(call('saveFirst', first)),
    appendRanges: (ranges) => call('appendRanges', ranges),
    rangesOfProvider: (provider, sinceMs, limit) => call('rangesOfProvider', provider, sinceMs, limit),
    rangesOfRequest: (request) => call('rangesOfRequest', request),
    prune: (beforeMs) => call('pruneGate', beforeMs),
    history: (provider, space, sinceMs) => call('gateHistory', provider, space, sinceMs),
  };
}

export function createIdempotencyStore({ clock, call }: StoreCore): IdempotencyStore {
  return {
    claim: (scope, bodySha256) => call('claim', scope, bodySha256, clock.wallMs()),
    complete: (scope, answer) => call('completeClaim', scope, answer),
    forget: (scope) => call('forgetClaim', scope),
  };
}

export function createSecretStore({ call }: StoreCore): SecretStore {
  return {
    get: (name) => call('getSecret', name),
    put: (name, value) => call('putSecret', name, value),
    remove: (name) => call('removeSecret', name),
  };
}
