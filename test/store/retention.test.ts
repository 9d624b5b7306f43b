import { describe, expect, it, onTestFinished } from 'vitest';
import type { ProjectId } from '../../main/domain/ids.ts';
import { DatabaseHost, type Rooms } from '../../main/store/database-host.ts';
import { firstUsageDay } from '../../main/store/retention.ts';
import { createWorkerApi } from '../../main/store/worker-calls.ts';
import { DAY_MS, hash, key32, NOON, scratchFolder, summary } from './support.ts';

function opened(maxBytes = 2 ** 30) {
  const host = new DatabaseHost({
    folder: scratchFolder(),
    keyring: [{ version: 1, key: key32(1) }],
    maxBytes,
    writer: 'w',
  });
  onTestFinished(() => host.close());
  const api = createWorkerApi(host, 'w');
  api.open(NOON);
  return { host, api };
}

/** Calls retention until nothing is left to do. @returns rows removed. */
function retainAll(host: DatabaseHost, nowMs: number): number {
  let rows = 0;
  for (;;) {
    const step = host.retain(nowMs);
    rows += step.rows;
    if (!step.more) return rows;
  }
}

const count = ({ db }: Rooms, table: string): number =>
  Number(db.prepare(`SELECT count(*) FROM ${table}`).pluck().get());

describe('retention', () => {
  it.each([
    [
      'traces',
      7,
      (rooms: Rooms, atMs: number) =>
        rooms.records.writeTrace({ summary: JSON.stringify(summary(`r${atMs}`, { arrivedAtMs: atMs })), detail: '{}' }),
    ],
    [
      'events',
      30,
      (rooms: Rooms, atMs: number) =>
        rooms.records.writeEvent({
          id: `e${atMs}`,
          atMs,
          severity: 'info',
          source: 'app',
          code: 'c',
          sentence: 's',
          needsPerson: false,
        }),
    ],
    [
      'ranges',
      90,
      (rooms: Rooms, atMs: number) =>
        void rooms.db.prepare("INSERT INTO ranges VALUES ('r', 's', 'p', 0, 1, ?)").run(atMs),
    ],
    [
      'verdict_points',
      90,
      (rooms: Rooms, atMs: number) =>
        void rooms.db.prepare("INSERT INTO verdict_points VALUES ('p', 's', ?, 1.0, 'pass')").run(atMs),
    ],
    [
      'idempotency',
      1,
      (rooms: Rooms, atMs: number) =>
        void rooms.answers.claim({ project: 'p' as ProjectId, route: '/', key: String(atMs) }, hash('1'), 'w', atMs),
    ],
  ])('keeps %s for %i days, to the millisecond', (table, days, insert) => {
    const { host } = opened();
    host.write((rooms) => {
      insert(rooms, NOON - days * DAY_MS - 1);
      insert(rooms, NOON - days * DAY_MS);
      insert(rooms, NOON);
    });
    expect(retainAll(host, NOON)).toBe(1);
    expect(host.read((rooms) => count(rooms, table))).toBe(2);
    expect(retainAll(host, NOON + 1)).toBe(1);
  });

  it('keeps usage thirteen months by the calendar', () => {
    expect(firstUsageDay(Date.UTC(2026, 6, 15))).toBe('2025-06-15');
    expect(firstUsageDay(Date.UTC(2027, 2, 31))).toBe('2026-02-28');
    expect(firstUsageDay(Date.UTC(2026, 0, 1))).toBe('2024-12-01');
    const { host, api } = opened();
    const sums = {
      key: '',
      project: 'p',
      role: 'rlm',
      model: '',
      route: '',
      requests: 1,
      failures: 0,
      promptTokens: 1,
      completionTokens: 1,
      inexact: 0,
      costNanoUsd: 0,
    };
    host.write(({ figures }) => {
      for (const day of ['2025-06-14', '2025-06-15', '2026-07-15']) figures.addUsage({ ...sums, day });
    });
    expect(retainAll(host, NOON)).toBe(1);
    const rows = api.usage({ fromDay: '0000-00-00', toDay: '9999-99-99', project: null, key: null });
    expect(rows.map(({ day }) => day)).toEqual(['2025-06-15', '2026-07-15']);
  });

  it('keeps series twice as long as the charts draw them', () => {
    const { host, api } = opened();
    host.write(({ figures }) => {
      for (const range of ['5m', '1h', '24h']) {
        for (const agoMs of [0, 400_000, 5_000_000, 100_000_000, 200_000_000])
          figures.writeStep(range, NOON - agoMs, '{}');
      }
    });
    retainAll(host, NOON);
    expect(['5m', '1h', '24h'].map((range) => api.steps(range, 0).length)).toEqual([2, 3, 4]);
  });

  it('removes many rows in steps, so that claims are answered in between', () => {
    const { host } = opened();
    host.write(({ records }) => {
      for (let at = 0; at < 4_500; at += 1) {
        records.writeTrace({
          summary: JSON.stringify(summary(`r${at}`, { arrivedAtMs: NOON - 8 * DAY_MS })),
          detail: '{}',
        });
      }
    });
    expect(host.retain(NOON)).toEqual({ rows: 2_000, more: true });
    expect(retainAll(host, NOON)).toBe(2_500);
  });

  it('gives up the oldest records early when the database nears its bound, and never configuration', () => {
    const { host, api } = opened(4 * 1024 * 1024);
    api.putDocument('settings:a', '{"kept":true}', null, NOON);
    let sequence = 0;
    // Ten times as much as fits.
    for (let at = 0; at < 400; at += 1) {
      sequence += 1;
      const items = Array.from({ length: 10 }, (_, part) => ({
        kind: 'trace' as const,
        row: {
          summary: JSON.stringify(summary(`r${String(at).padStart(3, '0')}-${part}`, { arrivedAtMs: NOON + at })),
          detail: JSON.stringify({ filler: 'x'.repeat(10_000) }),
        },
      }));
      api.writeBatch({ sequence, items });
    }
    expect(api.putDocument('settings:a', '{"kept":"still"}', 1, NOON)).toBe(2);
    retainAll(host, NOON);
    expect(host.usedBytes()).toBeLessThanOrEqual(0.8 * 4 * 1024 * 1024);
    const newest = api.traces({}, 1, null).items[0];
    expect(JSON.parse(newest ?? '{}')).toMatchObject({ id: 'r399-9' });
    expect(host.read((rooms) => count(rooms, 'traces'))).toBeGreaterThan(50);
  });
});
