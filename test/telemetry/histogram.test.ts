import { describe, expect, it } from 'vitest';
import { LatencyHistogram } from '../../main/telemetry/histogram.ts';

describe('LatencyHistogram', () => {
  it('knows nothing before the first value', () => {
    expect(new LatencyHistogram().quantile(0.5)).toBeNull();
  });

  it('gives quantiles within 4.4 % over six orders of magnitude', () => {
    for (const ms of [0.3, 1, 7, 42, 999, 60_000, 600_000]) {
      const histogram = new LatencyHistogram();
      histogram.record(ms);
      expect(Math.abs((histogram.quantile(0.5) ?? 0) / ms - 1)).toBeLessThan(0.0443);
    }
  });

  it('takes the value of rank ceil(q x n)', () => {
    const histogram = new LatencyHistogram();
    for (let at = 0; at < 99; at += 1) histogram.record(10);
    histogram.record(1000);
    // Rank 99 of 100 is still 10 ms; only the very last is 1,000 ms.
    expect(histogram.quantile(0.99)).toBeLessThan(11);
    expect(histogram.quantile(1)).toBeGreaterThan(950);
  });

  it('adds up to what one histogram of all values would say', () => {
    const [a, b, all] = [new LatencyHistogram(), new LatencyHistogram(), new LatencyHistogram()];
    for (let at = 1; at <= 200; at += 1) {
      (at % 2 ? a : b).record(at);
      all.record(at);
    }
    a.add(b);
    expect(a.count).toBe(200);
    for (const q of [0.1, 0.5, 0.95, 0.99]) expect(a.quantile(q)).toBe(all.quantile(q));
  });

  it('ignores what is no latency', () => {
    const histogram = new LatencyHistogram();
    histogram.record(Number.NaN);
    histogram.record(-1);
    expect(histogram.count).toBe(0);
  });
});
