import { rmSync } from 'node:fs';
import Database from 'better-sqlite3';
import type { Db } from './database.ts';
import { ensurePrivateFile, moveIntoPlace, temporaryBeside } from './files.ts';

/** What routing, keys and the gate need to start without the database. No telemetry: the copy stays small. */
const CONFIGURATION = [
  'meta',
  'documents',
  'vault_keys',
  'nodes',
  'pending_pairings',
  'base_weights',
  'projects',
  'api_keys',
  'spaces',
  'verdicts',
  'firsts',
] as const;

/**
 * Writes the configuration into a database of its own, whole or not at all: a start that finds the real one damaged or locked
 * serves from it. Sealed values are copied as they are.
 */
export function writeLastGood(db: Db, file: string): void {
  const temporary = temporaryBeside(file);
  rmSync(temporary, { force: true });
  ensurePrivateFile(temporary);
  const copy = new Database(temporary);
  try {
    copy.pragma('auto_vacuum = INCREMENTAL');
    copy.pragma('journal_mode = OFF');
    copy.pragma('synchronous = OFF');
    const schema = db
      .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
      .pluck();
    copy.transaction(() => {
      for (const sql of schema.all()) copy.exec(String(sql));
    })();
    for (const pragma of ['application_id', 'user_version']) {
      copy.pragma(`${pragma} = ${Number(db.pragma(pragma, { simple: true }))}`);
    }
    db.transaction(() => {
      for (const table of CONFIGURATION) {
        const rows = db.prepare(`SELECT * FROM ${table}`).raw();
        const marks = rows
          .columns()
          .map(() => '?')
          .join(', ');
        const insert = copy.prepare(`INSERT INTO ${table} VALUES (${marks})`);
        copy.transaction(() => {
          for (const row of rows.iterate()) insert.run(row);
        })();
      }
    })();
    copy.close();
    moveIntoPlace(temporary, file);
  } catch (error) {
    copy.close();
    rmSync(temporary, { force: true });
    throw error;
  }
}
