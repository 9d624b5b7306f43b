import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WriteBuffer } from '../../main/store/write-buffer.ts';

const BOUNDS = { a: { items: 5, bytes: 100 }, b: { items: 3, bytes: 1_000 } } as const;
type Kind = keyof typeof BOUNDS;
interface Item {
  readonly kind: Kind;
  readonly number: number;
  readonly bytes: number;
}

describe('the write buffer', () => {
  it('loses nothing below its bounds, counts what is above, and keeps the order', () => {
    const push = fc.record({
      do: fc.constant('push' as const),
      kind: fc.constantFrom<Kind>('a', 'b'),
      bytes: fc.integer({ min: 0, max: 60 }),
    });
    const send = fc.record({
      do: fc.constant('send' as const),
      max: fc.integer({ min: 1, max: 4 }),
      works: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(fc.oneof(push, send), { maxLength: 80 }), (steps) => {
        const buffer = new WriteBuffer<Kind, Item>(BOUNDS);
        // The model: what is inside, what was written, what was turned away.
        let inside: Item[] = [];
        const written: Item[] = [];
        const accepted: Item[] = [];
        const turnedAway = { a: 0, b: 0 };
        let number = 0;
        for (const step of steps) {
          if (step.do === 'push') {
            number += 1;
            const item = { kind: step.kind, number, bytes: step.bytes };
            const held = inside.filter(({ kind }) => kind === step.kind);
            const bytes = held.reduce((sum, each) => sum + each.bytes, 0);
            const fits = held.length + 1 <= BOUNDS[step.kind].items && bytes + step.bytes <= BOUNDS[step.kind].bytes;
            expect(buffer.push(step.kind, item, step.bytes)).toBe(fits);
            if (fits) {
              inside.push(item);
              accepted.push(item);
            } else turnedAway[step.kind] += 1;
          } else {
            const batch = buffer.batch(step.max);
            if (batch && step.works) {
              written.push(...batch.items);
              inside = inside.slice(batch.items.length);
              buffer.settle();
            }
          }
          expect(buffer.size).toBe(inside.length);
        }
        for (let batch = buffer.batch(4); batch; batch = buffer.batch(4)) {
          written.push(...batch.items);
          buffer.settle();
        }
        expect(written).toEqual(accepted);
        expect({ a: buffer.dropped('a'), b: buffer.dropped('b') }).toEqual(turnedAway);
      }),
      { numRuns: 500 },
    );
  });

  it('sends the very same batch under the same number until it is settled', () => {
    const buffer = new WriteBuffer<Kind, number>(BOUNDS);
    buffer.push('a', 1, 1);
    const first = buffer.batch(10);
    buffer.push('a', 2, 1);
    expect(buffer.batch(10)).toBe(first);
    expect(first).toEqual({ sequence: 1, items: [1] });
    buffer.settle();
    expect(buffer.batch(10)).toEqual({ sequence: 2, items: [2] });
  });

  it('does not let a flood of one kind push out another', () => {
    const buffer = new WriteBuffer<Kind, string>(BOUNDS);
    for (let at = 0; at < 1_000; at += 1) buffer.push('a', 'flood', 1);
    expect(buffer.push('b', 'kept', 1)).toBe(true);
    expect(buffer.dropped('a')).toBe(995);
    expect(buffer.dropped('b')).toBe(0);
  });
});
