import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createAgentClock } from '../../../agent/clock.ts';
import { EngineHttp } from '../../../agent/engines/engine-http.ts';
import { EngineFailure } from '../../../agent/engines/failure.ts';
import { ManualClock } from '../../session/manual-clock.ts';

const clock = createAgentClock();
const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

/** A server at the level of sockets: `onRequest` gets each request with the number of its socket and of the request on it. */
async function serve(onRequest: (socket: Socket, connection: number, request: number) => void, admits = () => true) {
  const seen = { connections: 0, requests: 0, closed: 0 };
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    const connection = ++seen.connections;
    let request = 0;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      seen.closed++;
    });
    socket.on('data', () => {
      seen.requests++;
      onRequest(socket, connection, ++request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const http = new EngineHttp(origin, clock, { readMark: async () => 'mark', admits });
  cleanups.push(() => {
    http.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { http, seen, origin };
}

const get = { timeoutMs: 2000, maxBytes: 1000 };

async function failureOf(promise: Promise<unknown>) {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof EngineFailure)) throw new Error('it did not fail as an engine');
  return error.failure;
}

describe('requests to an engine', () => {
  it('one after the other use one connection, calls and probes apart', async () => {
    const { http, seen } = await serve((socket) => void socket.write(OK));
    for (let i = 0; i < 5; i++) expect((await http.fetch('/', get)).body.toString()).toBe('ok');
    for (let i = 0; i < 5; i++) await http.probe('/', get);
    expect(seen).toMatchObject({ connections: 2, requests: 10 });
  });

  it('at once use a connection each', async () => {
    const { http, seen } = await serve((socket) => void socket.write(OK));
    await Promise.all([1, 2, 3].map(() => http.fetch('/', get)));
    expect(seen.connections).toBe(3);
  });

  it('that meet a kept socket closed in that moment are sent once more', async () => {
    const { http, seen } = await serve((socket, connection, request) => {
      if (connection === 1 && request === 2) socket.resetAndDestroy();
      else socket.write(OK);
    });
    await http.fetch('/', get);
    expect((await http.fetch('/', { ...get, body: Buffer.from('{}') })).status).toBe(200);
    expect(seen).toMatchObject({ connections: 2, requests: 3 });
  });

  it('end in time however slowly the answer drips', async () => {
    const { http, seen } = await serve((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n');
      const drip = setInterval(() => socket.write('x'), 5);
      socket.on('close', () => clearInterval(drip));
    });
    expect(await failureOf(http.fetch('/', { ...get, timeoutMs: 200 }))).toMatchObject({ code: 'engine_timeout' });
    await expect.poll(() => seen.closed).toBe(1);
  });

  it('are never repeated on a fresh socket, nor after a byte of the answer', async () => {
    const fresh = await serve((socket) => void socket.resetAndDestroy());
    expect(await failureOf(fresh.http.fetch('/', get))).toMatchObject({ blame: 'engine', code: 'engine_error' });
    expect(fresh.seen.requests).toBe(1);
    const begun = await serve((socket, _, request) => {
      if (request === 1) socket.write(OK);
      else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf', () => socket.resetAndDestroy());
    });
    await begun.http.fetch('/', get);
    expect(await failureOf(begun.http.fetch('/', get))).toMatchObject({ code: 'stream_interrupted' });
    expect(begun.seen.requests).toBe(2);
  });

  it('are never repeated on a kept socket once the engine has begun', async () => {
    const begins = {
      'half a head': (socket: Socket) =>
        void socket.write('HTTP/1.1 200 OK\r\ncont', () => setTimeout(() => socket.resetAndDestroy(), 10)),
      'half a head, closed': (socket: Socket) => void socket.end('HTTP/1.1 200 OK\r\ncont'),
      'an interim answer': (socket: Socket) =>
        void socket.write('HTTP/1.1 100 Continue\r\n\r\n', () => setTimeout(() => socket.resetAndDestroy(), 10)),
      'work, and no word': (socket: Socket) => void setTimeout(() => socket.resetAndDestroy(), 1200),
    };
    for (const begin of Object.values(begins)) {
      const { http, seen } = await serve((socket, _, request) => {
        if (request === 1) socket.write(OK);
        else begin(socket);
      });
      await http.fetch('/', get);
      expect(await failureOf(http.fetch('/', { ...get, body: Buffer.from('{}') }))).toMatchObject({
        code: 'engine_error',
      });
      expect(seen.requests).toBe(2);
    }
  });

  it('do not wait for the reader of the answer before', async () => {
    const { http, seen } = await serve((socket) => void socket.write(OK));
    const paused = await new Promise<{ resume(): void }>((resolve, reject) => {
      const running = http.stream(
        { method: 'POST', path: '/', firstByteMs: 2000, betweenMs: 2000 },
        { onHead: () => undefined, onData: () => false, onEnd: () => resolve(running), onFailure: reject },
      );
    });
    expect((await http.fetch('/', { ...get, timeoutMs: 500 })).body.toString()).toBe('ok');
    paused.resume();
    expect((await http.fetch('/', { ...get, timeoutMs: 500 })).body.toString()).toBe('ok');
    expect(seen.connections).toBe(1);
  });

  it('that are refused, left silent or drowned say so', async () => {
    const { http, seen } = await serve((socket, _, request) => {
      if (request === 2) socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n${'x'.repeat(5000)}`);
      else if (request === 1) socket.write(OK);
    });
    await http.fetch('/', get);
    expect(await failureOf(http.fetch('/', get))).toMatchObject({ code: 'engine_invalid_response' });
    const silent = await serve(() => undefined);
    expect(await failureOf(silent.http.fetch('/', { ...get, timeoutMs: 30 }))).toMatchObject({
      code: 'engine_timeout',
    });
    await expect.poll(() => silent.seen.closed).toBe(1);
    http.close();
    expect(seen.requests).toBe(2);
    const refused = new EngineHttp('http://127.0.0.1:1', clock, { readMark: async () => null, admits: () => true });
    expect(await failureOf(refused.fetch('/', get))).toMatchObject({ code: 'engine_unreachable' });
  });

  it('go to no address beyond the one that was agreed on', async () => {
    const { http, seen } = await serve(
      (socket) => void socket.write(OK),
      () => false,
    );
    expect(await failureOf(http.fetch('/', get))).toMatchObject({ code: 'engine_unreachable' });
    expect(seen.requests).toBe(0);
  });

  it('that are given up close their connection at once', async () => {
    const { http, seen } = await serve(() => undefined);
    const leaving = new AbortController();
    const fetched = http.fetch('/', { ...get, signal: leaving.signal });
    await expect.poll(() => seen.requests).toBe(1);
    leaving.abort(new Error('left'));
    await expect(fetched).rejects.toThrow('left');
    await expect.poll(() => seen.closed).toBe(1);
  });
});

describe('an answer that takes its time', () => {
  const SENT = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

  /** Headers may come after so long; nothing else on the way has a limit of its own. */
  async function slow(firstByteMs: number, comesAfterMs: number) {
    let answer: () => void = () => undefined;
    const manual = new ManualClock();
    const { origin } = await serve((socket) => {
      answer = () => void socket.write(SENT);
    });
    const http = new EngineHttp(origin, manual, { readMark: async () => null, admits: () => true });
    cleanups.push(() => http.close());
    const heard: string[] = [];
    http.stream(
      { method: 'POST', path: '/', body: Buffer.from('{}'), firstByteMs, betweenMs: firstByteMs },
      {
        onHead: (status) => void heard.push(String(status)),
        onData: () => true,
        onEnd: () => void heard.push('end'),
        onFailure: ({ failure }) => void heard.push(failure.code),
      },
    );
    const sent = answer;
    await expect.poll(() => answer).not.toBe(sent);
    manual.advance(comesAfterMs);
    answer();
    await expect.poll(() => heard.length).toBeGreaterThan(0);
    return heard;
  }

  it.each([130_000, 310_000, 599_999])('of %i ms until its head is whole under a limit of ten minutes', async (ms) => {
    expect(await slow(600_000, ms)).toEqual(['200', 'end']);
  });

  it('is given up at its limit', async () => {
    expect(await slow(600_000, 600_000)).toEqual(['engine_timeout']);
  });
});
