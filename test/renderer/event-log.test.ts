import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EventView } from '../../preload/contract.ts';
import { countAfter, filterEvents, mergeEvents, placeOf } from '../../renderer/state/event-log.ts';

const event = (atMs: number, id = `e${atMs}`, over: Partial<EventView> = {}): EventView => ({
  id,
  atMs,
  severity: 'info',
  source: 'fleet',
  code: 'node_paired',
  sentence: 'Paired.',
  needsPerson: false,
  requestId: null,
  nodeId: null,
  providerId: null,
  role: null,
  ...over,
});
const ids = (events: readonly EventView[]) => events.map(({ id }) => id);

describe('a log of events', () => {
  it('takes a page of older ones, newest first, and live ones that overlap', () => {
    const page = [event(3), event(2), event(1)];
    const live = [event(3), event(4)];
    expect(ids(mergeEvents(page, live))).toEqual(['e1', 'e2', 'e3', 'e4']);
    expect(ids(mergeEvents(live, page))).toEqual(['e1', 'e2', 'e3', 'e4']);
  });

  it('orders events of one moment by their id, and keeps the newest of too many', () => {
    expect(ids(mergeEvents([event(1, 'b')], [event(1, 'a'), event(2, 'c')], 2))).toEqual(['b', 'c']);
  });

  it('is the same as sorting all of them, whatever comes', () => {
    const log = fc.array(
      fc.integer({ min: 0, max: 30 }).map((at) => event(at)),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(log, log, (a, b) => {
        const sorted = [...new Set([...a, ...b].map(({ atMs }) => atMs))].sort((x, y) => x - y);
        expect(mergeEvents(a, b).map(({ atMs }) => atMs)).toEqual(sorted);
      }),
    );
  });
});

describe('a place in a log', () => {
  const log = [event(1), event(2, 'a'), event(2, 'b'), event(4)];

  it('is found by moment and id, also after older rows came before it', () => {
    expect(placeOf(log, event(2, 'b'))).toBe(2);
    expect(placeOf([event(0), ...log], event(2, 'b'))).toBe(3);
    expect(placeOf(log, event(3))).toBeNull();
    expect(placeOf([], event(3))).toBeNull();
  });

  it('tells what is newer, also when the row itself is filtered away', () => {
    expect(countAfter(log, event(2, 'a'))).toBe(2);
    expect(countAfter(log, event(3))).toBe(1);
    expect(countAfter(log, event(4))).toBe(0);
    expect(countAfter([event(0), ...log], event(4))).toBe(0);
  });
});

describe('a filter of events', () => {
  it('asks for a severity at least, and for a text in any case', () => {
    const all = [event(1), event(2, 'x', { severity: 'warn', sentence: 'OpenRouter limited the account.' })];
    expect(ids(filterEvents(all, 'warn', ''))).toEqual(['x']);
    expect(ids(filterEvents(all, 'info', ' openROUTER '))).toEqual(['x']);
    expect(ids(filterEvents(all, 'error', 'openrouter'))).toEqual([]);
    expect(filterEvents(all, 'info', '')).toBe(all);
  });

  it('looks at whom an event is about too, and over into its sentence, as both stand in the row', () => {
    const all = [
      event(1, 'a', { providerId: 'p1', sentence: 'Was checked: fits.' }),
      event(2, 'b', { providerId: 'p2', sentence: 'Was checked: fits.' }),
      event(3, 'c', { nodeId: 'n1', sentence: 'It was lost.' }),
    ];
    const subjects = {
      providers: new Map([
        ['p1', 'Qwen3-Embedding on attic'],
        ['p2', 'bge-m3 on lab-box'],
      ]),
      machines: new Map([['n1', 'Garage']]),
    };
    const found = (search: string) => ids(filterEvents(all, 'info', search, undefined, subjects));
    expect(found('qwen3')).toEqual(['a']);
    expect(found('LAB-box')).toEqual(['b']);
    expect(found('garage')).toEqual(['c']);
    expect(found('attic: was checked')).toEqual(['a']);
    expect(found('checked')).toEqual(['a', 'b']);
    expect(found('attic checked')).toEqual([]);
  });
});
