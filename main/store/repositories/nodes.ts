import { SwitchyardError } from '../../domain/errors.ts';
import type { NodeId, ProviderId } from '../../domain/ids.ts';
import { type Db, durably } from '../database.ts';
import type { NodeRecord, NodeWish, PendingPairingRecord } from '../ports.ts';
import type { Vault } from '../vault.ts';
import type { Statements } from './statements.ts';

interface NodeRow {
  readonly id: NodeId;
  readonly row_uuid: string;
  readonly name: string;
  readonly address: string;
  readonly manual: number;
  readonly embedded: number;
  readonly fingerprint: string;
  readonly next_fingerprint: string | null;
  readonly wish: NodeWish;
  readonly added_at_ms: number;
  readonly sealed_key: Buffer;
}

/** A node and its key; null where the vault could not open it. */
export interface OpenedNode {
  readonly record: NodeRecord;
  readonly key: Uint8Array | null;
}

export interface BaseWeight {
  readonly provider: ProviderId;
  readonly node: NodeId;
  readonly weight: number;
}

export type NodeChange = Partial<
  Pick<NodeRecord, 'name' | 'address' | 'wish' | 'fingerprint' | 'nextFingerprint' | 'manual'>
>;

/** The registry of machines, the pairings that were cut, and the operator's weights. */
export class Nodes {
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

  all(): OpenedNode[] {
    const rows = this.#sql('SELECT * FROM nodes ORDER BY added_at_ms, id').all() as NodeRow[];
    return rows.map((row) => ({
      record: {
        id: row.id,
        name: row.name,
        address: row.address,
        manual: row.manual === 1,
        embedded: row.embedded === 1,
        fingerprint: row.fingerprint,
        nextFingerprint: row.next_fingerprint,
        wish: row.wish,
        addedAtMs: row.added_at_ms,
      },
      key: this.#open('nodes', row.row_uuid, row.sealed_key),
    }));
  }

  /** Newest first; those that do not open are left out: without its key a cut pairing is worth nothing. */
  pending(): PendingPairingRecord[] {
    const rows = this.#sql(
      'SELECT node, row_uuid, address, fingerprint, sealed_key FROM pending_pairings ORDER BY begun_at_ms DESC, node',
    ).all() as { node: string; row_uuid: string; address: string; fingerprint: string; sealed_key: Buffer }[];
    return rows.flatMap(({ node, row_uuid, address, fingerprint, sealed_key }) => {
      const key = this.#open('pending_pairings', row_uuid, sealed_key);
      return key ? [{ node, address, fingerprint, key }] : [];
    });
  }

  weights(): BaseWeight[] {
    return this.#sql('SELECT provider, node, weight FROM base_weights').all() as BaseWeight[];
  }

  add(record: NodeRecord, key: Uint8Array): void {
    const row = this.#newUuid();
    const sealed = this.#vault().seal(key, { table: 'nodes', row, column: 'sealed_key' });
    durably(this.#db, () => {
      this.#sql(
        `INSERT OR REPLACE INTO nodes
         (id, row_uuid, name, address, manual, embedded, fingerprint, next_fingerprint, wish, added_at_ms, sealed_key)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ).run(
        record.id,
        row,
        record.name,
        record.address,
        record.manual ? 1 : 0,
        record.embedded ? 1 : 0,
        record.fingerprint,
        record.nextFingerprint,
        record.wish,
        record.addedAtMs,
        sealed,
      );
      this.#sql('DELETE FROM pending_pairings WHERE node = ?').run(record.id);
    });
  }

  /** Throws `node_not_found`. */
  update(id: NodeId, change: NodeChange): void {
    const columns: Readonly<Record<keyof NodeChange, string>> = {
      name: 'name',
      address: 'address',
      wish: 'wish',
      fingerprint: 'fingerprint',
      nextFingerprint: 'next_fingerprint',
      manual: 'manual',
    };
    durably(this.#db, () => {
      if (this.#sql('SELECT 1 FROM nodes WHERE id = ?').get(id) === undefined)
        throw new SwitchyardError('node_not_found');
      for (const [member, column] of Object.entries(columns)) {
        const value = change[member as keyof NodeChange];
        if (value === undefined) continue;
        this.#sql(`UPDATE nodes SET ${column} = ? WHERE id = ?`).run(
          typeof value === 'boolean' ? Number(value) : value,
          id,
        );
      }
    });
  }

  remove(id: NodeId): void {
    durably(this.#db, () => {
      this.#sql('DELETE FROM nodes WHERE id = ?').run(id);
      this.#sql('DELETE FROM pending_pairings WHERE node = ?').run(id);
      this.#sql('DELETE FROM base_weights WHERE node = ?').run(id);
    });
    // The deleted key must not stay readable in the journal.
    this.#db.pragma('wal_checkpoint(TRUNCATE)');
  }

  putPending(pending: PendingPairingRecord, nowMs: number): void {
    const row = this.#newUuid();
    const sealed = this.#vault().seal(pending.key, { table: 'pending_pairings', row, column: 'sealed_key' });
    durably(this.#db, () => {
      this.#sql(
        `INSERT OR REPLACE INTO pending_pairings (node, row_uuid, address, fingerprint, begun_at_ms, sealed_key)
         VALUES (?, ?, ?, ?, ?, ?)`,
      ).run(pending.node, row, pending.address, pending.fingerprint, nowMs, sealed);
    });
  }

  dropPending(node: string): void {
    durably(this.#db, () => this.#sql('DELETE FROM pending_pairings WHERE node = ?').run(node));
  }

  /** @param weight null: back to the default. */
  setWeight(provider: ProviderId, node: NodeId, weight: number | null): void {
    durably(this.#db, () => {
      if (weight === null) this.#sql('DELETE FROM base_weights WHERE provider = ?').run(provider);
      else {
        this.#sql('INSERT OR REPLACE INTO base_weights (provider, node, weight) VALUES (?, ?, ?)').run(
          provider,
          node,
          weight,
        );
      }
    });
  }

  #open(table: 'nodes' | 'pending_pairings', row: string, sealed: Buffer): Uint8Array | null {
    try {
      return this.#vault().open(sealed, { table, row, column: 'sealed_key' });
    } catch (error) {
      if (error instanceof SwitchyardError) return null;
      throw error;
    }
  }
}
