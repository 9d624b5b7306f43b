import { IncomingMessage } from 'node:http';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { certificate } from './certificate.ts';
import { ADMIN_TOKEN, API_KEY, openRaw, startGateway, stopAll } from './harness.ts';

const KEY = 'sk-or-v1-a-key-in-the-wrong-place';

afterEach(async () => {
  vi.restoreAllMocks();
  await stopAll();
});

/** Every piece of a body that Node's parser gives to a request from now on, as the very buffers. */
function pieces(): Buffer[] {
  const given: Buffer[] = [];
  const push = IncomingMessage.prototype.push;
  vi.spyOn(IncomingMessage.prototype, 'push').mockImplementation(function (this: IncomingMessage, chunk, encoding) {
    if (Buffer.isBuffer(chunk)) given.push(chunk);
    return push.call(this, chunk, encoding);
  });
  return given;
}

/** Sends it in one piece on a connection of its own. @returns all that was answered until the whole of one error was there */
function send(socket: Socket, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1');
      if (!/\r\n\r\n[\s\S]*\}/.test(answer)) return;
      socket.destroy();
      resolve(answer);
    });
    socket.on('error', reject);
    socket.write(text);
  });
}

const ADMIN = `Authorization: Bearer ${ADMIN_TOKEN}\r\n`;
const BYTES = 'Content-Type: application/octet-stream\r\n';
const PUT = 'PUT /admin/cloud/key';
const WHOLE = `Content-Length: ${KEY.length}\r\n\r\n${KEY}`;
const IN_TWO = `Transfer-Encoding: chunked\r\n\r\n8\r\n${KEY.slice(0, 8)}\r\n${(KEY.length - 8).toString(16)}\r\n${KEY.slice(8)}\r\n0\r\n\r\n`;

describe.each([
  ['plain', null],
  ['TLS', certificate],
] as const)('a key in one piece with the headers of a request that is refused, over %s', (_name, makeCertificate) => {
  it.each([
    ['without a token', PUT, BYTES, 401],
    ['with a wrong token', PUT, `${BYTES}Authorization: Bearer nobody\r\n`, 401],
    ["with a project's key", PUT, `${BYTES}Authorization: Bearer ${API_KEY}\r\n`, 401],
    ['by another method', 'POST /admin/cloud/key', `${BYTES}${ADMIN}`, 405],
    ['at another address', 'PUT /admin/cloud/keys', `${BYTES}${ADMIN}`, 404],
    ['from a foreign page', PUT, `${BYTES}${ADMIN}Origin: http://evil.example\r\n`, 403],
    ['as text', PUT, `Content-Type: text/plain\r\n${ADMIN}`, 400],
    ['compressed', PUT, `${BYTES}${ADMIN}Content-Encoding: gzip\r\n`, 415],
    ['with a wrong token, announced and not waited for', PUT, `${BYTES}Expect: 100-continue\r\n`, 401],
    ['after an expectation that nobody knows', PUT, `${BYTES}${ADMIN}Expect: something\r\n`, 400],
  ])('%s is zeroed', async (_what, line, headers, status) => {
    const tls = await (makeCertificate?.() ?? null);
    const { port } = await startGateway({ settings: { tls } });
    const host = '127.0.0.1';
    for (const body of [WHOLE, IN_TWO]) {
      const given = pieces();
      const socket = tls === null ? connectTcp({ host, port }) : connectTls({ host, port, rejectUnauthorized: false });
      const answer = await send(socket, `${line} HTTP/1.1\r\nHost: ${host}:${port}\r\n${headers}${body}`);
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect(given.reduce((sum, { length }) => sum + length, 0)).toBe(KEY.length);
      const left = () => Buffer.concat(given).filter((byte) => byte !== 0).length;
      await expect.poll(left).toBe(0);
      vi.restoreAllMocks();
    }
  });
});

describe('a connection', () => {
  it('is as good as before after a body that was thrown away', async () => {
    const { port } = await startGateway();
    const connection = await openRaw(port);
    const host = `HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n`;
    connection.socket.write(`${PUT} ${host}${BYTES}${WHOLE}${PUT} ${host}${BYTES}${WHOLE}GET /healthz ${host}\r\n`);
    expect(await connection.heard(/ 200 OK/)).toMatch(/ 401 [\s\S]* 401 [\s\S]* 200 OK/);
    connection.socket.destroy();
  });
});

describe('what is no request, or wants to be another connection', () => {
  /** Buffers that were zeroed, as they were before. */
  function zeroed(): string[] {
    const before: string[] = [];
    const fill = Buffer.prototype.fill;
    vi.spyOn(Buffer.prototype, 'fill').mockImplementation(function (this: Buffer, ...input: unknown[]) {
      before.push(this.toString('latin1'));
      return Reflect.apply(fill, this, input) as Buffer;
    } as typeof fill);
    return before;
  }

  it.each([
    [
      'an upgrade',
      `GET /admin/cloud/key HTTP/1.1\r\nHost: HOST\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n${KEY}`,
    ],
    ['a tunnel', `CONNECT elsewhere:443 HTTP/1.1\r\nHost: HOST\r\n\r\n${KEY}`],
    ['garbage', `PUT /admin/cloud/key HTTP/9.9\r\nHost: HOST\r\n\r\n${KEY}`],
  ])('is zeroed with what lies behind it: %s', async (_what, text) => {
    const { port } = await startGateway();
    const before = zeroed();
    const answer = await send(connectTcp({ host: '127.0.0.1', port }), text.replace('HOST', `127.0.0.1:${port}`));
    expect(answer).toMatch(/^HTTP\/1.1 4/);
    expect(before.filter((bytes) => bytes.includes(KEY))).toHaveLength(1);
  });
});
