import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ChunkQueue } from '../../agent/wire/chunks.ts';

it('gives back what was put in, in order, whatever the sizes and turns', () => {
  const step = fc.oneof(fc.uint8Array({ maxLength: 50_000, minLength: 0 }), fc.constant('shift' as const));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const queue = new ChunkQueue();
      const [put, got]: [Uint8Array[], Uint8Array[]] = [[], []];
      const size = (list: Uint8Array[]): number => list.reduce((sum, { length }) => sum + length, 0);
      for (const current of steps) {
        if (current === 'shift') {
          const chunk = queue.shift();
          if (chunk !== null) got.push(Uint8Array.from(chunk));
        } else {
          queue.push(current);
          put.push(current);
        }
        expect(queue.bytes).toBe(size(put) - size(got));
      }
      for (let chunk = queue.shift(); chunk !== null; chunk = queue.shift()) got.push(Uint8Array.from(chunk));
      expect(Buffer.concat(got).equals(Buffer.concat(put))).toBe(true);
    }),
  );
});

it('does not keep a large buffer alive for a small chunk', () => {
  const queue = new ChunkQueue();
  const large = new Uint8Array(64 * 1024);
  queue.push(large.subarray(0, 10));
  expect(queue.shift()?.buffer).not.toBe(large.buffer);
});
