import { type Db, durably } from '../database.ts';
import type { Vault } from '../vault.ts';
import type { Statements } from './statements.ts';

/** Small secrets by name, sealed. */
export class Secrets {
  readonly #db: Db;
  readonly #sql: Statements;
  readonly #vault: () => Vault;
  readonly #newUuid: () => string;

  constructor(db: Db, sql: Statements, vault: () => Vault, newUuid: () => string) {
    this.#db = db;
    this.#sql = sql;
    this.#vault = vault;
    this.#newUuid = newUuid;
  }

  /** Throws `vault_locked` or `vault_damaged`. */
  get(name: string): Uint8Array | null {
    const found = this.#sql('SELECT row_uuid AS row, sealed_value AS sealed FROM secrets WHERE name = ?').get(name) as
      | { row: string; sealed: Buffer }
      | undefined;
    return found ? this.#vault().open(found.sealed, place(found.row)) : null;
  }

  put(name: string, value: Uint8Array): void {
    const row = this.#newUuid();
    const sealed = this.#vault().seal(value, place(row));
    durably(this.#db, () => {
      this.#sql('INSERT OR REPLACE INTO secrets (name, row_uuid, sealed_value) VALUES (?, ?, ?)').run(
        name,
        row,
        sealed,
      );
    });
  }

  remove(name: string): void {
    durably(this.#db, () => this.#sql('DELETE FROM secrets WHERE name = ?').run(name));
    // The deleted secret must not stay readable in the journal.
    this.#db.pragma('wal_checkpoint(TRUNCATE)');
  }
}

const place = (row: string) => ({ table: 'secrets', row, column: 'sealed_value' });
