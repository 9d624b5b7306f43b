import Database from 'better-sqlite3';
import { SwitchyardError } from '../domain/errors.ts';

/** Why the database did not do what it was asked. `refused`: it works, but what was asked breaks a rule of the schema. */
export type FaultKind = 'locked' | 'full' | 'damaged' | 'unreachable' | 'read-only' | 'refused';

export const FAULT_SENTENCES: Readonly<Record<FaultKind, string>> = {
  locked: 'Another program holds the database locked. Changes are refused until it lets go.',
  full: 'The disk, or the size allowed for the database, is full. Changes are refused until there is room.',
  damaged: 'The database file is damaged. Changes are refused; stop Switchyard and restore a backup.',
  unreachable:
    'The database file cannot be read or written. Changes are refused; look at the disk and its permissions.',
  'read-only': 'The database file is read-only. Changes are refused until it can be written.',
  refused: 'The database refused a value that breaks its rules.',
};

/** Sorts an error of SQLite by its code; null for any other error. Its message is dropped: it may quote values. */
export function faultOf(error: unknown): FaultKind | null {
  if (!(error instanceof Database.SqliteError)) return null;
  const { code } = error;
  if (/^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(code)) return 'locked';
  if (/^SQLITE_(FULL|IOERR_WRITE|TOOBIG|NOMEM)/.test(code)) return 'full';
  if (/^SQLITE_(CORRUPT|NOTADB|FORMAT)/.test(code)) return 'damaged';
  if (/^SQLITE_READONLY/.test(code)) return 'read-only';
  if (/^SQLITE_(IOERR|CANTOPEN|PERM|AUTH|NOLFS)/.test(code)) return 'unreachable';
  return 'refused';
}

/** The database file belongs to another program or is damaged from its first page on. */
export class NotOurDatabase extends Error {}

/** What other rooms hear of a fault. */
export function unavailable(kind: FaultKind): SwitchyardError {
  return new SwitchyardError('store_unavailable', FAULT_SENTENCES[kind]);
}
