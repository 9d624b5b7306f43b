import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { Connection, type ResponseHandler } from '../../../agent/engines/connection.ts';

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

/** One connection to a server at the level of sockets; `onRequest` gets what came in, and the number of the socket. */
async function connected(onRequest: (socket: Socket, text: string, number: number) => void) {
  const seen = { sockets: [] as Socket[], closed: 0 };
  const server: Server = createServer((socket) => {
    const number = seen.sockets.push(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      seen.closed += 1;
    });
    socket.on('data', (bytes) => onRequest(socket, bytes.toString('latin1'), number));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connection = new Connection(origin, { readMark: async () => 'mark', admits: () => true });
  cleanups.push(() => {
    connection.destroy();
    for (const socket of seen.sockets) socket.destroy();
    server.close();
  });
  return { connection, seen, server };
}

interface Outcome {
  readonly status: number;
  readonly body: Buffer;
  readonly error: string | null;
}

/** `onChunk` may pause the connection, or throw. */
function sent(
  connection: Connection,
  { body = null, path = '/', headers = {}, onChunk = () => {} }: Sent = {},
): Promise<Outcome> {
  return new Promise((resolve) => {
    let status = 0;
    const chunks: Buffer[] = [];
    const over = (error: string | null) => resolve({ status, body: Buffer.concat(chunks), error });
    const handler: ResponseHandler = {
      onStart: () => null,
      onHead: (code) => {
        status = code;
      },
      onData: (chunk) => {
        chunks.push(Buffer.from(chunk));
        onChunk();
      },
      onEnd: () => over(null),
      onError: (error) => over((error as NodeJS.ErrnoException).code ?? error.message),
    };
    connection.send({ method: body === null ? 'GET' : 'POST', path, headers, body }, handler);
  });
}
interface Sent {
  readonly body?: Uint8Array | null;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly onChunk?: () => void;
}

describe('a connection to an engine', () => {
  it('sends the request as HTTP/1.1 has it, its body once and whole', async () => {
    for (const length of [3, 300_000]) {
      let got = '';
      const { connection } = await connected((socket, text) => {
        got += text;
        if (got.length >= length && got.endsWith('!')) socket.write(OK);
      });
      const body = Buffer.from(`${'x'.repeat(length - 1)}!`);
      expect(await sent(connection, { body, path: '/v1/x', headers: { 'x-a': 'b' } })).toMatchObject({ error: null });
      const [head, rest] = got.split('\r\n\r\n');
      expect(head?.split('\r\n').slice(0, 1)).toEqual(['POST /v1/x HTTP/1.1']);
      expect(head?.split('\r\n').slice(2)).toEqual(['connection: keep-alive', 'x-a: b', `content-length: ${length}`]);
      expect(rest).toBe(body.toString());
    }
  });

  it('names another host where that is asked for, and only that one', async () => {
    let got = '';
    const { connection } = await connected((socket, text) => {
      got = text;
      socket.write(OK);
    });
    await sent(connection, { headers: { host: 'localhost' } });
    expect(got.match(/^host: .*$/gim)).toEqual(['host: localhost']);
  });

  it('is used again, and counts its sockets', async () => {
    const { connection, seen } = await connected((socket) => void socket.write(OK));
    expect(connection).toMatchObject({ connected: false, generation: 0 });
    for (let request = 0; request < 3; request += 1) expect((await sent(connection)).body.toString()).toBe('ok');
    expect(connection).toMatchObject({ connected: true, generation: 1 });
    expect(await connection.processMark).toBe('mark');
    seen.sockets[0]?.destroy();
    await expect.poll(() => connection.connected).toBe(false);
    expect(await sent(connection)).toMatchObject({ status: 200, error: null });
    expect(connection.generation).toBe(2);
  });

  it.each([
    ['says so', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok', false],
    ['keeps connections for less than the margin', OK.replace('\r\n\r\n', '\r\nkeep-alive: timeout=1\r\n\r\n'), false],
    ['ends the answer by closing', 'HTTP/1.1 200 OK\r\n\r\nok', true],
    ['has more to say than it was asked', `${OK}HTTP/1.1 200 OK\r\n`, false],
  ])('is not used again when the engine %s', async (_, answer, ends) => {
    const { connection, seen } = await connected((socket) => void (ends ? socket.end(answer) : socket.write(answer)));
    for (const number of [1, 2]) {
      const outcome = await sent(connection);
      expect([outcome.body.toString(), outcome.error]).toEqual(['ok', null]);
      await expect.poll(() => [connection.connected, seen.closed]).toEqual([false, number]);
    }
    expect(connection.generation).toBe(2);
  });

  it('takes nothing that was said between two answers for one', async () => {
    const { connection, seen } = await connected((socket) => void socket.write(OK));
    await sent(connection);
    seen.sockets[0]?.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil');
    await expect.poll(() => seen.closed).toBe(1);
    expect((await sent(connection)).body.toString()).toBe('ok');
  });

  it('tells whoever asked next on the same socket when the answer before had more behind it', async () => {
    const { connection } = await connected((socket, _, number) => void socket.write(number === 1 ? `${OK}junk` : OK));
    const second = new Promise<Outcome>((resolve) => {
      const handler: ResponseHandler = {
        onStart: () => null,
        onHead: () => undefined,
        onData: () => undefined,
        onEnd: () => resolve(sent(connection)),
        onError: () => undefined,
      };
      connection.send({ method: 'GET', path: '/', headers: {}, body: null }, handler);
    });
    expect(await second).toMatchObject({ status: 0, error: 'ECONNRESET' });
    expect(await sent(connection)).toMatchObject({ error: null });
  });

  it('gives a reader that pauses at every piece all of a long answer, once and in order', async () => {
    const body = Buffer.from(Array.from({ length: 600_000 }, (_, at) => at & 0xff));
    const parts = Array.from({ length: 60 }, (_, at) => body.subarray(at * 10_000, (at + 1) * 10_000));
    const framed = parts.flatMap((part) => [Buffer.from('2710\r\n'), part, Buffer.from('\r\n')]);
    const head = Buffer.from('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
    const { connection } = await connected(
      (socket) => void socket.end(Buffer.concat([head, ...framed, Buffer.from('0\r\n\r\n')])),
    );
    const onChunk = () => {
      connection.pause();
      setImmediate(() => connection.resume());
    };
    const outcome = await sent(connection, { onChunk });
    expect(outcome.error).toBeNull();
    expect(outcome.body.equals(body)).toBe(true);
  });

  it('holds the engine back while its reader pauses', async () => {
    const block = Buffer.alloc(64 * 1024);
    let taken = 0;
    const { connection, seen } = await connected((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      for (let blocks = 0; blocks < 512; blocks += 1) socket.write(block);
      socket.end();
    });
    const outcome = sent(connection, {
      onChunk: () => {
        if (taken === 0) connection.pause();
        taken += 1;
      },
    });
    await expect.poll(() => taken).toBe(1);
    // 32 MiB do not fit into the kernel's buffers: most of it stays with the engine.
    await expect.poll(() => seen.sockets[0]?.writableLength ?? 0).toBeGreaterThan(8 * 1024 * 1024);
    expect(taken).toBe(1);
    connection.resume();
    expect((await outcome).body.length).toBe(512 * block.length);
  });

  it('fails the request alone whose reader failed, or that nobody may send', async () => {
    const { connection, seen } = await connected((socket) => void socket.write(OK));
    const fails = () => {
      throw new Error('of the reader');
    };
    expect((await sent(connection, { onChunk: fails })).error).toBe('EPROTO');
    expect((await sent(connection, { path: '/a b' })).error).toBe('EINVAL');
    expect((await sent(connection, { headers: { 'x-a': 'b\r\nx-c: d' } })).error).toBe('EINVAL');
    expect((await sent(connection)).body.toString()).toBe('ok');
    expect(seen.sockets.length).toBe(2);
  });

  it('is closed by an abort at once, also while it is being opened, and opens again', async () => {
    const { connection, seen } = await connected((socket, _, number) => void (number > 1 && socket.write(OK)));
    const first = sent(connection);
    await expect.poll(() => seen.sockets.length).toBe(1);
    connection.abort();
    await expect.poll(() => seen.closed).toBe(1);
    void sent(connection);
    connection.abort();
    expect(await sent(connection)).toMatchObject({ status: 200, error: null });
    expect(await Promise.race([first, Promise.resolve('silent')])).toBe('silent');
  });

  it('that is destroyed tells who waits, and everybody after', async () => {
    const { connection, seen } = await connected(() => undefined);
    const first = sent(connection);
    await expect.poll(() => seen.sockets.length).toBe(1);
    connection.destroy();
    expect(await first).toMatchObject({ error: 'ECONNABORTED' });
    expect(await sent(connection)).toMatchObject({ error: 'ECONNABORTED' });
    await expect.poll(() => seen.closed).toBe(1);
  });
});
