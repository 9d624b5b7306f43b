import { beforeEach, describe, expect, it } from 'vitest';
import { exportSpace, importSpace } from '../../main/gate/export.ts';
import type { Encoder } from '../../main/gate/probe-port.ts';
import { sha256 } from '../../main/gate/service-digest.ts';
import { hasAnchor, newSpaceId } from '../../main/gate/space.ts';
import { GateBench, roles, seededRandom } from './bench.ts';
import { addEncoder } from './fake-port.ts';

let bench: GateBench;
let founder: Encoder;

beforeEach(async () => {
  bench = new GateBench();
  founder = addEncoder(bench.port, { name: 'founder' });
  await bench.start([founder]);
});

async function restarted(): Promise<GateBench> {
  await bench.gate.stop();
  const next = new GateBench({ clock: bench.clock, port: bench.port, store: bench.store });
  return next.start([founder]);
}

describe('export and import', () => {
  it('bring a space back bit for bit', () => {
    const space = bench.space();
    const copy = importSpace(bench.gate.exportSpace(space.id), sha256);
    expect(copy).toEqual(space);
  });

  it('refuse a file with one bit changed, wherever it is', () => {
    const bytes = Buffer.from(bench.gate.exportSpace(bench.space().id));
    const random = seededRandom(5);
    for (let i = 0; i < 300; i++) {
      const at = Math.floor(random() * bytes.length);
      const flipped = Buffer.from(bytes);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << Math.floor(random() * 7));
      expect(() => importSpace(flipped.toString('latin1'), sha256), `byte ${at}`).toThrow(
        expect.objectContaining({ code: 'invalid_space_file' }),
      );
    }
  });

  it.each(['', 'null', '[]', '{}', '{"format":"switchyard-space"}', 'not json at all'])('refuse %j', (content) => {
    expect(() => importSpace(content, sha256)).toThrow(expect.objectContaining({ code: 'invalid_space_file' }));
  });

  it('refuse an anchor that is cut, though the checksum was made to fit', () => {
    const space = bench.space();
    if (!hasAnchor(space)) throw new Error('an anchor');
    const cut = exportSpace({ ...space, anchor: space.anchor.slice(0, -64) }, sha256);
    expect(() => importSpace(cut, sha256)).toThrow(/not complete/);
    const spoilt = exportSpace({ ...space, anchor: space.anchor.map((x, i) => (i === 7 ? Number.NaN : x)) }, sha256);
    expect(() => importSpace(spoilt, sha256)).toThrow(/not all finite/);
  });

  it('into another installation: its encoders are checked against the imported anchor', async () => {
    const file = bench.gate.exportSpace(bench.space().id);
    const elsewhere = new GateBench();
    const same = addEncoder(elsewhere.port, { name: 'same' });
    const far = addEncoder(elsewhere.port, { name: 'far', faults: { seed: 2 } });
    await elsewhere.start([same, far]);
    expect(elsewhere.gate.roleSpace('embedding').state).toBe('unfounded');
    const space = await elsewhere.gate.importSpace(file, false);
    await elsewhere.rest();
    expect(elsewhere.space().id).toBe(space.id);
    expect([elsewhere.kind(same), elsewhere.kind(far)]).toEqual(['pass', 'vector-incompatible']);
  });

  it('beside a current space: kept, and current only with confirm', async () => {
    const file = bench.gate.exportSpace(bench.space().id);
    const elsewhere = new GateBench({ seed: 77 });
    await elsewhere.start([addEncoder(elsewhere.port, { name: 'own', faults: { seed: 2 } })]);
    const own = elsewhere.space().id;
    const imported = await elsewhere.gate.importSpace(file, false);
    expect(elsewhere.space().id).toBe(own);
    expect(elsewhere.gate.space(imported.id)?.retiredAtMs).toBeNull();
    expect(elsewhere.gate.spaces()).toHaveLength(2);
  });

  it('again is no change; another anchor under the same id is refused', async () => {
    const space = bench.space();
    if (!hasAnchor(space)) throw new Error('an anchor');
    expect(await bench.gate.importSpace(bench.gate.exportSpace(space.id), true)).toEqual(space);
    const other = exportSpace({ ...space, anchor: space.anchor.map((x) => -x) }, sha256);
    await expect(bench.gate.importSpace(other, true)).rejects.toMatchObject({ code: 'space_exists' });
    expect(bench.space()).toEqual(space);
  });
});

describe('a lost anchor', () => {
  const damage = {
    gone: (bytes: Uint8Array) => (bytes.length > 0 ? null : null),
    'one bit changed': (bytes: Uint8Array) => bytes.map((byte, i) => (i === 100 ? byte ^ 1 : byte)),
    cut: (bytes: Uint8Array) => bytes.subarray(0, bytes.length - 4),
  };

  it.each(Object.entries(damage))('%s: nothing is served, nothing is founded again', async (_how, change) => {
    const { id } = bench.space();
    const file = bench.gate.exportSpace(id);
    const stored = bench.store.spaces.get(id);
    if (stored?.anchor == null) throw new Error('a stored anchor');
    const bytes = change(stored.anchor.bytes);
    bench.store.spaces.set(id, { ...stored, anchor: bytes === null ? null : { ...stored.anchor, bytes } });
    const next = await restarted();
    await next.clock.advance(60_000);
    expect(next.gate.roleSpace('embedding').state).toBe('anchor-lost');
    expect(next.gate.spaces()).toHaveLength(1);
    expect(next.admits(founder.provider.id, id)).toBe(false);
    expect(() => next.gate.exportSpace(id)).toThrow(expect.objectContaining({ code: 'space_anchor_lost' }));
    await next.gate.importSpace(file, false);
    await next.rest();
    expect(next.space().id).toBe(id);
    expect(next.admits(founder.provider.id, id)).toBe(true);
  });
});

describe('retiring', () => {
  it('the current space needs confirm, and is not followed by another by itself', async () => {
    const { id } = bench.space();
    await expect(bench.gate.retire(id, false)).rejects.toMatchObject({ code: 'confirmation_required' });
    await bench.gate.retire(id, true);
    await bench.clock.advance(60_000);
    expect(bench.gate.roleSpace('embedding')).toMatchObject({ state: 'unfounded' });
    expect(bench.gate.space(id)?.retiredAtMs).not.toBeNull();
    expect(bench.admits(founder.provider.id, id)).toBe(false);
    const next = await restarted();
    expect(next.gate.roleSpace('embedding').state).toBe('unfounded');
  });

  it('an unknown one is said to be unknown', async () => {
    await expect(bench.gate.retire('embedding-00000000' as never, true)).rejects.toMatchObject({
      code: 'space_not_found',
    });
  });
});

it('the founder may be switched off: the anchor stays', async () => {
  const other = addEncoder(bench.port, { name: 'other' });
  bench.gate.onProviders([other]);
  await bench.rest();
  expect(bench.kind(other)).toBe('pass');
});

it('space ids are the role and eight hex digits, never one twice', () => {
  const values = [0, 0, 0.5, 0.999999999];
  const random = (): number => values.shift() ?? 0;
  const first = newSpaceId('embedding', random, new Set());
  expect(first).toBe('embedding-00000000');
  expect(newSpaceId('embedding', random, new Set([first]))).toBe('embedding-80000000');
  expect(newSpaceId('code-embedding', random, new Set())).toMatch(/^code-embedding-[0-9a-f]{8}$/);
});

it('each role has spaces of its own', async () => {
  const coder = addEncoder(bench.port, { name: 'coder', provider: { role: 'code-embedding' } });
  bench.gate.onRoles(roles());
  bench.gate.onProviders([founder, coder]);
  await bench.clock.advance(2000);
  expect(bench.space('code-embedding').id).toMatch(/^code-embedding-/);
  expect(bench.gate.verdict(coder.provider.id, bench.space('embedding').id)).toBeNull();
});
