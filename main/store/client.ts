import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { SwitchyardError } from '../domain/errors.ts';
import { type Said, said } from '../domain/said.ts';
import type { Clock } from '../domain/time.ts';
import { createAccessStore, createNodeStore, createRoleStore, createSettingsStore } from './client-config.ts';
import {
  createBudgetStateStore,
  createEventStore,
  createGateStore,
  createIdempotencyStore,
  createSecretStore,
  createSeriesStore,
  createTraceStore,
  createUsageStore,
} from './client-records.ts';
import { FAULTS_SAID, type FaultKind } from './faults.ts';
import { dataFiles, ensurePrivateFolder, removeLeftovers } from './files.ts';
import { findKeySource, type KeySource, type KeySourceOptions } from './key-source.ts';
import type { Keyring } from './keyring.ts';
import { lockDataFolder, type OwnerLock } from './owner-lock.ts';
import type * as ports from './ports.ts';
import { RecordWriter } from './record-writer.ts';
import { Snapshot } from './snapshot.ts';
import type { Opened, WorkerApi, WorkerMethod, WorkerSettings } from './worker-api.ts';
import { WorkerChannel, type WorkerThread } from './worker-channel.ts';

export interface StoreOptions {
  /** Made when it is missing; for its owner alone. */
  readonly dataFolder: string;
  /** `new URL('./worker.ts', import.meta.url)` from source, `store-worker.js` beside the bundle. */
  readonly workerUrl: URL;
  readonly clock: Clock;
  readonly keys?: KeySourceOptions;
  /** Size the database may reach; 1 GiB unless told. */
  readonly maxBytes?: number;
  /** How the thread is started; for tests that need one which dies. */
  readonly spawn?: (url: URL, settings: WorkerSettings) => WorkerThread;
}

const CALL_MS = 5_000;
/** A migration or rotation of a large database takes its time. */
const LONG_CALL_MS = 600_000;
const STOP_MS = 3_000;
const PROBE_MS = 2_000;
const LAST_GOOD_MS = 1_000;
const RETAIN_MS = 3_600_000;
const FIRST_RETAIN_MS = 60_000;

/** What the parts of the store need of its middle. */
export interface StoreCore {
  readonly clock: Clock;
  readonly snapshot: Snapshot;
  readonly writer: RecordWriter;
  /** A call that changes configuration: `apply` runs when the database took it, also when the answer came too late. */
  change<Method extends WorkerMethod>(
    what: ports.ConfigChange,
    apply: (result: ReturnType<WorkerApi[Method]>) => void,
    method: Method,
    ...args: Parameters<WorkerApi[Method]>
  ): Promise<ReturnType<WorkerApi[Method]>>;
  /** A revocation: `apply` runs at once, and the call is repeated after an outage until the database took it. */
  revoke<Method extends WorkerMethod>(
    what: ports.ConfigChange,
    apply: () => void,
    method: Method,
    ...args: Parameters<WorkerApi[Method]>
  ): Promise<void>;
  call<Method extends WorkerMethod>(
    method: Method,
    ...args: Parameters<WorkerApi[Method]>
  ): Promise<ReturnType<WorkerApi[Method]>>;
  /** As `call`, after what was recorded before. */
  callAfterRecords<Method extends WorkerMethod>(
    method: Method,
    ...args: Parameters<WorkerApi[Method]>
  ): Promise<ReturnType<WorkerApi[Method]>>;
  /** The next copy of the configuration holds what just changed. */
  touchLastGood(): void;
}

const spawnThread = (url: URL, settings: WorkerSettings): WorkerThread =>
  new Worker(url, { workerData: settings, name: 'switchyard-store' });

interface Revocation {
  readonly apply: () => void;
  readonly run: () => Promise<unknown>;
}

/** The store as the composition root builds it; see `ports.ts` for what each member promises. */
export class SqliteStore implements ports.Store {
  readonly #options: StoreOptions;
  readonly #snapshot = new Snapshot();
  readonly #channel: WorkerChannel;
  readonly #writer: RecordWriter;
  readonly #changeListeners = new Set<(change: ports.ConfigChange) => void>();
  readonly #healthListeners = new Set<(health: ports.StoreHealth) => void>();
  readonly #timers = new Map<string, () => void>();
  #revocations: Revocation[] = [];
  #lock: OwnerLock | null = null;
  #keySource: KeySource | null = null;
  #state: ports.StoreHealth['state'] = 'stopped';
  #reason: Said | null = null;
  #problems: readonly Said[] = [];
  /** Null: the thread has the key file. */
  #keyring: Keyring | null = null;
  #keyVersion = 0;
  #restarts = 0;
  #databaseBytes = 0;
  #isLastGoodStale = false;

  readonly settings: ports.SettingsStore;
  readonly roles: ports.RoleStore;
  readonly nodes: ports.NodeStore;
  readonly access: ports.AccessStore;
  readonly traces: ports.TraceStore;
  readonly events: ports.EventStore;
  readonly usage: ports.UsageStore;
  readonly series: ports.SeriesStore;
  readonly budget: ports.BudgetStateStore;
  readonly gate: ports.Store['gate'];
  readonly idempotency: ports.Store['idempotency'];
  readonly secrets: ports.SecretStore;
  readonly vault: ports.VaultAdmin = {
    report: () => this.#vaultReport(),
    rotateEncryption: () => this.#rotate(),
  };
  readonly maintenance: ports.Maintenance = {
    backup: () => this.#long('backup', this.#options.clock.wallMs()),
    retain: () => this.#retain(),
  };

  constructor(options: StoreOptions) {
    this.#options = options;
    const { clock, spawn = spawnThread } = options;
    const writer = randomUUID();
    this.#channel = new WorkerChannel({
      clock,
      spawn: () =>
        spawn(options.workerUrl, {
          folder: path.resolve(options.dataFolder),
          keyring: this.#keyring?.entries() ?? null,
          maxBytes: options.maxBytes ?? 1024 ** 3,
          writer,
        }),
      onFault: (fault) => this.#hear(fault),
      onCrash: () => {
        if (this.#state === 'stopped') return;
        this.#restarts += 1;
        this.#setState('degraded', said('store_thread_stopped'));
      },
      onRespawn: () => void this.#recover('open'),
    });
    this.#writer = new RecordWriter({
      clock,
      write: (batch) => this.#channel.within(CALL_MS, this.#channel.call('writeBatch', batch)),
    });
    const core = this.#core();
    this.settings = createSettingsStore(core);
    this.roles = createRoleStore(core);
    this.nodes = createNodeStore(core);
    this.access = createAccessStore(core);
    this.traces = createTraceStore(core);
    this.events = createEventStore(core);
    this.usage = createUsageStore(core);
    this.series = createSeriesStore(core);
    this.budget = createBudgetStateStore(core);
    this.gate = createGateStore(core);
    this.idempotency = createIdempotencyStore(core);
    this.secrets = createSecretStore(core);
  }

  async start(): Promise<void> {
    const { dataFolder, keys = {} } = this.#options;
    const files = dataFiles(path.resolve(dataFolder));
    try {
      ensurePrivateFolder(files.folder);
      this.#lock = lockDataFolder(files.folder);
      removeLeftovers(files.folder);
      removeLeftovers(files.backups);
      this.#keySource = await findKeySource(files.folder, keys);
      this.#keyring = this.#keySource.keyring;
      this.#channel.start();
      const opened = await this.#long('open', this.#options.clock.wallMs());
      this.#takeOver(opened);
    } catch (error) {
      await this.stop();
      if (error instanceof SwitchyardError) throw error;
      throw new SwitchyardError('store_unavailable', said('store_no_folder', { folder: files.folder }));
    }
    this.#touchLastGood();
    this.#every('retain', FIRST_RETAIN_MS, () => {
      void this.#retain().catch(() => undefined);
      return RETAIN_MS;
    });
  }

  async stop(): Promise<void> {
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
    this.#writer.stop();
    if (this.#state !== 'stopped') {
      await this.#channel
        .within(
          STOP_MS,
          this.#writer.flush().then(() => this.#copyLastGood()),
        )
        .catch(() => undefined);
      this.#setState('stopped', null);
      await this.#channel.within(STOP_MS, this.#channel.call('close')).catch(() => undefined);
    }
    await this.#channel.close();
    this.#lock?.release();
    this.#lock = null;
  }

  health(): ports.StoreHealth {
    const weak = this.#keySource?.weak;
    return {
      state: this.#state,
      reason: this.#reason,
      buffered: this.#writer.waiting,
      dropped: this.#writer.dropped(),
      restarts: this.#restarts,
      databaseBytes: this.#databaseBytes,
      problems: [...(weak ? [weak] : []), ...this.#problems, ...this.#snapshot.problems],
    };
  }

  onHealth(listener: (health: ports.StoreHealth) => void): () => void {
    this.#healthListeners.add(listener);
    return () => this.#healthListeners.delete(listener);
  }

  onChange(listener: (change: ports.ConfigChange) => void): () => void {
    this.#changeListeners.add(listener);
    return () => this.#changeListeners.delete(listener);
  }

  #core(): StoreCore {
    return {
      clock: this.#options.clock,
      snapshot: this.#snapshot,
      writer: this.#writer,
      call: (method, ...args) => this.#channel.within(CALL_MS, this.#channel.call(method, ...args)),
      callAfterRecords: async (method, ...args) => {
        await this.#writer.flush();
        return this.#channel.within(CALL_MS, this.#channel.call(method, ...args));
      },
      change: (what, apply, method, ...args) => {
        const answer = this.#channel.call(method, ...args).then((result) => {
          apply(result);
          this.#told(what);
          return result;
        });
        return this.#channel.within(CALL_MS, answer);
      },
      revoke: async (what, apply, method, ...args) => {
        apply();
        this.#told(what);
        const run = (): Promise<unknown> => this.#channel.within(CALL_MS, this.#channel.call(method, ...args));
        try {
          await run();
        } catch (error) {
          if (error instanceof SwitchyardError && error.code === 'store_unavailable') {
            this.#revocations.push({ apply, run });
          }
          throw error;
        }
      },
      touchLastGood: () => this.#touchLastGood(),
    };
  }

  #told(change: ports.ConfigChange): void {
    for (const listener of this.#changeListeners) listener(change);
    this.#touchLastGood();
  }

  #takeOver(opened: Opened): void {
    this.#snapshot.replace(opened.configuration);
    for (const { apply } of this.#revocations) apply();
    this.#keyVersion = opened.keyVersion;
    this.#problems = opened.problems;
    if (opened.fault === null) this.#setState('ok', null);
    else this.#setState('degraded', FAULTS_SAID[opened.fault]);
    for (const listener of this.#changeListeners) listener('all');
  }

  /** What an answer of the thread says about the database. A working call ends an outage only through `#recover`. */
  #hear(fault: FaultKind | null): void {
    if (fault !== null && this.#state !== 'stopped') this.#setState('degraded', FAULTS_SAID[fault]);
  }

  #setState(state: ports.StoreHealth['state'], reason: Said | null): void {
    const isNew = state !== this.#state || reason?.code !== this.#reason?.code;
    this.#state = state;
    this.#reason = reason;
    if (isNew) for (const listener of this.#healthListeners) listener(this.health());
    if (state !== 'degraded' || this.#timers.has('probe')) return;
    this.#every('probe', PROBE_MS, () => {
      if (this.#state !== 'degraded') return null;
      void this.#recover('probe');
      return PROBE_MS;
    });
  }

  /** Opens or tries the database; when it works, makes up for revocations and takes its configuration over. */
  async #recover(how: 'open' | 'probe'): Promise<void> {
    try {
      const opened = await this.#long(how, this.#options.clock.wallMs());
      // What is in memory is newer than the last good copy.
      if (opened.fault !== null) return;
      if (this.#revocations.length === 0) {
        this.#takeOver(opened);
        return;
      }
      const due = this.#revocations;
      for (const { run } of due) await run().catch(ignoreUnknown);
      this.#revocations = this.#revocations.filter((each) => !due.includes(each));
      this.#takeOver(await this.#long('probe', this.#options.clock.wallMs()));
    } catch {
      // Still away; the next probe tries again.
    }
  }

  /** @param task runs after `delayMs`, and again after what it returns until that is null. */
  #every(name: string, delayMs: number, task: () => number | null): void {
    this.#timers.get(name)?.();
    this.#timers.set(
      name,
      this.#options.clock.after(delayMs, () => {
        this.#timers.delete(name);
        const next = task();
        if (next !== null) this.#every(name, next, task);
      }),
    );
  }

  #long<Method extends WorkerMethod>(
    method: Method,
    ...args: Parameters<WorkerApi[Method]>
  ): Promise<ReturnType<WorkerApi[Method]>> {
    return this.#channel.within(LONG_CALL_MS, this.#channel.call(method, ...args));
  }

  #touchLastGood(): void {
    this.#isLastGoodStale = true;
    if (this.#timers.has('last-good') || this.#state === 'stopped') return;
    this.#every('last-good', LAST_GOOD_MS, () => {
      void this.#copyLastGood();
      return null;
    });
  }

  async #copyLastGood(): Promise<void> {
    if (!this.#isLastGoodStale || this.#state !== 'ok') return;
    this.#isLastGoodStale = false;
    try {
      await this.#long('copyLastGood');
      this.#databaseBytes = await this.#long('usedBytes');
    } catch {
      this.#isLastGoodStale = true;
    }
  }

  async #retain(): Promise<number> {
    let removed = 0;
    for (;;) {
      const { rows, more } = await this.#long('retain', this.#options.clock.wallMs());
      removed += rows;
      if (!more) return removed;
    }
  }

  #vaultReport(): ports.VaultReport {
    const { source = 'key-file', weak = null } = this.#keySource ?? {};
    return { source, weak, keyVersion: this.#keyVersion };
  }

  async #rotate(): Promise<{ readonly rows: number; readonly keyVersion: number }> {
    if (this.#state !== 'ok') throw new SwitchyardError('store_unavailable', this.#reason ?? undefined);
    this.#keyring = (await this.#keySource?.renew()) ?? null;
    const rotated = await this.#long('rotate', this.#keyring?.entries() ?? null);
    this.#keyVersion = rotated.keyVersion;
    return rotated;
  }
}

/** A revocation of what is not there any more has done its work. */
function ignoreUnknown(error: unknown): void {
  if (error instanceof SwitchyardError && error.code !== 'store_unavailable') return;
  throw error;
}
