import { describe, expect, it } from 'vitest';
import { mean, simulate } from './simulation.ts';

const HOUR = 3_600_000;

describe('against a hidden limit', () => {
  it.each([
    { limit: 10, creditUsd: 30, seed: 1 },
    { limit: 10, creditUsd: 30, seed: 2 },
    { limit: 50, creditUsd: 250, seed: 3 },
    { limit: 50, creditUsd: 250, seed: 4 },
    { limit: 13, creditUsd: 250, seed: 5 },
  ])(
    '$limit in flight with $creditUsd USD: at least 90 % used after warm-up, under 1 % refused',
    ({ limit, creditUsd, seed }) => {
      const account = { limitAt: () => limit, rpm: null, latencyMs: 2000, cancelled: 0 };
      const run = simulate(account, { creditUsd, rpm: null }, HOUR, seed);
      const used = mean(run.usedBySecond.slice(600)) / limit;
      expect(used).toBeGreaterThanOrEqual(0.9);
      expect(run.refused / run.started).toBeLessThan(0.01);
      expect(Math.max(...run.held)).toBeLessThanOrEqual(64);
    },
  );

  it('one cut for the burst of refusals at the start', () => {
    // 16 start, 10 are carried: six refusals of one burst, then nothing over 8 until the climb has passed 10.
    const account = { limitAt: () => 10, rpm: null, latencyMs: 2000, cancelled: 0 };
    const run = simulate(account, { creditUsd: 30, rpm: null }, 40_000);
    expect(run.refused).toBe(6);
    expect(run.cuts).toBe(1);
  });

  it('is back to 90 % within 120 s of a halving', () => {
    const account = { limitAt: () => 50, rpm: null, latencyMs: 2000, cancelled: 0 };
    const { effective } = simulate(account, { creditUsd: 250, rpm: null }, HOUR, 7);
    // Seconds at which the limit was halved after it had found its plateau.
    const halvings = effective.flatMap((value, second) => {
      const before = effective[second - 1] ?? value;
      return second > 600 && value <= Math.floor(before / 2) ? [second] : [];
    });
    expect(halvings.length).toBeGreaterThan(0);
    for (const second of halvings) expect(effective[second + 120] ?? 50).toBeGreaterThanOrEqual(45);
  });

  it('follows a limit that halves, and one that doubles', () => {
    const account = { limitAt: (ms: number) => (ms < HOUR / 2 ? 40 : 20), rpm: null, latencyMs: 2000, cancelled: 0 };
    const run = simulate(account, { creditUsd: 250, rpm: null }, HOUR, 9);
    expect(mean(run.usedBySecond.slice(600, 1790)) / 40).toBeGreaterThanOrEqual(0.9);
    expect(mean(run.usedBySecond.slice(2400)) / 20).toBeGreaterThanOrEqual(0.9);
    const rising = { ...account, limitAt: (ms: number) => (ms < HOUR / 2 ? 16 : 32) };
    const later = simulate(rising, { creditUsd: 250, rpm: null }, 3 * HOUR, 9);
    expect(mean(later.usedBySecond.slice(2 * 3600)) / 32).toBeGreaterThanOrEqual(0.9);
  });

  it('stays near the limit although one call in four is cancelled', () => {
    const account = { limitAt: () => 20, rpm: null, latencyMs: 2000, cancelled: 0.25 };
    const run = simulate(account, { creditUsd: 250, rpm: null }, HOUR, 11);
    expect(mean(run.usedBySecond.slice(600)) / 20).toBeGreaterThanOrEqual(0.9);
    expect(run.refused / run.started).toBeLessThan(0.01);
  });

  it.each([
    { latencyMs: 2000, expected: 20 },
    { latencyMs: 4000, expected: 40 },
  ])(
    'a trusted 600 per minute at $latencyMs ms: no 60 s hold more than 600 starts, about $expected in flight',
    ({ latencyMs, expected }) => {
      const account = { limitAt: () => 1000, rpm: 600, latencyMs, cancelled: 0 };
      const run = simulate(account, { creditUsd: 5, rpm: 600 }, HOUR / 3, 3);
      expect(run.refused).toBe(0);
      run.starts.forEach((start, index) => {
        expect(run.starts[index + 600] ?? Number.POSITIVE_INFINITY).toBeGreaterThan(start + 60_000);
      });
      const settled = run.held.slice(900);
      expect(Math.max(...settled)).toBeLessThanOrEqual(expected * 1.15);
      // 600 starts in 61 s are what the window lets through.
      expect(run.starts.filter((start) => start > 600_000).length / 10).toBeGreaterThan((600 * 60) / 61 - 20);
    },
  );

  it('a vestigial rate on a funded account throttles nothing', () => {
    for (const rpm of [-1, 0, 1]) {
      const account = { limitAt: () => 64, rpm: null, latencyMs: 2000, cancelled: 0 };
      const run = simulate(account, { creditUsd: 250, rpm }, 60_000);
      expect(mean(run.usedBySecond.slice(5))).toBeGreaterThan(62);
    }
  });
});
