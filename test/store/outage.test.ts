import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { NodeId, ProjectId } from '../../main/domain/ids.ts';
import { defaultRoleSettings } from '../../main/domain/roles.ts';
import type { SqliteStore } from '../../main/store/client.ts';
import { dataFiles } from '../../main/store/files.ts';
import type { WorkerSettings } from '../../main/store/worker-api.ts';
import {
  apiKey,
  hash,
  key32,
  ManualClock,
  NOON,
  nodeRecord,
  scratchFolder,
  startedStore,
  storeIn,
  usageEntry,
} from './support.ts';

const codeOf = (run: Promise<unknown>): Promise<string> =>
  run.then(
    () => 'done',
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : String(error)),
  );

/** How long a real thread or file may take on a busy machine. */
const WAIT = { timeout: 15_000, interval: 20 };

const rlm = { ...defaultRoleSettings('rlm'), maxLocalWaitMs: 77 };

/** A store with a node, a key and a role, as it stands before things go wrong. */
async function furnish(store: SqliteStore): Promise<void> {
  await store.roles.put('rlm', rlm);
  await store.nodes.add(nodeRecord('n1'), key32(5));
  await store.access.addProject({ id: 'house' as ProjectId, name: 'House', createdAtMs: NOON });
  await store.access.addApiKey(apiKey('k1', 'house'), hash('1'));
}

function expectServes(store: SqliteStore): void {
  expect(store.roles.get('rlm').value).toEqual(rlm);
  expect(store.nodes.key('n1' as NodeId)).toEqual(key32(5));
  expect(store.access.find(hash('1'))?.id).toBe('k1');
}

/** Lets the probe timer fire until the store is back. */
async function recovered(store: SqliteStore, clock: ManualClock): Promise<void> {
  await vi.waitFor(() => {
    clock.advance(2_000);
    expect(store.health().state).toBe('ok');
  }, WAIT);
}

async function requestsCounted(store: SqliteStore): Promise<number> {
  const rows = await store.usage.query({ fromDay: '2026-01-01', toDay: '2026-12-31' });
  return rows.reduce((sum, row) => sum + row.requests, 0);
}

/** Starts the real thread and notes it, so that a test can end it. */
function recordedSpawn(threads: Worker[]): (url: URL, settings: WorkerSettings) => Worker {
  return (url, workerData) => {
    const thread = new Worker(url, { workerData });
    threads.push(thread);
    return thread;
  };
}

describe('while the database is locked by another program', () => {
  it('serves from memory, refuses changes, keeps usage and writes it later', async () => {
    const folder = scratchFolder();
    const clock = new ManualClock();
    const store = await startedStore(folder, { clock });
    await furnish(store);
    const states: string[] = [];
    store.onHealth(({ state }) => states.push(state));

    const other = new Database(dataFiles(folder).database);
    onTestFinished(() => void other.close());
    other.exec('BEGIN IMMEDIATE');
    expect(await codeOf(store.roles.put('rlm', { ...rlm, enabled: false }))).toBe('store_unavailable');
    expect(store.health()).toMatchObject({ state: 'degraded', reason: { code: 'store_locked' } });
    store.usage.record(usageEntry());
    const scope = { project: 'house' as ProjectId, route: '/v1/rerank', key: 'x' };
    expect(await codeOf(store.idempotency.claim(scope, hash('1')))).toBe('store_unavailable');
    expectServes(store);

    other.exec('COMMIT');
    await recovered(store, clock);
    expect(await requestsCounted(store)).toBe(1);
    await store.roles.put('rlm', { ...rlm, enabled: false });
    expect(store.roles.get('rlm').value.enabled).toBe(false);
    expect(states).toEqual(['degraded', 'ok']);
  });

  it('starts all the same, from the last good copy', async () => {
    const folder = scratchFolder();
    const clock = new ManualClock();
    const first = await startedStore(folder, { clock });
    await furnish(first);
    await first.stop();
    const other = new Database(dataFiles(folder).database);
    onTestFinished(() => void other.close());
    other.pragma('locking_mode = EXCLUSIVE');
    other.exec('BEGIN EXCLUSIVE');

    const store = await startedStore(folder, { clock });
    expect(store.health().state).toBe('degraded');
    expectServes(store);
    expect(await codeOf(store.settings.put('a', 1))).toBe('store_unavailable');
    other.close();
    await recovered(store, clock);
    expectServes(store);
    await store.settings.put('a', 1);
  });
});

describe('with a damaged database', () => {
  it('starts from the last good copy, never touches the damaged file, and is back when it is repaired', async () => {
    const folder = scratchFolder();
    const clock = new ManualClock();
    const files = dataFiles(folder);
    const first = await startedStore(folder, { clock });
    await furnish(first);
    await first.stop();
    const whole = readFileSync(files.database);
    const damaged = Buffer.from(whole);
    damaged.fill(0x5a, 0, 8_192);
    writeFileSync(files.database, damaged);

    const store = await startedStore(folder, { clock });
    expect(store.health()).toMatchObject({ state: 'degraded', reason: { code: 'store_damaged' } });
    expectServes(store);
    expect(await store.gate.load()).toEqual({ spaces: [], verdicts: [], firsts: [] });
    expect(await codeOf(store.settings.put('a', 1))).toBe('store_unavailable');
    clock.advance(2_000);
    expect(await codeOf(store.settings.put('a', 1))).toBe('store_unavailable');
    expect(readFileSync(files.database)).toEqual(damaged);

    writeFileSync(files.database, whole);
    await recovered(store, clock);
    expectServes(store);
    await store.settings.put('a', 1);
  });

  it('refuses to start with neither database nor copy', async () => {
    const folder = scratchFolder();
    const files = dataFiles(folder);
    writeFileSync(files.database, 'garbage '.repeat(2_000));
    const store = storeIn(folder, { clock: new ManualClock() });
    await expect(store.start()).rejects.toThrow('damaged');
  });

  it('tells that the record of the budget cannot be read, and that it is something else than none', async () => {
    const folder = scratchFolder();
    const clock = new ManualClock();
    const first = await startedStore(folder, { clock });
    expect(first.budget.load()).toBeNull();
    first.budget.save({ paused: true });
    await first.stop();
    const db = new Database(dataFiles(folder).database);
    db.prepare("UPDATE documents SET body = '{torn' WHERE name = 'budget'").run();
    db.close();
    const store = await startedStore(folder, { clock });
    expect(store.budget.load()).not.toBeNull();
    expect(store.health().problems.map(({ code }) => code)).toContain('store_budget_unread');
  });

  it('tells that settings cannot be read, and that they are something else than none', async () => {
    const folder = scratchFolder();
    const clock = new ManualClock();
    const first = await startedStore(folder, { clock });
    await first.settings.put('project-caps', { one: { dayUsd: 1, monthUsd: null } });
    await first.stop();
    const db = new Database(dataFiles(folder).database);
    db.prepare("UPDATE documents SET body = '{torn' WHERE name = 'settings:project-caps'").run();
    db.close();
    const store = await startedStore(folder, { clock });
    expect(store.settings.get('project-caps')).toMatchObject({ value: null });
    expect(store.settings.get('endpoint')).toBeNull();
    expect(store.health().problems.map(({ code }) => code)).toContain('project_caps_unread');
    await store.settings.put('project-caps', {});
    expect(store.health().problems.map(({ code }) => code)).not.toContain('project_caps_unread');
  });

  it('switches a role off, and keeps it local, when its settings cannot be understood', async () => {
    const folder = scratchFolder();
    const clock = new ManualClock();
    const first = await startedStore(folder, { clock });
    await first.roles.put('rlm', rlm);
    await first.roles.put('reranker', defaultRoleSettings('reranker'));
    await first.stop();
    const db = new Database(dataFiles(folder).database);
    db.prepare('UPDATE documents SET body = \'{"policy":"everywhere"}\' WHERE name = \'role:rlm\'').run();
    db.prepare("UPDATE documents SET body = '{torn' WHERE name = 'role:reranker'").run();
    db.close();
    const store = await startedStore(folder, { clock });
    for (const role of ['rlm', 'reranker'] as const) {
      expect(store.roles.get(role).value).toMatchObject({ enabled: false, policy: 'local' });
    }
    expect(store.health().problems.filter(({ code }) => code === 'store_role_unread')).toHaveLength(2);
    await store.roles.put('rlm', rlm);
    expect(store.roles.get('rlm').value).toEqual(rlm);
    // Saved again it is no problem any more.
    expect(store.health().problems.filter(({ code }) => code === 'store_role_unread')).toHaveLength(1);
  });
});

describe('when the database file is gone', () => {
  it('rebuilds it from the last good copy at the start', async () => {
    const folder = scratchFolder();
    const clock = new ManualClock();
    const files = dataFiles(folder);
    const first = await startedStore(folder, { clock });
    await furnish(first);
    for (let at = 0; at < 30; at += 1) await first.settings.put(`filler-${at}`, 'x'.repeat(9_000));
    await first.stop();
    const second = await startedStore(folder, { clock });
    for (let at = 0; at < 30; at += 7) await second.settings.put(`filler-${at}`, 'short');
    const journal = readFileSync(`${files.database}-wal`);
    await second.stop();
    rmSync(files.database);
    // A whole journal of the lost file, which SQLite would play into the new one page by page.
    writeFileSync(`${files.database}-wal`, journal);

    const store = await startedStore(folder, { clock });
    expect(store.health().state).toBe('ok');
    expect(store.health().problems.map(({ code }) => code)).toContain('store_rebuilt');
    expectServes(store);
    await store.settings.put('a', 1);
    await store.stop();
    const db = new Database(files.database, { readonly: true });
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
    db.close();
  });

  it('notices a file deleted under it instead of writing where nobody reads', async () => {
    const folder = scratchFolder();
    const clock = new ManualClock();
    const files = dataFiles(folder);
    const store = await startedStore(folder, { clock });
    await furnish(store);
    clock.advance(1_000);
    await vi.waitFor(() => expect(existsSync(files.lastGood)).toBe(true), WAIT);
    await store.maintenance.retain();
    for (const suffix of ['', '-wal', '-shm']) rmSync(files.database + suffix);
    expect(await codeOf(store.settings.put('a', 1))).toBe('store_unavailable');
    await recovered(store, clock);
    expectServes(store);
    await store.settings.put('a', 1);
    await store.stop();
    expect((await startedStore(folder, { clock })).settings.get('a')?.value).toBe(1);
  });
});

describe('on a full disk', () => {
  const canMount = ((): boolean => {
    const folder = '/tmp/switchyard-mount-probe';
    try {
      execFileSync(
        'sh',
        ['-c', `mkdir -p ${folder} && mount -t tmpfs -o size=64k tmpfs ${folder} && umount ${folder}`],
        {
          stdio: 'ignore',
        },
      );
      return true;
    } catch {
      return false;
    }
  })();

  it('refuses changes whole at the bound of its size, and takes them again with more room', async () => {
    const folder = scratchFolder();
    const clock = new ManualClock();
    const store = await startedStore(folder, { clock, maxBytes: 1_000_000 });
    await furnish(store);
    let last = '';
    let code = 'done';
    for (let at = 0; code === 'done' && at < 100; at += 1) {
      const value = `${at}:${'x'.repeat(30_000)}`;
      code = await codeOf(store.settings.put(`large-${at}`, value));
      if (code === 'done') last = `large-${at}`;
    }
    expect(code).toBe('store_unavailable');
    expect(store.health()).toMatchObject({ state: 'degraded', reason: { code: 'store_full' } });
    expectServes(store);
    await store.stop();
    const again = await startedStore(folder, { clock });
    expect(again.settings.get(last)).not.toBeNull();
    expectServes(again);
    await again.settings.put('more', 1);
  });

  const realDisk = canMount ? 'of its own' : 'of its own (skipped: mounting a small disk needs root)';
  it.runIf(canMount)(`serves from memory on a disk ${realDisk}, and goes on when there is room`, async () => {
    const folder = scratchFolder();
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m,mode=700', 'tmpfs', folder]);
    onTestFinished(() => void execFileSync('umount', ['-l', folder]));
    const clock = new ManualClock();
    const store = await startedStore(folder, { clock });
    await furnish(store);
    await store.settings.put('large', 'before');
    execFileSync('sh', ['-c', `dd if=/dev/zero of=${folder}/ballast bs=4k 2>/dev/null || true`]);

    let refused = 0;
    for (let at = 0; at < 40; at += 1) {
      const code = await codeOf(store.settings.put('large', `${at}:${'x'.repeat(50_000)}`));
      if (code === 'store_unavailable') refused += 1;
    }
    expect(refused).toBeGreaterThan(0);
    expect(store.health()).toMatchObject({ state: 'degraded', reason: { code: 'store_full' } });
    expectServes(store);
    const inMemory = store.settings.get('large');

    rmSync(`${folder}/ballast`);
    await recovered(store, clock);
    expect(store.settings.get('large')).toEqual(inMemory);
    await store.settings.put('large', 'after');
    await store.stop();
    const again = await startedStore(folder, { clock });
    expect(again.settings.get('large')?.value).toBe('after');
    expectServes(again);
    await again.stop();
  });
});

describe('a revocation during an outage', () => {
  it('acts at once, and reaches the database when it is back', async () => {
    const folder = scratchFolder();
    const clock = new ManualClock();
    const store = await startedStore(folder, { clock });
    await furnish(store);
    const other = new Database(dataFiles(folder).database);
    onTestFinished(() => void other.close());
    other.exec('BEGIN IMMEDIATE');
    expect(await codeOf(store.access.revokeApiKey('k1', NOON))).toBe('store_unavailable');
    expect(await codeOf(store.nodes.remove('n1' as NodeId))).toBe('store_unavailable');
    expect(store.access.find(hash('1'))).toBeNull();
    expect(store.nodes.key('n1' as NodeId)).toBeNull();
    other.exec('COMMIT');
    await recovered(store, clock);
    expect(store.access.find(hash('1'))).toBeNull();
    await store.stop();
    const again = await startedStore(folder, { clock });
    expect(again.access.apiKeys()[0]?.revokedAtMs).toBe(NOON);
    expect(again.nodes.list()).toEqual([]);
  });
});

describe("when the store's thread dies", () => {
  it('fails what was open, starts another, and loses neither configuration nor usage', async () => {
    const folder = scratchFolder();
    const clock = new ManualClock();
    const threads: Worker[] = [];
    const store = await startedStore(folder, { clock, spawn: recordedSpawn(threads) });
    await furnish(store);
    store.usage.record(usageEntry());
    const open = codeOf(store.maintenance.backup());
    await threads[0]?.terminate();
    expect(await open).toMatch(/done|store_unavailable/);
    expect(store.health().state).toBe('degraded');
    expectServes(store);
    expect(await codeOf(store.settings.put('a', 1))).toBe('store_unavailable');

    await recovered(store, clock);
    expect(threads).toHaveLength(2);
    expect(store.health().restarts).toBe(1);
    expectServes(store);
    await store.settings.put('a', 1);
    expect(await requestsCounted(store)).toBe(1);
  });
});

describe("when the store's thread dies at a bad time", () => {
  it('after a rotation, the next one knows the new key', async () => {
    const folder = scratchFolder();
    const clock = new ManualClock();
    const threads: Worker[] = [];
    const keychain = {
      protect: async (text: string) => Buffer.from(text),
      reveal: async (bytes: Uint8Array) => Buffer.from(bytes).toString(),
      weak: null,
    };
    const store = await startedStore(folder, { clock, keys: { keychain }, spawn: recordedSpawn(threads) });
    await furnish(store);
    await store.vault.rotateEncryption();
    await threads[0]?.terminate();
    await recovered(store, clock);
    expectServes(store);
    expect(store.health().problems).toEqual([]);
  });

  it('while the database is locked, memory is not set back to the last good copy', async () => {
    const folder = scratchFolder();
    const clock = new ManualClock();
    const threads: Worker[] = [];
    const store = await startedStore(folder, { clock, spawn: recordedSpawn(threads) });
    await furnish(store);
    clock.advance(1_000);
    await vi.waitFor(() => expect(existsSync(dataFiles(folder).lastGood)).toBe(true), WAIT);
    await store.maintenance.retain();
    await store.settings.put('newer', true);
    await threads[0]?.terminate();
    const other = new Database(dataFiles(folder).database);
    onTestFinished(() => void other.close());
    other.pragma('locking_mode = EXCLUSIVE');
    other.exec('BEGIN EXCLUSIVE');
    await vi.waitFor(() => {
      clock.advance(1_000);
      expect(store.health().reason?.code).toBe('store_locked');
    }, WAIT);
    expect(store.settings.get('newer')?.value).toBe(true);
    other.close();
    await recovered(store, clock);
    expect(store.settings.get('newer')?.value).toBe(true);
  });
});

describe('a backup', () => {
  it('put in the place of the database brings everything back', async () => {
    const folder = scratchFolder();
    const clock = new ManualClock();
    const files = dataFiles(folder);
    const store = await startedStore(folder, { clock });
    await furnish(store);
    const backup = await store.maintenance.backup();
    await store.roles.put('rlm', { ...rlm, enabled: false });
    await store.stop();
    copyFileSync(backup, files.database);
    expectServes(await startedStore(folder, { clock }));
  });
});
