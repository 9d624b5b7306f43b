import { request } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import {
  API_KEY,
  answerChat,
  answerEmbed,
  asAdmin,
  authorised,
  codeOf,
  type Harness,
  openRaw,
  post,
  raw,
  startGateway,
  stopAll,
} from './harness.ts';

afterEach(stopAll);

const CHAT = { model: 'code-assistant', messages: [{ role: 'user', content: 'hi' }] };
const head = (harness: Harness, line: string, ...headers: string[]): string =>
  `${[line, `Host: 127.0.0.1:${harness.port}`, ...headers].join('\r\n')}\r\n\r\n`;

describe('a body that cannot be taken', () => {
  it.each([
    ['malformed JSON', '{"model":"code-assistant","messages":[', 400, 'invalid_json'],
    ['JSON that is no object', '["code-assistant"]', 400, 'invalid_json'],
    ['nothing at all', '', 400, 'invalid_json'],
    ['a missing model', '{"messages":[{"role":"user","content":"hi"}]}', 400, 'invalid_request'],
    ['a model that is no string', '{"model":7,"messages":[{"role":"user","content":"hi"}]}', 400, 'invalid_request'],
    ['messages that are no array', '{"model":"code-assistant","messages":"hi"}', 400, 'invalid_request'],
    ['messages that are no objects', '{"model":"code-assistant","messages":["hi"]}', 400, 'invalid_request'],
    ['no messages', '{"model":"code-assistant","messages":[]}', 400, 'empty_input'],
    ['an unknown model', '{"model":"gpt-9","messages":[{}]}', 404, 'model_not_found'],
    ['a model of several roles', '{"model":"Qwen/Qwen3-8B","messages":[{}]}', 400, 'ambiguous_model'],
    ['a model for other work', '{"model":"embedding","messages":[{}]}', 400, 'invalid_request'],
    ['a field twice', '{"model":"code-assistant","messages":[{}],"model":"rlm"}', 400, 'duplicate_field'],
    [
      'a field twice, once escaped',
      '{"model":"code-assistant","messages":[{}],"mod\\u0065l":"rlm"}',
      400,
      'duplicate_field',
    ],
    [
      'an unknown member of switchyard',
      '{"model":"code-assistant","messages":[{}],"switchyard":{"polcy":"local"}}',
      400,
      'invalid_request',
    ],
    ['a fraction of a token', '{"model":"code-assistant","messages":[{}],"max_tokens":1.5}', 400, 'invalid_request'],
    [
      'a stream that is no boolean',
      '{"model":"code-assistant","messages":[{}],"stream":"yes"}',
      400,
      'invalid_request',
    ],
  ])('%s is refused with its code', async (_what, body, status, code) => {
    const harness = await startGateway();
    const response = await post(harness, '/v1/chat/completions', body);
    expect(response.status).toBe(status);
    expect(await codeOf(response)).toBe(code);
    expect(harness.dispatcher.untouched).toBe(true);
  });

  it.each([
    ['an empty text', { input: '' }, 400, 'empty_input'],
    ['no texts', { input: [] }, 400, 'empty_input'],
    ['one empty text among others', { input: ['a', '', 'c'] }, 400, 'empty_input'],
    ['tokens instead of text', { input: [1, 2, 3] }, 400, 'invalid_request'],
    ['2,049 texts', { input: Array.from({ length: 2049 }, () => 'a') }, 400, 'too_many_inputs'],
    ['an unknown encoding', { input: 'a', encoding_format: 'hex' }, 400, 'invalid_request'],
    ['no width', { input: 'a', dimensions: 0 }, 400, 'invalid_request'],
  ])('for embeddings %s is refused', async (_what, body, status, code) => {
    const harness = await startGateway();
    const response = await post(harness, '/v1/embeddings', { model: 'embedding', ...body });
    expect(response.status).toBe(status);
    expect(await codeOf(response)).toBe(code);
    expect(harness.dispatcher.untouched).toBe(true);
  });

  it('2,048 texts are one piece of work', async () => {
    const harness = await startGateway();
    harness.dispatcher.onEmbed = answerEmbed(4);
    const response = await post(harness, '/v1/embeddings', { model: 'embedding', input: Array(2048).fill('a') });
    expect(response.status).toBe(200);
    expect(harness.dispatcher.embeds[0]?.work.texts).toHaveLength(2048);
  });

  it('a body of 32 MiB and one byte is 413 and nothing is touched, whether its length is stated or not', async () => {
    const harness = await startGateway();
    const body = Buffer.alloc(32 * 1024 * 1024 + 1, 0x20);
    const stated = await fetch(`${harness.url}/v1/chat/completions`, { method: 'POST', headers: authorised, body });
    expect([stated.status, await codeOf(stated)]).toEqual([413, 'payload_too_large']);
    const chunked = await new Promise<number>((resolve, reject) => {
      const upload = request(
        `${harness.url}/v1/chat/completions`,
        { method: 'POST', headers: { ...authorised, 'transfer-encoding': 'chunked' } },
        (response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        },
      );
      upload.on('error', reject);
      upload.end(body);
    });
    expect(chunked).toBe(413);
    expect(harness.dispatcher.untouched).toBe(true);
  });

  it('a client that writes everything before it reads still hears why it was refused', async () => {
    const harness = await startGateway();
    const connection = await openRaw(harness.port);
    connection.socket.pause();
    const size = 33 * 1024 * 1024;
    connection.socket.write(
      head(
        harness,
        'POST /v1/chat/completions HTTP/1.1',
        `Authorization: Bearer ${API_KEY}`,
        `Content-Length: ${size}`,
      ),
    );
    const failure = await new Promise((resolve) => connection.socket.write(Buffer.alloc(size, 0x20), resolve));
    expect(failure ?? null).toBeNull();
    connection.socket.resume();
    expect(await connection.heard()).toMatch(/^HTTP\/1\.1 413 [\s\S]*payload_too_large/);
  });

  it('ten million empty objects are refused while they arrive, and cost no memory', async () => {
    const harness = await startGateway();
    const many = Buffer.from('{},'.repeat(10_000_000));
    const before = process.memoryUsage().rss;
    for (const body of [many, Buffer.concat([Buffer.from('{"messages":['), many, Buffer.from('{}]}')])]) {
      const response = await fetch(`${harness.url}/v1/chat/completions`, { method: 'POST', headers: authorised, body });
      expect([response.status, await codeOf(response)]).toEqual([400, 'too_complex']);
    }
    // Parsing them takes 865 MB; the body itself exists twice in this very process.
    expect(process.memoryUsage().rss - before).toBeLessThan(500 * 1024 * 1024);
    expect(harness.dispatcher.untouched).toBe(true);
  });

  it('nesting of 64 is taken, of 65 is not', async () => {
    const harness = await startGateway();
    harness.dispatcher.onChat = answerChat;
    const nested = (levels: number): string =>
      `{"model":"code-assistant","messages":[{}],"x":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
    expect((await post(harness, '/v1/chat/completions', nested(64))).status).toBe(200);
    expect(await codeOf(await post(harness, '/v1/chat/completions', nested(65)))).toBe('too_complex');
  });

  it('a compressed body and a form are 415', async () => {
    const harness = await startGateway();
    const compressed = await post(harness, '/v1/chat/completions', CHAT, { 'content-encoding': 'gzip' });
    expect([compressed.status, await codeOf(compressed)]).toEqual([415, 'unsupported_encoding']);
    const form = await post(harness, '/v1/chat/completions', CHAT, { 'content-type': 'text/plain' });
    expect([form.status, await codeOf(form)]).toEqual([415, 'unsupported_media_type']);
  });

  it('hostile names and line ends are values like any other', async () => {
    const harness = await startGateway();
    harness.dispatcher.onChat = answerChat;
    const body =
      '{"__proto__":{"admin":true},"constructor":1,"model":"code-assistant","messages":[{"role":"__proto__"}]}';
    expect((await post(harness, '/v1/chat/completions', body)).status).toBe(200);
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
    const response = await post(harness, '/v1/chat/completions', { ...CHAT, model: 'a\r\nx-evil: 1' });
    expect(response.status).toBe(404);
    expect(response.headers.get('x-evil')).toBeNull();
    const proto = await post(harness, '/v1/chat/completions', { ...CHAT, model: '__proto__' });
    expect(await codeOf(proto)).toBe('model_not_found');
  });

  it('no answer quotes the body', async () => {
    const harness = await startGateway();
    for (const body of [
      '{"model": sk-or-v1-secret}',
      '{"model":"code-assistant","messages":[{}],"switchyard":{"sk-or-v1-secret":1}}',
    ]) {
      expect(await (await post(harness, '/v1/chat/completions', body)).text()).not.toContain('secret');
    }
  });
});

describe('the guard before every way in', () => {
  it('refuses a foreign Host and a foreign Origin, and forwards nothing', async () => {
    const harness = await startGateway();
    const body = JSON.stringify(CHAT);
    const evilHost = await raw(
      harness.port,
      `POST /v1/chat/completions HTTP/1.1\r\nHost: evil.example:${harness.port}\r\nAuthorization: Bearer ${API_KEY}\r\n` +
        `Content-Length: ${body.length}\r\n\r\n${body}`,
    );
    expect(evilHost).toMatch(/^HTTP\/1\.1 421 [\s\S]*"code":"invalid_host"/);
    const evilOrigin = await post(harness, '/v1/chat/completions', CHAT, { origin: 'https://evil.example' });
    expect([evilOrigin.status, await codeOf(evilOrigin)]).toEqual([403, 'forbidden_origin']);
    expect(evilOrigin.headers.get('access-control-allow-origin')).toBeNull();
    expect(harness.dispatcher.untouched).toBe(true);
  });

  it.each([
    ['two Hosts', (h: Harness) => head(h, 'GET /healthz HTTP/1.1', `Host: 127.0.0.1:${h.port}`), 400],
    [
      'two Authorizations',
      (h: Harness) => head(h, 'GET /v1/models HTTP/1.1', 'Authorization: Bearer a', 'Authorization: Bearer b'),
      400,
    ],
    ['no Host', () => 'GET /healthz HTTP/1.1\r\n\r\n', 400],
    ['a Host with another port', () => 'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n', 421],
    ['absolute-form', (h: Harness) => head(h, `GET http://127.0.0.1:${h.port}/healthz HTTP/1.1`), 400],
    ['HTTP/1.0', (h: Harness) => head(h, 'GET /healthz HTTP/1.0'), 400],
    ['CONNECT', (h: Harness) => head(h, 'CONNECT 127.0.0.1:22 HTTP/1.1'), 400],
    ['OPTIONS *', (h: Harness) => head(h, 'OPTIONS * HTTP/1.1'), 400],
    ['garbage', () => '\u0016\u0003\u0001 hello\r\n\r\n', 400],
    ['another expectation', (h: Harness) => head(h, 'GET /healthz HTTP/1.1', 'Expect: the-spanish-inquisition'), 400],
    ['headers over 16 KiB', (h: Harness) => head(h, 'GET /healthz HTTP/1.1', `X-Long: ${'a'.repeat(17_000)}`), 431],
    ['an upgrade with a foreign Host', () => upgrade('Host: evil.example'), 421],
    [
      'an upgrade from a foreign page',
      (h: Harness) => upgrade(`Host: 127.0.0.1:${h.port}`, 'Origin: https://evil.example'),
      403,
    ],
    ['an upgrade without a ticket', (h: Harness) => upgrade(`Host: 127.0.0.1:${h.port}`), 401],
  ])('%s is refused', async (_what, text, status) => {
    const harness = await startGateway();
    expect(await raw(harness.port, text(harness))).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  });

  it('Expect: 100-continue with a foreign Host or without a key never gets its 100', async () => {
    const harness = await startGateway();
    const ask = (host: string): string =>
      `POST /v1/chat/completions HTTP/1.1\r\nHost: ${host}\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n`;
    expect(await raw(harness.port, ask('evil.example'))).toMatch(/^HTTP\/1\.1 421 /);
    expect(await raw(harness.port, ask(`127.0.0.1:${harness.port}`))).toMatch(/^HTTP\/1\.1 401 /);
  });

  it('Expect: 100-continue with everything right gets its 100 and then its answer', async () => {
    const harness = await startGateway();
    harness.dispatcher.onChat = answerChat;
    const body = JSON.stringify(CHAT);
    const connection = await openRaw(harness.port);
    connection.socket.write(
      head(
        harness,
        'POST /v1/chat/completions HTTP/1.1',
        `Authorization: Bearer ${API_KEY}`,
        'Expect: 100-continue',
        `Content-Length: ${body.length}`,
      ),
    );
    expect(await connection.heard(/100 Continue\r\n\r\n/)).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\n$/);
    connection.socket.write(body);
    expect(await connection.heard(/"Hello"/)).toMatch(/HTTP\/1\.1 200 OK/);
    connection.socket.destroy();
  });

  it('a client that offers h2c is served over HTTP/1.1', async () => {
    const harness = await startGateway();
    const text = await raw(harness.port, head(harness, 'GET /healthz HTTP/1.1', 'Connection: Upgrade', 'Upgrade: h2c'));
    expect(text).toMatch(/^HTTP\/1\.1 200 OK/);
  });

  it('a listed page may call, and is told so without a private-network header', async () => {
    const harness = await startGateway({ settings: { origins: ['https://tool.example'] } });
    harness.dispatcher.onChat = answerChat;
    const from = { origin: 'https://tool.example', 'sec-fetch-site': 'cross-site' };
    const preflight = await fetch(`${harness.url}/v1/chat/completions`, {
      method: 'OPTIONS',
      headers: {
        ...from,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization',
        'access-control-request-private-network': 'true',
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-origin')).toBe('https://tool.example');
    expect([...preflight.headers.keys()].filter((name) => /private|local-network/.test(name))).toEqual([]);
    const response = await post(harness, '/v1/chat/completions', CHAT, from);
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBe('https://tool.example');
  });
});

function upgrade(...headers: string[]): string {
  const common = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
  ];
  return `${['GET /console/socket HTTP/1.1', ...headers, ...common].join('\r\n')}\r\n\r\n`;
}

describe('keys', () => {
  it('a missing, wrong or query-string key is 401 before the body is read', async () => {
    const harness = await startGateway();
    const url = `${harness.url}/v1/chat/completions`;
    const body = JSON.stringify(CHAT);
    for (const [target, headers] of [
      [url, {}],
      [url, { authorization: 'Bearer sk-wrong' }],
      [url, { authorization: `Basic ${API_KEY}` }],
      [`${url}?api_key=${API_KEY}`, {}],
    ] as const) {
      const response = await fetch(target, { method: 'POST', headers, body });
      expect([response.status, await codeOf(response)]).toEqual([401, 'invalid_api_key']);
    }
    // The body was announced and never sent: the refusal does not wait for it.
    const early = await raw(
      harness.port,
      head(harness, 'POST /v1/chat/completions HTTP/1.1', 'Content-Length: 20000000'),
    );
    expect(early).toMatch(/^HTTP\/1\.1 401 /);
    expect(harness.dispatcher.untouched).toBe(true);
  });

  it('loopback may be opened; a key that is sent must still be known', async () => {
    const harness = await startGateway({ settings: { openProject: 'project-open' as never } });
    harness.dispatcher.onChat = answerChat;
    const send = (headers: Record<string, string>): Promise<Response> =>
      fetch(`${harness.url}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify(CHAT) });
    expect((await send({ 'content-type': 'application/json' })).status).toBe(200);
    expect(harness.dispatcher.chats[0]?.work.context.project).toBe('project-open');
    expect((await send({ authorization: 'Bearer revoked' })).status).toBe(401);
  });

  it('an API key does not administrate, and the admin token does no work', async () => {
    const harness = await startGateway();
    const admin = await fetch(`${harness.url}/admin/nodes`, { headers: authorised });
    expect([admin.status, await codeOf(admin)]).toEqual([401, 'invalid_admin_token']);
    const work = await post(harness, '/v1/chat/completions', CHAT, asAdmin);
    expect([work.status, await codeOf(work)]).toEqual([401, 'invalid_api_key']);
  });

  it('has 64 requests in flight and no more, and one that ends makes room', async () => {
    const harness = await startGateway();
    const waiting = Array.from({ length: 64 }, () => post(harness, '/v1/chat/completions', CHAT));
    await expect.poll(() => harness.dispatcher.chats.length).toBe(64);
    const refused = await post(harness, '/v1/chat/completions', CHAT);
    expect([refused.status, await codeOf(refused)]).toEqual([429, 'too_many_in_flight']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    for (const handed of harness.dispatcher.chats) answerChat(handed);
    await Promise.all(waiting.map(async (answer) => (await answer).text()));
    harness.dispatcher.onChat = answerChat;
    await expect.poll(async () => (await post(harness, '/v1/chat/completions', CHAT)).status).toBe(200);
  });
});

describe('slow and lying clients', () => {
  it('headers that take too long are 408', async () => {
    const harness = await startGateway({ gateway: { connections: { headersMs: 100, checkMs: 50 } } });
    const connection = await openRaw(harness.port);
    connection.socket.write('GET /healthz HTTP/1.1\r\nHost: ');
    expect(await connection.heard()).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":"request_timeout"/);
  });

  it('a body that takes too long is 408', async () => {
    const harness = await startGateway({ gateway: { exchanges: { body: { bytes: 1000, timeoutMs: 50 } } } });
    const connection = await openRaw(harness.port);
    connection.socket.write(
      `${head(harness, 'POST /v1/chat/completions HTTP/1.1', `Authorization: Bearer ${API_KEY}`, 'Content-Length: 500')}{"mod`,
    );
    expect(await connection.heard(/request_timeout/)).toMatch(/^HTTP\/1\.1 408 /);
    connection.socket.destroy();
  });

  it('one that states more than it sends and leaves disturbs nobody', async () => {
    const harness = await startGateway();
    const connection = await openRaw(harness.port);
    connection.socket.end(
      `${head(harness, 'POST /v1/chat/completions HTTP/1.1', `Authorization: Bearer ${API_KEY}`, 'Content-Length: 500')}{"model":`,
    );
    await expect.poll(() => harness.exchanges.length).toBe(1);
    expect(harness.dispatcher.untouched).toBe(true);
    expect((await fetch(`${harness.url}/healthz`)).status).toBe(200);
  });

  it('one that states less than it sends has its rest refused as garbage', async () => {
    const harness = await startGateway();
    harness.dispatcher.onChat = answerChat;
    const body = JSON.stringify(CHAT);
    const connection = await openRaw(harness.port);
    connection.socket.write(
      `${head(harness, 'POST /v1/chat/completions HTTP/1.1', `Authorization: Bearer ${API_KEY}`, `Content-Length: ${body.length}`)}${body}\u0001\u0002 garbage\r\n\r\n`,
    );
    const text = await connection.heard();
    expect(text.match(/HTTP\/1\.1 /g)?.length ?? 0).toBeLessThanOrEqual(2);
    expect(harness.dispatcher.chats).toHaveLength(1);
  });

  it.each([
    ['a chunk whose size is no number', 'Transfer-Encoding: chunked', 'ZZ\r\n', false],
    ['a chunk that is longer than its size', 'Transfer-Encoding: chunked', '2\r\n{}x\r\n0\r\n\r\n', false],
    ['a client that stops sending in the middle', 'Content-Length: 20', '{}', true],
  ])(
    '%s closes the connection without an answer, and nothing of it is passed on',
    async (_what, length, body, ends) => {
      const harness = await startGateway();
      const connection = await openRaw(harness.port);
      const heads = [`Authorization: Bearer ${API_KEY}`, 'Content-Type: application/json', length];
      connection.socket.write(`${head(harness, 'POST /v1/chat/completions HTTP/1.1', ...heads)}${body}`);
      if (ends) connection.socket.end();
      expect(await connection.heard()).toBe('');
      expect(harness.dispatcher.untouched).toBe(true);
      expect((await fetch(`${harness.url}/healthz`)).status).toBe(200);
    },
  );

  it('two lengths, or a length beside chunks, are refused', async () => {
    const harness = await startGateway();
    for (const extra of [
      ['Content-Length: 5', 'Content-Length: 6'],
      ['Content-Length: 5', 'Transfer-Encoding: chunked'],
    ]) {
      const text = await raw(harness.port, `${head(harness, 'POST /v1/chat/completions HTTP/1.1', ...extra)}hello`);
      expect(text).toMatch(/^HTTP\/1\.1 400 /);
    }
    expect(harness.dispatcher.untouched).toBe(true);
  });
});

it('unknown routes and methods have their codes', async () => {
  const harness = await startGateway();
  const unknown = await fetch(`${harness.url}/v2/nothing`);
  expect([unknown.status, await codeOf(unknown)]).toEqual([404, 'not_found']);
  const method = await fetch(`${harness.url}/v1/embeddings`, { headers: authorised });
  expect([method.status, await codeOf(method), method.headers.get('allow')]).toEqual([
    405,
    'method_not_allowed',
    'POST',
  ]);
});
