import { type Db, usedBytes } from './database.ts';
import { ANSWER_KEPT_MS } from './repositories/answers.ts';

const DAY_MS = 24 * 3_600_000;

/** What is kept how long, and at most how many rows: whichever ends first. */
const BY_AGE = [
  { table: 'traces', column: 'at_ms', keptMs: 7 * DAY_MS, rows: 200_000 },
  { table: 'events', column: 'at_ms', keptMs: 30 * DAY_MS, rows: 200_000 },
  { table: 'ranges', column: 'at_ms', keptMs: 90 * DAY_MS, rows: 2_000_000 },
  { table: 'verdict_points', column: 'at_ms', keptMs: 90 * DAY_MS, rows: 500_000 },
  { table: 'idempotency', column: 'claimed_at_ms', keptMs: ANSWER_KEPT_MS, rows: 100_000 },
  { table: 'pending_pairings', column: 'begun_at_ms', keptMs: 30 * DAY_MS, rows: 1_000 },
] as const;

/** Twice what the charts draw, so that a clock set back does not lose the edge. */
const SERIES_KEPT_MS = { '5m': 600_000, '1h': 7_200_000, '24h': 2 * DAY_MS } as const;
const USAGE_MONTHS = 13;
/** Sealed answers together. */
const ANSWERS_MAX_BYTES = 256 * 1024 * 1024;
/** Rows of one statement: the worker thread answers claims in between. */
const CHUNK_ROWS = 2_000;
/** Above this share of the allowed size the oldest records go early, so that configuration can always be written. */
const FULL_SHARE = 0.8;
const BY_SIZE = ['traces', 'events', 'ranges'] as const;

/** First day that is kept: the same day of the month, thirteen months ago (`YYYY-MM-DD`). */
export function firstUsageDay(nowMs: number): string {
  const now = new Date(nowMs);
  const month = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - USAGE_MONTHS, 1);
  const lastOfMonth = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - USAGE_MONTHS + 1, 0)).getUTCDate();
  return new Date(month + (Math.min(now.getUTCDate(), lastOfMonth) - 1) * DAY_MS).toISOString().slice(0, 10);
}

/**
 * Removes a bounded number of rows that are too old or too many.
 * @returns rows removed, and whether another call has more to do.
 */
export function retainSome(db: Db, nowMs: number, maxBytes: number): { readonly rows: number; readonly more: boolean } {
  let rows = 0;
  let more = false;
  const count = (changes: number): void => {
    rows += changes;
    more ||= changes >= CHUNK_ROWS;
  };
  for (const { table, column, keptMs, rows: most } of BY_AGE) {
    count(
      db
        .prepare(
          `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE ${column} < ? LIMIT ${CHUNK_ROWS})`,
        )
        .run(nowMs - keptMs).changes,
    );
    const over = Number(db.prepare(`SELECT count(*) FROM ${table}`).pluck().get()) - most;
    if (over > 0) count(deleteOldest(db, table, column, Math.min(over, CHUNK_ROWS)));
  }
  for (const [range, keptMs] of Object.entries(SERIES_KEPT_MS)) {
    count(db.prepare('DELETE FROM series_steps WHERE range = ? AND at_ms < ?').run(range, nowMs - keptMs).changes);
  }
  count(db.prepare('DELETE FROM usage WHERE day < ?').run(firstUsageDay(nowMs)).changes);
  while (Number(db.prepare('SELECT total(answer_bytes) FROM idempotency').pluck().get()) > ANSWERS_MAX_BYTES) {
    count(deleteOldest(db, 'idempotency', 'claimed_at_ms', 16));
  }
  if (usedBytes(db) > maxBytes * FULL_SHARE) {
    const removed = makeRoom(db);
    rows += removed;
    more ||= removed > 0;
  }
  // Gives a few free pages back to the disk; the rest is used again.
  db.pragma('incremental_vacuum(256)');
  return { rows, more };
}

/** Removes the oldest tenth of traces, events and ranges; for a database at its bound. @returns rows removed. */
export function makeRoom(db: Db): number {
  return BY_SIZE.reduce((sum, table) => {
    const tenth = Math.ceil(Number(db.prepare(`SELECT count(*) FROM ${table}`).pluck().get()) / 10);
    return sum + deleteOldest(db, table, 'at_ms', Math.min(tenth, CHUNK_ROWS));
  }, 0);
}

function deleteOldest(db: Db, table: string, column: string, rows: number): number {
  return db
    .prepare(`DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} ORDER BY ${column} LIMIT ?)`)
    .run(rows).changes;
}
