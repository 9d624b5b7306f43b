import { describe, expect, it } from 'vitest';
import { TimeSeries } from '../../main/telemetry/time-series.ts';

const T0 = 1_800_000_000_000; // a multiple of every step

function values(series: TimeSeries, id: string, nowMs: number, range: '5m' | '1h' | '24h' = '5m') {
  const slice = series.read(range, nowMs);
  const line = slice.series.get(id) ?? [];
  return new Map(slice.atMs.map((at, index) => [at - T0, line[index] ?? null]));
}

describe('TimeSeries', () => {
  it('adds counters up inside a step, keeps the highest of a gauge and the latest of a level', () => {
    const series = new TimeSeries();
    series.advance(T0);
    for (const value of [1, 3, 2]) {
      series.fold('sum', value, 'sum');
      series.fold('max', value, 'max');
      series.fold('last', value, 'last');
    }
    series.advance(T0 + 1000);
    expect(values(series, 'sum', T0 + 1000).get(0)).toBe(6);
    expect(values(series, 'max', T0 + 1000).get(0)).toBe(3);
    expect(values(series, 'last', T0 + 1000).get(0)).toBe(2);
  });

  it('leaves a gap where nothing was sampled, and where the machine slept', () => {
    const series = new TimeSeries();
    series.advance(T0);
    series.fold('x', 5, 'last');
    series.advance(T0 + 1000);
    series.advance(T0 + 4000);
    series.fold('x', 7, 'last');
    series.advance(T0 + 5000);
    const line = values(series, 'x', T0 + 5000);
    expect([0, 1000, 2000, 3000, 4000].map((at) => line.get(at))).toEqual([5, null, null, null, 7]);
  });

  it('forgets points older than the range even after a gap longer than it', () => {
    const series = new TimeSeries();
    series.advance(T0);
    series.fold('x', 5, 'last');
    series.advance(T0 + 1000);
    series.advance(T0 + 3_600_000);
    expect([...values(series, 'x', T0 + 3_600_000).values()].every((value) => value === null)).toBe(true);
  });

  it('unknown is not zero: null values are not sampled', () => {
    const series = new TimeSeries();
    series.advance(T0);
    series.fold('gpu', null, 'last');
    series.fold('gpu', Number.NaN, 'last');
    series.advance(T0 + 1000);
    expect(values(series, 'gpu', T0 + 1000).get(0) ?? null).toBeNull();
  });

  it('gives percentiles per step, the 99th only from 100 values on', () => {
    const series = new TimeSeries();
    series.advance(T0);
    for (let at = 0; at < 99; at += 1) series.latency('latency.rlm', 10);
    series.advance(T0 + 1000);
    expect(values(series, 'latency.rlm.p50', T0 + 1000).get(0)).toBeCloseTo(10, -0.5);
    expect(values(series, 'latency.rlm.p99', T0 + 1000).get(0) ?? null).toBeNull();
    // The one-hour step has not ended yet; one more value and it holds a hundred.
    series.latency('latency.rlm', 10);
    series.advance(T0 + 10_000);
    expect(values(series, 'latency.rlm.p99', T0 + 10_000, '1h').get(0)).toBeCloseTo(10, -0.5);
  });

  it('a restored step is drawn where it was', () => {
    const before = new TimeSeries();
    before.advance(T0);
    before.fold('x', 5, 'last');
    const closed = before.advance(T0 + 300_000).find(({ range }) => range === '24h');
    const after = new TimeSeries();
    if (closed) after.restore(closed);
    after.advance(T0 + 600_000);
    expect(values(after, 'x', T0 + 600_000, '24h').get(0)).toBe(5);
  });

  it('every range stays within 400 points', () => {
    const series = new TimeSeries();
    for (const range of ['5m', '1h', '24h'] as const)
      expect(series.read(range, T0).atMs.length).toBeLessThanOrEqual(400);
  });
});
