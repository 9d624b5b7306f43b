import { beforeEach, describe, expect, it } from 'vitest';
import type { NodeState, Provider } from '../../main/domain/provider.ts';
import type { Fingerprint } from '../../main/domain/verdict.ts';
import type { Encoder } from '../../main/gate/probe-port.ts';
import { GateBench, roles } from './bench.ts';
import { addEncoder, fingerprint } from './fake-port.ts';

const HOUR = 3_600_000;

function changed(encoder: Encoder, change: Partial<Provider>): Encoder {
  return { ...encoder, provider: { ...encoder.provider, ...change } };
}

let bench: GateBench;
let founder: Encoder;
let other: Encoder;

/** A gate with a founder and a second encoder, both passing. */
beforeEach(async () => {
  bench = new GateBench();
  founder = addEncoder(bench.port, { name: 'founder' });
  await bench.start([founder]);
  other = addEncoder(bench.port, { name: 'other' });
  bench.gate.onProviders([founder, other]);
  await bench.rest();
  expect([bench.kind(founder), bench.kind(other)]).toEqual(['pass', 'pass']);
});

/** The process behind an encoder is replaced; the report of it reaches the gate when `publish` says so. */
function restart(encoder: Encoder, mark: string, faults = {}): { publish(): void; readonly now: Fingerprint } {
  const engine = bench.port.engine(encoder.provider.id);
  engine.fingerprint = { ...engine.fingerprint, processMark: mark };
  engine.faults = faults;
  const now = engine.fingerprint;
  return {
    now,
    publish: () =>
      bench.gate.onProviders(
        [founder, other].map((one) => (one === encoder ? changed(one, { fingerprint: now }) : one)),
      ),
  };
}

describe('a change of the process', () => {
  it('voids the verdict before the call that reports it returns', () => {
    const space = bench.space().id;
    restart(other, 'mark-2').publish();
    expect(bench.gate.verdictFor(other.provider.id, space)).toBe('unverified');
    expect(bench.gate.admitted(other.provider.id, space)).toBe(false);
    expect(bench.gate.pending(other.provider.id, space)).toBe(true);
  });

  it('while a chunk is running: its answer is discarded, whichever process gave it', () => {
    const space = bench.space().id;
    const before = bench.port.engine(other.provider.id).fingerprint;
    expect(bench.gate.admit(other.provider.id, space, before)).toBe(true);
    const { now, publish } = restart(other, 'mark-2');
    publish();
    expect(bench.gate.admit(other.provider.id, space, before)).toBe(false);
    expect(bench.gate.admit(other.provider.id, space, now)).toBe(false);
  });

  it('shown first by an answer voids as well, and is checked at once', async () => {
    const space = bench.space().id;
    const { now, publish } = restart(other, 'mark-2');
    expect(bench.gate.admit(other.provider.id, space, now)).toBe(false);
    expect(bench.kind(other)).toBe('unverified');
    expect(bench.gate.pending(other.provider.id, space)).toBe(true);
    await bench.rest();
    expect(bench.gate.admit(other.provider.id, space, now)).toBe(true);
    // The report comes late and says what is known: nothing is checked again.
    const calls = bench.port.engine(other.provider.id).calls;
    publish();
    expect(bench.kind(other)).toBe('pass');
    await bench.rest();
    expect(bench.port.engine(other.provider.id).calls).toBe(calls);
  });

  it('to other pooling on the same port: no answer counts from then on', async () => {
    const space = bench.space().id;
    const { now, publish } = restart(other, 'mark-2', { pooling: 'late' });
    publish();
    await bench.rest();
    expect(bench.kind(other)).toBe('vector-incompatible');
    expect(bench.gate.admit(other.provider.id, space, now)).toBe(false);
    expect(bench.eventsOf('drift')).toEqual([]);
  });

  it.each(['engine', 'version', 'modelDigest', 'upstream', 'pin', 'processMark'] as const)('in %s counts', (field) => {
    const now = { ...bench.port.engine(other.provider.id).fingerprint, [field]: 'another' };
    expect(bench.gate.admit(other.provider.id, bench.space().id, now)).toBe(false);
    expect(bench.kind(other)).toBe('unverified');
  });

  it('in the middle of a verification starts it anew, and no answer of the old process counts', async () => {
    const engine = bench.port.engine(other.provider.id);
    restart(other, 'mark-2').publish();
    const from = engine.calls;
    engine.onCall = (_texts, call) => {
      if (call === from + 20) engine.fingerprint = { ...engine.fingerprint, processMark: 'mark-3' };
    };
    await bench.rest();
    expect(bench.kind(other)).toBe('pass');
    expect(bench.gate.verdict(other.provider.id, bench.space().id)?.fingerprint?.processMark).toBe('mark-3');
    // 20 calls of the first try, one that showed the change, and a whole second try.
    expect(engine.calls - from).toBeGreaterThan(21 + 50);
  });

  it('that never ends is not chased for ever', async () => {
    const engine = bench.port.engine(other.provider.id);
    engine.onCall = (_texts, call) => {
      engine.fingerprint = { ...engine.fingerprint, processMark: `mark-${call}` };
    };
    const from = engine.calls;
    bench.gate.verify(other.provider.id);
    await bench.rest();
    expect(bench.kind(other)).toBe('probe-failed');
    // Three tries that each end at their second answer.
    expect(engine.calls - from).toBe(6);
  });
});

describe('a restart of the control plane', () => {
  async function again(report: readonly Encoder[], fails = false): Promise<GateBench> {
    await bench.gate.stop();
    const next = new GateBench({ clock: bench.clock, port: bench.port, store: bench.store, seed: 9 });
    for (const encoder of report) {
      if (fails) bench.port.engine(encoder.provider.id).failure = { blame: 'engine', code: 'x', retryAfterMs: null };
    }
    next.gate.onRoles(roles());
    next.gate.onProviders(report);
    expect(next.gate.verdictFor(other.provider.id, bench.space().id)).toBe('unverified');
    await next.gate.start();
    return next;
  }

  it('keeps a verdict when the fingerprint is the same, without a probe', async () => {
    const space = bench.space().id;
    const calls = bench.port.engine(other.provider.id).calls;
    const next = await again([founder, other]);
    expect(next.space().id).toBe(space);
    expect(next.admits(other.provider.id)).toBe(true);
    await next.rest();
    expect(bench.port.engine(other.provider.id).calls).toBe(calls);
  });

  it('finds a bad encoder bad since it was first found so, however often it is checked', async () => {
    const space = bench.space().id;
    const found = (gate: GateBench) => gate.gate.verdict(other.provider.id, space)?.found;
    const { now, publish } = restart(other, 'mark-2', { quantisation: 0.2 });
    const foundAtMs = bench.clock.wallMs();
    publish();
    expect(found(bench)?.kind).toBe('pass'); // not known now: what it was last
    await bench.rest();
    expect(found(bench)).toEqual({ kind: 'vector-incompatible', sinceMs: foundAtMs });
    await bench.clock.advance(7 * 3_600_000);
    bench.gate.verify(other.provider.id);
    await bench.rest();
    const next = await again([founder, changed(other, { fingerprint: now })]);
    await next.rest();
    const verdict = next.gate.verdict(other.provider.id, space);
    expect(verdict?.checkedAtMs).toBeGreaterThan(foundAtMs + 7 * 3_600_000 - 1);
    expect(verdict?.found).toEqual({ kind: 'vector-incompatible', sinceMs: foundAtMs });
  });

  it('drops it when the fingerprint is another', async () => {
    const restarted = changed(other, { fingerprint: fingerprint({ processMark: 'mark-2' }) });
    const next = await again([founder, restarted], true);
    expect(next.kind(other)).toBe('unverified');
    await next.rest();
    expect(next.kind(other)).toBe('probe-failed');
  });

  it('admits nobody whose provider has not been reported yet', async () => {
    const next = await again([founder]);
    expect(next.kind(other, bench.space().id)).toBe('pass');
    expect(next.gate.admitted(other.provider.id, bench.space().id)).toBe(false);
    expect(next.admits(other.provider.id)).toBe(false);
  });

  it('forgets no first vectors: drift is seen over it', async () => {
    bench.port.engine(other.provider.id).faults = { quantisation: 0.15 };
    const next = await again([founder, other]);
    next.gate.verify(other.provider.id);
    await next.rest();
    expect(next.kind(other)).toBe('unstable');
  });

  it('re-runs what became due meanwhile, while it serves', async () => {
    await bench.gate.stop();
    await bench.clock.advance(7 * HOUR);
    const calls = bench.port.engine(other.provider.id).calls;
    const next = await again([founder, other]);
    expect(next.admits(other.provider.id)).toBe(true);
    await next.rest();
    expect(bench.port.engine(other.provider.id).calls).toBeGreaterThan(calls);
    expect(next.admits(other.provider.id)).toBe(true);
  });

  it('does not admit before the store has been read, nor after the stop', async () => {
    const early = new GateBench({ clock: bench.clock, port: bench.port, store: bench.store });
    early.gate.onProviders([founder, other]);
    const space = bench.space().id;
    expect(early.gate.admitted(other.provider.id, space)).toBe(false);
    expect(early.gate.pending(other.provider.id, space)).toBe(true);
    await bench.gate.stop();
    expect(bench.admits(other.provider.id, space)).toBe(false);
  });
});

describe('the re-run', () => {
  it('comes after six hours, serves meanwhile, and replaces the verdict', async () => {
    const space = bench.space().id;
    const engine = bench.port.engine(other.provider.id);
    const before = bench.gate.verdict(other.provider.id, space)?.checkedAtMs ?? 0;
    const admitted: boolean[] = [];
    const calls = engine.calls;
    await bench.clock.advance(6 * HOUR - 10_000);
    expect(engine.calls).toBe(calls);
    engine.onCall = () => admitted.push(bench.admits(other.provider.id));
    await bench.clock.advance(20_000);
    await bench.rest();
    expect(admitted.length).toBeGreaterThan(50);
    expect(admitted.every(Boolean)).toBe(true);
    expect(bench.gate.verdict(other.provider.id, space)?.checkedAtMs).toBe(before + 6 * HOUR);
  });

  it('that finds drift parks the provider and names exactly the rows since the last good check', async () => {
    const space = bench.space().id;
    const id = other.provider.id;
    const record = (request: string, from: number, to: number, provider = id): void =>
      bench.gate.record({ request: request as never, space, provider, from, to });
    record('r-early', 0, 9);
    await bench.clock.advance(6 * HOUR);
    await bench.rest();
    record('r-late', 0, 3);
    record('r-late', 4, 7);
    record('r-late', 8, 9, founder.provider.id);
    await bench.clock.advance(HOUR);
    record('r-later', 5, 5);
    bench.port.engine(id).faults = { quantisation: 0.15 };
    await bench.clock.advance(5 * HOUR);
    await bench.rest();
    expect(bench.kind(other)).toBe('unstable');
    expect(bench.admits(id)).toBe(false);
    const [drift] = bench.eventsOf('drift');
    expect(drift?.rows).toBe(9);
    expect(drift?.ranges.map(({ request, from, to }) => [request, from, to])).toEqual([
      ['r-late', 0, 7],
      ['r-later', 5, 5],
    ]);
    const affected = await bench.gate.affected(id);
    expect(affected.rows).toBe(9);
    expect(affected.sinceMs).toBe(drift?.sinceMs);
  });

  it('that cannot measure leaves the pass standing twice, then closes', async () => {
    const engine = bench.port.engine(other.provider.id);
    await bench.clock.advance(6 * HOUR - 10_000);
    engine.failure = { blame: 'engine', code: 'engine_error', retryAfterMs: null };
    await bench.clock.advance(15_000);
    expect(bench.kind(other)).toBe('pass');
    await bench.clock.advance(30_000);
    expect(bench.kind(other)).toBe('pass');
    await bench.clock.advance(60_000);
    expect(bench.kind(other)).toBe('probe-failed');
    engine.failure = null;
    await bench.clock.advance(120_000);
    await bench.rest();
    expect(bench.kind(other)).toBe('pass');
  });
});

it('what cannot be measured is tried again after 30 s, doubling to 15 minutes', async () => {
  const engine = bench.port.engine(other.provider.id);
  const tries: number[] = [];
  engine.failure = { blame: 'transport', code: 'engine_unreachable', retryAfterMs: null };
  engine.onCall = () => tries.push(bench.clock.nowMs());
  bench.gate.verify(other.provider.id);
  await bench.clock.advance(HOUR);
  const waits = tries.slice(1).map((at, i) => (at - (tries[i] ?? 0)) / 1000);
  expect(waits).toEqual([30, 60, 120, 240, 480, 900, 900]);
});

describe('a busy engine', () => {
  it('is asked again within the same verification', async () => {
    const engine = bench.port.engine(other.provider.id);
    const from = engine.calls;
    engine.onCall = (_texts, call) => {
      engine.failure = call < from + 3 ? { blame: 'busy', code: 'engine_busy', retryAfterMs: null } : null;
    };
    bench.gate.verify(other.provider.id);
    await bench.clock.advance(500 + 1000 + 2000);
    await bench.rest();
    expect(bench.kind(other)).toBe('pass');
  });

  it('that stays busy is put off', async () => {
    const engine = bench.port.engine(other.provider.id);
    engine.failure = { blame: 'busy', code: 'engine_busy', retryAfterMs: null };
    bench.gate.verify(other.provider.id);
    await bench.clock.advance(60_000);
    expect(bench.kind(other)).toBe('probe-failed');
  });
});

it('an engine that never answers costs one deadline, and nobody else waits for it', async () => {
  const third = addEncoder(bench.port, { name: 'third' });
  bench.port.engine(other.provider.id).hangs = true;
  bench.gate.verify(other.provider.id);
  bench.gate.onProviders([founder, other, third]);
  await bench.rest();
  expect(bench.kind(third)).toBe('pass');
  expect(bench.kind(other)).toBe('unverified');
  await bench.clock.advance(120_000);
  expect(bench.kind(other)).toBe('probe-failed');
  expect(bench.gate.verdict(other.provider.id, bench.space().id)?.sentence).toContain('in time');
});

it('one verification at a time per engine, whatever asks for it', async () => {
  const twin = addEncoder(bench.port, {
    name: 'twin',
    provider: { slotPool: other.provider.slotPool, engine: other.provider.engine },
  });
  bench.gate.onProviders([founder, other, twin]);
  for (let i = 0; i < 5; i++) {
    bench.gate.verify(null);
    await bench.clock.settle();
  }
  await bench.rest();
  expect([bench.kind(other), bench.kind(twin)]).toEqual(['pass', 'pass']);
  expect(bench.port.mostAtOnce).toBe(1);
});

describe('settings', () => {
  it('a raised threshold voids at once', () => {
    bench.gate.onRoles(roles({ threshold: 0.995 }));
    expect(bench.kind(other)).toBe('unverified');
  });

  it('a changed policy voids and checks again; the space stays', async () => {
    const space = bench.space().id;
    bench.gate.onRoles(roles({ policy: 'local' }));
    expect(bench.kind(other)).toBe('unverified');
    await bench.rest();
    expect(bench.space().id).toBe(space);
    expect(bench.kind(other)).toBe('pass');
  });

  it('a declared width is checked while the full one serves, and only then given', async () => {
    const space = bench.space().id;
    const id = other.provider.id;
    expect(bench.gate.servesWidth(id, space, 64)).toBe(true);
    expect(bench.gate.servesWidth(id, space, 32)).toBe(false);
    bench.gate.onRoles(roles({ cutDimensions: [32] }));
    expect(bench.admits(id)).toBe(true);
    expect(bench.gate.servesWidth(id, space, 32)).toBe(false);
    await bench.rest();
    expect(bench.gate.servesWidth(id, space, 32)).toBe(true);
    expect(bench.gate.servesWidth(id, space, 16)).toBe(false);
    bench.gate.onRoles(roles({ cutDimensions: [] }));
    await bench.rest();
    expect(bench.gate.servesWidth(id, space, 32)).toBe(false);
  });

  it('other settings leave verdicts alone', () => {
    bench.gate.onRoles(roles({ maxLocalWaitMs: 10 }));
    expect(bench.kind(other)).toBe('pass');
  });
});

describe('a machine that cannot be probed', () => {
  const states: readonly Partial<Provider>[] = [
    { nodeState: 'unreachable' as NodeState },
    { nodePulls: false },
    { reachable: false },
  ];
  it.each(states)('%o: nothing is sent, nothing is pending; it is checked when it is back', async (change) => {
    const third = addEncoder(bench.port, { name: 'third', provider: change });
    bench.gate.onProviders([founder, other, third]);
    await bench.clock.advance(60_000);
    expect(bench.port.engine(third.provider.id).calls).toBe(0);
    expect(bench.gate.pending(third.provider.id, bench.space().id)).toBe(false);
    const back = changed(third, { nodeState: 'ready', nodePulls: true, reachable: true });
    bench.gate.onProviders([founder, other, back]);
    expect(bench.gate.pending(third.provider.id, bench.space().id)).toBe(true);
    await bench.rest();
    expect(bench.kind(third)).toBe('pass');
  });

  it('keeps its pass when the same process comes back', async () => {
    bench.gate.onProviders([founder, changed(other, { reachable: false })]);
    bench.gate.onProviders([founder, other]);
    expect(bench.admits(other.provider.id)).toBe(true);
    bench.gate.onProviders([founder]);
    expect(bench.admits(other.provider.id)).toBe(false);
    bench.gate.onProviders([founder, other]);
    expect(bench.admits(other.provider.id)).toBe(true);
  });
});

describe('an engine without a process mark', () => {
  it('gets no verdict that admits, because it would hold for no process', async () => {
    const bare = addEncoder(bench.port, { name: 'bare', fingerprint: { processMark: null } });
    bench.gate.onProviders([founder, other, bare]);
    await bench.rest();
    const verdict = bench.gate.verdict(bare.provider.id, bench.space().id);
    expect(verdict?.kind).toBe('probe-failed');
    expect(verdict?.sentence).toContain('Nothing tells one process of this engine from another');
    expect(bench.admits(bare.provider.id)).toBe(false);
    expect(bench.admits(other.provider.id)).toBe(true);
  });
});

describe('a store that refuses', () => {
  it('stops nothing; findings and ranges are written when it is back', async () => {
    const space = bench.space().id;
    bench.store.fail = true;
    const third = addEncoder(bench.port, { name: 'third' });
    bench.gate.onProviders([founder, other, third]);
    await bench.rest();
    expect(bench.admits(third.provider.id)).toBe(true);
    bench.gate.record({ request: 'r1' as never, space, provider: third.provider.id, from: 0, to: 4 });
    await bench.clock.advance(6000);
    expect(bench.eventsOf('store').map(({ state }) => state)).toEqual(['failing']);
    expect(bench.store.ranges).toEqual([]);
    bench.store.fail = false;
    await bench.clock.advance(6000);
    expect(bench.eventsOf('store').map(({ state }) => state)).toEqual(['failing', 'recovered']);
    expect(bench.store.ranges).toHaveLength(1);
    expect(bench.store.verdicts.has(`${third.provider.id} ${space}`)).toBe(true);
  });
});

it('a request may ask for its ranges, written or not', async () => {
  const space = bench.space().id;
  const put = (from: number, to: number, provider = founder.provider.id): void =>
    bench.gate.record({ request: 'r1' as never, space, provider, from, to });
  put(4, 7);
  await bench.clock.advance(2000);
  put(0, 3);
  put(8, 9, other.provider.id);
  const ranges = await bench.gate.rangesOfRequest('r1' as never);
  expect(ranges.map(({ from, to }) => [from, to]).sort()).toEqual([
    [0, 7],
    [8, 9],
  ]);
});

it('rows in doubt are counted from the last good check of their own space', async () => {
  const id = other.provider.id;
  const first = bench.space().id;
  await bench.clock.advance(HOUR);
  const founding = bench.gate.found({ role: 'embedding', founder: founder.provider.id, width: null, confirm: true });
  await bench.rest();
  const second = (await founding).space.id;
  await bench.rest();
  // The first space is checked again after six hours, the second after seven; the rows are written between.
  await bench.clock.advance(5.5 * HOUR);
  bench.gate.record({ request: 'in-first' as never, space: first, provider: id, from: 0, to: 4 });
  bench.gate.record({ request: 'in-second' as never, space: second, provider: id, from: 0, to: 4 });
  await bench.clock.advance(HOUR);
  await bench.rest();
  const { ranges } = await bench.gate.affected(id);
  expect(ranges.map(({ request }) => request)).toEqual(['in-first']);
});

it('ranges are kept 90 days', async () => {
  const day = 24 * HOUR;
  const calm = new GateBench({ timing: { reRunMs: 1000 * day } });
  const alone = addEncoder(calm.port, { name: 'alone' });
  await calm.start([alone]);
  calm.gate.record({ request: 'r1' as never, space: calm.space().id, provider: alone.provider.id, from: 0, to: 3 });
  await calm.clock.advance(89 * day);
  expect(calm.store.ranges).toHaveLength(1);
  await calm.clock.advance(2 * day);
  expect(calm.store.ranges).toHaveLength(0);
});

it('the history of the minimum can be drawn', async () => {
  await bench.clock.advance(6 * HOUR);
  await bench.rest();
  await bench.clock.advance(1000);
  const points = await bench.gate.history(other.provider.id, bench.space().id, 0);
  expect(points.map(({ kind }) => kind)).toEqual(['pass', 'pass']);
  expect(points[0]?.minCosine).toBeGreaterThan(0.999);
});
