import { describe, expect, it } from 'vitest';
import { SwitchyardError } from '../../main/domain/errors.ts';
import type { EventRecord } from '../../main/domain/events.ts';
import { RecordWriter } from '../../main/store/record-writer.ts';
import type { Batch, BatchItem } from '../../main/store/worker-api.ts';
import { DAY_MS, ManualClock, NOON, summary, usageEntry } from './support.ts';

const event = (id: string): EventRecord => ({
  id,
  atMs: NOON,
  severity: 'info',
  source: 'app',
  code: 'c',
  sentence: 's',
  needsPerson: false,
});

/** A writer and the batches its database took; `down` makes it refuse. */
function bench() {
  const clock = new ManualClock();
  const tried: Batch[] = [];
  const taken: Batch[] = [];
  const state = { down: false };
  const writer = new RecordWriter({
    clock,
    write: async (batch) => {
      tried.push(batch);
      if (state.down) throw new SwitchyardError('store_unavailable');
      taken.push(batch);
      return 0;
    },
  });
  const items = (): BatchItem[] => taken.flatMap((batch) => [...batch.items]);
  return { clock, writer, tried, taken, items, state };
}

/** Lets everything that is already resolved go on. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
};

describe('the record writer', () => {
  it('gathers for 200 ms and writes in the order of recording', async () => {
    const { clock, writer, taken, items } = bench();
    writer.event(event('1'));
    writer.trace({ summary: summary('r1'), detail: { why: 'free' } });
    writer.event(event('2'));
    clock.advance(199);
    await settle();
    expect(taken).toEqual([]);
    clock.advance(1);
    await settle();
    expect(taken).toHaveLength(1);
    expect(items().map((item) => (item.kind === 'event' ? item.event.id : item.kind))).toEqual(['1', 'trace', '2']);
    expect(writer.waiting).toBe(0);
  });

  it('sums usage by day, key, role, model and route', async () => {
    const { writer, items } = bench();
    for (let at = 0; at < 1_000; at += 1) writer.use(usageEntry({ exact: at % 2 === 0, success: at > 9 }));
    // Costs are told apart, of a call that has no request as well.
    for (let at = 0; at < 1_500; at += 1) writer.spend({ ...usageEntry(), costUsd: 0.000_000_3 });
    writer.use(usageEntry({ key: null, model: null, route: null }));
    writer.use(usageEntry({ atMs: NOON + DAY_MS }));
    await writer.flush();
    const sums = items().flatMap((item) => (item.kind === 'usage' ? [item.sums] : []));
    expect(sums).toHaveLength(3);
    expect(sums[0]).toMatchObject({
      day: '2026-07-15',
      requests: 1_000,
      failures: 10,
      promptTokens: 10_000,
      completionTokens: 5_000,
      inexact: 500,
      costNanoUsd: 450_000,
    });
    expect(sums[1]).toMatchObject({ key: '', model: '', route: '', requests: 1 });
    expect(sums[2]).toMatchObject({ day: '2026-07-16' });
  });

  it('keeps only the newest state of the budget', async () => {
    const { clock, writer, items } = bench();
    writer.budget({ spent: 1 }, NOON);
    writer.budget({ spent: 2 }, NOON + 1);
    clock.advance(200);
    await settle();
    expect(items()).toEqual([{ kind: 'budget', body: '{"spent":2}', atMs: NOON + 1 }]);
  });

  it('sends a batch again unchanged after an outage, then what came meanwhile', async () => {
    const { clock, writer, tried, items, state } = bench();
    state.down = true;
    writer.use(usageEntry());
    clock.advance(200);
    await settle();
    writer.use(usageEntry());
    writer.event(event('late'));
    clock.advance(1_000);
    await settle();
    expect(tried).toHaveLength(2);
    expect(tried[1]).toBe(tried[0]);
    state.down = false;
    clock.advance(1_000);
    await settle();
    const counted = items().flatMap((item) => (item.kind === 'usage' ? [item.sums.requests] : []));
    expect(counted).toEqual([1, 1]);
    expect(tried.map(({ sequence }) => sequence)).toEqual([1, 1, 1, 2]);
    expect(writer.waiting).toBe(0);
  });

  it('adds to one sum through an outage, however often it tries', async () => {
    const { clock, writer, items, state } = bench();
    state.down = true;
    for (let second = 0; second < 50; second += 1) {
      writer.use(usageEntry());
      clock.advance(1_000);
      await settle();
    }
    // The batch that was tried, and the sum of everything since.
    expect(writer.waiting).toBe(2);
    state.down = false;
    await writer.flush();
    const counted = items().flatMap((item) => (item.kind === 'usage' ? [item.sums.requests] : []));
    expect(counted).toEqual([1, 49]);
  });

  it('holds a bounded number through a long outage and counts the rest', async () => {
    const { clock, writer, items, state } = bench();
    state.down = true;
    for (let at = 0; at < 20_100; at += 1) writer.event(event(String(at)));
    for (let at = 0; at < 10_050; at += 1) writer.use(usageEntry({ model: `m${at}` }));
    clock.advance(200);
    await settle();
    expect(writer.dropped()).toMatchObject({ event: 100, usage: 50, trace: 0 });
    state.down = false;
    await writer.flush();
    expect(items().filter(({ kind }) => kind === 'event')).toHaveLength(20_000);
    expect(items().filter(({ kind }) => kind === 'usage')).toHaveLength(10_000);
  });

  it('replaces an explanation that is too long, and keeps the summary', async () => {
    const { writer, items } = bench();
    writer.trace({ summary: summary('r1'), detail: { filler: 'x'.repeat(70_000) } });
    await writer.flush();
    expect(items()).toEqual([
      { kind: 'trace', row: { summary: JSON.stringify(summary('r1')), detail: '{"omitted":true}' } },
    ]);
  });
});
