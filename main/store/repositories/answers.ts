import { createHash } from 'node:crypto';
import type { IdempotencyClaim, IdempotencyScope, StoredAnswer } from '../../gateway/ports.ts';
import type { Db } from '../database.ts';
import type { Vault } from '../vault.ts';
import type { Statements } from './statements.ts';

export const ANSWER_KEPT_MS = 24 * 3_600_000;
export const ANSWER_MAX_BYTES = 8 * 1024 * 1024;

/** Rows are found by a digest: what clients choose as a key is theirs, and may say something. */
function scopeDigest({ project, route, key }: IdempotencyScope): string {
  const hash = createHash('sha256');
  for (const part of [project, route, key]) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  return hash.digest('hex');
}

interface ClaimRow {
  readonly body_sha256: string;
  readonly writer: string;
  readonly claimed_at_ms: number;
  readonly row_uuid: string;
  readonly sealed_answer: Buffer | null;
}

/** Claims of Idempotency-Keys and the answers given under them, sealed, for 24 h. */
export class Answers {
  readonly #db: Db;
  readonly #sql: Statements;
  readonly #vault: () => Vault;
  readonly #newUuid: () => string;

  constructor(db: Db, sql: Statements, vault: () => Vault, newUuid: () => string) {
    this.#db = db;
    this.#sql = sql;
    this.#vault = vault;
    this.#newUuid = newUuid;
  }

  /**
   * @param writer the process that asks; a claim that another one left unfinished is dead, since a data folder has one owner.
   * Throws `vault_locked` or `vault_damaged` when the stored answer does not open.
   */
  claim(scope: IdempotencyScope, bodySha256: string, writer: string, nowMs: number): IdempotencyClaim {
    const digest = scopeDigest(scope);
    return this.#db
      .transaction((): IdempotencyClaim => {
        const row = this.#sql('SELECT * FROM idempotency WHERE scope = ?').get(digest) as ClaimRow | undefined;
        const isDead =
          !row || row.claimed_at_ms <= nowMs - ANSWER_KEPT_MS || (row.sealed_answer === null && row.writer !== writer);
        if (isDead) {
          this.#sql(
            `INSERT OR REPLACE INTO idempotency (scope, body_sha256, writer, claimed_at_ms, row_uuid, answer_bytes)
             VALUES (?, ?, ?, ?, ?, 0)`,
          ).run(digest, bodySha256, writer, nowMs, this.#newUuid());
          return { state: 'claimed' };
        }
        if (row.body_sha256 !== bodySha256) return { state: 'other-body' };
        if (row.sealed_answer === null) return { state: 'running' };
        return { state: 'stored', answer: unpack(this.#vault().open(row.sealed_answer, place(row.row_uuid))) };
      })
      .immediate();
  }

  /** An answer over 8 MiB is not kept: its claim is given back. */
  complete(scope: IdempotencyScope, answer: StoredAnswer): void {
    if (answer.body.length > ANSWER_MAX_BYTES) {
      this.forget(scope);
      return;
    }
    const digest = scopeDigest(scope);
    const row = this.#sql('SELECT row_uuid FROM idempotency WHERE scope = ?').pluck().get(digest);
    if (typeof row !== 'string') return;
    const sealed = this.#vault().seal(pack(answer), place(row));
    this.#sql('UPDATE idempotency SET sealed_answer = ?, answer_bytes = ? WHERE scope = ?').run(
      sealed,
      sealed.length,
      digest,
    );
  }

  forget(scope: IdempotencyScope): void {
    this.#sql('DELETE FROM idempotency WHERE scope = ?').run(scopeDigest(scope));
  }
}

const place = (row: string) => ({ table: 'idempotency', row, column: 'sealed_answer' });

/** Head as JSON behind its length (u32 BE), then the body as it is. */
function pack({ status, headers, body }: StoredAnswer): Buffer {
  const head = Buffer.from(JSON.stringify({ status, headers }), 'utf8');
  const length = Buffer.alloc(4);
  length.writeUInt32BE(head.length);
  return Buffer.concat([length, head, body]);
}

function unpack(bytes: Uint8Array): StoredAnswer {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const end = 4 + view.readUInt32BE(0);
  const head = JSON.parse(view.toString('utf8', 4, end)) as Omit<StoredAnswer, 'body'>;
  return { ...head, body: bytes.subarray(end) };
}
