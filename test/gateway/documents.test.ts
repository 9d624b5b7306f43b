import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { ERRORS, type ErrorCode, SwitchyardError } from '../../main/domain/errors.ts';
import { errorBody, errorHeaders } from '../../main/gateway/errors.ts';
import { openApiDocument } from '../../main/gateway/openapi.ts';
import { type Route, RouteTable } from '../../main/gateway/routes.ts';
import { startGateway, stopAll } from './harness.ts';

afterEach(stopAll);

describe('docs/errors.md', () => {
  const rows = [
    ...readFileSync('docs/errors.md', 'utf8').matchAll(/^\| `([a-z_0-9]+)` \| (\d{3}) \| (\w+) \| (.+) \|$/gm),
  ];

  it('is the table of the code: every code once, with status, type and sentence', () => {
    const documented = rows.map(([, code, status, type, sentence]) => ({
      code,
      status: Number(status),
      type,
      sentence,
    }));
    const coded = Object.entries(ERRORS).map(([code, { status, type, sentence }]) => ({
      code,
      status,
      type,
      sentence,
    }));
    expect(documented, 'run: node scripts/write-errors-doc.mjs').toEqual(coded);
  });
});

describe('every error', () => {
  const codes = Object.keys(ERRORS) as ErrorCode[];

  it.each(codes)('%s has a sentence that ends, a status that fits its type, and both forms', (code) => {
    const { status, type, sentence } = ERRORS[code];
    expect(sentence).toMatch(/^[A-Z].*\.$/);
    expect(status).toBeGreaterThanOrEqual(400);
    // What is the caller's fault or to be lifted by it is never a 5xx.
    if (type !== 'api_error') expect(status).toBeLessThan(500);
    const error = new SwitchyardError(code);
    expect(JSON.parse(errorBody(error, 'openai'))).toEqual({ error: { message: sentence, type, param: null, code } });
    expect(JSON.parse(errorBody(error, 'rerank'))).toMatchObject({ message: sentence, code, error: { code } });
  });

  it('that waiting heals says how long, in whole seconds', () => {
    for (const code of codes.filter((each) => ERRORS[each].status === 429)) {
      const headers = errorHeaders(new SwitchyardError(code, undefined, { retryAfterMs: 1 }));
      expect(headers.slice(headers.indexOf('retry-after'))).toContain('1');
    }
    expect(errorHeaders(new SwitchyardError('queue_full'))).toContain('retry-after');
    expect(errorHeaders(new SwitchyardError('no_provider', undefined, { retryAfterMs: 14_001 }))).toContain('15');
    expect(errorHeaders(new SwitchyardError('invalid_json'))).not.toContain('retry-after');
  });
});

describe('/openapi.json', () => {
  it('describes every route that is served, and no other', async () => {
    const harness = await startGateway();
    const document = (await (await fetch(`${harness.url}/openapi.json`)).json()) as {
      openapi: string;
      paths: Record<string, Record<string, { operationId: string; summary: string; security: unknown[] }>>;
    };
    expect(document.openapi).toBe('3.1.0');
    const described = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`),
    );
    expect(described.sort()).toEqual(harness.gateway.routes.map((route) => `${route.method} ${route.path}`).sort());
    const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
    expect(new Set(operations.map((operation) => operation.operationId)).size).toBe(operations.length);
    expect(operations.filter((operation) => operation.summary.length === 0)).toEqual([]);
    expect(document.paths['/v1/embeddings']?.post).toMatchObject({ security: [{ apiKey: [] }] });
    expect(document.paths['/admin/nodes/{id}/drain']?.post).toMatchObject({ security: [{ admin: [] }] });
    expect(JSON.stringify(document)).toContain('include_usage');
  });

  it('a route without a schema is described too', () => {
    const route: Route = {
      method: 'GET',
      path: '/a/:b',
      access: 'public',
      form: 'openai',
      document: { summary: 's', tag: 'Health' },
      handle: () => undefined,
    };
    expect(openApiDocument([route], '1').paths).toMatchObject({
      '/a/{b}': { get: { operationId: 'getAB', security: [] } },
    });
  });
});

describe('the route table', () => {
  const route = (method: 'GET' | 'POST', path: string): Route => ({
    method,
    path,
    access: 'public',
    form: 'openai',
    document: { summary: 's', tag: 'Health' },
    handle: () => undefined,
  });
  const table = new RouteTable([
    route('GET', '/a'),
    route('POST', '/a'),
    route('GET', '/a/:id'),
    route('GET', '/a/fixed'),
  ]);

  it('prefers fixed paths, decodes parameters, and knows other methods', () => {
    expect(table.find('GET', '/a')).toMatchObject({ kind: 'route', route: { path: '/a', method: 'GET' } });
    expect(table.find('GET', '/a/fixed')).toMatchObject({ route: { path: '/a/fixed' } });
    const found = table.find('GET', '/a/x%2Fy');
    expect(found.kind === 'route' && found.parameters.get('id')).toBe('x/y');
    expect(table.find('PUT', '/a')).toEqual({ kind: 'other-method', allow: ['GET', 'POST'] });
    for (const path of ['/b', '/a/', '/a/b/c', '/a/%E0', '', `/a${'/'.repeat(1000)}`]) {
      expect(table.find('GET', path)).toEqual({ kind: 'none' });
    }
  });
});
