import type { Migration } from './migration.ts';

/**
 * Times are epoch ms, days `YYYY-MM-DD` (UTC), fingerprints and digests lower-case hex, JSON is text. Empty text stands for null
 * in the key columns of `usage`, because SQLite lets nulls repeat in a primary key. Columns named `sealed_*` hold values of the
 * vault and are bound to `row_uuid`.
 */
export const initial: Migration = {
  version: 1,
  name: 'initial',
  sql: `
    CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE documents (
      name TEXT PRIMARY KEY, version INTEGER NOT NULL, body TEXT NOT NULL, changed_at_ms INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE vault_keys (version INTEGER PRIMARY KEY, row_uuid TEXT NOT NULL, sealed_check BLOB NOT NULL) STRICT;
    CREATE TABLE secrets (name TEXT PRIMARY KEY, row_uuid TEXT NOT NULL UNIQUE, sealed_value BLOB NOT NULL) STRICT;

    CREATE TABLE nodes (
      id TEXT PRIMARY KEY, row_uuid TEXT NOT NULL UNIQUE, name TEXT NOT NULL, address TEXT NOT NULL,
      manual INTEGER NOT NULL, embedded INTEGER NOT NULL, fingerprint TEXT NOT NULL, next_fingerprint TEXT,
      wish TEXT NOT NULL CHECK (wish IN ('serve', 'drain', 'maintenance')), added_at_ms INTEGER NOT NULL,
      sealed_key BLOB NOT NULL
    ) STRICT;
    CREATE TABLE pending_pairings (
      node TEXT PRIMARY KEY, row_uuid TEXT NOT NULL UNIQUE, address TEXT NOT NULL, fingerprint TEXT NOT NULL,
      begun_at_ms INTEGER NOT NULL, sealed_key BLOB NOT NULL
    ) STRICT;
    CREATE TABLE base_weights (provider TEXT PRIMARY KEY, node TEXT NOT NULL, weight REAL NOT NULL) STRICT;

    CREATE TABLE projects (id TEXT PRIMARY KEY, name TEXT NOT NULL, created_at_ms INTEGER NOT NULL) STRICT;
    CREATE TABLE api_keys (
      id TEXT PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE CHECK (length(sha256) = 64),
      project TEXT NOT NULL REFERENCES projects (id), name TEXT NOT NULL, hint TEXT NOT NULL, scopes TEXT NOT NULL,
      created_at_ms INTEGER NOT NULL, last_used_at_ms INTEGER, revoked_at_ms INTEGER
    ) STRICT;

    CREATE TABLE spaces (
      id TEXT PRIMARY KEY, role TEXT NOT NULL, current INTEGER NOT NULL, facts TEXT NOT NULL, anchor BLOB, anchor_sha256 TEXT
    ) STRICT;
    CREATE UNIQUE INDEX one_current_space ON spaces (role) WHERE current = 1;
    CREATE TABLE verdicts (
      provider TEXT NOT NULL, space TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (provider, space)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE firsts (
      provider TEXT NOT NULL, space TEXT NOT NULL, vectors BLOB NOT NULL, sha256 TEXT NOT NULL, taken_at_ms INTEGER NOT NULL,
      fingerprint TEXT NOT NULL, PRIMARY KEY (provider, space)
    ) STRICT;
    CREATE TABLE verdict_points (
      provider TEXT NOT NULL, space TEXT NOT NULL, at_ms INTEGER NOT NULL, min_cosine REAL, kind TEXT NOT NULL
    ) STRICT;
    CREATE INDEX verdict_points_by_provider ON verdict_points (provider, space, at_ms);
    CREATE INDEX verdict_points_by_time ON verdict_points (at_ms);
    CREATE TABLE ranges (
      request TEXT NOT NULL, space TEXT NOT NULL, provider TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
      at_ms INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX ranges_by_provider ON ranges (provider, at_ms);
    CREATE INDEX ranges_by_request ON ranges (request);
    CREATE INDEX ranges_by_time ON ranges (at_ms);

    CREATE TABLE traces (
      id TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, project TEXT NOT NULL, role TEXT NOT NULL, route TEXT, provider TEXT,
      node TEXT, model TEXT, outcome TEXT NOT NULL, code TEXT, total_ms REAL NOT NULL, summary TEXT NOT NULL, detail TEXT NOT NULL
    ) STRICT;
    CREATE INDEX traces_by_time ON traces (at_ms, id);
    CREATE INDEX traces_by_project ON traces (project, at_ms, id);
    CREATE TABLE events (
      id TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, rank INTEGER NOT NULL, source TEXT NOT NULL, code TEXT NOT NULL, node TEXT,
      role TEXT, request TEXT, sentence TEXT NOT NULL, body TEXT NOT NULL
    ) STRICT;
    CREATE INDEX events_by_time ON events (at_ms, id);
    CREATE TABLE usage (
      day TEXT NOT NULL, key TEXT NOT NULL, project TEXT NOT NULL, role TEXT NOT NULL, model TEXT NOT NULL, route TEXT NOT NULL,
      requests INTEGER NOT NULL, failures INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
      inexact INTEGER NOT NULL, cost_nano_usd INTEGER NOT NULL, PRIMARY KEY (day, key, project, role, model, route)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE series_steps (
      range TEXT NOT NULL, at_ms INTEGER NOT NULL, "values" TEXT NOT NULL, PRIMARY KEY (range, at_ms)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE batches (writer TEXT PRIMARY KEY, sequence INTEGER NOT NULL) STRICT, WITHOUT ROWID;

    CREATE TABLE idempotency (
      scope TEXT PRIMARY KEY, body_sha256 TEXT NOT NULL, writer TEXT NOT NULL, claimed_at_ms INTEGER NOT NULL,
      row_uuid TEXT NOT NULL UNIQUE, answer_bytes INTEGER NOT NULL, sealed_answer BLOB
    ) STRICT;
    CREATE INDEX idempotency_by_time ON idempotency (claimed_at_ms);
  `,
};
