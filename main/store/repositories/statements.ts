import type Database from 'better-sqlite3';
import type { Db } from '../database.ts';

/** Compiles each statement once per open database. */
export type Statements = (sql: string) => Database.Statement;

export function statementsOf(db: Db): Statements {
  const compiled = new Map<string, Database.Statement>();
  return (sql) => {
    let statement = compiled.get(sql);
    if (!statement) {
      statement = db.prepare(sql);
      compiled.set(sql, statement);
    }
    return statement;
  };
}

/** A filter's conditions and values, joined by AND. */
export class Conditions {
  readonly #parts: string[] = [];
  readonly values: (string | number)[] = [];

  /** @param sql one condition with a `?` per value; left out when a value is undefined. */
  add(sql: string, ...values: readonly (string | number | undefined)[]): void {
    const given = values.filter((value) => value !== undefined);
    if (given.length < values.length) return;
    this.#parts.push(sql);
    this.values.push(...given);
  }

  get where(): string {
    return this.#parts.length === 0 ? '' : `WHERE ${this.#parts.join(' AND ')}`;
  }
}

/** Where a page ended: the last row's time and id. */
export interface Cursor {
  readonly atMs: number;
  readonly id: string;
}

export const cursorText = ({ atMs, id }: Cursor): string => `${atMs}.${id}`;

/** Null: not a cursor of ours. */
export function parseCursor(text: string): Cursor | null {
  const match = /^(\d{1,16})\.(.{1,200})$/s.exec(text);
  return match?.[1] !== undefined && match[2] !== undefined ? { atMs: Number(match[1]), id: match[2] } : null;
}
