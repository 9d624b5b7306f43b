import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseKeyring, SealedFile } from '../../agent/cloud/at-rest.ts';
import { safeBaseUrl } from '../../agent/cloud/base-url.ts';
import { Credentials, UNUSED_MS } from '../../agent/cloud/credential.ts';
import { decodePush, encodePush, isKey, type PushMeta } from '../../agent/wire/cloud.ts';
import type { Clock } from '../../main/domain/time.ts';

const KEY = Buffer.from('sk-or-v1-canary-abcdef');
const OTHER = Buffer.from('sk-or-v1-other-012345');

function make(options: { readonly atRest?: SealedFile; readonly now?: { ms: number } } = {}) {
  const now = options.now ?? { ms: 0 };
  const clock: Clock = { nowMs: () => now.ms, wallMs: () => now.ms, after: () => () => undefined };
  const credentials = new Credentials({
    clock,
    baseUrl: 'https://openrouter.ai/api/v1',
    atRest: options.atRest ?? null,
  });
  const push = (number: number, meta: Partial<PushMeta>, key: Buffer | null = null, controller = 'cp1') =>
    credentials.apply(controller, { number, key, meta: { keyPush: key === null ? 0 : number, ...meta } });
  return { credentials, push, now };
}

describe('a push', () => {
  it('round-trips its bytes and quotes nothing when it is bad', () => {
    const frame = encodePush(7, { keyPush: 7, roles: { rlm: { model: 'a/b' } } }, KEY);
    expect(frame.subarray(0, 1).toString()).toBe('K');
    const push = decodePush(frame);
    expect(push).toMatchObject({ number: 7, meta: { keyPush: 7, roles: { rlm: { model: 'a/b' } } } });
    expect(Buffer.from(push.key ?? [])).toEqual(KEY);
    expect(decodePush(encodePush(8, { keyPush: 7 }, null)).key).toBeNull();
    for (const key of ['short', 'with space in it', 'ümläut-in-the-key', 'x'.repeat(513)]) {
      expect(isKey(Buffer.from(key))).toBe(false);
      expect(() => decodePush(encodePush(1, { keyPush: 1 }, Buffer.from(key)))).toThrow(/^not a key$/);
    }
  });

  it('any bytes are a push or a refusal of ours, never a crash', () => {
    const frame = encodePush(7, { keyPush: 7 }, KEY);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(frame.length), (noise, at) => {
        const broken = Buffer.concat([frame.subarray(0, at), noise]);
        try {
          decodePush(broken);
        } catch (error) {
          expect(error).toMatchObject({
            message: expect.stringMatching(/^(not a push|meta too long|meta not understood|not a key)$/),
          });
        }
      }),
    );
  });

  it('merges field by field: a new model keeps key, pin and the other roles', () => {
    const { credentials, push } = make();
    push(1, { roles: { embedding: { model: 'a/b', upstreams: ['x'] }, rlm: { model: 'c/d' } } }, KEY);
    push(2, { keyPush: 1, roles: { embedding: { model: 'e/f' } } });
    expect(credentials.route('cp1', 'embedding')).toMatchObject({ model: 'e/f', upstreams: ['x'] });
    expect(credentials.route('cp1', 'rlm').model).toBe('c/d');
    expect(credentials.state('cp1')).toBe('held');
    expect(credentials.authorization('cp1', true)).toBe(`Bearer ${KEY}`);
    push(3, { keyPush: 1, roles: { embedding: { model: null } } });
    expect(credentials.route('cp1', 'embedding')).toMatchObject({ model: null, upstreams: ['x'] });
  });

  it('counts once and in order', () => {
    const { credentials, push } = make();
    push(5, {}, KEY);
    expect(push(5, {}, OTHER)).toBe('out-of-order');
    expect(push(4, { forget: true })).toBe('out-of-order');
    expect(credentials.authorization('cp1', true)).toBe(`Bearer ${KEY}`);
  });
});

describe('the key', () => {
  it('is missing, held, or stale', () => {
    const { credentials, push } = make();
    expect(credentials.state('cp1')).toBe('missing');
    push(1, { roles: { rlm: { model: 'a/b' } } });
    expect(credentials.state('cp1')).toBe('missing');
    push(2, {}, KEY);
    expect(credentials.state('cp1')).toBe('held');
    push(4, { keyPush: 3 });
    expect(credentials.state('cp1')).toBe('stale');
    expect(credentials.authorization('cp1', true)).toBeNull();
    push(5, {}, OTHER);
    expect(credentials.state('cp1')).toBe('held');
  });

  it('belongs to one control plane', () => {
    const { credentials, push } = make();
    push(1, {}, KEY, 'cp1');
    push(1, { roles: { rlm: { model: 'a/b' } } }, null, 'cp2');
    expect(credentials.state('cp2')).toBe('missing');
    expect(credentials.authorization('cp2', true)).toBeNull();
  });

  it('belongs to the origin it was pushed for', () => {
    const { credentials, push } = make();
    push(1, {}, KEY);
    push(2, { keyPush: 1, baseUrl: 'https://openrouter.ai/api/v2' });
    expect(credentials.state('cp1')).toBe('held');
    push(3, { keyPush: 1, baseUrl: 'https://other.example/api/v1' });
    expect(credentials.state('cp1')).toBe('missing');
    expect(push(4, { baseUrl: 'http://other.example/api' }, KEY)).toBe('bad-base-url');
    expect(credentials.state('cp1')).toBe('missing');
  });

  it.each([
    ['https://openrouter.ai/api/v1/', 'https://openrouter.ai/api/v1'],
    ['http://127.0.0.1:9/api', 'http://127.0.0.1:9/api'],
    ['http://[::1]:9', 'http://[::1]:9'],
    ['http://localhost:80/x', 'http://localhost/x'],
    ['http://10.0.0.1/api', null],
    ['http://127.0.0.1.evil.example/', null],
    ['https://user:pass@openrouter.ai/', null],
    ['https://openrouter.ai/?a=b', null],
    ['ftp://openrouter.ai/', null],
    ['nonsense', null],
  ])('may go to %s: %s', (url, expected) => {
    expect(safeBaseUrl(url)).toBe(expected);
  });

  it.each<[string, (parts: ReturnType<typeof make>) => void]>([
    ['another one comes', ({ push }) => push(2, {}, OTHER)],
    ['the origin changes', ({ push }) => push(2, { keyPush: 1, baseUrl: 'https://other.example' })],
    ['it is to be forgotten', ({ push }) => push(2, { forget: true })],
    ['its control plane is removed', ({ credentials }) => credentials.forget('cp1')],
    ['the agent stops', ({ credentials }) => credentials.close()],
    [
      'nobody used it for 7 days',
      ({ credentials, now }) => {
        now.ms = UNUSED_MS;
        expect(credentials.sweep()).toEqual(['cp1']);
      },
    ],
  ])('is zeroed when %s', (_, end) => {
    const parts = make();
    // The slot's own buffer is not reachable from outside: watch the allocation.
    const allocate = Buffer.allocUnsafeSlow;
    const made: Buffer[] = [];
    Buffer.allocUnsafeSlow = (size: number) => {
      const buffer = allocate(size);
      made.push(buffer);
      return buffer;
    };
    try {
      parts.push(1, {}, KEY);
    } finally {
      Buffer.allocUnsafeSlow = allocate;
    }
    const [held] = made;
    expect(held).toEqual(KEY);
    end(parts);
    expect(held?.every((byte) => byte === 0)).toBe(true);
  });

  it('of somebody who uses it stays', () => {
    const { credentials, push, now } = make();
    push(1, {}, KEY);
    now.ms = UNUSED_MS - 1;
    credentials.authorization('cp1', true);
    now.ms = UNUSED_MS + 1000;
    expect(credentials.sweep()).toEqual([]);
    // Upkeep of our own is no use.
    credentials.authorization('cp1', false);
    now.ms = 2 * UNUSED_MS - 1;
    expect(credentials.sweep()).toEqual(['cp1']);
  });

  it('is blanked wherever it stands in bytes that are passed on', () => {
    const { credentials, push } = make();
    push(1, {}, KEY);
    const bytes = Buffer.from(`echo ${KEY} and ${KEY}!`);
    credentials.blank('cp1', bytes);
    expect(bytes.toString()).toBe(`echo ${'*'.repeat(KEY.length)} and ${'*'.repeat(KEY.length)}!`);
  });
});

describe('at rest', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'switchyard-cloud-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  const ring = (...versions: number[]) =>
    versions.map((version) => `${version}:${Buffer.alloc(32, version).toString('base64')}`).join(',');
  const file = (name: string, keyring: string) => {
    const parsed = parseKeyring(keyring);
    if (parsed === null) throw new Error('no keyring');
    return new SealedFile(join(folder, name), parsed);
  };

  it('a keyring is listed versions of 32 bytes, or an error that quotes nothing', () => {
    expect(parseKeyring(undefined)).toBeNull();
    expect(parseKeyring(ring(1, 3, 2))?.newest).toBe(3);
    for (const bad of ['1:short', `${ring(1)},${ring(1)}`, '0:AAAA', 'secret-words', `1:${'A'.repeat(44)}`]) {
      expect(() => parseKeyring(bad)).toThrow(/^SWITCHYARD_KEYRING must list/);
    }
  });

  it('the key survives a restart only when that was asked for, encrypted, in a 0600 file', async () => {
    const first = make({ atRest: file('keys.json', ring(1)) });
    first.push(1, {}, KEY, 'quiet');
    first.push(1, { remember: true }, OTHER, 'kept');
    await first.credentials.settled();
    const text = await readFile(join(folder, 'keys.json'), 'utf8');
    expect((await stat(join(folder, 'keys.json'))).mode & 0o777).toBe(0o600);
    for (const secret of [KEY, OTHER]) {
      for (const form of ['utf8', 'base64', 'hex'] as const) expect(text).not.toContain(secret.toString(form));
    }
    const again = make({ atRest: file('keys.json', ring(2, 1)) });
    await again.credentials.load();
    expect(again.credentials.authorization('kept', true)).toBe(`Bearer ${OTHER}`);
    expect(again.credentials.view('kept')).toMatchObject({ remembered: true, keyPush: 1 });
    expect(again.credentials.state('quiet')).toBe('missing');
    again.push(2, { forget: true }, null, 'kept');
    await again.credentials.settled();
    const last = make({ atRest: file('keys.json', ring(1)) });
    await last.credentials.load();
    expect(last.credentials.state('kept')).toBe('missing');
  });

  it('does not open with another keyring, for another origin, or after a change of the file', async () => {
    const first = make({ atRest: file('moved.json', ring(1)) });
    first.push(1, { remember: true }, KEY);
    await first.credentials.settled();
    const foreign = make({ atRest: file('moved.json', `1:${Buffer.alloc(32, 9).toString('base64')}`) });
    await foreign.credentials.load();
    expect(foreign.credentials.state('cp1')).toBe('missing');
    const { nowMs, wallMs, after } = { nowMs: () => 0, wallMs: () => 0, after: () => () => undefined };
    const elsewhere = new Credentials({
      clock: { nowMs, wallMs, after },
      baseUrl: 'https://other.example/v1',
      atRest: file('moved.json', ring(1)),
    });
    await elsewhere.load();
    expect(elsewhere.state('cp1')).toBe('missing');
    await expect(file('absent.json', ring(1)).load()).resolves.toEqual([]);
  });

  it('without a keyring nothing is written, and remembering is refused in the open', () => {
    const { credentials, push } = make();
    push(1, { remember: true }, KEY);
    expect(credentials.canRemember).toBe(false);
    expect(credentials.view('cp1').remembered).toBe(false);
  });
});
