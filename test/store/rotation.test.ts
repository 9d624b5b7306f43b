import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync, statSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ProjectId } from '../../main/domain/ids.ts';
import { type Db, openDatabase } from '../../main/store/database.ts';
import { DatabaseHost } from '../../main/store/database-host.ts';
import { dataFiles } from '../../main/store/files.ts';
import { Keyring } from '../../main/store/keyring.ts';
import { MIGRATIONS } from '../../main/store/migrations/index.ts';
import { rotateSealed, SEALED_COLUMNS } from '../../main/store/sealed.ts';
import { keyVersionOf, Vault } from '../../main/store/vault.ts';
import { createWorkerApi } from '../../main/store/worker-calls.ts';
import { hash, key32, NOON, nodeRecord, scratchFolder } from './support.ts';

const ringOne = new Keyring([{ version: 1, key: key32(1) }]);
const ringTwo = ringOne.with({ version: 2, key: key32(2) });
const scope = { project: 'house' as ProjectId, route: '/v1/embeddings', key: 'abc' };

/** A host with 3 node keys, 1 pending pairing, 1 secret and 1 stored answer: six sealed values. */
function furnishedHost(folder: string, keyring: Keyring | null) {
  const host = new DatabaseHost({ folder, keyring: keyring?.entries() ?? null, maxBytes: 2 ** 30, writer: 'w' });
  onTestFinished(() => host.close());
  const api = createWorkerApi(host, 'w');
  api.open(NOON);
  for (const [at, id] of ['a', 'b', 'c'].entries()) api.addNode(nodeRecord(id, { addedAtMs: at }), key32(10 + at));
  api.putPending({ node: 'd', address: 'h:1', fingerprint: hash('d'), key: key32(20) }, NOON);
  api.putSecret('tls', key32(21));
  api.claim(scope, hash('b'), NOON);
  api.completeClaim(scope, { status: 200, headers: [], body: key32(22) });
  return { host, api };
}

/** Every sealed value with its place, in a fixed order. */
function sealedValues(db: Db): { readonly table: string; readonly row: string; readonly sealed: Buffer }[] {
  return SEALED_COLUMNS.flatMap(({ table, column }) =>
    (
      db.prepare(`SELECT row_uuid AS row, ${column} AS sealed FROM ${table} ORDER BY row_uuid`).all() as {
        row: string;
        sealed: Buffer;
      }[]
    ).map((value) => ({ table, ...value })),
  );
}

function reopened(folder: string): Db {
  const files = dataFiles(folder);
  const db = openDatabase({
    file: files.database,
    backups: files.backups,
    migrations: MIGRATIONS,
    nowMs: NOON,
    maxBytes: 2 ** 30,
  });
  onTestFinished(() => void db.close());
  return db;
}

const vaultOf = (db: Db, ring: Keyring): Vault =>
  new Vault(String(db.prepare("SELECT value FROM meta WHERE name = 'vault_id'").pluck().get()), ring);

describe('rotating the encryption', () => {
  it('moves every sealed row to the newest key, says how many, and everything still opens', () => {
    const folder = scratchFolder();
    const { host, api } = furnishedHost(folder, ringOne);
    expect(host.rotate(ringTwo.entries())).toEqual({ rows: 6, keyVersion: 2 });
    expect(api.probe(NOON).configuration.nodes.map(({ key }) => key)).toEqual([key32(10), key32(11), key32(12)]);
    expect(api.getSecret('tls')).toEqual(key32(21));
    expect(api.claim(scope, hash('b'), NOON)).toMatchObject({ state: 'stored', answer: { body: key32(22) } });
    host.close();
    const versions = sealedValues(reopened(folder)).map(({ sealed }) => keyVersionOf(sealed));
    expect(versions).toEqual([2, 2, 2, 2, 2, 2]);
  });

  it('leaves no old ciphertext in the database, its journal or the last good copy', () => {
    const folder = scratchFolder();
    const { host } = furnishedHost(folder, ringOne);
    host.copyLastGood();
    const old = sealedValues(reopened(folder)).map(({ sealed }) => sealed.subarray(17));
    host.rotate(ringTwo.entries());
    const files = dataFiles(folder);
    expect(statSync(`${files.database}-wal`).size).toBeLessThan(60_000);
    for (const file of [files.database, `${files.database}-wal`, files.lastGood]) {
      const bytes = readFileSync(file);
      for (const value of old) expect(bytes.includes(value)).toBe(false);
    }
  });

  it.each([1, 2, 3, 4, 5, 6])('leaves every row as it was when row %i of 6 cannot be sealed', (failing) => {
    const folder = scratchFolder();
    furnishedHost(folder, ringOne).host.close();
    const db = reopened(folder);
    const before = sealedValues(db);
    const from = vaultOf(db, ringTwo);
    class Failing extends Vault {
      #count = 0;
      override seal(...args: Parameters<Vault['seal']>): Buffer {
        this.#count += 1;
        if (this.#count === failing) throw new Error('injected');
        return super.seal(...args);
      }
    }
    const id = String(db.prepare("SELECT value FROM meta WHERE name = 'vault_id'").pluck().get());
    expect(() => rotateSealed(db, from, new Failing(id, ringTwo), randomUUID)).toThrow('injected');
    expect(sealedValues(db)).toEqual(before);
  });

  it('leaves every row as it was when one of them does not open', () => {
    const folder = scratchFolder();
    const { host } = furnishedHost(folder, ringOne);
    const other = reopened(folder);
    const sealed = other.prepare('SELECT sealed_value FROM secrets').pluck().get() as Buffer;
    sealed.writeUInt8(sealed.readUInt8(20) ^ 1, 20);
    other.prepare('UPDATE secrets SET sealed_value = ?').run(sealed);
    const before = sealedValues(other);
    expect(() => host.rotate(ringTwo.entries())).toThrow('does not open');
    expect(sealedValues(other)).toEqual(before);
  });

  it('gives a key file a new key and keeps the old one, which backups need', () => {
    const folder = scratchFolder();
    const { host } = furnishedHost(folder, null);
    expect(host.rotate(null)).toEqual({ rows: 6, keyVersion: 2 });
    const kept = Keyring.parse(readFileSync(dataFiles(folder).keyFile, 'utf8'), 'x');
    expect(kept.entries().map(({ version }) => version)).toEqual([2, 1]);
    expect(statSync(dataFiles(folder).keyFile).mode & 0o777).toBe(0o600);
  });

  it('adopts a keyring of the operator that brings the key file along', () => {
    const folder = scratchFolder();
    furnishedHost(folder, null).host.close();
    const own = Keyring.parse(readFileSync(dataFiles(folder).keyFile, 'utf8'), 'x').with({ version: 2, key: key32(9) });
    const host = new DatabaseHost({ folder, keyring: own.entries(), maxBytes: 2 ** 30, writer: 'w2' });
    onTestFinished(() => host.close());
    expect(host.open(NOON).problems).toEqual([]);
    expect(host.rotate(own.entries())).toEqual({ rows: 6, keyVersion: 2 });
  });
});

describe('a keyring that is not the one', () => {
  it('is refused when a version carries another key, before anything is sealed with it', () => {
    const folder = scratchFolder();
    furnishedHost(folder, ringOne).host.close();
    const wrong = new Keyring([{ version: 1, key: key32(99) }]);
    const host = new DatabaseHost({ folder, keyring: wrong.entries(), maxBytes: 2 ** 30, writer: 'w2' });
    expect(() => host.open(NOON)).toThrow('Key version 1 of the keyring is not the key that sealed this database');
  });

  it('still starts when the old key is lost: machines are there, their keys are not, and it is said', () => {
    const folder = scratchFolder();
    furnishedHost(folder, ringOne).host.close();
    const host = new DatabaseHost({
      folder,
      keyring: [{ version: 2, key: key32(2) }],
      maxBytes: 2 ** 30,
      writer: 'w2',
    });
    onTestFinished(() => host.close());
    const { configuration, problems } = host.open(NOON);
    expect(configuration.nodes.map(({ key }) => key)).toEqual([null, null, null]);
    expect(problems[0]?.params).toEqual({ name: 'machine a' });
    expect(problems).toHaveLength(3);
  });

  it('a lost key file is replaced by a key of a version never used before', () => {
    const folder = scratchFolder();
    const { host } = furnishedHost(folder, null);
    host.rotate(null);
    host.close();
    const files = dataFiles(folder);
    const lost = readFileSync(files.keyFile, 'utf8');
    expect(lost).toMatch(/^2:.*,1:/);
    const again = new DatabaseHost({ folder, keyring: null, maxBytes: 2 ** 30, writer: 'w2' });
    onTestFinished(() => again.close());
    rmSync(files.keyFile);
    expect(again.open(NOON).keyVersion).toBe(3);
  });
});
