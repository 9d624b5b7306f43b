import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { ConsoleSessions } from '../../main/gateway/console-sessions.ts';
import { BROWSER, type TopicUpdate } from '../../preload/contract.ts';
import { API_KEY, asAdmin, codeOf, type Harness, openRaw, startGateway, stopAll } from './harness.ts';
import { ManualClock } from './manual-clock.ts';

afterEach(stopAll);

const EVENT = {
  id: 'e1',
  atMs: 1,
  severity: 'info' as const,
  source: 'fleet',
  code: 'node_ready',
  sentence: 'ready',
  needsPerson: false,
  requestId: null,
  nodeId: null,
  providerId: null,
  role: null,
};
const delta = (id: string): TopicUpdate => ({
  topic: 'events',
  type: 'delta',
  changed: [{ ...EVENT, id }],
  removed: [],
  urgent: true,
});

describe('files', () => {
  const consoleFiles = new Map([
    ['index.html', { contentType: 'text/html; charset=utf-8', body: Buffer.from('<!doctype html>') }],
    ['assets/app.js', { contentType: 'text/javascript', body: Buffer.from('1') }],
  ]);

  it('come from a fixed map, under the content policy', async () => {
    const harness = await startGateway({ settings: { consoleFiles } });
    const page = await fetch(`${harness.url}/`);
    expect([page.url, await page.text()]).toEqual([`${harness.url}/console/`, '<!doctype html>']);
    expect(page.headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    );
    expect(Object.fromEntries(page.headers)).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
    });
    expect(await (await fetch(`${harness.url}/console/assets/app.js`)).text()).toBe('1');
  });

  it.each([
    '/console/../package.json',
    '/console/..%2fpackage.json',
    '/console/assets/..%2f..%2fx',
    '/console/%00',
    '/console/assets/',
    '/console/none',
    '/console/__proto__',
    '/console/%E0%A4%A',
  ])('%s is not there', async (path) => {
    const harness = await startGateway({ settings: { consoleFiles } });
    const connection = await openRaw(harness.port);
    connection.socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${harness.port}\r\nConnection: close\r\n\r\n`);
    expect(await connection.heard()).toMatch(/^HTTP\/1\.1 404 /);
  });
});

describe('tickets and sessions', () => {
  const secrets = (): ((count: number) => Uint8Array) => {
    let drawn = 0;
    return (count) => Buffer.alloc(count, ++drawn);
  };

  it('a console ticket works once, within 10 minutes', () => {
    const clock = new ManualClock();
    const sessions = new ConsoleSessions(clock, secrets());
    const [used, old, fresh] = [sessions.issueConsoleTicket(), sessions.issueConsoleTicket(), 'made up'];
    expect(sessions.isSession(sessions.openSession(used))).toBe(true);
    expect(() => sessions.openSession(used)).toThrow(expect.objectContaining({ code: 'invalid_ticket' }));
    expect(() => sessions.openSession(fresh)).toThrow(expect.objectContaining({ code: 'invalid_ticket' }));
    clock.advance(10 * 60_000);
    expect(() => sessions.openSession(old)).toThrow(expect.objectContaining({ code: 'invalid_ticket' }));
  });

  it('a socket ticket works 10 s and opens no session', () => {
    const clock = new ManualClock();
    const sessions = new ConsoleSessions(clock, secrets());
    expect(() => sessions.openSession(sessions.issueSocketTicket())).toThrow();
    const ticket = sessions.issueSocketTicket();
    clock.advance(9999);
    sessions.redeemSocketTicket(ticket);
    const late = sessions.issueSocketTicket();
    clock.advance(10_000);
    expect(() => sessions.redeemSocketTicket(late)).toThrow(expect.objectContaining({ code: 'invalid_ticket' }));
  });

  it('a session lives while it is used, and 12 h idle end it', () => {
    const clock = new ManualClock();
    const sessions = new ConsoleSessions(clock, secrets());
    const token = sessions.openSession(sessions.issueConsoleTicket());
    for (let count = 0; count < 5; count += 1) {
      clock.advance(12 * 3_600_000 - 1);
      expect(sessions.isSession(token)).toBe(true);
    }
    clock.advance(12 * 3_600_000);
    expect(sessions.isSession(token)).toBe(false);
  });

  it("the address's ticket becomes a session that administrates", async () => {
    const harness = await startGateway();
    const ticket = new URL(harness.gateway.consoleUrl()).hash.replace('#ticket=', '');
    const exchange = (): Promise<Response> =>
      fetch(`${harness.url}${BROWSER.session}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ticket }),
      });
    const first = await exchange();
    expect(first.headers.get('cache-control')).toBe('no-store');
    const { token } = (await first.json()) as { token: string };
    const again = await exchange();
    expect([again.status, await codeOf(again)]).toEqual([401, 'invalid_ticket']);
    harness.answers.set('nodes.list', { nodes: [] });
    const nodes = await fetch(`${harness.url}/admin/nodes`, { headers: { authorization: `Bearer ${token}` } });
    expect(await nodes.json()).toEqual({ nodes: [] });
  });
});

it('whoever has shown nothing yet may send as much as a ticket needs', async () => {
  const harness = await startGateway();
  const body = JSON.stringify({ ticket: 'x'.repeat(8192) });
  const headers = { 'content-type': 'application/json' };
  const stated = await fetch(`${harness.url}${BROWSER.session}`, { method: 'POST', headers, body });
  expect([stated.status, await codeOf(stated)]).toEqual([413, 'payload_too_large']);
  const chunks = new Blob([body]).stream();
  const streamed = await fetch(`${harness.url}${BROWSER.session}`, {
    method: 'POST',
    headers,
    body: chunks,
    duplex: 'half',
  } as RequestInit);
  expect([streamed.status, await codeOf(streamed)]).toEqual([413, 'payload_too_large']);
});

describe('signing in with the admin token', () => {
  const signIn = (harness: Harness, headers: Record<string, string>): Promise<Response> =>
    fetch(`${harness.url}${BROWSER.signIn}`, { method: 'POST', headers });

  it('opens a session of the same kind, and the answer is kept nowhere', async () => {
    const harness = await startGateway();
    const response = await signIn(harness, asAdmin);
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const { token } = (await response.json()) as { token: string };
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    harness.answers.set('nodes.list', { nodes: [] });
    const nodes = await fetch(`${harness.url}/admin/nodes`, { headers: { authorization: `Bearer ${token}` } });
    expect(await nodes.json()).toEqual({ nodes: [] });
  });

  it('is refused without the token, with another one, with a session or an API key', async () => {
    const harness = await startGateway();
    const { token } = (await (await signIn(harness, asAdmin)).json()) as { token: string };
    for (const headers of [
      {},
      { authorization: 'Bearer ' },
      { authorization: 'Bearer something-else' },
      { authorization: `Basic ${asAdmin.authorization.slice(7)}` },
      { authorization: `Bearer ${token}` },
      { authorization: `Bearer ${API_KEY}` },
    ] as Record<string, string>[]) {
      const refused = await signIn(harness, headers);
      expect([refused.status, await codeOf(refused)]).toEqual([401, 'invalid_admin_token']);
    }
  });

  it('is not for pages of other origins', async () => {
    const harness = await startGateway();
    const refused = await signIn(harness, { ...asAdmin, origin: 'https://elsewhere.example' });
    expect([refused.status, await codeOf(refused)]).toEqual([403, 'forbidden_origin']);
  });
});

describe('the socket', () => {
  async function connect(harness: Harness, ticket?: string): Promise<WebSocket> {
    const response = await fetch(`${harness.url}${BROWSER.socketTicket}`, { method: 'POST', headers: asAdmin });
    const issued = ((await response.json()) as { ticket: string }).ticket;
    return new WebSocket(`${harness.url.replace('http', 'ws')}${BROWSER.socket}`, [
      BROWSER.protocol,
      `${BROWSER.ticketProtocolPrefix}${ticket ?? issued}`,
    ]);
  }
  const opened = (socket: WebSocket): Promise<void> =>
    new Promise((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });

  it('begins with a snapshot of what is wanted, then tells what changes', async () => {
    const harness = await startGateway();
    const socket = await connect(harness);
    const heard: unknown[] = [];
    socket.on('message', (data) => heard.push(JSON.parse(data.toString())));
    await opened(socket);
    expect(socket.protocol).toBe(BROWSER.protocol);
    socket.send(JSON.stringify({ type: 'want', topics: ['events', 'unknown'] }));
    await expect.poll(() => heard).toEqual([{ topic: 'events', type: 'snapshot', rows: [] }]);
    for (const listener of harness.listeners) listener.send(delta('e1'));
    await expect.poll(() => heard.length).toBe(2);
    expect(heard[1]).toMatchObject({ topic: 'events', type: 'delta', changed: [{ id: 'e1' }] });
    socket.close();
    await expect.poll(() => harness.listeners.size).toBe(0);
  });

  it('is refused with a wrong or used ticket', async () => {
    const harness = await startGateway();
    await expect(connect(harness, 'wrong').then(opened)).rejects.toThrow('401');
  });

  it('that says something else is closed', async () => {
    const harness = await startGateway();
    for (const text of ['{"type":"call"}', 'no json', '{"type":"want","topics":[1]}']) {
      const socket = await connect(harness);
      await opened(socket);
      const closed = new Promise((resolve) => socket.once('close', resolve));
      socket.send(text);
      expect(await closed).toBe(1008);
    }
  });

  it('hears that the server stops', async () => {
    const harness = await startGateway();
    const socket = await connect(harness);
    const heard: unknown[] = [];
    socket.on('message', (data) => heard.push(JSON.parse(data.toString())));
    await opened(socket);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    await harness.gateway.stop();
    expect(await closed).toBe(1001);
    expect(heard).toEqual([{ type: 'closing', code: 'shutting_down' }]);
  });
});

describe('server-sent events', () => {
  const stream = (harness: Harness, query = ''): Promise<Response> =>
    fetch(`${harness.url}/admin/events${query}`, { headers: { ...asAdmin, accept: 'text/event-stream' } });

  it('are a snapshot, then what changes', async () => {
    const harness = await startGateway();
    const response = await stream(harness);
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toBe(
      'event: events\ndata: {"topic":"events","type":"snapshot","rows":[]}\n\n',
    );
    for (const listener of harness.listeners) listener.send(delta('e1\n\ndata: forged'));
    const second = (await reader?.read())?.value ?? '';
    expect(second.match(/^data: /gm)).toHaveLength(1);
    expect(second).toContain('e1\\n\\ndata: forged');
    await reader?.cancel();
    await expect.poll(() => harness.listeners.size).toBe(0);
  });

  it('have 16 readers, and room again when one leaves', async () => {
    const harness = await startGateway();
    const readers = await Promise.all(Array.from({ length: 16 }, () => stream(harness)));
    const refused = await stream(harness);
    expect([refused.status, await codeOf(refused)]).toEqual([429, 'too_many_readers']);
    await readers[0]?.body?.cancel();
    await expect.poll(async () => (await stream(harness)).status).toBe(200);
  });

  it('are let go when the server stops', async () => {
    const harness = await startGateway();
    await stream(harness);
    await expect.poll(() => harness.listeners.size).toBe(1);
    await harness.gateway.stop();
    expect(harness.listeners.size).toBe(0);
  });

  it('of unknown topics are refused', async () => {
    const harness = await startGateway();
    const response = await stream(harness, '?topics=events,secrets');
    expect(response.status).toBe(400);
    expect(await response.text()).not.toContain('secrets');
  });

  it('merge in bounded memory for one that is slow, and cut one that takes nothing', async () => {
    const harness = await startGateway({ gateway: { exchanges: { slowReaderMs: 60 } } });
    await stream(harness);
    await expect.poll(() => harness.listeners.size).toBe(1);
    const filler = 'x'.repeat(4000);
    for (let count = 0; count < 20_000 && harness.listeners.size > 0; count += 1) {
      for (const listener of harness.listeners) {
        listener.send({
          topic: 'events',
          type: 'delta',
          changed: [{ ...EVENT, id: `e${count}`, sentence: filler }],
          removed: [],
          urgent: true,
        });
      }
    }
    await expect.poll(() => harness.listeners.size).toBe(0);
  });
});
