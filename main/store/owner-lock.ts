import { readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { SwitchyardError } from '../domain/errors.ts';
import { said } from '../domain/said.ts';
import { dataFiles, ensurePrivateFile, writeWhole } from './files.ts';

/** Held while the data folder is ours. */
export interface OwnerLock {
  /** Idempotent. */
  release(): void;
}

/** @returns the pid in `owner.json`, or null: the file is for people and may lag behind the lock. */
function ownerPid(file: string): number | null {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (typeof value === 'object' && value !== null && 'pid' in value && Number.isInteger(value.pid)) {
      return Number(value.pid);
    }
  } catch {
    // Missing or torn: the lock itself has spoken already.
  }
  return null;
}

/**
 * Takes the data folder for this process. SQLite's own file lock is used because the system drops it when the process dies,
 * however it dies: a pid file would outlive a SIGKILL and lie after the pid is used again.
 * Throws `store_in_use`, naming the pid of the owner.
 */
export function lockDataFolder(folder: string, pid: number = process.pid): OwnerLock {
  const files = dataFiles(folder);
  ensurePrivateFile(files.lock);
  const database = new Database(files.lock, { timeout: 0 });
  try {
    database.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if (!(error instanceof Database.SqliteError) || !error.code.startsWith('SQLITE_BUSY')) {
      throw new SwitchyardError('store_unavailable', said('store_unlockable'));
    }
    const owner = ownerPid(files.owner);
    throw new SwitchyardError(
      'store_in_use',
      owner === null ? said('store_used') : said('store_used_by', { process: String(owner) }),
    );
  }
  writeWhole(files.owner, `${JSON.stringify({ pid })}\n`);
  return {
    release: () => {
      if (database.open) database.close();
    },
  };
}
