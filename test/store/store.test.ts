import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { NodeId, ProjectId, ProviderId, RequestId } from '../../main/domain/ids.ts';
import { defaultRoleSettings } from '../../main/domain/roles.ts';
import { said } from '../../main/domain/said.ts';
import type { ConfigChange } from '../../main/store/ports.ts';
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
  summary,
  usageEntry,
} from './support.ts';

const codeOf = (run: Promise<unknown>): Promise<string> =>
  run.then(
    () => 'done',
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : String(error)),
  );

describe('the store', () => {
  it('serves after a restart what it acknowledged before', async () => {
    const folder = scratchFolder();
    const clock = new ManualClock();
    const store = await startedStore(folder, { clock });
    const node = nodeRecord('n1');
    const rlm = { ...defaultRoleSettings('rlm'), maxLocalWaitMs: 50, localModels: ['qwen3:8b'] };
    await store.settings.put('endpoint', { port: 7411 });
    await store.roles.put('rlm', rlm);
    await store.nodes.add(node, key32(5));
    await store.nodes.setBaseWeight('p1' as ProviderId, node.id, 2);
    await store.nodes.putPending({ node: 'n2', address: 'h:7412', fingerprint: hash('2'), key: key32(6) });
    await store.access.addProject({ id: 'house' as ProjectId, name: 'House', createdAtMs: NOON });
    await store.access.addApiKey(apiKey('k1', 'house'), hash('1'));
    await store.access.setAdminTokenSha256(hash('f'));
    store.access.used('k1', NOON + 61_500);
    store.budget.save({ day: '2026-07-15', spentUsd: 1.25 });
    await store.stop();

    const again = await startedStore(folder, { clock });
    expect(again.settings.get('endpoint')).toEqual({ version: 1, value: { port: 7411 } });
    expect(again.settings.get('none')).toBeNull();
    expect(again.roles.get('rlm')).toEqual({ version: 1, value: rlm });
    expect(again.roles.get('embedding')).toEqual({ version: 0, value: defaultRoleSettings('embedding') });
    expect(again.nodes.list()).toEqual([node]);
    expect(again.nodes.key(node.id)).toEqual(key32(5));
    expect(again.nodes.baseWeight('p1' as ProviderId)).toBe(2);
    expect(again.nodes.baseWeight('p9' as ProviderId)).toBe(1);
    expect(again.nodes.pending('h:7412')).toEqual([
      { node: 'n2', address: 'h:7412', fingerprint: hash('2'), key: key32(6) },
    ]);
    expect(again.access.find(hash('1'))).toMatchObject({ id: 'k1', project: 'house', limits: { usdPerDay: 2.5 } });
    expect(again.access.apiKeys()[0]?.lastUsedAtMs).toBe(NOON + 61_500);
    expect(again.access.hasProject('house')).toBe(true);
    expect(again.access.adminTokenSha256()).toBe(hash('f'));
    expect(again.budget.load()).toEqual({ day: '2026-07-15', spentUsd: 1.25 });
  });

  it('shows a change only after the database took it, and tells who listens', async () => {
    const store = await startedStore(scratchFolder(), { clock: new ManualClock() });
    const changes: ConfigChange[] = [];
    const unsubscribe = store.onChange((change) => changes.push(change));
    const put = store.settings.put('a', 1);
    expect(store.settings.get('a')).toBeNull();
    await put;
    expect(store.settings.get('a')).toEqual({ version: 1, value: 1 });
    expect(await codeOf(store.settings.put('a', 2, 0))).toBe('version_conflict');
    expect(store.settings.get('a')?.value).toBe(1);
    unsubscribe();
    await store.settings.put('a', 3);
    expect(changes).toEqual(['settings']);
  });

  it('refuses weights outside 0.1 to 10', async () => {
    const store = await startedStore(scratchFolder(), { clock: new ManualClock() });
    for (const weight of [0.09, 10.1, Number.NaN, -1]) {
      const set = store.nodes.setBaseWeight('p' as ProviderId, 'n' as NodeId, weight);
      expect(await codeOf(set)).toBe('invalid_request');
    }
  });

  it('hands out copies of keys, so that a caller may zero them', async () => {
    const store = await startedStore(scratchFolder(), { clock: new ManualClock() });
    const given = key32(5);
    await store.nodes.add(nodeRecord('n1'), given);
    given.fill(0);
    store.nodes.key('n1' as NodeId)?.fill(0);
    expect(store.nodes.key('n1' as NodeId)).toEqual(key32(5));
  });

  it('lists what was recorded before the question, without waiting for the writer', async () => {
    const store = await startedStore(scratchFolder(), { clock: new ManualClock() });
    store.traces.record({ summary: summary('r1'), detail: { chosen: 'p1' } });
    expect(await store.traces.get('r1' as RequestId)).toEqual({ summary: summary('r1'), detail: { chosen: 'p1' } });
    store.usage.record(usageEntry());
    store.usage.spent({ ...usageEntry(), costUsd: 0.5 });
    const [row] = await store.usage.query({ fromDay: '2026-07-15', toDay: '2026-07-15' });
    expect(row).toMatchObject({ requests: 1, costUsd: 0.5, route: 'local' });
    const step = { range: '1h' as const, atMs: 10_000, values: new Map([['cpu', 0.25]]) };
    store.series.record(step);
    expect(await store.series.load('1h', 0)).toEqual([step]);
    expect(await codeOf(store.traces.list({}, 10, 'nonsense'))).toBe('invalid_request');
  });

  it('claims, stores and replays idempotent answers through the thread', async () => {
    const store = await startedStore(scratchFolder(), { clock: new ManualClock() });
    const scope = { project: 'house' as ProjectId, route: '/v1/rerank', key: 'x' };
    expect(await store.idempotency.claim(scope, hash('1'))).toEqual({ state: 'claimed' });
    await store.idempotency.complete(scope, { status: 200, headers: ['a', 'b'], body: key32(1) });
    expect(await store.idempotency.claim(scope, hash('1'))).toEqual({
      state: 'stored',
      answer: { status: 200, headers: ['a', 'b'], body: key32(1) },
    });
  });

  it('says where its key comes from, and rotates it', async () => {
    const folder = scratchFolder();
    const clock = new ManualClock();
    const store = await startedStore(folder, { clock });
    expect(store.vault.report()).toMatchObject({ source: 'key-file', keyVersion: 1 });
    expect(
      store
        .health()
        .problems.map(({ sentence }) => sentence)
        .join(),
    ).toContain('key file that lies beside the database');
    await store.nodes.add(nodeRecord('n1'), key32(5));
    expect(await store.vault.rotateEncryption()).toEqual({ rows: 1, keyVersion: 2 });
    await store.stop();
    const again = await startedStore(folder, { clock });
    expect(again.nodes.key('n1' as NodeId)).toEqual(key32(5));
    expect(again.vault.report().keyVersion).toBe(2);
  });

  it('keeps its keyring in the keychain of a desktop, and says when that protects nothing', async () => {
    const folder = scratchFolder();
    const keychain = {
      protect: async (text: string) => Buffer.from(text).map((byte) => byte ^ 0x55),
      reveal: async (bytes: Uint8Array) => Buffer.from(bytes.map((byte) => byte ^ 0x55)).toString(),
      weak: said('vault_basic_text'),
    };
    const options = { clock: new ManualClock(), keys: { keychain } };
    const store = await startedStore(folder, options);
    await store.nodes.add(nodeRecord('n1'), key32(5));
    expect(await store.vault.rotateEncryption()).toEqual({ rows: 1, keyVersion: 2 });
    expect(store.health().problems).toEqual([keychain.weak]);
    await store.stop();
    expect((await startedStore(folder, options)).nodes.key('n1' as NodeId)).toEqual(key32(5));
    expect(readdirSync(folder)).not.toContain('vault.key');
  });

  it('a folder stays with the kind of key that it was begun with, and a start that lacks it says so', async () => {
    const keychain = {
      protect: async (text: string) => Buffer.from(text),
      reveal: async (bytes: Uint8Array) => Buffer.from(bytes).toString(),
      weak: null,
    };
    const clock = new ManualClock();
    const headlessFirst = scratchFolder();
    const first = await startedStore(headlessFirst, { clock });
    await first.nodes.add(nodeRecord('n1'), key32(5));
    await first.stop();
    const desktop = await startedStore(headlessFirst, { clock, keys: { keychain } });
    expect(desktop.nodes.key('n1' as NodeId)).toEqual(key32(5));
    expect(desktop.vault.report().source).toBe('key-file');
    await desktop.stop();

    const desktopFirst = scratchFolder();
    await (await startedStore(desktopFirst, { clock, keys: { keychain } })).stop();
    const headless = storeIn(desktopFirst, { clock });
    await expect(headless.start()).rejects.toMatchObject({
      code: 'vault_locked',
      message: expect.stringContaining('keychain of the desktop app'),
    });
    expect(readdirSync(desktopFirst)).not.toContain('vault.key');
    await (await startedStore(desktopFirst, { clock, keys: { keychain } })).stop();
  });

  it('keeps every file and folder closed to others, and no journal after it stopped', async () => {
    const folder = path.join(scratchFolder(), 'data');
    const store = await startedStore(folder, { clock: new ManualClock() });
    await store.settings.put('a', 1);
    const backup = await store.maintenance.backup();
    expect(path.dirname(backup)).toBe(path.join(folder, 'backups'));
    const modes = (): string[] =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' }).flatMap((name) => {
        const stat = statSync(path.join(folder, name));
        return (stat.mode & 0o777) === (stat.isDirectory() ? 0o700 : 0o600) ? [] : [name];
      });
    expect(modes()).toEqual([]);
    await store.stop();
    expect(modes()).toEqual([]);
    expect(readdirSync(folder).sort()).toEqual(
      ['backups', 'last-good.db', 'owner.json', 'owner.lock', 'switchyard.db', 'vault.key'].sort(),
    );
  });

  it('refuses a second store on its folder, naming the process, and leaves the first alone', async () => {
    const folder = scratchFolder();
    const clock = new ManualClock();
    const store = await startedStore(folder, { clock });
    const second = storeIn(folder, { clock });
    await expect(second.start()).rejects.toThrow(`process ${process.pid}`);
    expect(await codeOf(storeIn(folder, { clock }).start())).toBe('store_in_use');
    await store.settings.put('a', 1);
    expect(store.health().state).toBe('ok');
  });

  it('refuses keyring settings that contradict or cannot be read', async () => {
    const clock = new ManualClock();
    const text = `1:${Buffer.from(key32(1)).toString('base64')}`;
    for (const keys of [{ text, file: '/nowhere' }, { file: '/nowhere' }, { text: 'nonsense' }]) {
      expect(await codeOf(storeIn(scratchFolder(), { clock, keys }).start())).toBe('vault_locked');
    }
  });

  it('may be stopped twice, and before it was started', async () => {
    const store = storeIn(scratchFolder(), { clock: new ManualClock() });
    await store.stop();
    await store.stop();
    expect(store.health().state).toBe('stopped');
  });
});
