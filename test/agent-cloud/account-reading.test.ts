import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Credentials } from '../../agent/cloud/credential.ts';
import { OpenRouterEngine } from '../../agent/cloud/openrouter.ts';
import { type CloudFromAgent, encodePush } from '../../agent/wire/cloud.ts';
import { ROLES, realClock } from './driver.ts';

/** An OpenRouter whose `/key` answers when the test says so. */
let server: Server;
let engine: OpenRouterEngine;
const sent: CloudFromAgent[] = [];
const waiting = new Map<string, ServerResponse>();

beforeEach(async () => {
  sent.length = 0;
  waiting.clear();
  server = createServer((request, response) => {
    if (request.url?.endsWith('/key')) waiting.set(String(request.headers.authorization), response);
    else response.end('{"data":[]}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`;
  const credentials = new Credentials({ clock: realClock, baseUrl, atRest: null });
  engine = new OpenRouterEngine({
    clock: realClock,
    credentials,
    send: (_, message) => sent.push(message),
    onChange: () => undefined,
  });
});
afterEach(() => {
  engine.stop();
  server.closeAllConnections();
  server.close();
});

const push = (number: number, key: string) =>
  engine.push('cp1', encodePush(number, { keyPush: number, roles: ROLES }, Buffer.from(key)));
const answer = (key: string, creditUsd: number) =>
  waiting
    .get(`Bearer ${key}`)
    ?.end(JSON.stringify({ data: { limit: 100, limit_remaining: creditUsd, is_free_tier: false } }));

it('what a replaced key may still spend says nothing about the new one, however late it is told', async () => {
  const [first, second] = ['sk-or-v1-the-first-key', 'sk-or-v1-the-second-key'];
  push(1, first);
  await expect.poll(() => waiting.size).toBe(1);
  push(2, second);
  answer(first, 99);
  await expect.poll(() => waiting.size).toBe(2);
  expect(engine.status('cp1').account).toBeNull();
  answer(second, 7);
  await expect.poll(() => engine.status('cp1').account?.creditUsd).toBe(7);
  expect(
    sent.flatMap((message) => (message.t === 'cloud-status' ? (message.account?.creditUsd ?? []) : [])),
  ).not.toContain(99);
});

it('what an agent reports of its engine names the host that its calls go to', async () => {
  expect(engine.report()).toBeNull();
  push(1, 'sk-or-v1-the-first-key');
  const { host } = new URL(engine.status('cp1').baseUrl);
  expect(host).toMatch(/^127\.0\.0\.1:\d+$/);
  expect(engine.report()).toMatchObject({ kind: 'openrouter', address: host, reach: 'public' });
  // Another control plane may have said another base URL, of which its own calls are.
  engine.push('cp2', encodePush(1, { keyPush: 0, roles: ROLES, baseUrl: 'https://eu.example/api/v1' }, null));
  expect(engine.report()?.address).toBe(`${host}, eu.example`);
});
