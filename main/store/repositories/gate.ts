import type { ProviderId, RequestId, SpaceId } from '../../domain/ids.ts';
import type { VerdictKind } from '../../domain/verdict.ts';
import type { LedgerRange } from '../../gate/ledger.ts';
import type { GateSnapshot, StoredFirst, StoredSpace, VerdictPoint } from '../../gate/store-port.ts';
import type { Verdict } from '../../gate/verdict.ts';
import { type Db, durably } from '../database.ts';
import type { Statements } from './statements.ts';

interface RangeRow {
  readonly request: RequestId;
  readonly space: SpaceId;
  readonly provider: ProviderId;
  readonly first: number;
  readonly last: number;
  readonly at_ms: number;
}

const toRange = ({ request, space, provider, first, last, at_ms }: RangeRow): LedgerRange => ({
  request,
  space,
  provider,
  from: first,
  to: last,
  atMs: at_ms,
});

/** What the gate found and must find again after a restart. Every method is one transaction. */
export class GateRecords {
  readonly #db: Db;
  readonly #sql: Statements;

  constructor(db: Db, sql: Statements) {
    this.#db = db;
    this.#sql = sql;
  }

  load(): GateSnapshot {
    const spaces = this.#sql('SELECT facts, anchor, anchor_sha256, current FROM spaces ORDER BY id').all() as {
      facts: string;
      anchor: Buffer | null;
      anchor_sha256: string | null;
      current: number;
    }[];
    const verdicts = this.#sql('SELECT body FROM verdicts ORDER BY provider, space').pluck().all() as string[];
    const firsts = this.#sql('SELECT * FROM firsts ORDER BY provider, space').all() as {
      provider: ProviderId;
      space: SpaceId;
      vectors: Buffer;
      sha256: string;
      taken_at_ms: number;
      fingerprint: string;
    }[];
    return {
      spaces: spaces.map(({ facts, anchor, anchor_sha256, current }) => ({
        facts: JSON.parse(facts) as StoredSpace['facts'],
        anchor: anchor && anchor_sha256 !== null ? { bytes: anchor, sha256: anchor_sha256 } : null,
        current: current === 1,
      })),
      verdicts: verdicts.map((body) => JSON.parse(body) as Verdict),
      firsts: firsts.map((row) => ({
        provider: row.provider,
        space: row.space,
        vectors: { bytes: row.vectors, sha256: row.sha256 },
        takenAtMs: row.taken_at_ms,
        fingerprint: JSON.parse(row.fingerprint) as StoredFirst['fingerprint'],
      })),
    };
  }

  saveSpace(space: StoredSpace): void {
    durably(this.#db, () => this.writeSpace(space));
  }

  /** As `saveSpace`, inside a transaction of the caller. */
  writeSpace({ facts, anchor, current }: StoredSpace): void {
    if (current) this.#sql('UPDATE spaces SET current = 0 WHERE role = ?').run(facts.role);
    this.#sql(
      'INSERT OR REPLACE INTO spaces (id, role, current, facts, anchor, anchor_sha256) VALUES (?, ?, ?, ?, ?, ?)',
    ).run(
      facts.id,
      facts.role,
      current ? 1 : 0,
      JSON.stringify(facts),
      anchor ? asBuffer(anchor.bytes) : null,
      anchor?.sha256 ?? null,
    );
  }

  saveVerdict(verdict: Verdict): void {
    this.#db.transaction(() => {
      this.#sql('INSERT OR REPLACE INTO verdicts (provider, space, body) VALUES (?, ?, ?)').run(
        verdict.provider,
        verdict.space,
        JSON.stringify(verdict),
      );
      this.#sql('INSERT INTO verdict_points (provider, space, at_ms, min_cosine, kind) VALUES (?, ?, ?, ?, ?)').run(
        verdict.provider,
        verdict.space,
        Math.floor(verdict.checkedAtMs),
        verdict.minCosine,
        verdict.kind,
      );
    })();
  }

  saveFirst({ provider, space, vectors, takenAtMs, fingerprint }: StoredFirst): void {
    durably(this.#db, () => {
      this.#sql(
        'INSERT OR REPLACE INTO firsts (provider, space, vectors, sha256, taken_at_ms, fingerprint) VALUES (?, ?, ?, ?, ?, ?)',
      ).run(
        provider,
        space,
        asBuffer(vectors.bytes),
        vectors.sha256,
        Math.floor(takenAtMs),
        JSON.stringify(fingerprint),
      );
    });
  }

  appendRanges(ranges: readonly LedgerRange[]): void {
    this.#db.transaction(() => {
      const insert = this.#sql(
        'INSERT INTO ranges (request, space, provider, first, last, at_ms) VALUES (?, ?, ?, ?, ?, ?)',
      );
      for (const { request, space, provider, from, to, atMs } of ranges) {
        insert.run(request, space, provider, from, to, Math.floor(atMs));
      }
    })();
  }

  rangesOfProvider(provider: ProviderId, sinceMs: number, limit: number): LedgerRange[] {
    const rows = this.#sql('SELECT * FROM ranges WHERE provider = ? AND at_ms >= ? ORDER BY at_ms, rowid LIMIT ?').all(
      provider,
      sinceMs,
      limit,
    );
    return (rows as RangeRow[]).map(toRange);
  }

  rangesOfRequest(request: RequestId): LedgerRange[] {
    const rows = this.#sql('SELECT * FROM ranges WHERE request = ? ORDER BY first, last').all(request);
    return (rows as RangeRow[]).map(toRange);
  }

  prune(beforeMs: number): void {
    this.#db.transaction(() => {
      this.#sql('DELETE FROM ranges WHERE at_ms < ?').run(beforeMs);
      this.#sql('DELETE FROM verdict_points WHERE at_ms < ?').run(beforeMs);
    })();
  }

  history(provider: ProviderId, space: SpaceId, sinceMs: number): VerdictPoint[] {
    const rows = this.#sql(
      `SELECT at_ms, min_cosine, kind FROM verdict_points WHERE provider = ? AND space = ? AND at_ms >= ?
       ORDER BY at_ms, rowid`,
    ).all(provider, space, sinceMs) as { at_ms: number; min_cosine: number | null; kind: VerdictKind }[];
    return rows.map(({ at_ms, min_cosine, kind }) => ({ atMs: at_ms, minCosine: min_cosine, kind }));
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
