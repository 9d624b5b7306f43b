import { once } from 'node:events';
import { request } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ResponseReader } from '../../../agent/engines/http1-response.ts';

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** What our reader makes of the bytes; null: refused, cut off, or followed by more. */
function ours(bytes: Buffer): Answer | null {
  let status = 0;
  let ended = false;
  const body: Buffer[] = [];
  const reader = new ResponseReader({
    onHead: (code) => {
      status = code;
    },
    onBody: (chunk) => body.push(Buffer.from(chunk)),
    onEnd: () => {
      ended = true;
    },
  });
  // Bytes behind an answer are an error of the connection (test/agent/engines/connection.test.ts).
  if (reader.push(bytes, 0, () => true) !== bytes.length) return null;
  if (!ended && !reader.close()) return null;
  return { status, body: Buffer.concat(body).toString('latin1') };
}

let server: Server;
let port = 0;
let raw: Buffer = Buffer.alloc(0);

beforeAll(async () => {
  server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(raw));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  server.close();
});

/** What Node's client (llhttp) makes of the same bytes, followed by the end of the connection. */
function nodes(bytes: Buffer): Promise<Answer | null> {
  raw = bytes;
  return new Promise((resolve) => {
    const asked = request({ port, host: '127.0.0.1', agent: false }, (response) => {
      const body: Buffer[] = [];
      response.on('data', (chunk: Buffer) => body.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(body).toString('latin1') }),
      );
      response.on('error', () => resolve(null));
    });
    asked.on('error', () => resolve(null));
    asked.on('upgrade', () => resolve(null));
    asked.end();
  });
}

const token = fc.constantFrom('x-a', 'server', 'etag', 'x-model');
const plain = fc.stringMatching(/^[\x21-\x7e]([\x20-\x7e]{0,20}[\x21-\x7e])?$/);
const extras = fc.array(fc.tuple(token, plain), { maxLength: 4 });
const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array).toString('latin1'));

const chunked = (extensions: readonly string[]) =>
  fc
    .tuple(fc.array(bytes, { maxLength: 5 }), fc.constantFrom(...extensions), extras)
    .map(([parts, extension, trailers]) => {
      const filled = parts.filter((part) => part.length > 0);
      const chunks = filled.map((part) => `${part.length.toString(16)}${extension}\r\n${part}\r\n`).join('');
      return `${chunks}0\r\n${trailers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
    });
const framed = (extensions: readonly string[]) =>
  fc.oneof(
    bytes.map((body) => ({ header: `Content-Length: ${body.length}\r\n`, body })),
    chunked(extensions).map((body) => ({ header: 'Transfer-Encoding: chunked\r\n', body })),
    bytes.map((body) => ({ header: '', body })),
  );
const answer = (extensions: readonly string[]) =>
  fc
    .tuple(
      fc.constantFrom(200, 201, 400, 404, 429, 500, 503),
      fc.constantFrom('', 'HTTP/1.1 100 Continue\r\n\r\n'),
      extras,
      framed(extensions),
    )
    .map(
      ([status, interim, headers, { header, body }]) =>
        `${interim}HTTP/1.1 ${status} Reason\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}${header}\r\n${body}`,
    );
/** One place of an answer changed: a byte replaced, taken out or put in. */
const damage = fc.tuple(fc.nat(), fc.constantFrom(...'\r\n :;,0aF-'), fc.constantFrom('replace', 'remove', 'insert'));

describe('an engine’s answer, read by our client and by Node’s', () => {
  it('is the same where it is whole', async () => {
    await fc.assert(
      fc.asyncProperty(answer(['', ';ext=1', ';a="b c"']), async (text) => {
        const whole = Buffer.from(text, 'latin1');
        const expected = await nodes(whole);
        expect(expected).not.toBeNull();
        expect(ours(whole)).toEqual(expected);
      }),
      { numRuns: 300 },
    );
  });

  it('is never another one where it is damaged: ours may refuse more, and reads nothing else into it', async () => {
    await fc.assert(
      // What stands in an extension is nobody's business here, and not compared.
      fc.asyncProperty(answer(['']), damage, async (text, [where, byte, kind]) => {
        const at = where % text.length;
        const removed = kind === 'insert' ? 0 : 1;
        const damaged = text.slice(0, at) + (kind === 'remove' ? '' : byte) + text.slice(at + removed);
        const changed = Buffer.from(damaged, 'latin1');
        const got = ours(changed);
        if (got !== null) expect(got).toEqual(await nodes(changed));
      }),
      { numRuns: 1500 },
    );
  });
});
