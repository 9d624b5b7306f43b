import { readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { SwitchyardError } from '../domain/errors.ts';
import { said } from '../domain/said.ts';
import { NotOurDatabase } from './faults.ts';
import { ensurePrivateFile, ensurePrivateFolder, moveIntoPlace, temporaryBeside } from './files.ts';
import type { Migration } from './migrations/migration.ts';

export type Db = Database.Database;

/** `SWYD`: tells our file from any other program's. */
const APPLICATION_ID = 0x53_57_59_44;
const BACKUPS_KEPT = 3;
const PAGE_BYTES = 4096;
/** How long a write waits for another program that holds the file; the worker thread waits, nobody else. */
const BUSY_MS = 500;

export interface OpenOptions {
  readonly file: string;
  readonly backups: string;
  readonly migrations: readonly Migration[];
  /** Epoch ms, for the names of backups. */
  readonly nowMs: number;
  /** SQLite refuses to grow the file beyond. */
  readonly maxBytes: number;
}

/**
 * Opens the database for reading and writing, and brings an older one up to date after a backup of it.
 * Throws `store_newer`, NotOurDatabase, or SQLite's error; the file is then closed and unchanged (a failed migration rolls back).
 */
export function openDatabase(options: OpenOptions): Db {
  ensurePrivateFile(options.file);
  const db = new Database(options.file, { timeout: BUSY_MS });
  try {
    const isFresh = readNumber(db, 'SELECT count(*) FROM sqlite_schema') === 0;
    if (isFresh) {
      db.pragma(`page_size = ${PAGE_BYTES}`);
      // Lets retention give pages back to the disk; can only be chosen before the first table.
      db.pragma('auto_vacuum = INCREMENTAL');
    } else checkIsOurs(db, options.migrations);
    db.pragma('journal_mode = WAL');
    db.pragma('journal_size_limit = 16777216');
    configure(db);
    db.pragma(`max_page_count = ${Math.max(64, Math.floor(options.maxBytes / PAGE_BYTES))}`);
    migrate(db, options, isFresh);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Opens a copy for reading only. Throws like `openDatabase`. */
export function openReadOnly(file: string, migrations: readonly Migration[]): Db {
  const db = new Database(file, { readonly: true, fileMustExist: true, timeout: BUSY_MS });
  try {
    checkIsOurs(db, migrations);
    if (db.pragma('user_version', { simple: true }) !== migrations.length) throw new NotOurDatabase();
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function configure(db: Db): void {
  // NORMAL in WAL: a kill loses nothing, a power cut at worst the last moments of telemetry (`durably` is for the rest).
  db.pragma('synchronous = NORMAL');
  db.pragma('secure_delete = ON');
  db.pragma('foreign_keys = ON');
  db.pragma('trusted_schema = OFF');
}

function readNumber(db: Db, sql: string): number {
  return Number(db.prepare(sql).pluck().get());
}

function checkIsOurs(db: Db, migrations: readonly Migration[]): void {
  if (db.pragma('application_id', { simple: true }) !== APPLICATION_ID) throw new NotOurDatabase();
  const version = Number(db.pragma('user_version', { simple: true }));
  if (version > migrations.length) {
    throw new SwitchyardError('store_newer', said('store_of_newer', { version, newest: migrations.length }));
  }
}

function migrate(db: Db, { migrations, backups, nowMs }: OpenOptions, isFresh: boolean): void {
  const from = Number(db.pragma('user_version', { simple: true }));
  const missing = migrations.filter(({ version }) => version > from);
  if (missing.length === 0) return;
  if (!isFresh) backUp(db, backups, nowMs);
  for (const { version, sql } of missing) {
    db.transaction(() => {
      db.exec(sql);
      db.pragma(`user_version = ${version}`);
      db.pragma(`application_id = ${APPLICATION_ID}`);
    }).immediate();
  }
}

/** Runs a change in one transaction that is on the disk, not only in the system's cache, when this returns. */
export function durably<Result>(db: Db, change: () => Result): Result {
  db.pragma('synchronous = FULL');
  try {
    return db.transaction(change).immediate();
  } finally {
    db.pragma('synchronous = NORMAL');
  }
}

/**
 * Writes a consistent copy, whole or not at all, and keeps the newest three.
 * @returns its path. Throws SQLite's or the system's error.
 */
export function backUp(db: Db, folder: string, nowMs: number): string {
  ensurePrivateFolder(folder);
  const version = Number(db.pragma('user_version', { simple: true }));
  const stamp = new Date(nowMs).toISOString().replace(/[-:.]/g, '');
  const file = path.join(folder, `switchyard-${stamp}-v${version}.db`);
  copyWhole(db, file);
  const copies = readdirSync(folder).filter((name) => /^switchyard-\d{8}T\d{9}Z-v\d+\.db$/.test(name));
  for (const name of copies.sort().slice(0, -BACKUPS_KEPT)) rmSync(path.join(folder, name), { force: true });
  return file;
}

function copyWhole(db: Db, file: string): void {
  const temporary = temporaryBeside(file);
  rmSync(temporary, { force: true });
  // VACUUM INTO writes into an empty file as it stands, so the mode is set before the first byte.
  ensurePrivateFile(temporary);
  try {
    db.prepare('VACUUM INTO ?').run(temporary);
    moveIntoPlace(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** Bytes of the file that hold something, without free pages. */
export function usedBytes(db: Db): number {
  const pages =
    Number(db.pragma('page_count', { simple: true })) - Number(db.pragma('freelist_count', { simple: true }));
  return pages * PAGE_BYTES;
}
