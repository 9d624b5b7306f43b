import { expect, it } from 'vitest';
import type { LedgerRange } from '../../main/gate/ledger.ts';
import { StoreWriter } from '../../main/gate/store-writer.ts';
import { MemoryGateStore } from './memory-store.ts';
import { SimClock } from './sim-clock.ts';

const range = (from: number): LedgerRange =>
  ({ request: 'r', space: 'embedding-00000001', provider: 'p', from, to: from, atMs: 0 }) as unknown as LedgerRange;

it('ranges that the store refused are written when it is back, in their order and once', async () => {
  const clock = new SimClock();
  const store = new MemoryGateStore();
  const states: boolean[] = [];
  const writer = new StoreWriter(store, clock, (failing) => states.push(failing));
  store.fail = true;
  writer.record(range(1));
  writer.record(range(2));
  await clock.advance(1500);
  expect(states).toEqual([true]);
  writer.record(range(3));
  store.fail = false;
  await clock.advance(6000);
  expect(store.ranges.map(({ from }) => from)).toEqual([1, 2, 3]);
  expect(states).toEqual([true, false]);
});

it('a newer finding replaces one that waits; a stop writes what is left', async () => {
  const clock = new SimClock();
  const store = new MemoryGateStore();
  const writer = new StoreWriter(store, clock, () => {});
  const written: string[] = [];
  const put = (what: string) => async (): Promise<void> => {
    await store.appendRanges([]);
    written.push(what);
  };
  store.fail = true;
  writer.write('a', put('old'));
  await clock.settle();
  writer.write('a', put('new'));
  writer.write('b', put('other'));
  store.fail = false;
  await writer.stop();
  expect(written).toEqual(['new', 'other']);
});
