import Database from 'better-sqlite3';
import { SwitchyardError } from '../domain/errors.ts';
import { type Said, said } from '../domain/said.ts';

/** Why the database did not do what it was asked. `refused`: it works, but what was asked breaks a rule of the schema. */
export type FaultKind = 'locked' | 'full' | 'damaged' | 'unreachable' | 'read-only' | 'refused';

export const FAULTS_SAID: Readonly<Record<FaultKind, Said>> = {
  locked: said('store_locked'),
  full: said('store_full'),
  damaged: said('store_damaged'),
  unreachable: said('store_unreachable'),
  'read-only': said('store_read_only'),
  refused: said('store_refused'),
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
  return new SwitchyardError('store_unavailable', FAULTS_SAID[kind]);
}
