import { describe, expect, it } from 'vitest';
import { shownRates } from '../../renderer/format/rates.ts';

const shown = (requestsPerSecond: number, localPerSecond: number, cloudPerSecond: number) => {
  const { total, local, cloud, neither } = shownRates({ requestsPerSecond, localPerSecond, cloudPerSecond });
  return [total, local, cloud, neither];
};

describe('the rates that Overview shows', () => {
  it('name what went nowhere, so that the parts are the whole', () => {
    expect(shown(0.7, 0.6, 0)).toEqual([0.7, 0.6, 0, 0.1]);
    expect(shown(0.7, 0.6, 0.1)).toEqual([0.7, 0.6, 0.1, 0]);
    expect(shown(0, 0, 0)).toEqual([0, 0, 0, 0]);
  });

  it('make of rounding no request that went nowhere, and of parts no other sum', () => {
    // 0.24 + 0.24 = 0.48: by itself "0.5 in all, 0.2 and 0.2".
    expect(shown(0.48, 0.24, 0.24)).toEqual([0.4, 0.2, 0.2, 0]);
    expect(shown(0.5, 0.25, 0.25)).toEqual([0.6, 0.3, 0.3, 0]);
    for (let seed = 1; seed <= 200; seed += 1) {
      const [local, cloud, none] = [(seed * 37) % 101, (seed * 53) % 97, (seed * 11) % 13].map((n) => n / 30);
      const parts = shown((local ?? 0) + (cloud ?? 0) + (none ?? 0), local ?? 0, cloud ?? 0);
      const [total, ...rest] = parts.map((value) => Math.round(value * 10));
      expect(rest.reduce((sum, value) => sum + value, 0)).toBe(total);
      expect(Math.abs((total ?? 0) / 10 - ((local ?? 0) + (cloud ?? 0) + (none ?? 0)))).toBeLessThanOrEqual(
        0.15 + 1e-9,
      );
    }
  });
});
