import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { RequestIds } from '../../main/gateway/request-ids.ts';

describe('ids of requests', () => {
  it('are the time in ten hexadecimal digits and seven random bytes', () => {
    const ids = new RequestIds((count) => new Uint8Array(count).fill(0xab), { wallMs: () => 0x01_2345_6789 + 0.5 });
    expect(ids.next()).toBe('req_0123456789ababababababab');
    expect(ids.next()).toBe('req_0123456789ababababababab');
  });

  it('are in the order of time, and never the same within a millisecond', () => {
    let now = 1_796_011_389_174;
    const ids = new RequestIds(randomBytes, { wallMs: () => now });
    const seen = new Set<string>();
    let before = '';
    for (let ms = 0; ms < 50; ms += 1, now += 1) {
      const some = Array.from({ length: 40 }, () => ids.next());
      for (const id of some) {
        expect(id > before).toBe(true);
        expect(id).toMatch(/^req_[0-9a-f]{24}$/);
        seen.add(id);
      }
      before = [...some].sort().at(-1) ?? '';
    }
    expect(seen.size).toBe(2000);
  });
});
