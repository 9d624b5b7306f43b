import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SwitchyardError } from '../../main/domain/errors.ts';
import type { EventRecord } from '../../main/domain/events.ts';
import type { NodeId, ProjectId, ProviderId, RequestId, SpaceId } from '../../main/domain/ids.ts';
import type { StoredSpace } from '../../main/gate/store-port.ts';
import type { Verdict } from '../../main/gate/verdict.ts';
import { DatabaseHost } from '../../main/store/database-host.ts';
import { dataFiles } from '../../main/store/files.ts';
import { parseCursor } from '../../main/store/repositories/statements.ts';
import type { BatchItem, WorkerApi } from '../../main/store/worker-api.ts';
import { createWorkerApi } from '../../main/store/worker-calls.ts';
import { apiKey, hash, key32, NOON, nodeRecord, scratchFolder, summary } from './support.ts';

function openedApi(folder = scratchFolder(), writer = 'w1'): WorkerApi {
  const host = new DatabaseHost({ folder, keyring: [{ version: 1, key: key32(1) }], maxBytes: 2 ** 30, writer });
  onTestFinished(() => host.close());
  const api = createWorkerApi(host, writer);
  api.open(NOON);
  return api;
}

const codeOf = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    return error instanceof SwitchyardError ? error.code : String(error);
  }
  return 'done';
};

let sequence = 0;
const write = (api: WorkerApi, ...items: BatchItem[]): number => {
  sequence += 1;
  return api.writeBatch({ sequence, items });
};

describe('documents', () => {
  it('count their versions and refuse a change of an older one', () => {
    const api = openedApi();
    expect(api.putDocument('settings:a', '{"x":1}', null, NOON)).toBe(1);
    expect(api.putDocument('settings:a', '{"x":2}', 1, NOON)).toBe(2);
    expect(codeOf(() => api.putDocument('settings:a', '{"x":3}', 1, NOON))).toBe('version_conflict');
    expect(codeOf(() => api.putDocument('settings:b', '{}', 1, NOON))).toBe('version_conflict');
    expect(api.putDocument('settings:b', '{}', 0, NOON)).toBe(1);
    expect(api.probe(NOON).configuration.documents).toEqual([
      { name: 'settings:a', version: 2, body: '{"x":2}' },
      { name: 'settings:b', version: 1, body: '{}' },
    ]);
  });
});

describe('machines', () => {
  it('come back with their keys, oldest first', () => {
    const folder = scratchFolder();
    const api = openedApi(folder);
    const older = nodeRecord('z', { addedAtMs: 1, nextFingerprint: hash('c'), embedded: true, manual: false });
    api.addNode(nodeRecord('a', { addedAtMs: 2 }), key32(2));
    api.addNode(older, key32(1));
    api.close();
    expect(openedApi(folder, 'w2').probe(NOON).configuration.nodes).toEqual([
      { record: older, key: key32(1) },
      { record: nodeRecord('a', { addedAtMs: 2 }), key: key32(2) },
    ]);
  });

  it('rest without a readable key', () => {
    const folder = scratchFolder();
    const api = openedApi(folder);
    const key = createHash('sha256').update('a node key').digest();
    api.addNode(nodeRecord('a'), key);
    api.putPending({ node: 'b', address: 'h:1', fingerprint: hash('b'), key }, NOON);
    for (const suffix of ['', '-wal']) {
      expect(readFileSync(dataFiles(folder).database + suffix).includes(key)).toBe(false);
    }
  });

  it('change field by field', () => {
    const api = openedApi();
    api.addNode(nodeRecord('a'), key32(1));
    api.updateNode('a' as NodeId, { wish: 'drain', name: 'attic', manual: false });
    api.updateNode('a' as NodeId, { nextFingerprint: hash('e') });
    const changed = { wish: 'drain', name: 'attic', manual: false, nextFingerprint: hash('e') } as const;
    expect(api.probe(NOON).configuration.nodes[0]?.record).toEqual(nodeRecord('a', changed));
    expect(codeOf(() => api.updateNode('x' as NodeId, { name: 'y' }))).toBe('node_not_found');
  });

  it('take their pairing, key and weights with them', () => {
    const api = openedApi();
    api.putPending({ node: 'a', address: 'h:1', fingerprint: hash('a'), key: key32(7) }, NOON);
    api.putPending({ node: 'b', address: 'h:1', fingerprint: hash('b'), key: key32(8) }, NOON + 1);
    api.addNode(nodeRecord('a'), key32(1));
    expect(api.probe(NOON).configuration.pending.map(({ node }) => node)).toEqual(['b']);
    api.setBaseWeight('p1' as ProviderId, 'a' as NodeId, 2.5);
    api.setBaseWeight('p2' as ProviderId, 'b' as NodeId, 0.5);
    api.removeNode('a' as NodeId);
    const { nodes, weights } = api.probe(NOON).configuration;
    expect(nodes).toEqual([]);
    expect(weights).toEqual([{ provider: 'p2', node: 'b', weight: 0.5 }]);
    api.setBaseWeight('p2' as ProviderId, 'b' as NodeId, null);
    expect(api.probe(NOON).configuration.weights).toEqual([]);
  });
});

describe('projects and API keys', () => {
  it('keep the hash, never the key, and the first time of revocation', () => {
    const api = openedApi();
    expect(codeOf(() => api.addApiKey(apiKey('k1', 'house'), hash('1')))).toBe('project_not_found');
    api.addProject({ id: 'house' as ProjectId, name: 'House', createdAtMs: 1 });
    api.addApiKey(apiKey('k1', 'house'), hash('1'));
    write(api, { kind: 'used', id: 'k1', atMs: NOON }, { kind: 'used', id: 'k1', atMs: NOON - 60_000 });
    api.revokeApiKey('k1', 5);
    api.revokeApiKey('k1', 9);
    expect(codeOf(() => api.revokeApiKey('k2', 9))).toBe('key_not_found');
    expect(api.probe(NOON).configuration.apiKeys).toEqual([
      { sha256: hash('1'), record: { ...apiKey('k1', 'house'), lastUsedAtMs: NOON, revokedAtMs: 5 } },
    ]);
  });
});

describe('traces', () => {
  const trace = (id: string, change: Parameters<typeof summary>[1] = {}): BatchItem => ({
    kind: 'trace',
    row: { summary: JSON.stringify(summary(id, change)), detail: `{"of":"${id}"}` },
  });

  it('are found by id, with the explanation', () => {
    const api = openedApi();
    write(api, trace('r1'));
    expect(api.trace('r1' as RequestId)).toEqual({ summary: JSON.stringify(summary('r1')), detail: '{"of":"r1"}' });
    expect(api.trace('r2' as RequestId)).toBeNull();
  });

  it('are listed newest first, page by page, none twice and none lost, also among equal times', () => {
    const api = openedApi();
    for (let at = 0; at < 25; at += 1) {
      write(api, trace(`r${String(at).padStart(2, '0')}`, { arrivedAtMs: NOON + Math.floor(at / 4) }));
    }
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const page = api.traces({}, 7, after === null ? null : parseCursor(after));
      seen.push(...page.items.map((item) => (JSON.parse(item) as { id: string }).id));
      after = page.next;
    } while (after !== null);
    expect(seen).toEqual(Array.from({ length: 25 }, (_, at) => `r${String(24 - at).padStart(2, '0')}`));
  });

  it('are filtered by each member', () => {
    const api = openedApi();
    write(
      api,
      trace('plain'),
      trace('other', {
        project: 'lab' as ProjectId,
        role: 'rlm',
        route: 'cloud',
        provider: 'p2' as ProviderId,
        node: 'n2' as NodeId,
        model: 'm2',
        outcome: 'failed',
        code: 'engine_error',
        totalMs: 9_000,
        arrivedAtMs: NOON + 50,
      }),
    );
    const filters = [
      { project: 'lab' as ProjectId },
      { role: 'rlm' },
      { route: 'cloud' },
      { provider: 'p2' as ProviderId },
      { node: 'n2' as NodeId },
      { model: 'm2' },
      { outcome: 'failed' },
      { code: 'engine_error' },
      { minTotalMs: 101 },
      { sinceMs: NOON + 1 },
    ] as const;
    for (const filter of filters) {
      const { items } = api.traces(filter, 10, null);
      expect(items.map((item) => (JSON.parse(item) as { id: string }).id)).toEqual(['other']);
    }
    expect(api.traces({ untilMs: NOON + 50 }, 10, null).items).toHaveLength(1);
    expect(api.traces({ role: 'rlm', outcome: 'success' }, 10, null).items).toEqual([]);
  });
});

describe('events', () => {
  const event = (id: string, change: Partial<EventRecord> = {}): BatchItem => ({
    kind: 'event',
    event: {
      id,
      atMs: NOON,
      severity: 'info',
      source: 'fleet',
      code: 'node_ready',
      sentence: 'Machine attic is ready.',
      needsPerson: false,
      ...change,
    },
  });

  it('are filtered by severity and worse, source, and words without case', () => {
    const api = openedApi();
    write(
      api,
      event('1'),
      event('2', { severity: 'warn', source: 'gate', sentence: '100% of 5_0 refused', node: 'n1' as NodeId }),
      event('3', { severity: 'error', code: 'x', role: 'rlm', request: 'r9' as RequestId }),
    );
    const ids = (filter: Parameters<WorkerApi['events']>[0]): string[] =>
      api.events(filter, 10, null).items.map((item) => (JSON.parse(item) as EventRecord).id);
    expect(ids({})).toEqual(['3', '2', '1']);
    expect(ids({ severity: 'warn' })).toEqual(['3', '2']);
    expect(ids({ severity: 'error' })).toEqual(['3']);
    expect(ids({ severity: 'info' })).toEqual(['3', '2', '1']);
    expect(ids({ source: 'gate' })).toEqual(['2']);
    expect(ids({ text: 'ATTIC' })).toEqual(['3', '1']);
    expect(ids({ text: '%' })).toEqual(['2']);
    expect(ids({ role: 'rlm', request: 'r9' as RequestId, code: 'x' })).toEqual(['3']);
    expect(ids({ node: 'n1' as NodeId })).toEqual(['2']);
  });
});

describe('usage', () => {
  const sums = (change: object = {}) => ({
    day: '2026-07-15',
    key: 'k1',
    project: 'house',
    role: 'rlm',
    model: 'm',
    route: 'cloud',
    requests: 1,
    failures: 0,
    promptTokens: 10,
    completionTokens: 3,
    inexact: 0,
    costNanoUsd: 100_000_001,
    ...change,
  });

  it('adds up to the nano-dollar', () => {
    const api = openedApi();
    for (let at = 0; at < 10; at += 1) write(api, { kind: 'usage', sums: sums() });
    const [row] = api.usage({ fromDay: '2026-07-01', toDay: '2026-07-31', project: null, key: null });
    // 10 x 0.100000001, which floating point would not sum to this.
    expect(row).toMatchObject({ requests: 10, promptTokens: 100, completionTokens: 30, costUsd: 1.00000001 });
  });

  it('keeps what has no key, model or route apart, and filters by day, project and key', () => {
    const api = openedApi();
    write(
      api,
      { kind: 'usage', sums: sums() },
      { kind: 'usage', sums: sums({ key: '', model: '', route: '' }) },
      { kind: 'usage', sums: sums({ day: '2026-07-16', project: 'lab' }) },
    );
    const query = (filter: object): (string | null)[][] =>
      api
        .usage({ fromDay: '2026-07-15', toDay: '2026-07-15', project: null, key: null, ...filter })
        .map(({ key, model, route }) => [key, model, route]);
    expect(query({})).toEqual([
      [null, null, null],
      ['k1', 'm', 'cloud'],
    ]);
    expect(query({ key: 'k1' })).toHaveLength(1);
    expect(query({ toDay: '2026-07-16' })).toHaveLength(3);
    expect(query({ toDay: '2026-07-16', project: 'lab' })).toHaveLength(1);
  });
});

describe('a batch', () => {
  const used = { kind: 'used', id: 'k1', atMs: NOON } as const;
  const usage = {
    kind: 'usage',
    sums: {
      day: '2026-07-15',
      key: '',
      project: 'p',
      role: 'rlm',
      model: '',
      route: '',
      requests: 1,
      failures: 0,
      promptTokens: 1,
      completionTokens: 1,
      inexact: 0,
      costNanoUsd: 0,
    },
  } as const;
  const requests = (api: WorkerApi): number =>
    api
      .usage({ fromDay: '2026-01-01', toDay: '2026-12-31', project: null, key: null })
      .reduce((n, r) => n + r.requests, 0);

  it('is written once, however often it is sent', () => {
    const folder = scratchFolder();
    const api = openedApi(folder);
    api.writeBatch({ sequence: 1, items: [usage] });
    api.writeBatch({ sequence: 1, items: [usage] });
    expect(requests(api)).toBe(1);
    api.close();
    // The same process after its thread was started again, then another process, whose numbers begin anew.
    const again = openedApi(folder);
    again.writeBatch({ sequence: 1, items: [usage] });
    expect(requests(again)).toBe(1);
    again.close();
    const next = openedApi(folder, 'w2');
    next.writeBatch({ sequence: 1, items: [usage] });
    expect(requests(next)).toBe(2);
  });

  it('leaves out an item that can never be written instead of stopping at it', () => {
    const api = openedApi();
    const poison = { ...usage, sums: { ...usage.sums, requests: Number.NaN } };
    expect(write(api, usage, poison, used, usage)).toBe(1);
    expect(requests(api)).toBe(2);
  });
});

describe('time series', () => {
  it('come back by range, oldest first', () => {
    const api = openedApi();
    for (const atMs of [300_000, 0, 600_000])
      write(api, { kind: 'series', range: '24h', atMs, values: `{"cpu":${atMs}}` });
    write(api, { kind: 'series', range: '1h', atMs: 0, values: '{}' });
    expect(api.steps('24h', 300_000)).toEqual([
      { atMs: 300_000, values: '{"cpu":300000}' },
      { atMs: 600_000, values: '{"cpu":600000}' },
    ]);
  });
});

describe('what the gate found', () => {
  const space = (id: string, current: boolean): StoredSpace => ({
    facts: { id, role: 'embedding', width: 2 } as unknown as StoredSpace['facts'],
    anchor: { bytes: Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8]), sha256: hash('a') },
    current,
  });
  const verdict = (kind: string, checkedAtMs: number): Verdict =>
    ({ provider: 'p1', space: 's1', kind, minCosine: 0.999, checkedAtMs }) as unknown as Verdict;

  it('has one current space per role', () => {
    const folder = scratchFolder();
    const api = openedApi(folder);
    api.saveSpace(space('s1', true));
    api.saveSpace(space('s2', true));
    api.saveSpace({ ...space('s3', false), anchor: null });
    api.close();
    const { spaces } = openedApi(folder, 'w2').loadGate();
    expect(spaces.map(({ facts, current, anchor }) => [facts.id, current, anchor?.bytes.length ?? null])).toEqual([
      ['s1', false, 8],
      ['s2', true, 8],
      ['s3', false, null],
    ]);
    expect(Uint8Array.from(spaces[0]?.anchor?.bytes ?? [])).toEqual(space('s1', true).anchor?.bytes);
  });

  it('is written with the settings that go with a space, or not at all', () => {
    const api = openedApi();
    expect(api.saveSpaceWith(space('s1', true), 'role/embedding', '{"policy":"cloud"}', 0, 5)).toBe(1);
    // Somebody wrote version 2 meanwhile.
    api.putDocument('role/embedding', '{"policy":"local"}', 1, 6);
    const late = () => api.saveSpaceWith(space('s2', true), 'role/embedding', '{"policy":"cloud"}', 1, 7);
    expect(late).toThrowError(expect.objectContaining({ code: 'version_conflict' }));
    expect(api.loadGate().spaces.map(({ facts, current }) => [facts.id, current])).toEqual([['s1', true]]);
  });

  it('keeps the newest verdict and the points of those before', () => {
    const api = openedApi();
    api.saveVerdict(verdict('pass', 10));
    api.saveVerdict(verdict('unstable', 20));
    expect(api.loadGate().verdicts).toEqual([verdict('unstable', 20)]);
    const history = (sinceMs: number) => api.gateHistory('p1' as ProviderId, 's1' as SpaceId, sinceMs);
    expect(history(0)).toEqual([
      { atMs: 10, minCosine: 0.999, kind: 'pass' },
      { atMs: 20, minCosine: 0.999, kind: 'unstable' },
    ]);
    api.pruneGate(15);
    expect(history(0)).toHaveLength(1);
  });

  it('keeps first vectors and the ledger of ranges', () => {
    const api = openedApi();
    const provider = 'p1' as ProviderId;
    const first = {
      provider,
      space: 's1' as SpaceId,
      vectors: { bytes: key32(3), sha256: hash('f') },
      takenAtMs: 7,
      fingerprint: null,
    };
    api.saveFirst(first);
    const [loaded] = api.loadGate().firsts;
    expect({ ...loaded, vectors: { ...loaded?.vectors, bytes: Uint8Array.from(loaded?.vectors.bytes ?? []) } }).toEqual(
      first,
    );

    const range = (request: string, from: number, atMs: number) => ({
      request: request as RequestId,
      space: 's1' as SpaceId,
      provider,
      from,
      to: from + 9,
      atMs,
    });
    api.appendRanges([range('r1', 10, 2), range('r1', 0, 1), range('r2', 0, 3)]);
    expect(api.rangesOfRequest('r1' as RequestId).map(({ from }) => from)).toEqual([0, 10]);
    expect(api.rangesOfProvider(provider, 2, 10)).toEqual([range('r1', 10, 2), range('r2', 0, 3)]);
    expect(api.rangesOfProvider(provider, 0, 1)).toEqual([range('r1', 0, 1)]);
    api.pruneGate(3);
    expect(api.rangesOfProvider(provider, 0, 10)).toEqual([range('r2', 0, 3)]);
  });
});

describe('idempotent answers', () => {
  const scope = (key: string, project = 'house') => ({ project: project as ProjectId, route: '/v1/embeddings', key });
  const answer = (bytes: number) => ({
    status: 200,
    headers: ['content-type', 'application/json'],
    body: new Uint8Array(bytes).fill(65),
  });

  it('are claimed once, stored, and replayed as they were', () => {
    const api = openedApi();
    expect(api.claim(scope('a'), hash('1'), NOON)).toEqual({ state: 'claimed' });
    expect(api.claim(scope('a'), hash('1'), NOON)).toEqual({ state: 'running' });
    expect(api.claim(scope('a'), hash('2'), NOON)).toEqual({ state: 'other-body' });
    expect(api.claim(scope('a', 'lab'), hash('2'), NOON)).toEqual({ state: 'claimed' });
    api.completeClaim(scope('a'), answer(1000));
    expect(api.claim(scope('a'), hash('1'), NOON + 86_399_999)).toEqual({ state: 'stored', answer: answer(1000) });
    expect(api.claim(scope('a'), hash('2'), NOON)).toEqual({ state: 'other-body' });
  });

  it('are forgotten after 24 h and when given back', () => {
    const api = openedApi();
    api.claim(scope('a'), hash('1'), NOON);
    api.completeClaim(scope('a'), answer(10));
    expect(api.claim(scope('a'), hash('2'), NOON + 86_400_000)).toEqual({ state: 'claimed' });
    api.forgetClaim(scope('a'));
    expect(api.claim(scope('a'), hash('3'), NOON)).toEqual({ state: 'claimed' });
  });

  it('are free again when the process that claimed them died', () => {
    const folder = scratchFolder();
    const first = openedApi(folder);
    first.claim(scope('a'), hash('1'), NOON);
    first.close();
    expect(openedApi(folder, 'w2').claim(scope('a'), hash('1'), NOON)).toEqual({ state: 'claimed' });
  });

  it('of more than 8 MiB are not kept', () => {
    const api = openedApi();
    api.claim(scope('a'), hash('1'), NOON);
    api.completeClaim(scope('a'), answer(8 * 1024 * 1024 + 1));
    expect(api.claim(scope('a'), hash('1'), NOON)).toEqual({ state: 'claimed' });
    api.completeClaim(scope('a'), answer(8 * 1024 * 1024));
    expect(api.claim(scope('a'), hash('1'), NOON).state).toBe('stored');
  });

  it('rest encrypted, under a key that is not the words of the client', () => {
    const folder = scratchFolder();
    const api = openedApi(folder);
    api.claim(scope('order of Mrs Smith'), hash('1'), NOON);
    api.completeClaim(scope('order of Mrs Smith'), { ...answer(0), body: Buffer.from('the answer in the clear') });
    for (const suffix of ['', '-wal']) {
      const bytes = readFileSync(dataFiles(folder).database + suffix);
      expect(bytes.includes('Smith')).toBe(false);
      expect(bytes.includes('the answer')).toBe(false);
    }
  });
});

describe('secrets', () => {
  it('are sealed, replaced and removed without a trace', () => {
    const folder = scratchFolder();
    const api = openedApi(folder);
    api.putSecret('tls', Buffer.from('first private key'));
    api.putSecret('tls', Buffer.from('second private key'));
    expect(Buffer.from(api.getSecret('tls') ?? []).toString()).toBe('second private key');
    expect(api.getSecret('none')).toBeNull();
    for (const suffix of ['', '-wal']) {
      expect(readFileSync(dataFiles(folder).database + suffix).includes('private key')).toBe(false);
    }
    api.removeSecret('tls');
    expect(api.getSecret('tls')).toBeNull();
  });

  it('do not open when two rows are swapped in the file', () => {
    const folder = scratchFolder();
    const host = new DatabaseHost({ folder, keyring: [{ version: 1, key: key32(1) }], maxBytes: 2 ** 30, writer: 'w' });
    onTestFinished(() => host.close());
    const api = createWorkerApi(host, 'w');
    api.open(NOON);
    api.putSecret('a', key32(1));
    api.putSecret('b', key32(2));
    host.write(({ db }) => {
      const sealed = db.prepare('SELECT sealed_value FROM secrets WHERE name = ?').pluck();
      const [a, b] = [sealed.get('a'), sealed.get('b')];
      db.prepare('UPDATE secrets SET sealed_value = ? WHERE name = ?').run(b, 'a');
      db.prepare('UPDATE secrets SET sealed_value = ? WHERE name = ?').run(a, 'b');
    });
    expect(codeOf(() => api.getSecret('a'))).toBe('vault_damaged');
    expect(codeOf(() => api.getSecret('b'))).toBe('vault_damaged');
  });
});
