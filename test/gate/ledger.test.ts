import { expect, it } from 'vitest';
import { countRows, joinRanges, LEDGER_BUFFER_LIMIT, LedgerBuffer, type LedgerRange } from '../../main/gate/ledger.ts';

function range(request: string, from: number, to: number, atMs = 0, provider = 'p'): LedgerRange {
  return { request, from, to, atMs, provider, space: 'embedding-00000001' } as unknown as LedgerRange;
}

it('chunks of one request by one provider read as one range', () => {
  const joined = joinRanges([range('r', 8, 15, 3), range('r', 0, 7, 5), range('r', 17, 20, 4)]);
  expect(joined.map(({ from, to, atMs }) => [from, to, atMs])).toEqual([
    [0, 15, 3],
    [17, 20, 4],
  ]);
  // 0..15 and 17..20.
  expect(countRows(joined)).toBe(16 + 4);
});

it('an answer twice (a hedged chunk) is not counted twice', () => {
  expect(countRows(joinRanges([range('r', 0, 9), range('r', 5, 9)]))).toBe(10);
});

it('requests and providers stay apart', () => {
  expect(joinRanges([range('a', 0, 3), range('b', 4, 7), range('a', 4, 7, 0, 'q')])).toHaveLength(3);
});

it('what waits for the store is bounded, newest kept, and the loss is counted', () => {
  const buffer = new LedgerBuffer();
  for (let i = 0; i < LEDGER_BUFFER_LIMIT + 10; i++) buffer.add(range('r', i, i));
  expect([buffer.size, buffer.lost]).toEqual([LEDGER_BUFFER_LIMIT, 10]);
  const taken = buffer.take();
  expect(taken[0]?.from).toBe(10);
  buffer.add(range('new', 0, 0));
  buffer.putBack(taken);
  expect([buffer.size, buffer.lost]).toEqual([LEDGER_BUFFER_LIMIT, 11]);
  expect(buffer.take().at(-1)?.request).toBe('new');
});
