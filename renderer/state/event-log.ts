import type { EventView } from '../../preload/contract.ts';
import type { I18n } from '../i18n/i18n.tsx';

/** Most events that a page holds: what a person may still scroll through. */
export const MOST_EVENTS = 100_000;

const before = (a: EventView, b: EventView): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.id < b.id);

/**
 * Two logs as one, by time and without doubles; of a double the newer log's row stays. Costs what the shorter log costs and one copy:
 * updates come twice a second to a log of 100,000 rows.
 */
export function mergeEvents(
  older: readonly EventView[],
  newer: readonly EventView[],
  most = MOST_EVENTS,
): readonly EventView[] {
  const [low, high] = [ascending(older), ascending(newer)];
  const first = high[0];
  if (!first) return low;
  const overlap = firstNotBefore(low, first);
  const merged = low.slice(0, overlap);
  let at = overlap;
  for (const event of high) {
    for (let next = low[at]; next && before(next, event); next = low[++at]) merged.push(next);
    if (low[at]?.id === event.id) at += 1;
    merged.push(event);
  }
  for (; at < low.length; at += 1) merged.push(low[at] as EventView);
  return merged.length > most ? merged.slice(-most) : merged;
}

function ascending(events: readonly EventView[]): readonly EventView[] {
  for (let at = 1; at < events.length; at += 1) {
    if (!before(events[at - 1] as EventView, events[at] as EventView)) {
      const unique = new Map(events.map((event) => [event.id, event]));
      return [...unique.values()].sort((a, b) => (before(a, b) ? -1 : 1));
    }
  }
  return events;
}

/** Index of an event in an ascending log; null when it is not there. */
export function placeOf(events: readonly EventView[], event: EventView): number | null {
  const place = firstNotBefore(events, event);
  return events[place]?.id === event.id ? place : null;
}

/** How many events of an ascending log came after one that need not be in it. */
export function countAfter(events: readonly EventView[], event: EventView): number {
  const place = firstNotBefore(events, event);
  return events.length - place - (events[place]?.id === event.id ? 1 : 0);
}

/** Index of the first event that is not before `event`; the log is ascending. */
function firstNotBefore(events: readonly EventView[], event: EventView): number {
  let [from, to] = [0, events.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (before(events[middle] as EventView, event)) from = middle + 1;
    else to = middle;
  }
  return from;
}

export type Least = 'info' | 'warn' | 'error';
const RANK: Readonly<Record<EventView['severity'], number>> = { info: 0, warn: 1, error: 2 };
/** How an event's sentence reads in the console's language. */
export type Telling = Pick<I18n, 'sayBeside'>;
/** What a search looks at, made once per event and language. */
const haysOf = new WeakMap<Telling, WeakMap<EventView, string>>();
const AS_STORED: Telling = { sayBeside: (sentence) => sentence };

function hayOf(event: EventView, telling: Telling): string {
  const hays = haysOf.get(telling) ?? new WeakMap<EventView, string>();
  haysOf.set(telling, hays);
  let hay = hays.get(event);
  if (hay === undefined) {
    hay =
      `${telling.sayBeside(event.sentence, event.says)} ${event.code} ${event.source} ${event.requestId ?? ''}`.toLowerCase();
    hays.set(event, hay);
  }
  return hay;
}

/** Whom events are about, by the ids that they carry: shown in front of a sentence that says "it". */
export interface Subjects {
  readonly providers: ReadonlyMap<string, string>;
  readonly machines: ReadonlyMap<string, string>;
}
const NOBODY: Subjects = { providers: new Map(), machines: new Map() };

/** Events of at least a severity that contain a text, in any case: in the sentence, or in whom it is about. */
export function filterEvents(
  events: readonly EventView[],
  least: Least,
  search: string,
  telling: Telling = AS_STORED,
  subjects: Subjects = NOBODY,
): readonly EventView[] {
  const wanted = search.trim().toLowerCase();
  if (least === 'info' && wanted === '') return events;
  const providers = lowered(subjects.providers);
  const named = new Set([...matching(providers, wanted), ...matching(lowered(subjects.machines), wanted)]);
  // From the end of the subject over into the sentence, as both stand there.
  const spans = wanted.includes(': ');
  const matches = (event: EventView): boolean => {
    if (event.providerId !== null && named.has(event.providerId)) return true;
    if (event.nodeId !== null && named.has(event.nodeId)) return true;
    const hay = hayOf(event, telling);
    if (hay.includes(wanted)) return true;
    return spans && `${providers.get(event.providerId ?? '') ?? ''}: ${hay}`.includes(wanted);
  };
  return events.filter((event) => RANK[event.severity] >= RANK[least] && (wanted === '' || matches(event)));
}

const lowered = (names: ReadonlyMap<string, string>) =>
  new Map([...names].map(([id, name]) => [id, name.toLowerCase()] as const));

const matching = (names: ReadonlyMap<string, string>, wanted: string): readonly string[] =>
  [...names].filter(([, name]) => name.includes(wanted)).map(([id]) => id);
