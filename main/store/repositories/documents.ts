import { SwitchyardError } from '../../domain/errors.ts';
import { type Db, durably } from '../database.ts';
import type { Statements } from './statements.ts';

export interface DocumentRow {
  readonly name: string;
  readonly version: number;
  /** JSON. */
  readonly body: string;
}

/** JSON documents by name, each replaced as a whole. */
export class Documents {
  readonly #db: Db;
  readonly #sql: Statements;

  constructor(db: Db, sql: Statements) {
    this.#db = db;
    this.#sql = sql;
  }

  all(): DocumentRow[] {
    return this.#sql('SELECT name, version, body FROM documents').all() as DocumentRow[];
  }

  /** @returns the new version. Throws `version_conflict` when `ifVersion` is not null and another version is stored. */
  put(name: string, body: string, ifVersion: number | null, nowMs: number): number {
    return durably(this.#db, () => this.replace(name, body, ifVersion, nowMs));
  }

  /** As `put`, inside a transaction of the caller. */
  replace(name: string, body: string, ifVersion: number | null, nowMs: number): number {
    const version = Number(this.#sql('SELECT version FROM documents WHERE name = ?').pluck().get(name) ?? 0);
    if (ifVersion !== null && ifVersion !== version) throw new SwitchyardError('version_conflict');
    this.write(name, body, version + 1, nowMs);
    return version + 1;
  }

  /** Inside a transaction of the caller. */
  write(name: string, body: string, version: number, nowMs: number): void {
    this.#sql(
      `INSERT INTO documents (name, version, body, changed_at_ms) VALUES (?, ?, ?, ?)
       ON CONFLICT (name) DO UPDATE SET version = excluded.version, body = excluded.body, changed_at_ms = excluded.changed_at_ms`,
    ).run(name, version, body, nowMs);
  }

  meta(name: string): string | null {
    const value = this.#sql('SELECT value FROM meta WHERE name = ?').pluck().get(name);
    return typeof value === 'string' ? value : null;
  }

  putMeta(name: string, value: string): void {
    durably(this.#db, () => {
      this.#sql(
        'INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
      ).run(name, value);
    });
  }
}
