/** One step forward of the schema. A released step never changes; what it got wrong, the next one puts right. */
export interface Migration {
  /** 1, 2, 3, without gaps: SQLite's `user_version` after it. */
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}
