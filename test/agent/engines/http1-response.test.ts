import type { IncomingHttpHeaders } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ResponseReader } from '../../../agent/engines/http1-response.ts';

interface Told {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
  end: { readonly reusable: boolean; readonly keepMs: number | null } | null;
}

/** Feeds the pieces one by one; `left`: bytes that the answer did not take; null: it is no HTTP, or broke off. */
function read(pieces: readonly Buffer[], closes = false): (Told & { left: number }) | null {
  const told: Told = { status: 0, headers: {}, body: Buffer.alloc(0), end: null };
  const reader = new ResponseReader({
    onHead: (status, headers) => Object.assign(told, { status, headers }),
    onBody: (chunk) => {
      expect(told.end).toBeNull();
      told.body = Buffer.concat([told.body, chunk]);
    },
    onEnd: (reusable, keepMs) => {
      expect(told.end).toBeNull();
      told.end = { reusable, keepMs };
    },
  });
  let left = 0;
  for (const piece of pieces) {
    const taken = reader.push(piece, 0, () => true);
    if (taken < 0) return null;
    left += piece.length - taken;
  }
  if (closes && !reader.close()) return null;
  return { ...told, left };
}

function split(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((from, at) => bytes.subarray(from, places[at] ?? bytes.length));
}

const text = (...lines: readonly string[]) => Buffer.from(lines.join('\r\n'), 'latin1');
const body = fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes));
const cuts = fc.array(fc.nat(), { maxLength: 12 });

describe('an answer over HTTP/1.1', () => {
  it('with a length is the same in whatever pieces it comes, and takes nothing that lies behind it', () => {
    fc.assert(
      fc.property(body, cuts, fc.constantFrom('', 'HTTP/1.1 200 OK'), (bytes, where, behind) => {
        const head = text('HTTP/1.1 200 OK', `Content-Length: ${bytes.length}`, 'X-A:  b ', '', '');
        const told = read(split(Buffer.concat([head, bytes, Buffer.from(behind)]), where));
        expect(told).toEqual({
          status: 200,
          headers: { 'content-length': String(bytes.length), 'x-a': 'b' },
          body: bytes,
          end: { reusable: true, keepMs: null },
          left: behind.length,
        });
      }),
    );
  });

  it('in chunks is the same in whatever pieces it comes, with extensions and trailers or without', () => {
    const chunks = fc.array(fc.uint8Array({ minLength: 1, maxLength: 70 }), { maxLength: 6 });
    const form = fc.record({
      extension: fc.constantFrom('', ';a', ' ;a="b"'),
      upper: fc.boolean(),
      trailer: fc.constantFrom('', 'x-sum: 1\r\n'),
    });
    fc.assert(
      fc.property(chunks, cuts, form, (parts, where, { extension, upper, trailer }) => {
        const framed = parts.flatMap((part) => {
          const size = part.length.toString(16);
          return [Buffer.from(`${upper ? size.toUpperCase() : size}${extension}\r\n`), part, Buffer.from('\r\n')];
        });
        const head = text('HTTP/1.1 200 OK', 'transfer-encoding: Chunked', '', '');
        const whole = Buffer.concat([head, ...framed, Buffer.from(`0\r\n${trailer}\r\n`)]);
        const told = read(split(whole, where));
        expect(told).toMatchObject({ end: { reusable: true, keepMs: null }, left: 0 });
        expect(told?.body.equals(Buffer.concat(parts))).toBe(true);
      }),
    );
  });

  it('without a length ends with its connection, which is not used again', () => {
    const whole = text('HTTP/1.1 200 OK', '', 'all of it');
    expect(read([whole])?.end).toBeNull();
    expect(read([whole], true)).toMatchObject({ end: { reusable: false, keepMs: null } });
    expect(read([whole], true)?.body.toString()).toBe('all of it');
  });

  it('that is cut off is told from one that is whole', () => {
    expect(read([text('HTTP/1.1 200 OK', 'content-length: 3', '', 'ab')], true)).toBeNull();
    expect(read([text('HTTP/1.1 200 OK', 'transfer-encoding: chunked', '', '2', 'ab', '')], true)).toBeNull();
    expect(read([text('HTTP/1.1 200 OK', 'content-')], true)).toBeNull();
  });

  it('may follow interim ones, and may have no body', () => {
    const interim = text('HTTP/1.1 100 Continue', '', 'HTTP/1.1 103 Early Hints', 'link: x', '', '');
    const told = read([Buffer.concat([interim, text('HTTP/1.1 204 No Content', '', '')])]);
    expect(told).toMatchObject({ status: 204, headers: {}, end: { reusable: true } });
    expect(read([text('HTTP/1.1 304 Not Modified', 'content-length: 9', '', '')])?.end?.reusable).toBe(true);
    for (const none of ['0', '00']) {
      expect(read([text('HTTP/1.1 200 OK', `content-length: ${none}`, '', '')])?.end?.reusable).toBe(true);
    }
  });

  it('may have empty lines before it, as the end of an answer before that was one too long', () => {
    const bytes = text('', '', 'HTTP/1.1 200 OK', 'content-length: 2', '', 'ab');
    fc.assert(
      fc.property(cuts, (where) => {
        expect(read(split(bytes, where))).toMatchObject({ status: 200, body: Buffer.from('ab'), left: 0 });
      }),
    );
  });

  it('whose lines end in LF alone is refused with the first of them, and not waited for', () => {
    expect(read([Buffer.from('HTTP/1.1 200 OK\n')])).toBeNull();
    expect(read([Buffer.from('HTTP/1.1 200 OK\r\na: b\n')])).toBeNull();
    // One that has not come yet is no refusal.
    expect(read([Buffer.from('HTTP/1.1 200 OK')])).toMatchObject({ end: null });
  });

  it.each<[string, string[], boolean, number | null]>([
    ['HTTP/1.1', ['connection: close'], false, null],
    ['HTTP/1.1', ['Connection: x, Close'], false, null],
    ['HTTP/1.1', ['Keep-Alive: timeout=5, max=100'], true, 5000],
    ['HTTP/1.0', [], false, null],
    ['HTTP/1.0', ['connection: keep-alive'], true, null],
  ])('says how its connection goes on: %s %j', (version, headers, reusable, keepMs) => {
    const told = read([text(`${version} 200 OK`, 'content-length: 0', ...headers, '', '')]);
    expect(told?.end).toEqual({ reusable, keepMs });
  });

  it.each<[string, string[]]>([
    ['another protocol', ['HTTP/2 200 OK', '', '']],
    ['no status', ['HTTP/1.1 OK', '', '']],
    ['a switch of protocols', ['HTTP/1.1 101 Switching Protocols', 'upgrade: x', '', '']],
    ['two lengths', ['HTTP/1.1 200 OK', 'content-length: 1', 'content-length: 2', '', 'a']],
    ['a length and chunks', ['HTTP/1.1 200 OK', 'content-length: 1', 'transfer-encoding: chunked', '', '']],
    ['a length that is none', ['HTTP/1.1 200 OK', 'content-length: +1', '', 'a']],
    ['a coding that nobody asked for', ['HTTP/1.1 200 OK', 'transfer-encoding: gzip, chunked', '', '']],
    ['a folded line', ['HTTP/1.1 200 OK', 'a: b', ' c', '', '']],
    ['a name with a blank', ['HTTP/1.1 200 OK', 'content-length : 1', '', 'a']],
    ['a line end inside a value', ['HTTP/1.1 200 OK', 'a: b\nc: d', '', '']],
    ['a chunk size that is none', ['HTTP/1.1 200 OK', 'transfer-encoding: chunked', '', 'x', '']],
    ['a chunk size with a sign', ['HTTP/1.1 200 OK', 'transfer-encoding: chunked', '', '-1', '']],
    ['a chunk size beyond 32 bits', ['HTTP/1.1 200 OK', 'transfer-encoding: chunked', '', '111111111', '']],
    ['a chunk longer than it said', ['HTTP/1.1 200 OK', 'transfer-encoding: chunked', '', '1', 'ab', '0', '', '']],
    ['a size line that ends in LF alone', ['HTTP/1.1 200 OK', 'transfer-encoding: chunked', '', '1\na', '']],
    ['a head without end', ['HTTP/1.1 200 OK', `a: ${'b'.repeat(33 * 1024)}`]],
    ['a size line without end', ['HTTP/1.1 200 OK', 'transfer-encoding: chunked', '', `1;${'a'.repeat(2000)}`]],
  ])('is none with %s, however it is cut', (_, lines) => {
    const whole = text(...lines);
    expect(read([whole])).toBeNull();
    fc.assert(
      fc.property(cuts, (where) => {
        expect(read(split(whole, where))).toBeNull();
      }),
      { numRuns: 20 },
    );
    if (whole.length < 500) expect(read(split(whole, [...whole.keys()]))).toBeNull();
  });

  it('names no member of an object’s prototype', () => {
    const told = read([text('HTTP/1.1 200 OK', '__proto__: x', 'content-length: 0', '', '')]);
    expect(told?.headers).toEqual({ 'content-length': '0' });
    expect(Object.getPrototypeOf(told?.headers)).toBe(Object.prototype);
  });

  it('stops between two pieces of its body where it is held, and goes on from there', () => {
    const whole = text('HTTP/1.1 200 OK', 'transfer-encoding: chunked', '', '1', 'a', '1', 'b', '0', '', '');
    const seen: string[] = [];
    let ended = false;
    let steps = 0;
    const reader = new ResponseReader({
      onHead: () => undefined,
      onBody: (chunk) => void seen.push(chunk.toString()),
      onEnd: () => {
        ended = true;
      },
    });
    let at = 0;
    while (at < whole.length) {
      at = reader.push(whole, at, () => false);
      steps += 1;
    }
    expect({ seen, ended }).toEqual({ seen: ['a', 'b'], ended: true });
    expect(steps).toBeGreaterThan(3);
  });
});
