import { SwitchyardError } from '../domain/errors.ts';
import { said } from '../domain/said.ts';
import type { Db } from './database.ts';
import { durably } from './database.ts';
import type { Vault } from './vault.ts';

/** Every column that holds a value of the vault. Rotation walks this list, so a new one is added here first. */
export const SEALED_COLUMNS = [
  { table: 'nodes', column: 'sealed_key' },
  { table: 'pending_pairings', column: 'sealed_key' },
  { table: 'secrets', column: 'sealed_value' },
  { table: 'idempotency', column: 'sealed_answer' },
] as const;

const CHECK_COLUMN = { table: 'vault_keys', column: 'sealed_check' } as const;
const CHECK_TEXT = Buffer.from('switchyard vault', 'utf8');

/**
 * Finds out whether the keyring is the one that sealed this database, before anything trusts it: each key version leaves a known
 * sealed text behind. Notes the newest version when it is new.
 * Throws `vault_locked` when a version carries another key than before.
 */
export function checkKeyring(db: Db, vault: Vault, newUuid: () => string): void {
  const rows = db.prepare('SELECT version, row_uuid AS row, sealed_check AS sealed FROM vault_keys').all() as {
    version: number;
    row: string;
    sealed: Buffer;
  }[];
  for (const { version, row, sealed } of rows) {
    try {
      vault.open(sealed, { ...CHECK_COLUMN, row });
    } catch (error) {
      if (error instanceof SwitchyardError && error.code === 'vault_locked') continue;
      throw new SwitchyardError('vault_locked', said('vault_wrong_key', { version }));
    }
  }
  if (!db.readonly && !rows.some(({ version }) => version === vault.keyVersion)) {
    durably(db, () => noteKeyVersion(db, vault, newUuid()));
  }
}

function noteKeyVersion(db: Db, vault: Vault, row: string): void {
  db.prepare('INSERT OR IGNORE INTO vault_keys (version, row_uuid, sealed_check) VALUES (?, ?, ?)').run(
    vault.keyVersion,
    row,
    vault.seal(CHECK_TEXT, { ...CHECK_COLUMN, row }),
  );
}

/** Highest key version this database has seen; 0: none. */
export function highestKeyVersion(db: Db): number {
  return Number(db.prepare('SELECT coalesce(max(version), 0) FROM vault_keys').pluck().get());
}

/**
 * Seals every value again, opened by `from` and sealed by `to`, in one transaction: any failure (a row that does not open, a full
 * disk, a kill) leaves every row as it was. The emptied journal holds no old ciphertext afterwards.
 * @returns rows moved. Throws `vault_locked`, `vault_damaged` or SQLite's error.
 */
export function rotateSealed(db: Db, from: Vault, to: Vault, newUuid: () => string): number {
  const moved = durably(db, () => {
    let rows = 0;
    for (const { table, column } of SEALED_COLUMNS) {
      // Names first, values one by one: stored answers may be 8 MiB each.
      const names = db.prepare(`SELECT row_uuid FROM ${table} WHERE ${column} IS NOT NULL`).pluck().all() as string[];
      const read = db.prepare(`SELECT ${column} FROM ${table} WHERE row_uuid = ?`).pluck();
      const write = db.prepare(`UPDATE ${table} SET ${column} = ? WHERE row_uuid = ?`);
      for (const row of names) {
        const plain = from.open(read.get(row) as Buffer, { table, row, column });
        write.run(to.seal(plain, { table, row, column }), row);
        plain.fill(0);
      }
      rows += names.length;
    }
    noteKeyVersion(db, to, newUuid());
    return rows;
  });
  db.pragma('wal_checkpoint(TRUNCATE)');
  return moved;
}
