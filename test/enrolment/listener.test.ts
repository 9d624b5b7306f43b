import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connect } from 'node:tls';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import type { JoinReport, StepReport } from '../../agent/wire/enrolment.ts';
import { makeFreshKey } from '../../main/enrolment/certificate.ts';
import { posixCommand } from '../../main/enrolment/commands.ts';
import { type Listener, type ListenerLimits, openListener } from '../../main/enrolment/listener.ts';
import { createSystemClock } from '../../main/platform/clock.ts';
import { ask, dial, exchange, type Place } from './meeting.ts';

/** The one-time address on real sockets. Loopback, said so here: the service never chooses it where there is anything else. */
const TOKEN = 'AAAAAAAAAAAAAAAAAAAAAA';
const NOTHING = 'HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n';
const SCRIPT = 'main() {\n  printf "%s %s" "$1" "$2" > ran\n}\nmain "$@"\n';
const ARCHIVE = Buffer.from(Array.from({ length: 100_000 }, (_, at) => (at * 7) % 256));

const opened: Listener[] = [];
const folders: string[] = [];
afterEach(() => {
  for (const listener of opened.splice(0)) listener.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

async function meeting(limits: Partial<ListenerLimits> = {}) {
  const heard: (StepReport | JoinReport)[] = [];
  const state = { alive: true };
  const key = await makeFreshKey();
  const listener = await openListener({
    clock: createSystemClock(),
    address: '127.0.0.1',
    key,
    token: TOKEN,
    files: { sh: Buffer.from(SCRIPT), ps1: Buffer.from('# é\r\n'), agent: ARCHIVE },
    limits,
    desk: {
      alive: () => state.alive,
      options: () => ({ v: 1, model: 'qwen3:8b', engine: 'ollama', controlPlane: 'c1' }),
      step: (report) => void heard.push(report),
      join: async (report) => {
        heard.push(report);
        return report.port === 1 ? { state: 'joined' } : { state: 'failed', code: 'node_unreachable' };
      },
    },
  });
  opened.push(listener);
  const place: Place = { host: '127.0.0.1', port: listener.port, pin: key.pin };
  const at = (method: string, name: string, body?: unknown, headers?: string) =>
    ask(place, method, `/e/${TOKEN}/${name}`, body, headers);
  return { listener, place, at, heard, state, key };
}

const step = (change: object = {}) => ({ v: 1, code: 'model', state: 'running', percent: 40, detail: null, ...change });

describe('the one-time address', () => {
  it('gives scripts and archive byte by byte as they were built, the archive also from where a download broke off', async () => {
    const { at } = await meeting();
    expect((await at('GET', 'sh')).body).toBe(SCRIPT);
    expect(Buffer.from((await at('GET', 'ps1')).body, 'latin1').toString()).toBe('# é\r\n');
    expect(Buffer.from((await at('GET', 'agent')).body, 'latin1').equals(ARCHIVE)).toBe(true);
    const rest = await at('GET', 'agent', undefined, 'range: bytes=99990-\r\n');
    expect(rest.status).toBe(206);
    expect(rest.headers).toContain('content-range: bytes 99990-99999/100000');
    expect(Buffer.from(rest.body, 'latin1').equals(ARCHIVE.subarray(99_990))).toBe(true);
    expect((await at('GET', 'agent', undefined, 'range: bytes=100000-\r\n')).status).toBe(416);
  });

  it('says what the machine is to do, takes its steps, and answers a join as it went', async () => {
    const { at, heard } = await meeting();
    expect(JSON.parse((await at('GET', 'options')).body)).toEqual({
      v: 1,
      model: 'qwen3:8b',
      engine: 'ollama',
      controlPlane: 'c1',
    });
    expect(await at('POST', 'step', step())).toMatchObject({ status: 204, body: '' });
    const join = { v: 1, port: 7412, joinCode: 'ABCD-EFGH-JKMN-PQRS', fingerprint: 'ab'.repeat(32) };
    expect(await at('POST', 'join', join)).toMatchObject({
      status: 409,
      body: '{"state":"failed","code":"node_unreachable"}',
    });
    expect(await at('POST', 'join', { ...join, port: 1 })).toMatchObject({ status: 200, body: '{"state":"joined"}' });
    expect(heard).toEqual([step(), join, { ...join, port: 1 }]);
  });

  it('answers everything else with the same bytes, whether the token is right, nearly right or dead', async () => {
    const { place, state, heard } = await meeting();
    const body = JSON.stringify(step());
    const near = `${TOKEN.slice(0, -1)}B`;
    const lines = [
      'GET / HTTP/1.1\r\nhost: x\r\n\r\n',
      `GET /e/${TOKEN} HTTP/1.1\r\nhost: x\r\n\r\n`,
      `GET /e/${TOKEN}/ HTTP/1.1\r\nhost: x\r\n\r\n`,
      `GET /e/${TOKEN}/other HTTP/1.1\r\nhost: x\r\n\r\n`,
      `GET /e/${TOKEN}/sh?x HTTP/1.1\r\nhost: x\r\n\r\n`,
      `GET /e/${TOKEN}/constructor HTTP/1.1\r\nhost: x\r\n\r\n`,
      `GET //e/${TOKEN}/sh HTTP/1.1\r\nhost: x\r\n\r\n`,
      `GET /e/${TOKEN}/step HTTP/1.1\r\nhost: x\r\n\r\n`,
      `HEAD /e/${TOKEN}/sh HTTP/1.1\r\nhost: x\r\n\r\n`,
      `OPTIONS /e/${TOKEN}/options HTTP/1.1\r\nhost: x\r\n\r\n`,
      `POST /e/${TOKEN}/sh HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n`,
      `CONNECT example.org:443 HTTP/1.1\r\nhost: x\r\n\r\n`,
      `GET /e/${near}/sh HTTP/1.1\r\nhost: x\r\n\r\n`,
      `GET /e/${near}/sh HTTP/1.1\r\n\r\n`,
      `GET /e/${near}/sh HTTP/1.0\r\n\r\n`,
      `GET /e/${near}/sh HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`,
      `POST /e/${near}/step HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      `POST /e/${near}/step HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: ${body.length}\r\n\r\n`,
      `POST /e/${near}/step HTTP/1.1\r\nhost: x\r\nexpect: 200-ok\r\ncontent-length: ${body.length}\r\n\r\n`,
      'no request at all\r\n\r\n',
      `GET / HTTP/1.1\r\nhost: x\r\nlong: ${'x'.repeat(20_000)}\r\n\r\n`,
    ];
    for (const line of lines) expect(await exchange(place, line), line.slice(0, 90)).toBe(NOTHING);
    state.alive = false;
    for (const [method, name] of ['GET sh', 'GET agent', 'GET options'].map((each) => each.split(' '))) {
      expect(await exchange(place, `${method} /e/${TOKEN}/${name} HTTP/1.1\r\nhost: x\r\n\r\n`)).toBe(NOTHING);
    }
    const dead = `POST /e/${TOKEN}/step HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    expect(await exchange(place, dead)).toBe(NOTHING);
    expect(heard).toEqual([]);
  });

  it('takes only reports from its lists: no text of anybody’s, no further member, not more than 16 KiB', async () => {
    const { at, heard, place } = await meeting();
    const wrong = [
      step({ v: 2 }),
      step({ code: 'dance' }),
      step({ state: 'expired' }),
      step({ percent: 101 }),
      step({ percent: 'NaN' }),
      step({ detail: 'rm -rf' }),
      step({ sentence: 'read this' }),
      [],
      'null',
      '{"v":1',
      '',
    ];
    for (const body of wrong) expect((await at('POST', 'step', body)).status, JSON.stringify(body)).toBe(400);
    const join = { v: 1, port: 7412, joinCode: 'ABCD', fingerprint: 'ab'.repeat(32) };
    for (const body of [
      { ...join, port: 0 },
      { ...join, fingerprint: 'AB'.repeat(32) },
      { ...join, host: '10.0.0.9' },
    ])
      expect((await at('POST', 'join', body)).status).toBe(400);
    const padded = (bytes: number) => JSON.stringify(step()).padEnd(bytes, ' ');
    expect((await at('POST', 'step', padded(16_385))).status).toBe(400);
    const chunked = `POST /e/${TOKEN}/step HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n4001\r\n${padded(16_385)}\r\n0\r\n\r\n`;
    expect(await exchange(place, chunked)).toMatch(/^HTTP\/1\.1 400 /);
    expect(heard).toEqual([]);
    expect((await at('POST', 'step', padded(16_384))).status).toBe(204);
    expect(heard).toHaveLength(1);
  });

  it('holds eight connections of one address, and takes the next when one has gone', async () => {
    const { place, at } = await meeting();
    const held = [];
    for (let each = 0; each < 8; each += 1) held.push(await dial(place));
    await expect(at('GET', 'options')).rejects.toThrow();
    held[0]?.destroy();
    await expect
      .poll(() =>
        at('GET', 'options').then(
          ({ status }) => status,
          () => 0,
        ),
      )
      .toBe(200);
    for (const socket of held) socket.destroy();
  });

  it('waits ten seconds for a head and no longer, with the same answer', async () => {
    const { place } = await meeting({ headMs: 200, checkMs: 50 });
    expect(await exchange(place, 'GET / HTTP/1.1\r\nhost:')).toBe(NOTHING);
  });

  it('speaks TLS 1.2 and later, and no plain HTTP', async () => {
    const { listener } = await meeting();
    const at = { host: '127.0.0.1', port: listener.port, rejectUnauthorized: false };
    const version = (maxVersion: 'TLSv1.1' | 'TLSv1.2') =>
      new Promise((resolve) => {
        const socket = connect({ ...at, minVersion: 'TLSv1', maxVersion, ciphers: 'DEFAULT@SECLEVEL=0' }, () => {
          resolve(socket.getProtocol());
          socket.destroy();
        });
        socket.on('error', () => resolve('refused'));
      });
    expect([await version('TLSv1.1'), await version('TLSv1.2')]).toEqual(['refused', 'TLSv1.2']);
    await expect(fetch(`http://127.0.0.1:${listener.port}/`)).rejects.toThrow();
  });

  it('has a fresh key each time, and is gone when it was closed', async () => {
    const [first, second] = [await meeting(), await meeting()];
    expect(first.key.pin).not.toBe(second.key.pin);
    await expect(dial({ ...first.place, pin: second.key.pin })).rejects.toThrow('another key');
    first.listener.close();
    await expect
      .poll(() =>
        dial(first.place).then(
          () => 'open',
          () => 'gone',
        ),
      )
      .toBe('gone');
  });
});

describe('the command for a POSIX shell', () => {
  /** @returns what the script wrote when it ran, and what is left of temporary files */
  async function run(command: string) {
    const folder = mkdtempSync(path.join(tmpdir(), 'switchyard-command-'));
    folders.push(folder);
    await promisify(execFile)('sh', ['-c', command], { cwd: folder, env: { PATH: process.env.PATH, TMPDIR: folder } });
    const left = readdirSync(folder);
    return { ran: left.includes('ran') ? readFileSync(path.join(folder, 'ran'), 'utf8') : null, left };
  }

  it('runs the script with the address and the pin, and leaves no file behind', async () => {
    const { listener, key } = await meeting();
    const place = { address: '127.0.0.1', port: listener.port, token: TOKEN, pin: key.pin };
    expect(await run(posixCommand(place))).toEqual({
      ran: `https://127.0.0.1:${listener.port}/e/${TOKEN} sha256//${key.pin}`,
      left: ['ran'],
    });
  });

  it('runs nothing of whoever shows another key, nor what a wrong token gets', async () => {
    const { listener, key } = await meeting();
    const other = await makeFreshKey();
    const place = { address: '127.0.0.1', port: listener.port, token: TOKEN, pin: key.pin };
    expect(await run(posixCommand({ ...place, pin: other.pin }))).toEqual({ ran: null, left: [] });
    expect(await run(posixCommand({ ...place, token: 'B'.repeat(22) }))).toEqual({ ran: null, left: [] });
  });
});
