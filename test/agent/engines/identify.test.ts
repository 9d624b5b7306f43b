import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createAgentClock } from '../../../agent/clock.ts';
import { engineDefinitions } from '../../../agent/engines/definitions.ts';
import { EngineHttp } from '../../../agent/engines/engine-http.ts';
import { identify } from '../../../agent/engines/identify.ts';

const clock = createAgentClock();
const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

type Routes = Readonly<Record<string, readonly [status: number, body: string, headers?: Record<string, string>]>>;

async function listen(handler: RequestListener): Promise<string> {
  const server = createServer(handler);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What sits behind `routes`; also the paths that were asked, in order. */
async function look(
  routes: Routes,
): Promise<{ kind: string | null; version: string | null; loading: boolean; asked: string[] }> {
  const asked: string[] = [];
  const origin = await listen((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const [status, body, headers] = routes[request.url ?? ''] ?? [404, 'not found'];
    response.writeHead(status, headers).end(body);
  });
  return { ...(await identifyAt(origin)), asked };
}

async function identifyAt(origin: string) {
  const http = new EngineHttp(origin, clock, { readMark: async () => null, admits: () => true });
  const found = await identify(http, engineDefinitions(clock));
  http.close();
  return {
    kind: found?.definition.kind ?? null,
    version: found?.identity.version ?? null,
    loading: found?.identity.loading ?? false,
  };
}

const NAMED = { server: 'llama.cpp' };
const PROPS = JSON.stringify({ default_generation_settings: { n_ctx: 4096 }, total_slots: 1, build_info: 'b1-x' });
const LOADING = JSON.stringify({ error: { code: 503, message: 'Loading model', type: 'unavailable_error' } });
const GUARDED = JSON.stringify({ error: { code: 401, message: 'Invalid API Key', type: 'authentication_error' } });

describe('what answers at an address', () => {
  it('is a llama.cpp server by its properties, told by GETs alone, each asked once', async () => {
    const found = await look({ '/health': [200, '{"status":"ok"}', NAMED], '/props': [200, PROPS, NAMED] });
    expect(found).toMatchObject({ kind: 'llama.cpp', version: 'b1-x', loading: false });
    expect(found.asked.every((request) => request.startsWith('GET '))).toBe(true);
    expect(new Set(found.asked).size).toBe(found.asked.length);
  });

  it('is one that is still loading, by its header and its refusal', async () => {
    expect(await look({ '/': [503, LOADING, NAMED], '/health': [503, LOADING, NAMED] })).toMatchObject({
      kind: 'llama.cpp',
      loading: true,
    });
  });

  it('stays one behind a proxy that hides the header, and when its properties are guarded', async () => {
    expect(await look({ '/health': [200, 'ok', { server: 'nginx' }], '/props': [200, PROPS] })).toMatchObject({
      kind: 'llama.cpp',
    });
    expect(await look({ '/health': [200, '{}', NAMED], '/props': [401, GUARDED, NAMED] })).toMatchObject({
      kind: 'llama.cpp',
    });
  });

  it.each<[string, Routes]>([
    [
      'Ollama, whatever else it answers',
      { '/': [200, 'Ollama is running'], '/props': [200, PROPS], '/health': [200, '', NAMED] },
    ],
    ['a server that only has the header', { '/health': [200, '{}', NAMED] }],
    ['a server that only imitates the routes of Ollama', { '/api/tags': [200, '{"models":[]}'], '/': [200, 'hello'] }],
    ['a 503 with the type of llama.cpp but another name', { '/health': [503, LOADING], '/': [503, LOADING] }],
    [
      'a web application that answers every path',
      { '/': [200, '<html>'], '/health': [200, '<html>'], '/props': [200, '<html>'] },
    ],
    ['a redirect, which is not followed', { '/': [302, '', { location: 'http://127.0.0.1:1/' }], '/props': [302, ''] }],
    ['properties of another shape', { '/': [200, 'x'], '/props': [200, '{"build_info":"x"}'] }],
  ])('is not taken for llama.cpp: %s', async (_, routes) => {
    expect((await look(routes)).kind).toBeNull();
  });

  it('is nothing when the answer is too long', async () => {
    const origin = await listen((_, response) => void response.end('x'.repeat(100_000)));
    expect((await identifyAt(origin)).kind).toBeNull();
  });
});
