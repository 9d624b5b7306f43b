import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ControlPlane, type ControlPlaneOptions, type ControlPlaneStarted } from '../../main/control-plane.ts';
import { noDiscovery } from '../../main/discovery/lan-discovery.ts';
import { createSystemClock } from '../../main/platform/clock.ts';
import type { Output, TopicUpdate, UpdateView } from '../../preload/contract.ts';

/** The real rooms in this process, without an agent: what an operator can do and what it changes. */
const folder = mkdtempSync(path.join(tmpdir(), 'switchyard-operator-'));
let plane: ControlPlane;

const call = <Name extends Parameters<typeof expectName>[0]>(name: Name, input: unknown = {}) =>
  plane.call(name, input) as Promise<Output<Name>>;
// Only gives `call` its names.
declare function expectName(name: keyof typeof import('../../preload/contract.ts').OPERATIONS): void;

async function start(options: Partial<ControlPlaneOptions> = {}): Promise<ControlPlaneStarted> {
  plane = new ControlPlane({
    clock: createSystemClock(),
    random: Math.random,
    randomBytes,
    version: '0.0.0-test',
    shell: 'headless',
    dataFolder: folder,
    storeWorker: new URL('../../main/store/worker.ts', import.meta.url),
    vaultKeys: {},
    port: 0,
    embeddedAgent: null,
    consoleFiles: new Map(),
    discovery: noDiscovery,
    ...options,
  });
  return plane.start();
}

beforeAll(async () => {
  await start();
});
afterAll(async () => {
  await plane.stop();
  rmSync(folder, { recursive: true, force: true });
});

const code = (name: Parameters<typeof call>[0], input: unknown) =>
  call(name, input).then(
    () => 'accepted',
    (error: { code: string }) => error.code,
  );

it('a room that cannot stop keeps no other from it: the folder is free again, and the reason is told', async () => {
  const own = mkdtempSync(path.join(tmpdir(), 'switchyard-stop-'));
  const first = plane;
  const broken = {
    ...noDiscovery,
    stop: () => {
      throw new Error('no socket');
    },
  };
  try {
    await start({ dataFolder: own, discovery: broken });
    await expect(plane.stop()).rejects.toThrow('no socket');
    await start({ dataFolder: own });
    await plane.stop();
  } finally {
    plane = first;
    rmSync(own, { recursive: true, force: true });
  }
});

describe('any operation', () => {
  it('is refused by name when there is none, also when an object has such a member', async () => {
    for (const name of ['nodes.destroy', 'constructor', '__proto__']) {
      await expect(plane.call(name, {})).rejects.toMatchObject({ code: 'not_found' });
    }
  });

  it('names the members that do not fit and quotes nothing of what was sent', async () => {
    const secret = 'sk-or-v1-0123456789';
    await expect(plane.call('roles.update', { id: 'rlm', patch: { policy: secret }, [secret]: 1 })).rejects.toSatisfy(
      (error: { code: string; message: string }) => error.code === 'invalid_request' && !error.message.includes(secret),
    );
  });
});

describe('roles', () => {
  it('change member by member, also over a restart', async () => {
    await call('roles.update', { id: 'code-assistant', patch: { policy: 'backup', maxLocalWaitMs: 1500 } });
    await call('roles.update', { id: 'code-assistant', patch: { cloud: { upstreams: ['deepinfra'] } } });
    await plane.stop();
    await start();
    const { roles } = await call('roles.list');
    expect(roles.map(({ id }) => id)).toEqual(['embedding', 'code-embedding', 'reranker', 'code-assistant', 'rlm']);
    expect(roles.find(({ id }) => id === 'code-assistant')).toMatchObject({
      policy: 'backup',
      maxLocalWaitMs: 1500,
      cloud: { model: 'poolside/laguna-s-2.1', upstreams: ['deepinfra'] },
      now: { sentence: expect.stringContaining('1.5 s') },
    });
  });

  it('keep both of two changes that are made at once', async () => {
    await Promise.all([
      call('roles.update', { id: 'reranker', patch: { policy: 'local' } }),
      call('roles.update', { id: 'reranker', patch: { maxLocalWaitMs: 2345 } }),
    ]);
    expect(await call('roles.get', { id: 'reranker' })).toMatchObject({ policy: 'local', maxLocalWaitMs: 2345 });
    await call('roles.update', { id: 'reranker', patch: { policy: 'aggregate', maxLocalWaitMs: 3000 } });
  });

  it('without vectors take no dimension, and no role takes a threshold below 0.99', async () => {
    expect(await code('roles.update', { id: 'rlm', patch: { dimension: 8 } })).toBe('invalid_request');
    expect(await code('roles.update', { id: 'embedding', patch: { threshold: 0.98 } })).toBe('invalid_request');
    expect(await code('roles.update', { id: 'embedding', patch: { threshold: 0.995 } })).toBe('accepted');
  });

  it('can be previewed: nothing changes', async () => {
    const { effect } = await call('roles.preview', { id: 'rlm', patch: { policy: 'cloud' } });
    expect(effect).toBe('plain');
    const { roles } = await call('roles.list');
    expect(roles.find(({ id }) => id === 'rlm')?.policy).toBe('local');
  });
});

describe('a change of policy', () => {
  it('says where texts go that so far may not leave, and only then', async () => {
    const leaves = async (id: string, policy: string) =>
      (await call('roles.preview', { id, patch: { policy } } as never)).leaves;
    const openRouter = { hosts: [], model: 'deepseek/deepseek-v4-flash', upstreams: [] };
    for (const policy of ['backup', 'aggregate', 'cloud'])
      expect(await leaves('rlm', policy)).toEqual({ openRouter, elsewhere: [] });
    expect(await leaves('rlm', 'local')).toBeNull();
    // What may leave already, by whatever policy, is no news.
    expect(await leaves('code-assistant', 'cloud')).toBeNull();
    expect(await leaves('code-assistant', 'local')).toBeNull();
    expect((await call('roles.preview', { id: 'rlm', patch: { maxLocalWaitMs: 1 } })).leaves).toBeNull();
  });

  it('one role is read by itself', async () => {
    expect(await call('roles.get', { id: 'rlm' })).toMatchObject({ id: 'rlm', policy: 'local' });
    expect(await code('roles.get', { id: 'painter' })).toBe('invalid_request');
  });
});

describe('API keys', () => {
  it('are shown once, work at once, are listed without their secret, and are dead when revoked', async () => {
    const { key, secret } = await call('keys.create', {
      name: 'indexer',
      project: 'Acme Search',
      requestsPerMinute: 100,
    });
    expect(secret).toMatch(/^sy-[A-Za-z0-9_-]{43}$/);
    const endpoint = (await call('app.info')).endpoint ?? '';
    const models = () => fetch(`${endpoint}/v1/models`, { headers: { authorization: `Bearer ${secret}` } });
    expect((await models()).status).toBe(200);
    const listed = JSON.stringify(await call('keys.list'));
    expect(listed).toContain('Acme Search');
    expect(listed).not.toContain(secret.slice(3));
    await call('keys.revoke', { id: key.id });
    expect((await models()).status).toBe(401);
    expect(await code('keys.revoke', { id: 'key-unknown' })).toBe('key_not_found');
  });
});

describe('settings', () => {
  it('change group by group, say when a restart is needed, and are there after it', async () => {
    const { restartNeeded } = await call('settings.set', { console: { theme: 'dark' } });
    expect(restartNeeded).toBe(false);
    expect((await call('settings.set', { endpoint: { names: ['box.lan'] } })).restartNeeded).toBe(true);
    await plane.stop();
    await start();
    const settings = await call('settings.get');
    expect(settings.console).toMatchObject({ theme: 'dark', language: 'system' });
    expect(settings.endpoint.names).toEqual(['box.lan']);
  });

  it('take no address that this machine has not, no name that is none and no origin that no browser sends', async () => {
    const before = (await call('settings.get')).endpoint;
    const refused = (endpoint: object) => code('settings.set', { endpoint });
    expect(await refused({ bind: '203.0.113.1' })).toBe('address_absent');
    expect(await refused({ bind: 'banana.invalid' })).toBe('address_unknown');
    for (const bind of ['', '127.0.0.1:80', 'http://box', '300.1.1.1', 'a b', '::g'])
      expect(await refused({ bind }), bind).toBe('invalid_request');
    for (const name of ['http://box.lan', 'box.lan:7411', 'a b', '-box']) {
      expect(await refused({ names: [name] }), name).toBe('invalid_request');
    }
    for (const origin of [
      'tool.example',
      'https://tool.example/',
      'https://TOOL.example',
      'https://a.example:443',
      '*',
    ])
      expect(await refused({ allowedOrigins: [origin] }), origin).toBe('invalid_request');
    expect((await call('settings.get')).endpoint).toEqual(before);
    const fits = { bind: '0.0.0.0', names: ['box.lan', '[::1]'], allowedOrigins: ['https://a.example:8443'] };
    expect((await call('settings.set', { endpoint: fits })).settings.endpoint).toMatchObject(fits);
  });

  it('that others can reach it in clear is told for as long as it is so; an address that went leaves it to this machine', async () => {
    const told = async () =>
      (await call('health.list')).items.flatMap(({ code: what }) => (what.startsWith('endpoint_') ? [what] : []));
    const restart = async (bind: string) => {
      await plane.stop();
      const folderStore = await start();
      return [folderStore.listens, await told(), (await call('app.info')).endpointNote?.code ?? null, bind];
    };
    expect(await restart('0.0.0.0')).toEqual([['0.0.0.0'], ['endpoint_open'], 'listens_openly', '0.0.0.0']);
    expect((await call('app.info')).endpoint).toMatch(/^http:\/\/127\.0\.0\.1:/);
    await call('settings.set', { endpoint: { bind: '127.0.0.1' } });
    // Still so: it takes effect at the next start.
    expect(await told()).toEqual(['endpoint_open']);
    const [listens, items, note] = await restart('127.0.0.1');
    expect([(listens as string[])[0], items, note]).toEqual(['127.0.0.1', [], null]);
  });

  it('keep both of two changes that are made at once, also when one is refused before', async () => {
    const refused = code('settings.import', { content: 'no JSON' });
    await Promise.all([
      call('settings.set', { console: { theme: 'light' } }),
      call('settings.set', { desktop: { startAtLogin: true } }),
    ]);
    expect(await refused).toBe('invalid_request');
    expect(await call('settings.get')).toMatchObject({ console: { theme: 'light' }, desktop: { startAtLogin: true } });
    await call('settings.set', { console: { theme: 'dark' }, desktop: { startAtLogin: false } });
  });

  it('go out and come back as a file; what does not fit is said and left alone', async () => {
    const { content } = await call('settings.export');
    expect(content).not.toContain('box.lan'); // an address of this network
    await call('roles.update', { id: 'reranker', patch: { policy: 'local' } });
    const document = JSON.parse(content) as { roles: Record<string, unknown> };
    document.roles.rlm = { policy: 'sideways' };
    const { changed, skipped } = await call('settings.import', { content: JSON.stringify(document), confirm: true });
    expect(changed).toContain('reranker');
    expect(skipped.map((item) => item.params?.role)).toContain('rlm');
    const { roles } = await call('roles.list');
    expect(roles.find(({ id }) => id === 'reranker')?.policy).toBe('aggregate');
    expect(roles.find(({ id }) => id === 'rlm')?.policy).toBe('local');
    expect(await code('settings.import', { content: 'not json' })).toBe('invalid_request');
    expect(await code('settings.import', { content: '{}' })).toBe('invalid_request');
  });

  it('of a file let no role out of the network unasked: previewed, refused whole, done when it is meant', async () => {
    const { content } = await call('settings.export');
    const document = JSON.parse(content) as {
      settings: { console: { theme: string } };
      roles: Record<string, { policy: string }>;
    };
    const theme = document.settings.console.theme;
    document.settings.console.theme = theme === 'dark' ? 'light' : 'dark';
    document.roles.rlm = { policy: 'backup' };
    const file = JSON.stringify(document);
    const { changes, leaves } = await call('settings.preview', { content: file });
    expect(changes).toEqual(expect.arrayContaining(['settings', 'rlm']));
    expect(leaves).toEqual([
      {
        role: 'rlm',
        to: { openRouter: { hosts: [], model: 'deepseek/deepseek-v4-flash', upstreams: [] }, elsewhere: [] },
      },
    ]);
    expect(await code('settings.import', { content: file })).toBe('leaving_unconfirmed');
    const now = async () => [
      (await call('settings.get')).console.theme,
      (await call('roles.get', { id: 'rlm' })).policy,
    ];
    expect(await now()).toEqual([theme, 'local']);
    expect((await call('settings.import', { content: file, confirm: true })).changed).toContain('rlm');
    expect(await now()).toEqual([document.settings.console.theme, 'backup']);
    // Back again narrows, which nobody has to confirm.
    expect((await call('settings.preview', { content })).leaves).toEqual([]);
    await call('settings.import', { content });
    expect(await now()).toEqual([theme, 'local']);
  });

  it('of a file are refused as those of a person are: an address that this machine has not', async () => {
    const { content } = await call('settings.export');
    const document = JSON.parse(content) as { settings: { endpoint: object } };
    document.settings.endpoint = { bind: '203.0.113.1' };
    const { changed, skipped } = await call('settings.import', { content: JSON.stringify(document) });
    expect([changed.includes('settings'), skipped.map((item) => item.code)]).toEqual([
      false,
      ['import_settings_refused'],
    ]);
    expect((await call('settings.get')).endpoint.bind).not.toBe('203.0.113.1');
  });
});

it('settings that nothing reads do not exist, and a file of an older version may still name them', async () => {
  const { content } = await call('settings.export');
  const document = JSON.parse(content) as { settings: Record<string, Record<string, unknown>> };
  expect(Object.keys(document.settings)).not.toContain('retention');
  expect(Object.keys(document.settings.timeouts ?? {})).toEqual(['firstByteMs', 'betweenTokensMs']);
  document.settings.retention = { traceDays: 7 };
  document.settings.timeouts = { connectMs: 3000, firstByteMs: 5000 };
  const { changed, skipped } = await call('settings.import', { content: JSON.stringify(document) });
  expect([changed.includes('settings'), skipped]).toEqual([true, []]);
  expect((await call('settings.get')).timeouts).toEqual({ firstByteMs: 5000, betweenTokensMs: 600_000 });
  await call('settings.set', { timeouts: { firstByteMs: 600_000 } });
});

describe('settings that somebody changes', () => {
  it('are told to everybody who listens, whoever it was', async () => {
    const heard: TopicUpdate[] = [];
    const stop = plane.topics.subscribe(['settings'], (update) => heard.push(update));
    expect(heard).toMatchObject([{ topic: 'settings', type: 'value', value: { desktop: { startAtLogin: false } } }]);
    await call('settings.set', { desktop: { startAtLogin: true } });
    await vi.waitFor(() => expect(heard.at(-1)).toMatchObject({ value: { desktop: { startAtLogin: true } } }));
    stop();
  });
});

describe('updates', () => {
  it('are the desktop app’s: another start refuses to look and says nothing of them', async () => {
    expect((await call('app.info')).updates).toBeNull();
    expect(await code('updates.check', {})).toBe('not_ready');
    expect(await code('updates.install', {})).toBe('not_ready');
  });

  it('are looked for, shown and installed by operations, and by themselves as the setting says', async () => {
    const told: unknown[] = [];
    const desk = {
      state: { state: 'idle', checkedAtMs: null } as UpdateView,
      check: async () => {
        desk.state = { state: 'ready', version: '9.0.0' };
      },
      restart: async () => {
        told.push('restart');
        return true;
      },
      setAutomatic: (automatic: boolean) => void told.push(automatic),
    };
    await plane.stop();
    await start({ updates: desk });
    expect((await call('app.info')).updates).toEqual({ state: 'idle', checkedAtMs: null });
    expect(await call('updates.check')).toEqual({ state: 'ready', version: '9.0.0' });
    expect((await call('app.info')).update).toEqual({ version: '9.0.0', canInstall: true });
    await call('settings.set', { updates: { check: false } });
    expect(await call('updates.install')).toEqual({ restarting: true });
    expect(told).toEqual([true, false, 'restart']);
    await plane.stop();
    await start();
  });
});

describe('a diagnostic bundle', () => {
  it('holds no key, no hash, no address', async () => {
    const { secret } = await call('keys.create', { name: 'canary key', project: 'canary project' });
    const { content } = await call('diagnostics.get');
    const database = readFileSync(path.join(folder, 'vault.key')).toString('latin1').trim();
    for (const canary of [secret, secret.slice(3, 20), 'box.lan', folder, '127.0.0.1', database.slice(0, 20)]) {
      expect(content).not.toContain(canary);
    }
    expect(JSON.parse(content)).toMatchObject({ format: 'switchyard-diagnostics/1', app: { version: '0.0.0-test' } });
  });
});

describe('a backup on demand', () => {
  it('is written while the database is in use, and is a database with what is in it', async () => {
    const { file } = await call('store.backup');
    expect(file).toMatch(/^switchyard-[^/\\]+\.db$/);
    const bytes = readFileSync(path.join(folder, 'backups', file));
    expect(bytes.subarray(0, 15).toString('latin1')).toBe('SQLite format 3');
  });
});

describe('what is not there', () => {
  it('has its own code', async () => {
    expect(await code('nodes.detail', { id: 'nobody' })).toBe('node_not_found');
    expect(await code('nodes.drain', { id: 'nobody' })).toBe('node_not_found');
    expect(await code('providers.weigh', { id: 'nobody', baseWeight: 2 })).toBe('provider_not_found');
    expect(await code('requests.get', { id: 'nobody' })).toBe('request_not_found');
    expect(await code('spaces.export', { id: 'embedding-00000000' })).toBe('space_not_found');
    expect(await code('spaces.found', { role: 'embedding', founder: 'nobody' })).toBe('provider_not_found');
  });
});

describe('a failed request', () => {
  it('is listed with its code, from disk and again after a restart', async () => {
    const { requestId, ok, error } = await call('test.request', { role: 'code-assistant' });
    expect({ ok, code: error?.code }).toEqual({ ok: false, code: 'no_provider' });
    await plane.stop();
    await start();
    const { requests } = await call('requests.list', { errorCode: 'no_provider' });
    expect(requests[0]).toMatchObject({ id: requestId, outcome: 'failed', role: 'code-assistant', policy: 'backup' });
    expect((await call('requests.list', { before: requestId })).requests.map(({ id }) => id)).not.toContain(requestId);
    const { steps } = await call('requests.get', { id: requestId });
    expect(steps.at(-1)).toMatchObject({ step: 'ended', outcome: 'failed', error: { code: 'no_provider' } });
  });
});

describe('events', () => {
  it('are read back page by page by the id of the oldest that is known, over restarts, without a gap or a double', async () => {
    for (let round = 0; round < 3; round += 1) {
      await plane.stop();
      await start();
    }
    const { events: all, more } = await call('events.list', { limit: 1000 });
    expect(more).toBe(false);
    expect(all.length).toBeGreaterThanOrEqual(4);
    expect(all).toEqual([...all].sort((a, b) => b.atMs - a.atMs));
    const read: string[] = [];
    for (let isMore = true; isMore; ) {
      const page = await call('events.list', { limit: 2, ...(read.length ? { before: read.at(-1) } : {}) });
      read.push(...page.events.map(({ id }) => id));
      isMore = page.more;
    }
    expect(read).toEqual(all.map(({ id }) => id));
  });

  it('before something that is no event are refused', async () => {
    expect(await code('events.list', { before: 'nobody' })).toBe('invalid_request');
  });
});

describe('the secrets of the first start', () => {
  it('are made anew until a start has shown them, and only then', async () => {
    await plane.stop();
    const fresh = mkdtempSync(path.join(tmpdir(), 'switchyard-first-'));
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const { port } = taken.address() as AddressInfo;
    await expect(start({ dataFolder: fresh, port })).rejects.toMatchObject({ code: 'address_in_use' });
    await plane.stop();
    taken.close();
    const { endpoint, secrets } = await start({ dataFolder: fresh });
    const use = (token: string | null, route: string) =>
      fetch(`${endpoint}${route}`, { headers: { authorization: `Bearer ${token}` } }).then(({ status }) => status);
    expect(await use(secrets.apiKey, '/v1/models')).toBe(200);
    expect(await use(secrets.adminToken, '/admin/roles')).toBe(200);
    await plane.stop();
    expect((await start({ dataFolder: fresh })).secrets).toEqual({ adminToken: null, apiKey: null });
    await plane.stop();
    const again = await start({ dataFolder: fresh, newAdminToken: true });
    const ask = (token: string | null) =>
      fetch(`${again.endpoint}/admin/roles`, { headers: { authorization: `Bearer ${token}` } }).then(
        ({ status }) => status,
      );
    expect(await ask(again.secrets.adminToken)).toBe(200);
    expect(await ask(secrets.adminToken)).toBe(401);
    await plane.stop();
    rmSync(fresh, { recursive: true, force: true });
    await start();
  });
});

describe('health', () => {
  it('keeps since when an item is there, and says why the vault is weak where anybody may read it', async () => {
    const first = await call('health.list');
    const [item] = first.items;
    await vi.waitUntil(() => Date.now() > (item?.sinceMs ?? 0) + 5);
    expect((await call('health.list')).items.find(({ id }) => id === item?.id)?.sinceMs).toBe(item?.sinceMs);
    const endpoint = (await call('app.info')).endpoint ?? '';
    const health = (await (await fetch(`${endpoint}/healthz`)).json()) as { items: { sentence: string }[] };
    expect(health.items.map(({ sentence }) => sentence).join(' ')).toContain('SWITCHYARD_KEYRING');
  });
});

describe('topics', () => {
  it('send a snapshot at once, then rows that changed', async () => {
    const updates: TopicUpdate[] = [];
    const leave = plane.topics.subscribe(['roles', 'app'], (update) => updates.push(update));
    expect(updates.map(({ topic, type }) => [topic, type])).toEqual([
      ['roles', 'snapshot'],
      ['app', 'value'],
    ]);
    await call('roles.update', { id: 'rlm', patch: { maxLocalWaitMs: 4321 } });
    await vi.waitUntil(() => updates.some((update) => update.topic === 'roles' && update.type === 'delta'), {
      timeout: 5000,
    });
    const delta = updates.find((update) => update.topic === 'roles' && update.type === 'delta');
    expect(delta?.type === 'delta' ? delta.changed.map(({ id }) => id) : []).toEqual(['rlm']);
    leave();
  });
});
