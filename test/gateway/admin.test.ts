import { afterEach, describe, expect, it } from 'vitest';
import { SwitchyardError } from '../../main/domain/errors.ts';
import { canonicalProviderId } from '../../main/gateway/admin-input.ts';
import { ADMIN_TABLE } from '../../main/gateway/admin-table.ts';
import { OPERATIONS } from '../../preload/contract.ts';
import { ADMIN_TOKEN, asAdmin, codeOf, type Harness, openRaw, startGateway, stopAll } from './harness.ts';

afterEach(stopAll);

async function ask(harness: Harness, method: string, path: string, body?: unknown): Promise<Response> {
  return fetch(`${harness.url}${path}`, {
    method,
    headers: { ...asAdmin, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

describe('the table', () => {
  it('has every operation of the contract, once', () => {
    expect(ADMIN_TABLE.map((entry) => entry.operation).sort()).toEqual(Object.keys(OPERATIONS).sort());
  });

  const NODE = { done: true };
  it.each([
    ['POST', '/admin/nodes', { address: 'h:7412', joinCode: 'x' }, 'nodes.add', { address: 'h:7412', joinCode: 'x' }],
    ['DELETE', '/admin/nodes/n%2F1', undefined, 'nodes.remove', { id: 'n/1' }],
    ['POST', '/admin/nodes/n1/drain', undefined, 'nodes.drain', { id: 'n1' }],
    [
      'GET',
      '/admin/providers?role=embedding&node=n1',
      undefined,
      'providers.list',
      { role: 'embedding', nodeId: 'n1' },
    ],
    ['GET', '/admin/roles/rlm', undefined, 'roles.get', { id: 'rlm' }],
    [
      'PATCH',
      '/admin/roles/rlm',
      { policy: 'backup', confirm: true },
      'roles.update',
      { id: 'rlm', patch: { policy: 'backup' }, confirm: true },
    ],
    ['POST', '/admin/gate/verify', undefined, 'gate.verify', {}],
    ['POST', '/admin/gate/verify', { provider: 'rlm~n~e~Qwen/Q' }, 'gate.verify', { providerId: 'rlm~n~e~Qwen%2FQ' }],
    [
      'POST',
      '/admin/spaces',
      { role: 'embedding', founder: 'p', confirm: true },
      'spaces.found',
      { role: 'embedding', founder: 'p', confirm: true },
    ],
    ['PATCH', '/admin/budget', { override: 256 }, 'budget.set', { override: 256 }],
    ['GET', '/admin/requests?limit=5&overflowed=true', undefined, 'requests.list', { limit: 5, overflowed: true }],
    ['GET', '/admin/events?severity=warn', undefined, 'events.list', { severity: 'warn', limit: 200 }],
    ['POST', '/admin/op/nodes.drain', { id: 'n1' }, 'nodes.drain', { id: 'n1' }],
  ])('%s %s %j is %s', async (method, path, body, operation, input) => {
    const harness = await startGateway();
    harness.answers.set(operation, NODE);
    await ask(harness, method, path, body);
    expect(harness.called).toEqual([{ name: operation, input }]);
  });

  it('answers are cut to the contract: what an operation says beyond it stays inside', async () => {
    const harness = await startGateway();
    harness.answers.set('nodes.remove', { done: true, nodeKey: 'sk-or-v1-secret' });
    const response = await ask(harness, 'DELETE', '/admin/nodes/n1');
    expect(await response.json()).toEqual({ done: true });
    harness.answers.set('nodes.list', { nodes: 'sk-or-v1-secret' });
    const wrong = await ask(harness, 'GET', '/admin/nodes');
    expect([wrong.status, await codeOf(wrong)]).toEqual([500, 'internal_error']);
    expect(harness.events).toMatchObject([{ code: 'internal_error', severity: 'error' }]);
  });
});

describe('input', () => {
  it.each([
    ['POST', '/admin/nodes', { address: 'h:7412' }, 'joinCode'],
    ['PATCH', '/admin/budget', { override: 257 }, 'override'],
    ['PATCH', '/admin/budget', { override: '256' }, 'override'],
    ['PATCH', '/admin/roles/rlm', { threshold: 0.5 }, 'patch.threshold'],
    ['GET', '/admin/requests?limit=many', undefined, 'limit'],
  ])('%s %s %j is refused by the name of its field', async (method, path, body, param) => {
    const harness = await startGateway();
    const response = await ask(harness, method, path, body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_request', param } });
    expect(harness.called).toEqual([]);
  });

  it.each([
    ['an unknown member', '{"address":"h:1","joinCode":"x","sk-or-v1-secret":1}', 'invalid_request'],
    ['__proto__', '{"address":"h:1","joinCode":"x","__proto__":{"sk-or-v1-secret":1}}', 'invalid_request'],
    ['malformed JSON', '{"address": sk-or-v1-secret}', 'invalid_json'],
    ['a member twice', '{"address":"h:1","address":"sk-or-v1-secret"}', 'duplicate_field'],
  ])('%s is refused without being quoted', async (_what, body, code) => {
    const harness = await startGateway();
    const response = await fetch(`${harness.url}/admin/nodes`, {
      method: 'POST',
      headers: { ...asAdmin, 'content-type': 'application/json' },
      body,
    });
    const text = await response.text();
    expect(text).toContain(`"code":"${code}"`);
    expect(text).not.toContain('secret');
    expect(harness.called).toEqual([]);
  });

  it('an unknown role is 404', async () => {
    const harness = await startGateway();
    const response = await ask(harness, 'PATCH', '/admin/roles/nobody', {});
    expect([response.status, await codeOf(response)]).toEqual([404, 'role_not_found']);
  });

  it('an operation that fails says so in its own code; a fault of ours says nothing', async () => {
    const failing = async (error: unknown): Promise<Response> => {
      const harness = await startGateway({
        ports: { operations: { call: () => Promise.reject(error), pushCloudKey: () => Promise.reject(error) } },
      });
      return ask(harness, 'POST', '/admin/nodes/n1/drain');
    };
    expect(await codeOf(await failing(new SwitchyardError('node_not_found')))).toBe('node_not_found');
    const fault = await failing(new Error('sk-or-v1-secret at /home/me'));
    expect(fault.status).toBe(500);
    expect(await fault.text()).not.toMatch(/secret|home/);
  });

  it('provider ids come out canonical however a URL carried them', () => {
    for (const text of ['rlm~n1~e1~Qwen%2FQ%3A8b', 'rlm~n1~e1~Qwen/Q:8b']) {
      expect(canonicalProviderId(text)).toBe('rlm~n1~e1~Qwen%2FQ%3A8b');
    }
  });
});

describe('the admin token', () => {
  it('is asked of every route of administration before its body is read', async () => {
    const harness = await startGateway();
    for (const { method, path } of ADMIN_TABLE) {
      const response = await fetch(`${harness.url}${path.replace(/:[a-z]+/, 'x')}`, { method });
      expect([path, response.status]).toEqual([path, 401]);
    }
    for (const [method, path] of [
      ['POST', '/admin/op/nodes.list'],
      ['PUT', '/admin/cloud/key'],
      ['POST', '/console/socket-ticket'],
    ] as const) {
      expect((await fetch(`${harness.url}${path}`, { method })).status).toBe(401);
    }
    expect(harness.called).toEqual([]);
  });

  it('is no good in a query, cut short or under another scheme', async () => {
    const harness = await startGateway();
    expect((await fetch(`${harness.url}/admin/nodes?token=${ADMIN_TOKEN}`)).status).toBe(401);
    for (const authorization of [`Bearer ${ADMIN_TOKEN.slice(1)}`, `Basic ${ADMIN_TOKEN}`, 'Bearer ', ADMIN_TOKEN]) {
      expect((await fetch(`${harness.url}/admin/nodes`, { headers: { authorization } })).status).toBe(401);
    }
  });

  it('never travels in the clear from elsewhere: a client behind a proxy needs TLS', async () => {
    const harness = await startGateway({ settings: { trustProxy: true } });
    const from = (headers: Record<string, string>, path = '/admin/nodes'): Promise<Response> =>
      fetch(`${harness.url}${path}`, { headers: { ...asAdmin, ...headers } });
    const far = { 'x-forwarded-for': '192.168.1.7' };
    for (const path of ['/admin/nodes', '/console/', '/metrics']) {
      const response = await from(far, path);
      expect([response.status, await codeOf(response)]).toEqual([403, 'tls_required']);
    }
    expect((await from({ ...far, 'x-forwarded-proto': 'https' })).status).not.toBe(403);
    expect((await from({ 'x-forwarded-for': '192.168.1.7, 127.0.0.1' })).status).not.toBe(403);
    expect((await from({ ...far, 'x-forwarded-proto': 'https' }, '/metrics')).status).toBe(200);
    const plain = await startGateway();
    expect((await fetch(`${plain.url}/metrics`, { headers: far })).status).toBe(200);
  });
});

describe('the cloud key', () => {
  const CLOUD = {
    state: 'on',
    reason: { code: 'ok', sentence: '' },
    paused: false,
    holders: [],
    lastPush: { number: 1, atMs: 1 },
    catalogueAtMs: null,
    canRemember: false,
    rememberNote: null,
  };
  const push = (
    harness: Harness,
    body: string | Buffer,
    query = '',
    type = 'application/octet-stream',
  ): Promise<Response> =>
    fetch(`${harness.url}/admin/cloud/key${query}`, {
      method: 'PUT',
      headers: { ...asAdmin, 'content-type': type },
      body: new Uint8Array(Buffer.from(body)),
    });

  it('arrives as the very bytes, in a buffer of its own', async () => {
    const harness = await startGateway();
    harness.answers.set('cloud.push', CLOUD);
    const response = await push(harness, ' \tsk-or-v1-canary\r\n', '?nodes=a,b&remember=1');
    expect(response.status).toBe(200);
    expect(await response.text()).not.toContain('canary');
    const [pushed] = harness.pushed;
    expect(pushed?.key.toString()).toBe('sk-or-v1-canary');
    // Not a slice of a pool that others share.
    expect(pushed?.key.buffer.byteLength).toBe('sk-or-v1-canary'.length);
    expect(pushed?.options).toEqual({ nodeIds: ['a', 'b'], remember: true });
  });

  it('comes together from pieces', async () => {
    const harness = await startGateway();
    harness.answers.set('cloud.push', CLOUD);
    const connection = await openRaw(harness.port);
    connection.socket.write(
      `PUT /admin/cloud/key HTTP/1.1\r\nHost: 127.0.0.1:${harness.port}\r\nAuthorization: Bearer ${ADMIN_TOKEN}\r\n` +
        'Content-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nsk-or-v1\r\n',
    );
    connection.socket.write('7\r\n-canary\r\n0\r\n\r\n');
    await connection.heard(/"lastPush"/);
    connection.socket.destroy();
    expect(harness.pushed[0]?.key.toString()).toBe('sk-or-v1-canary');
    expect(harness.pushed[0]?.options).toEqual({});
  });

  it.each([
    ['too short', 'canary7'],
    ['too long', 'c'.repeat(513)],
    ['far too long', 'canary'.repeat(100_000)],
    ['empty', ''],
    ['with a space inside', 'canary canary'],
    ['with a line end inside', 'canary\ncanary'],
    ['no ASCII', 'canary-é-canary'],
    ['with a zero byte', 'canary\u0000canary'],
  ])('%s is refused, quoting nothing', async (_what, key) => {
    const harness = await startGateway();
    const response = await push(harness, key);
    const text = await response.text();
    expect([response.status, text.includes('canary')]).toEqual([400, false]);
    expect(text).toContain('invalid_cloud_key');
    expect(harness.pushed).toEqual([]);
  });

  it('as JSON or text is refused unread', async () => {
    const harness = await startGateway();
    for (const type of ['application/json', 'text/plain']) {
      expect(await codeOf(await push(harness, 'sk-or-v1-canary', '', type))).toBe('invalid_cloud_key');
    }
    expect(harness.pushed).toEqual([]);
  });

  it('of 8 and of 512 characters is taken', async () => {
    const harness = await startGateway();
    harness.answers.set('cloud.push', CLOUD);
    for (const key of ['c'.repeat(8), 'c'.repeat(512)]) expect((await push(harness, key)).status).toBe(200);
    expect(harness.pushed.map(({ key }) => key.length)).toEqual([8, 512]);
  });
});
