import { SwitchyardError } from '../../domain/errors.ts';
import type { ProjectId } from '../../domain/ids.ts';
import { type Db, durably } from '../database.ts';
import type { ApiKeyRecord, ProjectRecord } from '../ports.ts';
import type { Statements } from './statements.ts';

/** An API key with what it is looked up by. */
export interface StoredApiKey {
  /** Lower-case hex. */
  readonly sha256: string;
  readonly record: ApiKeyRecord;
}

type Scopes = Pick<ApiKeyRecord, 'allowWiden' | 'anyProject' | 'classCap' | 'roles' | 'limits'>;

/** Projects and API keys. */
export class Access {
  readonly #db: Db;
  readonly #sql: Statements;

  constructor(db: Db, sql: Statements) {
    this.#db = db;
    this.#sql = sql;
  }

  projects(): ProjectRecord[] {
    return this.#sql(
      'SELECT id, name, created_at_ms AS createdAtMs FROM projects ORDER BY created_at_ms, id',
    ).all() as ProjectRecord[];
  }

  apiKeys(): StoredApiKey[] {
    const rows = this.#sql('SELECT * FROM api_keys ORDER BY created_at_ms, id').all() as {
      id: string;
      sha256: string;
      project: ProjectId;
      name: string;
      hint: string;
      scopes: string;
      created_at_ms: number;
      last_used_at_ms: number | null;
      revoked_at_ms: number | null;
    }[];
    return rows.map((row) => ({
      sha256: row.sha256,
      record: {
        id: row.id,
        project: row.project,
        ...(JSON.parse(row.scopes) as Scopes),
        name: row.name,
        hint: row.hint,
        createdAtMs: row.created_at_ms,
        lastUsedAtMs: row.last_used_at_ms,
        revokedAtMs: row.revoked_at_ms,
      },
    }));
  }

  addProject({ id, name, createdAtMs }: ProjectRecord): void {
    durably(this.#db, () => {
      this.#sql(
        'INSERT INTO projects (id, name, created_at_ms) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name',
      ).run(id, name, createdAtMs);
    });
  }

  /** Throws `project_not_found`. */
  addApiKey(key: Omit<ApiKeyRecord, 'lastUsedAtMs' | 'revokedAtMs'>, sha256: string): void {
    const { allowWiden, anyProject, classCap, roles, limits } = key;
    const scopes: Scopes = { allowWiden, anyProject, classCap, roles, limits };
    durably(this.#db, () => {
      if (this.#sql('SELECT 1 FROM projects WHERE id = ?').get(key.project) === undefined) {
        throw new SwitchyardError('project_not_found');
      }
      this.#sql(
        'INSERT INTO api_keys (id, sha256, project, name, hint, scopes, created_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)',
      ).run(key.id, sha256, key.project, key.name, key.hint, JSON.stringify(scopes), key.createdAtMs);
    });
  }

  /** Keeps the first time of revocation. Throws `key_not_found`. */
  revoke(id: string, atMs: number): void {
    durably(this.#db, () => {
      const { changes } = this.#sql('UPDATE api_keys SET revoked_at_ms = coalesce(revoked_at_ms, ?) WHERE id = ?').run(
        atMs,
        id,
      );
      if (changes === 0) throw new SwitchyardError('key_not_found');
    });
  }

  /** Inside a transaction of the caller. */
  used(id: string, atMs: number): void {
    this.#sql('UPDATE api_keys SET last_used_at_ms = max(coalesce(last_used_at_ms, 0), ?) WHERE id = ?').run(atMs, id);
  }
}
