import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SwitchyardError } from '../../main/domain/errors.ts';
import { backUp, type Db, openDatabase } from '../../main/store/database.ts';
import { NotOurDatabase } from '../../main/store/faults.ts';
import { MIGRATIONS } from '../../main/store/migrations/index.ts';
import type { Migration } from '../../main/store/migrations/migration.ts';
import { NOON, scratchFolder } from './support.ts';

const first: Migration = { version: 1, name: 'first', sql: 'CREATE TABLE a (x TEXT) STRICT' };
const second: Migration = {
  version: 2,
  name: 'second',
  sql: "ALTER TABLE a ADD COLUMN y TEXT; UPDATE a SET y = x || '!'",
};

function opened(folder: string, migrations: readonly Migration[], nowMs = NOON): Db {
  const db = openDatabase({
    file: path.join(folder, 'switchyard.db'),
    backups: path.join(folder, 'backups'),
    migrations,
    nowMs,
    maxBytes: 2 ** 30,
  });
  onTestFinished(() => void db.close());
  return db;
}

const pragma = (db: Db, name: string): unknown => db.pragma(name, { simple: true });
const modeOf = (file: string): string => (statSync(file).mode & 0o777).toString(8);

describe('opening the database', () => {
  it('keeps a journal ahead, erases what it deletes, and is closed to others with its journals', () => {
    const folder = scratchFolder();
    const db = opened(folder, MIGRATIONS);
    expect(pragma(db, 'journal_mode')).toBe('wal');
    expect(pragma(db, 'secure_delete')).toBe(1);
    expect(pragma(db, 'synchronous')).toBe(1);
    expect(pragma(db, 'auto_vacuum')).toBe(2);
    expect(pragma(db, 'foreign_keys')).toBe(1);
    for (const name of ['switchyard.db', 'switchyard.db-wal', 'switchyard.db-shm']) {
      expect(modeOf(path.join(folder, name))).toBe('600');
    }
    expect(existsSync(path.join(folder, 'backups'))).toBe(false);
  });

  it('numbers its migrations without gaps', () => {
    expect(MIGRATIONS.map(({ version }) => version)).toEqual(MIGRATIONS.map((_, at) => at + 1));
  });

  it('brings an older file up to date after a backup that still is what it was', () => {
    const folder = scratchFolder();
    const old = opened(folder, [first]);
    old.prepare('INSERT INTO a VALUES (?)').run('kept');
    old.close();

    const db = opened(folder, [first, second]);
    expect(db.prepare('SELECT x, y FROM a').all()).toEqual([{ x: 'kept', y: 'kept!' }]);
    expect(pragma(db, 'user_version')).toBe(2);

    const names = readdirSync(path.join(folder, 'backups'));
    expect(names).toEqual(['switchyard-20260715T120000000Z-v1.db']);
    const file = path.join(folder, 'backups', names[0] ?? '');
    expect(modeOf(file)).toBe('600');
    expect(modeOf(path.join(folder, 'backups'))).toBe('700');
    const backup = new Database(file, { readonly: true });
    expect(pragma(backup, 'user_version')).toBe(1);
    expect(backup.prepare('SELECT * FROM a').all()).toEqual([{ x: 'kept' }]);
    backup.close();
  });

  it('rolls a failing migration back whole', () => {
    const folder = scratchFolder();
    opened(folder, [first]).close();
    const broken = { ...second, sql: 'ALTER TABLE a ADD COLUMN y TEXT; INSERT INTO nowhere VALUES (1)' };
    expect(() => opened(folder, [first, broken])).toThrow();
    const db = opened(folder, [first]);
    expect(pragma(db, 'user_version')).toBe(1);
    expect(db.pragma('table_info(a)')).toHaveLength(1);
  });

  it('refuses a newer file with a sentence, and leaves it as it is', () => {
    const folder = scratchFolder();
    const db = opened(folder, [first, second]);
    db.close();
    const before = readFileSync(path.join(folder, 'switchyard.db'));
    const open = (): unknown => opened(folder, [first]);
    expect(open).toThrow(SwitchyardError);
    expect(open).toThrow('format 2, this one reads up to 1');
    expect(readFileSync(path.join(folder, 'switchyard.db'))).toEqual(before);
  });

  it('refuses the database of another program, and a file that is none', () => {
    const folder = scratchFolder();
    const foreign = new Database(path.join(folder, 'switchyard.db'));
    foreign.exec('CREATE TABLE theirs (x)');
    foreign.close();
    expect(() => opened(folder, MIGRATIONS)).toThrow(NotOurDatabase);
    writeFileSync(
      path.join(folder, 'switchyard.db'),
      'no database at all, but long enough to be read as one'.repeat(99),
    );
    expect(() => opened(folder, MIGRATIONS)).toThrow(/not a database/);
  });

  it('keeps the newest three backups', () => {
    const folder = scratchFolder();
    const db = opened(folder, MIGRATIONS);
    for (let day = 0; day < 5; day += 1) backUp(db, path.join(folder, 'backups'), NOON + day * 86_400_000);
    expect(readdirSync(path.join(folder, 'backups')).sort()).toEqual([
      'switchyard-20260717T120000000Z-v1.db',
      'switchyard-20260718T120000000Z-v1.db',
      'switchyard-20260719T120000000Z-v1.db',
    ]);
  });
});
