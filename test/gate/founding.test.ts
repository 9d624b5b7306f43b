import { describe, expect, it } from 'vitest';
import { SwitchyardError } from '../../main/domain/errors.ts';
import type { RoleId, RoleSettings } from '../../main/domain/roles.ts';
import type { FoundRequest } from '../../main/gate/gate-api.ts';
import type { Encoder } from '../../main/gate/probe-port.ts';
import { GateBench, roles } from './bench.ts';
import { tokens } from './encoders.ts';
import { addEncoder, type EncoderOptions, LIMIT } from './fake-port.ts';

async function fleet(
  options: readonly EncoderOptions[],
  settings: Partial<RoleSettings> = {},
  role: RoleId = 'embedding',
): Promise<{ readonly bench: GateBench; readonly encoders: readonly Encoder[] }> {
  const bench = new GateBench();
  const encoders = options.map((one) => addEncoder(bench.port, { ...one, provider: { role, ...one.provider } }));
  await bench.start(encoders, roles(settings, role));
  return { bench, encoders };
}

const state = ({ bench }: { readonly bench: GateBench }, role: RoleId = 'embedding') => bench.gate.roleSpace(role);

async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return error instanceof SwitchyardError ? error.code : `other: ${error}`;
  }
  return 'none';
}

const ask = (change: Partial<FoundRequest>): FoundRequest => ({
  role: 'embedding',
  founder: null,
  width: null,
  confirm: false,
  ...change,
});

describe('by itself', () => {
  it('the only candidate founds', async () => {
    const { bench, encoders } = await fleet([{ name: 'a' }]);
    const space = bench.space();
    expect(space.id).toMatch(/^embedding-[0-9a-f]{8}$/);
    expect(space).toMatchObject({ width: 64, regime: 'local', limitTokens: LIMIT, trial: false, counted: true });
    expect(space.founder).toMatchObject({ provider: encoders[0]?.provider.id, model: 'model-a' });
    expect(space.threshold).toBe(0.99);
  });

  it('of two candidates none does, and the candidates are listed', async () => {
    const found = await fleet([{ name: 'a' }, { name: 'b' }]);
    const now = state(found);
    expect(now.state).toBe('unfounded');
    expect(now.state === 'unfounded' && now.candidates.map(({ provider }) => provider)).toEqual(
      found.encoders.map(({ provider }) => provider.id).sort(),
    );
    const error = await found.bench.gate.found(ask({})).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'space_unfounded', extra: { candidates: [{ width: 64 }, { width: 64 }] } });
  });

  it('the one that the role names does', async () => {
    const { bench } = await fleet([{ name: 'a' }, { name: 'b' }], { localModels: ['model-b'] });
    expect(bench.space().founder.model).toBe('model-b');
  });

  it('an alias names it too, a resembling name does not', async () => {
    const aliased = await fleet([{ name: 'a' }, { name: 'b', provider: { aliases: ['best'] } }], {
      localModels: ['best'],
    });
    expect(aliased.bench.space().founder.model).toBe('model-b');
    expect(state(await fleet([{ name: 'a' }], { localModels: ['MODEL-A'] })).state).toBe('unfounded');
  });

  it('several named models that are there need a person', async () => {
    const names = { localModels: ['model-b', 'model-a'] };
    expect(state(await fleet([{ name: 'a' }, { name: 'b' }], names)).state).toBe('unfounded');
    expect(state(await fleet([{ name: 'a' }, { name: 'c' }], names)).state).toBe('founded');
  });

  it('the same weights on two machines are one candidate, the same name is not', async () => {
    const same = { fingerprint: { modelDigest: 'sha256:1' } };
    expect(
      state(
        await fleet([
          { name: 'a', ...same },
          { name: 'b', ...same },
        ]),
      ).state,
    ).toBe('founded');
    const named = { model: 'bge-m3' };
    expect(
      state(
        await fleet([
          { name: 'a', ...named },
          { name: 'b', ...named },
        ]),
      ).state,
    ).toBe('unfounded');
  });

  it('a set width leaves out encoders of another', async () => {
    const { bench } = await fleet([{ name: 'a' }, { name: 'b', faults: { width: 32 } }], { dimension: 32 });
    // Both count as candidates, so a person chooses; the wrong one is refused by its width.
    expect(state({ bench }).state).toBe('unfounded');
  });

  it('waits a moment, so that a second machine that comes up is seen', async () => {
    const bench = new GateBench();
    const [a, b] = ['a', 'b'].map((name) => addEncoder(bench.port, { name }));
    if (a === undefined || b === undefined) throw new Error('two encoders');
    bench.gate.onRoles(roles());
    await bench.gate.start();
    bench.gate.onProviders([a]);
    expect(bench.gate.roleSpace('embedding').state).toBe('founding');
    await bench.clock.advance(400);
    bench.gate.onProviders([a, b]);
    await bench.clock.advance(5000);
    expect(bench.gate.roleSpace('embedding').state).toBe('unfounded');
    expect(bench.port.engine(a.provider.id).calls).toBe(0);
  });

  it('not under a switched-off role, and not for a role without vectors', async () => {
    expect(state(await fleet([{ name: 'a' }], { enabled: false })).state).toBe('unfounded');
    const { bench } = await fleet([{ name: 'a' }]);
    expect(await codeOf(bench.gate.found(ask({ role: 'reranker' })))).toBe('invalid_request');
  });

  it('is announced, so that waiting requests can go on', async () => {
    const { bench } = await fleet([{ name: 'a' }]);
    const states = bench.eventsOf('founding').filter(({ role }) => role === 'embedding');
    expect(states.map((event) => event.state)).toEqual(['founding', 'founded']);
  });

  it('fails with a reason, is tried again after 30 s, and at once by another process', async () => {
    const { bench, encoders } = await fleet([{ name: 'a', faults: { constant: true } }]);
    const [a] = encoders;
    if (a === undefined) throw new Error('an encoder');
    const now = bench.gate.roleSpace('embedding');
    expect(now.state === 'unfounded' && now.reason.sentence).toContain('Different texts give one vector');
    const { calls } = bench.port.engine(a.provider.id);
    await bench.clock.advance(20_000);
    expect(bench.port.engine(a.provider.id).calls).toBe(calls);
    await bench.clock.advance(15_000);
    expect(bench.port.engine(a.provider.id).calls).toBeGreaterThan(calls);
    bench.port.engine(a.provider.id).faults = {};
    const fingerprint = { ...a.provider.fingerprint, processMark: 'new' };
    bench.port.engine(a.provider.id).fingerprint = fingerprint;
    bench.gate.onProviders([{ ...a, provider: { ...a.provider, fingerprint } }]);
    await bench.clock.advance(1000);
    await bench.rest();
    expect(bench.gate.roleSpace('embedding').state).toBe('founded');
  });
});

describe('the trial', () => {
  const builtIn: EncoderOptions = { name: 'builtin', trial: true };

  it('is founded by the built-in encoder when nothing else is there', async () => {
    const { bench } = await fleet([builtIn]);
    expect(bench.space().trial).toBe(true);
  });

  it('not when a real encoder is there', async () => {
    const { bench } = await fleet([builtIn, { name: 'a' }]);
    expect(bench.space()).toMatchObject({ trial: false, founder: { model: 'model-a' } });
  });

  it('not when a real encoder is there but not ready yet', async () => {
    const found = await fleet([builtIn, { name: 'a', provider: { reachable: false } }]);
    expect(state(found).state).toBe('unfounded');
    const [trial, real] = found.encoders;
    if (trial === undefined || real === undefined) throw new Error('two encoders');
    found.bench.gate.onProviders([trial, { ...real, provider: { ...real.provider, reachable: true } }]);
    await found.bench.clock.advance(2000);
    expect(found.bench.space().founder.model).toBe('model-a');
  });

  it.each([
    { localModels: ['something'] },
    { policy: 'cloud' },
    { dimension: 1024 },
    { cloud: { model: 'openai/text-embedding-3-small', upstreams: [], quantizations: [] } },
  ] as const)('not when the role is set up for something else: %o', async (settings) => {
    expect(state(await fleet([builtIn], settings)).state).toBe('unfounded');
  });

  it('never for code', async () => {
    expect(state(await fleet([builtIn], {}, 'code-embedding'), 'code-embedding').state).toBe('unfounded');
  });

  it('is not replaced by itself when a real encoder comes, only with confirm', async () => {
    const { bench, encoders } = await fleet([builtIn]);
    const trial = bench.space();
    const real = addEncoder(bench.port, { name: 'a', faults: { seed: 2 } });
    bench.gate.onProviders([...encoders, real]);
    await bench.clock.advance(60_000);
    expect(bench.space().id).toBe(trial.id);
    expect(bench.kind(real)).toBe('vector-incompatible');
    expect(await codeOf(bench.gate.found(ask({ founder: real.provider.id })))).toBe('confirmation_required');
    const done = bench.gate.found(ask({ founder: real.provider.id, confirm: true }));
    await bench.rest();
    const { space, cosineToPrevious } = await done;
    expect(space.trial).toBe(false);
    expect(cosineToPrevious).toBeLessThan(0.5);
    expect(bench.space().id).toBe(space.id);
    // The old one answers until it is retired.
    await bench.rest();
    const builtin = encoders[0];
    if (builtin === undefined) throw new Error('the built-in');
    expect(bench.admits(builtin.provider.id, trial.id)).toBe(true);
    expect(bench.admits(builtin.provider.id, space.id)).toBe(false);
    expect(bench.admits(real.provider.id, space.id)).toBe(true);
    await bench.gate.retire(trial.id, false);
    expect(bench.admits(builtin.provider.id, trial.id)).toBe(false);
  });
});

describe('by an operator', () => {
  it('one of several is chosen; the others are then checked against it', async () => {
    const { bench, encoders } = await fleet([{ name: 'a' }, { name: 'b' }, { name: 'c', faults: { seed: 3 } }]);
    const [a, b, c] = encoders;
    if (!a || !b || !c) throw new Error('three encoders');
    const done = bench.gate.found(ask({ founder: b.provider.id }));
    expect(bench.gate.roleSpace('embedding').state).toBe('founding');
    await bench.rest();
    expect((await done).verdict.kind).toBe('pass');
    expect([a, b, c].map((one) => bench.kind(one))).toEqual(['pass', 'pass', 'vector-incompatible']);
  });

  it.each([
    ['collapsed', { constant: true }, null],
    ['batch-inconsistent', { batchLeak: 0.1 }, LIMIT],
    ['unstable', { jitter: 0.05 }, LIMIT],
    ['silent-truncation', { cutAt: 48 }, null],
    ['vector-incompatible', { spoil: { text: 'hello world', value: Number.NaN } }, LIMIT],
  ] as const)('a founder must pass what needs no reference: %s', async (kind, faults, limit) => {
    const { bench, encoders } = await fleet([{ name: 'a', faults, limit }, { name: 'b' }]);
    const done = bench.gate.found(ask({ founder: encoders[0]?.provider.id ?? null })).catch((error: unknown) => error);
    await bench.rest();
    expect(await done).toMatchObject({ code: 'founder_refused', extra: { verdict: kind } });
    expect(bench.gate.spaces()).toEqual([]);
  });

  it('unknown, unready and wrong-width founders are refused, each with its code', async () => {
    const { bench, encoders } = await fleet([{ name: 'a' }, { name: 'b', provider: { reachable: false } }]);
    expect(await codeOf(bench.gate.found(ask({ founder: 'nobody' as never })))).toBe('provider_not_found');
    const [a, b] = encoders;
    expect(await codeOf(bench.gate.found(ask({ founder: b?.provider.id ?? null })))).toBe('founder_refused');
    const wide = codeOf(bench.gate.found(ask({ founder: a?.provider.id ?? null, width: 128 })));
    await bench.rest();
    expect(await wide).toBe('founder_refused');
  });

  it('a space that cannot be stored is not founded', async () => {
    const { bench, encoders } = await fleet([{ name: 'a' }, { name: 'b' }]);
    bench.store.fail = true;
    const done = codeOf(bench.gate.found(ask({ founder: encoders[0]?.provider.id ?? null })));
    await bench.rest();
    expect(await done).not.toBe('none');
    expect(bench.gate.roleSpace('embedding').state).toBe('unfounded');
    expect(bench.gate.spaces()).toEqual([]);
  });

  it('a stop ends what is under way', async () => {
    const { bench, encoders } = await fleet([{ name: 'a' }, { name: 'b' }]);
    const [a] = encoders;
    if (a === undefined) throw new Error('an encoder');
    bench.port.engine(a.provider.id).hangs = true;
    const done = codeOf(bench.gate.found(ask({ founder: a.provider.id })));
    await bench.clock.settle();
    await bench.gate.stop();
    expect(await done).toBe('shutting_down');
  });
});

describe('the probes of a space', () => {
  it('fit the window, and two fill it to the token', async () => {
    const { bench } = await fleet([{ name: 'a' }]);
    const { texts, overLimit } = bench.space().probes;
    const counts = new Map(texts.map(({ id, text }) => [id, tokens(text).length]));
    expect(Math.max(...counts.values())).toBe(LIMIT);
    expect(counts.get('window')).toBe(LIMIT);
    expect(counts.get('window-1')).toBe(LIMIT - 1);
    expect(counts.has('long-rep')).toBe(false);
    for (const text of Object.values(overLimit)) expect(tokens(text).length).toBeGreaterThan(LIMIT);
  });

  it('leave out a blank text that the founder refuses', async () => {
    const bench = new GateBench();
    const a = addEncoder(bench.port, { name: 'a' });
    bench.port.engine(a.provider.id).refusesBlank = true;
    await bench.start([a]);
    expect(bench.space().probes.texts.some(({ text }) => text.trim() === '')).toBe(false);
  });

  it('are made by bytes when nobody can count', async () => {
    const { bench } = await fleet([{ name: 'a', counts: false }]);
    const space = bench.space();
    expect(space.counted).toBe(false);
    for (const { text } of space.probes.texts) expect(Buffer.byteLength(text) + 2).toBeLessThanOrEqual(LIMIT);
  });

  it('do not change when the probe set does: a space keeps what it was founded on', async () => {
    const { bench, encoders } = await fleet([{ name: 'a' }]);
    const before = bench.space().probes;
    await bench.gate.stop();
    const next = new GateBench({ clock: bench.clock, port: bench.port, store: bench.store });
    await next.start(encoders);
    expect(next.space().probes).toEqual(before);
  });
});

it('a role is waited for shortly after the start, though no encoder is known yet', async () => {
  const bench = new GateBench();
  bench.gate.onRoles(roles());
  expect(bench.gate.roleSpace('embedding').state).toBe('founding');
  await bench.gate.start();
  expect(bench.gate.roleSpace('embedding').state).toBe('founding');
  await bench.clock.advance(5000);
  expect(bench.gate.roleSpace('embedding').state).toBe('unfounded');
  expect(bench.eventsOf('founding').at(-1)).toMatchObject({ state: 'unfounded' });
});

describe('a change of the role that needs a new space', () => {
  const wanted = (change: Partial<RoleSettings>) => roles({ ...change }).embedding;
  const PINNED = { model: 'vendor/embed-1', upstreams: ['alpha'], quantizations: [] };

  async function mixed() {
    const bench = new GateBench();
    const local = addEncoder(bench.port, { name: 'a' });
    const cloud = addEncoder(bench.port, {
      name: 'c',
      model: 'vendor/embed-1',
      // 0.22 of noise: cosine 0.977, refused in the local space.
      faults: { quantisation: 0.22 },
      fingerprint: { engine: 'openrouter', upstream: 'alpha', pin: 'alpha', processMark: null },
      provider: { kind: 'cloud', engineKind: 'openrouter' },
    });
    await bench.start([local, cloud], roles({ cloud: PINNED }));
    const found = (founder: Encoder, settings: RoleSettings, ifVersion = 1) =>
      bench.gate.found(ask({ founder: founder.provider.id, confirm: true, change: { settings, ifVersion } }));
    return { bench, local, cloud, found };
  }
  const ids = (candidates: readonly { readonly provider: string }[]) => candidates.map(({ provider }) => provider);

  it('lists those that can found under the wanted settings, not under the present ones', async () => {
    const { bench, local, cloud } = await mixed();
    expect(ids(bench.gate.candidates('embedding'))).toEqual([local.provider.id]);
    expect(ids(bench.gate.candidates('embedding', wanted({ policy: 'cloud', cloud: PINNED })))).toEqual([
      cloud.provider.id,
    ]);
    // The encoder of the old pin is still there; under the wanted one it will not be.
    const other = { ...PINNED, upstreams: ['beta'] };
    expect(bench.gate.candidates('embedding', wanted({ policy: 'cloud', cloud: other }))).toEqual([]);
  });

  it('is kept with the space, or neither is', async () => {
    const { bench, local, cloud, found } = await mixed();
    const first = bench.space().id;
    const settings = wanted({ policy: 'cloud', cloud: PINNED });
    const untouched = () => [bench.space().id, bench.gate.spaces().length, bench.store.roleChanges.length];
    expect(await codeOf(found(local, settings))).toBe('founder_refused');
    expect(untouched()).toEqual([first, 1, 0]);
    const late = found(cloud, settings, 0);
    const refused = codeOf(late);
    await bench.rest();
    expect(await refused).toBe('version_conflict');
    expect(untouched()).toEqual([first, 1, 0]);
    const done = found(cloud, settings);
    await bench.rest();
    expect((await done).space.regime).toBe('cloud');
    expect(bench.store.roleChanges).toEqual([settings]);
  });
});
