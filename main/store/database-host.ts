import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { SwitchyardError } from '../domain/errors.ts';
import { said } from '../domain/said.ts';
import type { GateSnapshot } from '../gate/store-port.ts';
import { backUp, type Db, openDatabase, openReadOnly, usedBytes } from './database.ts';
import { type FaultKind, faultOf, NotOurDatabase, unavailable } from './faults.ts';
import { dataFiles, writeWhole } from './files.ts';
import { Keyring, type KeyringEntry } from './keyring.ts';
import { writeLastGood } from './last-good.ts';
import { MIGRATIONS } from './migrations/index.ts';
import type { Migration } from './migrations/migration.ts';
import { Access } from './repositories/access.ts';
import { Answers } from './repositories/answers.ts';
import { Documents } from './repositories/documents.ts';
import { Figures } from './repositories/figures.ts';
import { GateRecords } from './repositories/gate.ts';
import { Nodes } from './repositories/nodes.ts';
import { Records } from './repositories/records.ts';
import { Secrets } from './repositories/secrets.ts';
import { type Statements, statementsOf } from './repositories/statements.ts';
import { makeRoom, retainSome } from './retention.ts';
import { checkKeyring, highestKeyVersion, rotateSealed } from './sealed.ts';
import { Vault } from './vault.ts';
import type { Configuration, Opened, WorkerSettings } from './worker-api.ts';

/** An open database and everything that reads and writes it. */
export interface Rooms {
  readonly db: Db;
  readonly sql: Statements;
  readonly documents: Documents;
  readonly nodes: Nodes;
  readonly access: Access;
  readonly records: Records;
  readonly figures: Figures;
  readonly gate: GateRecords;
  readonly answers: Answers;
  readonly secrets: Secrets;
}

const VAULT_ID = 'vault_id';
const ADMIN_TOKEN = 'admin_token_sha256';

/**
 * Owns the database file inside the store's thread: opens it, keeps track of what is wrong with it, falls back to the last good
 * copy at the start, and opens it again when it is back. Nothing here is asynchronous.
 */
export class DatabaseHost {
  readonly #settings: WorkerSettings;
  readonly #migrations: readonly Migration[];
  readonly #files: ReturnType<typeof dataFiles>;
  #rooms: Rooms | null = null;
  #vault: Vault | null = null;
  #keyring: Keyring | null = null;
  #fault: FaultKind | null = null;
  #inode = 0;
  #isRebuilt = false;

  constructor(settings: WorkerSettings, migrations: readonly Migration[] = MIGRATIONS) {
    this.#settings = settings;
    this.#migrations = migrations;
    this.#files = dataFiles(settings.folder);
  }

  /** What kept the last call from working; null: it worked. */
  get fault(): FaultKind | null {
    return this.#fault;
  }

  /**
   * Opens the database, or else the last good copy of its configuration.
   * Throws `store_newer`, `vault_locked`, or `store_unavailable` when there is neither.
   */
  open(nowMs: number): Opened {
    try {
      return this.#openForWriting(nowMs);
    } catch (error) {
      const kind = this.#noteFault(error);
      const copy = existsSync(this.#files.lastGood) ? this.#openLastGood() : null;
      if (!copy) throw unavailable(kind);
      return { ...copy, fault: kind };
    }
  }

  /** As `open` without falling back: throws while the database does not take a write. */
  probe(nowMs: number): Opened {
    if (!this.#rooms) {
      try {
        return this.#openForWriting(nowMs);
      } catch (error) {
        throw unavailable(this.#noteFault(error));
      }
    }
    this.write(({ documents }) => documents.putMeta('last_probe_ms', String(nowMs)));
    return { ...this.#describe(this.#open()), fault: null };
  }

  close(): void {
    this.#rooms?.db.close();
    this.#rooms = null;
  }

  /** Runs a change; at a full database once more after making room. Throws SwitchyardError only. */
  write<Result>(change: (rooms: Rooms) => Result): Result {
    const rooms = this.#open();
    try {
      return this.#run(rooms, change);
    } catch (error) {
      if (faultOf(error) !== 'full') throw this.#translate(error);
      try {
        makeRoom(rooms.db);
        return this.#run(rooms, change);
      } catch (again) {
        throw this.#translate(again);
      }
    }
  }

  /** Runs a reader. Throws SwitchyardError only. */
  read<Result>(reader: (rooms: Rooms) => Result): Result {
    try {
      return reader(this.#open());
    } catch (error) {
      throw this.#translate(error);
    }
  }

  /** The gate's findings; from the last good copy where the database could not be opened, so that a start can serve. */
  loadGate(): GateSnapshot {
    if (this.#rooms || !existsSync(this.#files.lastGood)) return this.read(({ gate }) => gate.load());
    const db = openReadOnly(this.#files.lastGood, this.#migrations);
    try {
      return this.#furnish(db).gate.load();
    } finally {
      db.close();
    }
  }

  copyLastGood(): void {
    this.read(({ db }) => writeLastGood(db, this.#files.lastGood));
  }

  backup(nowMs: number): string {
    return this.read(({ db }) => backUp(db, this.#files.backups, nowMs));
  }

  usedBytes(): number {
    return this.#rooms ? usedBytes(this.#rooms.db) : 0;
  }

  retain(nowMs: number): { readonly rows: number; readonly more: boolean } {
    return this.write(({ db }) => retainSome(db, nowMs, this.#settings.maxBytes));
  }

  putAdminToken(sha256: string): void {
    this.write(({ documents }) => documents.putMeta(ADMIN_TOKEN, sha256));
  }

  /** @param entries null: the key file gets a new key, and keeps the old ones for backups. */
  rotate(entries: readonly KeyringEntry[] | null): { readonly rows: number; readonly keyVersion: number } {
    this.#open();
    const from = this.#vaultOrThrow();
    const keyring = entries ? new Keyring(entries) : this.#renewKeyFile();
    // Rows may rest under any key that is still held, old keyring or new.
    const known = new Map(
      [...(this.#keyring?.entries() ?? []), ...keyring.entries()].map((entry) => [entry.version, entry]),
    );
    const opener = from.under(new Keyring([...known.values()]));
    const to = from.under(keyring);
    const rows = this.write(({ db }) => rotateSealed(db, opener, to, randomUUID));
    this.#vault = to;
    this.#keyring = keyring;
    this.copyLastGood();
    return { rows, keyVersion: to.keyVersion };
  }

  #openForWriting(nowMs: number): Opened {
    this.close();
    this.#rebuildIfLost();
    const db = openDatabase({
      file: this.#files.database,
      backups: this.#files.backups,
      migrations: this.#migrations,
      nowMs,
      maxBytes: this.#settings.maxBytes,
    });
    try {
      const rooms = this.#furnish(db);
      const id = rooms.documents.meta(VAULT_ID) ?? randomUUID();
      if (rooms.documents.meta(VAULT_ID) === null) rooms.documents.putMeta(VAULT_ID, id);
      const keyring = this.#settings.keyring
        ? new Keyring(this.#settings.keyring)
        : this.#keyFile(highestKeyVersion(db));
      const vault = new Vault(id, keyring);
      checkKeyring(db, vault, randomUUID);
      this.#vault = vault;
      this.#keyring = keyring;
      const opened = { ...this.#describe(rooms), fault: null };
      this.#rooms = rooms;
      this.#inode = statSync(this.#files.database).ino;
      this.#fault = null;
      return opened;
    } catch (error) {
      db.close();
      throw error;
    }
  }

  /** A database that is gone comes back from the last good copy: what it lacks is history, not configuration. */
  #rebuildIfLost(): void {
    const { database, lastGood } = this.#files;
    if (existsSync(database) && statSync(database).size > 0) return;
    // Journals without their database would be played into the new one.
    for (const suffix of ['-wal', '-shm', '-journal']) rmSync(`${database}${suffix}`, { force: true });
    if (!existsSync(lastGood)) return;
    openReadOnly(lastGood, this.#migrations).close();
    writeWhole(database, readFileSync(lastGood));
    this.#isRebuilt = true;
  }

  #openLastGood(): Omit<Opened, 'fault'> | null {
    let db: Db;
    try {
      db = openReadOnly(this.#files.lastGood, this.#migrations);
    } catch {
      return null;
    }
    try {
      const rooms = this.#furnish(db);
      // Without its key file nothing opens; a key that is never written anywhere keeps the rest of the start alike.
      const keyring = this.#settings.keyring
        ? new Keyring(this.#settings.keyring)
        : (this.#readKeyFile() ?? new Keyring([{ version: 1, key: randomBytes(32) }]));
      this.#vault = new Vault(rooms.documents.meta(VAULT_ID) ?? '', keyring);
      this.#keyring = keyring;
      return this.#describe(rooms);
    } finally {
      db.close();
    }
  }

  #describe(rooms: Rooms): Omit<Opened, 'fault'> {
    const configuration: Configuration = {
      documents: rooms.documents.all(),
      adminTokenSha256: rooms.documents.meta(ADMIN_TOKEN),
      nodes: rooms.nodes.all(),
      pending: rooms.nodes.pending(),
      weights: rooms.nodes.weights(),
      projects: rooms.access.projects(),
      apiKeys: rooms.access.apiKeys(),
    };
    const closed = configuration.nodes.filter(({ key }) => key === null).map(({ record }) => record.name);
    const problems = closed.map((name) => said('store_node_key', { name }));
    if (this.#isRebuilt) problems.push(said('store_rebuilt'));
    return { configuration, keyVersion: this.#vaultOrThrow().keyVersion, problems };
  }

  #furnish(db: Db): Rooms {
    const sql = statementsOf(db);
    const vault = (): Vault => this.#vaultOrThrow();
    return {
      db,
      sql,
      documents: new Documents(db, sql),
      nodes: new Nodes(db, sql, vault, randomUUID),
      access: new Access(db, sql),
      records: new Records(sql),
      figures: new Figures(sql),
      gate: new GateRecords(db, sql),
      answers: new Answers(db, sql, vault, randomUUID),
      secrets: new Secrets(db, sql, vault, randomUUID),
    };
  }

  #vaultOrThrow(): Vault {
    if (!this.#vault) throw new SwitchyardError('vault_locked');
    return this.#vault;
  }

  #readKeyFile(): Keyring | null {
    if (!existsSync(this.#files.keyFile)) return null;
    return Keyring.parse(readFileSync(this.#files.keyFile, 'utf8'), 'The key file vault.key');
  }

  /** The key file, made under a version that this database has not seen when it is missing. */
  #keyFile(highest: number): Keyring {
    const found = this.#readKeyFile();
    if (found) return found;
    const made = new Keyring([{ version: highest + 1, key: randomBytes(32) }]);
    writeWhole(this.#files.keyFile, `${made.text()}\n`);
    return made;
  }

  #renewKeyFile(): Keyring {
    const current = this.#readKeyFile() ?? this.#keyring;
    if (!current) throw new SwitchyardError('vault_locked');
    const renewed = current.with({ version: current.newest.version + 1, key: randomBytes(32) });
    // On disk before a row needs it: a kill in between leaves a key too many, never one too few.
    writeWhole(this.#files.keyFile, `${renewed.text()}\n`);
    return renewed;
  }

  #open(): Rooms {
    if (!this.#rooms) throw unavailable(this.#fault ?? 'unreachable');
    return this.#rooms;
  }

  #run<Result>(rooms: Rooms, change: (rooms: Rooms) => Result): Result {
    this.#checkFile();
    const result = change(rooms);
    this.#fault = null;
    return result;
  }

  /** On POSIX a deleted or replaced file still takes writes that nobody will ever read. */
  #checkFile(): void {
    const found = statSync(this.#files.database, { throwIfNoEntry: false });
    if (found?.ino === this.#inode) return;
    this.close();
    this.#fault = 'unreachable';
    throw unavailable('unreachable');
  }

  #translate(error: unknown): SwitchyardError {
    if (error instanceof SwitchyardError) return error;
    const kind = faultOf(error);
    if (kind === null || kind === 'refused') return new SwitchyardError('internal_error', 'The store refused a value.');
    this.#fault = kind;
    if (kind === 'damaged' || kind === 'unreachable') this.close();
    return unavailable(kind);
  }

  /** @returns what is wrong; throws what no copy can help with. */
  #noteFault(error: unknown): FaultKind {
    if (error instanceof SwitchyardError && error.code !== 'store_unavailable') throw error;
    const kind = error instanceof NotOurDatabase ? 'damaged' : faultOf(error);
    this.#fault = kind === null || kind === 'refused' ? 'unreachable' : kind;
    return this.#fault;
  }
}
