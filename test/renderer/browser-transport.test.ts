import { describe, expect, it } from 'vitest';
import { BROWSER } from '../../preload/contract/browser-names.ts';
import type { TopicUpdate } from '../../preload/contract.ts';
import { type BrowserPorts, BrowserTransport } from '../../renderer/transport/browser.ts';
import type { Connection } from '../../renderer/transport/port.ts';

class FakeSocket {
  readyState = 0;
  readonly sent: unknown[] = [];
  onopen: () => void = () => undefined;
  onmessage: (event: { data: unknown }) => void = () => undefined;
  onclose: () => void = () => undefined;
  readonly url: string;
  readonly protocols: readonly string[];
  constructor(url: string, protocols: readonly string[]) {
    this.url = url;
    this.protocols = protocols;
  }
  open(): void {
    this.readyState = 1;
    this.onopen();
  }
  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }
  close(): void {
    this.readyState = 3;
    this.onclose();
  }
}

interface Asked {
  readonly path: string;
  readonly method: string;
  readonly authorization: string | null;
  readonly type: string | null;
  readonly body: string;
}

function rig(hash = '#ticket=one-use', replies: Record<string, [number, unknown]> = {}) {
  const asked: Asked[] = [];
  const sockets: FakeSocket[] = [];
  const hashes: string[] = [];
  const kept = new Map<string, string>();
  const timers: { delayMs: number; run: () => void }[] = [];
  const location = { origin: 'http://127.0.0.1:7411', hash };
  let hashChanged: () => void = () => undefined;
  let visible: (shown: boolean) => void = () => undefined;
  const ports: BrowserPorts = {
    location,
    replaceHash: (next) => {
      location.hash = next;
      hashes.push(next);
    },
    storage: {
      getItem: (name) => kept.get(name) ?? null,
      setItem: (name, value) => void kept.set(name, value),
      removeItem: (name) => void kept.delete(name),
    },
    fetch: async (input, init) => {
      const path = String(input).replace('http://127.0.0.1:7411', '');
      const headers = new Headers(init?.headers);
      const body = init?.body instanceof Blob ? await init.body.text() : String(init?.body);
      asked.push({
        path,
        method: init?.method ?? 'GET',
        authorization: headers.get('authorization'),
        type: headers.get('content-type'),
        body,
      });
      const usual: Record<string, [number, unknown]> = {
        [BROWSER.session]: [200, { token: 'session-token' }],
        [BROWSER.socketTicket]: [200, { ticket: 'socket-ticket' }],
      };
      const [status, answer] = replies[path] ?? usual[path] ?? [200, {}];
      if (status === 0) throw new TypeError('Failed to fetch');
      return new Response(JSON.stringify(answer), { status });
    },
    openSocket: (url, protocols) => {
      const socket = new FakeSocket(url, protocols);
      sockets.push(socket);
      return socket as unknown as WebSocket;
    },
    after: (delayMs, run) => {
      timers.push({ delayMs, run });
      return () => undefined;
    },
    onVisible: (listener) => {
      visible = listener;
      return () => undefined;
    },
    onHash: (listener) => {
      hashChanged = listener;
      return () => undefined;
    },
  };
  const transport = new BrowserTransport(ports);
  const connections: Connection[] = [];
  transport.onConnection((connection) => connections.push(connection));
  return {
    transport,
    asked,
    sockets,
    hashes,
    kept,
    timers,
    connections,
    replies,
    show: (shown: boolean) => visible(shown),
    goTo: (next: string) => {
      location.hash = next;
      hashChanged();
    },
  };
}

describe('the console in a browser', () => {
  it('spends its ticket once, out of the address first, and keeps only the session token', async () => {
    const { transport, asked, hashes, kept, sockets } = rig();
    await transport.start();
    expect(hashes).toEqual(['']);
    expect(asked.map((one) => [one.path, one.authorization])).toEqual([
      [BROWSER.session, null],
      [BROWSER.socketTicket, 'Bearer session-token'],
    ]);
    expect([...kept.values()]).toEqual(['session-token']);
    expect(sockets[0]?.url).toBe('ws://127.0.0.1:7411/console/socket');
    expect(sockets[0]?.protocols).toEqual(['switchyard.console.1', 'ticket.socket-ticket']);
  });

  it('asks operations with its token, and tells refusals by their code', async () => {
    const { transport, asked } = rig('', {
      '/admin/op/roles.list': [200, { roles: [] }],
      '/admin/op/budget.set': [400, { error: { code: 'invalid_request', message: 'override does not fit.' } }],
      '/admin/op/nodes.list': [0, null],
    });
    expect(await transport.call('roles.list', {})).toEqual({ roles: [] });
    await expect(transport.call('budget.set', { override: 1 })).rejects.toMatchObject({
      code: 'invalid_request',
      detail: 'override does not fit.',
    });
    await expect(transport.call('nodes.list', {})).rejects.toMatchObject({ code: 'console_disconnected' });
    expect(asked.every((one) => one.method === 'POST' && one.type === 'application/json')).toBe(true);
  });

  it('sends the cloud key as bytes and zeroes them, also when it is refused', async () => {
    const { transport, asked, replies } = rig('');
    const bytes = new TextEncoder().encode('sk-or-v1-canary');
    await transport.pushCloudKey(bytes, { nodeIds: ['a', 'b'], remember: true });
    expect(asked[0]).toMatchObject({
      path: '/admin/cloud/key?nodes=a%2Cb&remember=1',
      method: 'PUT',
      type: 'application/octet-stream',
      body: 'sk-or-v1-canary',
    });
    expect([...bytes].every((byte) => byte === 0)).toBe(true);
    replies[BROWSER.cloudKey] = [400, { error: { code: 'invalid_cloud_key' } }];
    const other = new Uint8Array([1, 2, 3]);
    await expect(transport.pushCloudKey(other, {})).rejects.toMatchObject({ code: 'invalid_cloud_key' });
    expect([...other]).toEqual([0, 0, 0]);
  });

  it('hears topics over the socket and asks for them again after a loss, waiting longer each time', async () => {
    const { transport, sockets, timers, connections, replies } = rig();
    const heard: TopicUpdate[] = [];
    transport.onUpdate((update) => heard.push(update));
    transport.want(['nodes']);
    await transport.start();
    sockets[0]?.open();
    expect(sockets[0]?.sent).toEqual([{ type: 'want', topics: ['nodes'] }]);
    sockets[0]?.onmessage({ data: JSON.stringify({ topic: 'nodes', type: 'snapshot', rows: [] }) });
    for (const odd of [
      'nonsense',
      JSON.stringify({ topic: 'constructor' }),
      JSON.stringify({ type: 'closing' }),
      new ArrayBuffer(1),
    ])
      sockets[0]?.onmessage({ data: odd });
    expect(heard).toEqual([{ topic: 'nodes', type: 'snapshot', rows: [] }]);
    sockets[0]?.close();
    replies[BROWSER.socketTicket] = [0, null];
    for (let tries = 0; tries < 6; tries += 1) {
      timers.at(-1)?.run();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(timers.map((timer) => timer.delayMs)).toEqual([500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
    delete replies[BROWSER.socketTicket];
    timers.at(-1)?.run();
    await new Promise((resolve) => setImmediate(resolve));
    sockets[1]?.open();
    expect(sockets[1]?.sent).toEqual([{ type: 'want', topics: ['nodes'] }]);
    expect(connections.at(0)).toBe('live');
    expect(connections).toContain('lost');
    expect(connections.at(-1)).toBe('live');
  });

  it('says that it is hidden, and ends when its token is no longer good', async () => {
    const { transport, sockets, show, connections, kept, replies, timers } = rig();
    await transport.start();
    sockets[0]?.open();
    show(false);
    expect(sockets[0]?.sent.at(-1)).toEqual({ type: 'visible', visible: false });
    replies[BROWSER.socketTicket] = [401, { error: { code: 'invalid_admin_token', message: 'x' } }];
    sockets[0]?.close();
    timers.at(-1)?.run();
    await new Promise((resolve) => setImmediate(resolve));
    expect(connections.at(-1)).toBe('ended');
    expect(kept.size).toBe(0);
  });

  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const signedOut: Record<string, [number, unknown]> = {
    [BROWSER.session]: [401, { error: { code: 'invalid_ticket', message: 'x' } }],
    [BROWSER.socketTicket]: [401, { error: { code: 'invalid_admin_token', message: 'x' } }],
  };

  it('with a used ticket and no session it asks nothing more until somebody signs in', async () => {
    const { transport, connections, timers, sockets, kept, asked, replies } = rig('#ticket=used', { ...signedOut });
    await transport.start();
    expect([connections, timers.length, sockets.length, kept.size]).toEqual([['ended'], 0, 0, 0]);
    delete replies[BROWSER.socketTicket];
    replies[BROWSER.signIn] = [200, { token: 'new-session' }];
    await transport.signIn('  admin-token-0123 ');
    expect(asked.slice(-2).map((one) => [one.path, one.authorization])).toEqual([
      [BROWSER.signIn, 'Bearer admin-token-0123'],
      [BROWSER.socketTicket, 'Bearer new-session'],
    ]);
    expect([...kept.values()]).toEqual(['new-session']);
    sockets[0]?.open();
    expect(connections.at(-1)).toBe('live');
  });

  it('a wrong admin token opens nothing, and what can be no token never leaves', async () => {
    const { transport, asked, kept, replies } = rig('', { ...signedOut });
    await transport.start();
    replies[BROWSER.signIn] = [401, { error: { code: 'invalid_admin_token', message: 'x' } }];
    await expect(transport.signIn('sya-wrong')).rejects.toMatchObject({ code: 'invalid_admin_token' });
    const before = asked.length;
    for (const odd of ['', '   ', 'schlüssel', 'two words', 'a\r\nx: y', 'x'.repeat(513)]) {
      await expect(transport.signIn(odd)).rejects.toMatchObject({ code: 'invalid_admin_token' });
    }
    expect([asked.length, kept.size]).toEqual([before, 0]);
  });

  it('a new address in the same tab signs in, although the page is not loaded again', async () => {
    const { transport, connections, sockets, hashes, replies, goTo } = rig('', { ...signedOut });
    await transport.start();
    expect(connections).toEqual(['ended']);
    for (const path of Object.keys(signedOut)) delete replies[path];
    goTo('#/fleet');
    goTo('#ticket=fresh');
    await settled();
    await settled();
    sockets[0]?.open();
    expect([connections.at(-1), hashes]).toEqual(['live', ['']]);
  });

  it('an operation that finds the session over ends the connection at once', async () => {
    const { transport, sockets, connections, timers, replies } = rig();
    await transport.start();
    sockets[0]?.open();
    replies['/admin/op/roles.list'] = [401, { error: { code: 'invalid_admin_token', message: 'x' } }];
    await expect(transport.call('roles.list', {})).rejects.toMatchObject({ code: 'invalid_admin_token' });
    expect([connections, sockets[0]?.readyState, timers.length]).toEqual([['live', 'ended'], 3, 0]);
  });
});
