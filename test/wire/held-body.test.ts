import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HeldBody } from '../../agent/wire/held-body.ts';

describe('a body that is held', () => {
  it('is everything that was lent to it, in one piece where floats may be read, whatever was promised', () => {
    const parts = fc.array(fc.uint8Array({ maxLength: 6000 }), { maxLength: 8 });
    fc.assert(
      fc.property(parts, fc.constantFrom(0, 1, 10_000, 1_000_000), (chunks, promised) => {
        const body = new HeldBody(50_000);
        body.expect(promised);
        const lent = new Uint8Array(6000);
        for (const chunk of chunks) {
          lent.set(chunk);
          expect(body.take(lent.subarray(0, chunk.length))).toBe(true);
          lent.fill(0xee);
        }
        const whole = body.whole();
        expect(whole.equals(Buffer.concat(chunks))).toBe(true);
        expect(whole.byteOffset % 4).toBe(0);
      }),
    );
  });

  it('takes all that it may, and nothing more', () => {
    const body = new HeldBody(10);
    expect(body.take(new Uint8Array(4))).toBe(true);
    expect(body.take(new Uint8Array(7))).toBe(false);
    expect(body.take(new Uint8Array(6))).toBe(true);
    expect(body.take(new Uint8Array(1))).toBe(false);
    expect(body.whole()).toHaveLength(10);
  });
});
