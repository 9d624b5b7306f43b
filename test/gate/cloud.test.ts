import { describe, expect, it } from 'vitest';
import { pinHolds } from '../../main/gate/peers.ts';
import { checkPolicyChange } from '../../main/gate/policy-change.ts';
import type { Encoder } from '../../main/gate/probe-port.ts';
import { GateBench, roles } from './bench.ts';
import type { Faults } from './encoders.ts';
import { addEncoder, fingerprint } from './fake-port.ts';

const HOUR = 3_600_000;
const cloudRoles = roles({ policy: 'cloud' });

/** One model at an upstream of OpenRouter, through the agent of some node. */
function upstream(bench: GateBench, name: string, node: string, faults: Faults = {}): Encoder {
  return addEncoder(bench.port, {
    name: node,
    model: 'vendor/embed-1',
    faults,
    fingerprint: { engine: 'openrouter', upstream: name, pin: name, processMark: null },
    provider: { kind: 'cloud', engineKind: 'openrouter' },
  });
}

async function founded(): Promise<{ readonly bench: GateBench; readonly first: Encoder }> {
  const bench = new GateBench();
  const first = upstream(bench, 'alpha', 'node-1');
  await bench.start([first], cloudRoles);
  return { bench, first };
}

describe('a space founded in the cloud', () => {
  it('with a single upstream: reduced, with the reason, and it serves', async () => {
    const { bench, first } = await founded();
    expect(bench.space().regime).toBe('cloud');
    const verdict = bench.gate.verdict(first.provider.id, bench.space().id);
    expect(verdict).toMatchObject({ kind: 'pass-reduced', minCosine: null });
    expect(verdict?.sentence).toContain('no peer');
    expect(verdict?.checks.find(({ check }) => check === 'min-cosine')?.state).toBe('reduced');
    expect(bench.admits(first.provider.id)).toBe(true);
  });

  it('the same upstream through another node is no peer', async () => {
    const { bench, first } = await founded();
    const again = upstream(bench, 'alpha', 'node-2');
    bench.gate.onProviders([first, again]);
    await bench.rest();
    expect(bench.kind(again)).toBe('pass-reduced');
  });

  it('but it is compared with what the founder saw, so a changed upstream does not come in by another door', async () => {
    const { bench, first } = await founded();
    const again = upstream(bench, 'alpha', 'node-2', { quantisation: 0.22 });
    bench.gate.onProviders([first, again]);
    await bench.rest();
    expect(bench.kind(again)).toBe('unstable');
    expect(bench.admits(again.provider.id)).toBe(false);
  });

  it('another upstream is a peer: it is compared, and makes the first one whole', async () => {
    const { bench, first } = await founded();
    const peer = upstream(bench, 'beta', 'node-2', { quantisation: 0.03 });
    bench.gate.onProviders([first, peer]);
    await bench.rest();
    expect(bench.kind(peer)).toBe('pass');
    bench.gate.verify(first.provider.id);
    await bench.rest();
    expect(bench.kind(first)).toBe('pass');
    expect(bench.gate.verdict(first.provider.id, bench.space().id)?.minCosine).toBeLessThan(1);
  });

  it('an upstream with other numerics is refused with its figure', async () => {
    const { bench, first } = await founded();
    // 0.22 of noise: 1 / sqrt(1.0484) = 0.977.
    const far = upstream(bench, 'beta', 'node-2', { quantisation: 0.22 });
    bench.gate.onProviders([first, far]);
    await bench.rest();
    expect(bench.kind(far)).toBe('vector-incompatible');
    expect(bench.gate.verdict(far.provider.id, bench.space().id)?.minCosine).toBeCloseTo(0.977, 2);
  });

  it('a drifting single upstream is parked at its next check', async () => {
    const { bench, first } = await founded();
    const space = bench.space().id;
    bench.gate.record({ request: 'r1' as never, space, provider: first.provider.id, from: 0, to: 11 });
    bench.port.engine(first.provider.id).faults = { quantisation: 0.22 };
    await bench.clock.advance(6 * HOUR);
    await bench.rest();
    expect(bench.kind(first)).toBe('unstable');
    expect(bench.admits(first.provider.id)).toBe(false);
    expect(bench.eventsOf('drift')[0]).toMatchObject({ rows: 12 });
  });

  it('a local encoder is compared with the anchor', async () => {
    const { bench, first } = await founded();
    const local = addEncoder(bench.port, { name: 'local' });
    const far = addEncoder(bench.port, { name: 'far', faults: { seed: 2 } });
    bench.gate.onProviders([first, local, far]);
    await bench.rest();
    expect([bench.kind(local), bench.kind(far)]).toEqual(['pass', 'vector-incompatible']);
  });
});

describe('pins', () => {
  it('without one nothing is sent and nothing passes', async () => {
    const bench = new GateBench();
    const local = addEncoder(bench.port, { name: 'local' });
    await bench.start([local]);
    const loose = addEncoder(bench.port, {
      name: 'loose',
      fingerprint: { engine: 'openrouter', pin: null },
      provider: { kind: 'cloud' },
    });
    bench.gate.onProviders([local, loose]);
    await bench.rest();
    expect(bench.kind(loose)).toBe('no-upstream-pin');
    expect(bench.port.engine(loose.provider.id).calls).toBe(0);
    expect(bench.gate.verdict(loose.provider.id, bench.space().id)?.sentence).toContain('Pin one upstream');
  });

  it('an upstream without a pin founds nothing', async () => {
    const bench = new GateBench();
    const loose = addEncoder(bench.port, { name: 'loose', fingerprint: { pin: null }, provider: { kind: 'cloud' } });
    await bench.start([loose], cloudRoles);
    expect(bench.gate.roleSpace('embedding').state).toBe('unfounded');
  });

  it('an answer from another upstream than the pin is no pass', async () => {
    const { bench, first } = await founded();
    const liar = upstream(bench, 'beta', 'node-2');
    const engine = bench.port.engine(liar.provider.id);
    engine.fingerprint = { ...engine.fingerprint, upstream: 'gamma' };
    bench.gate.onProviders([first, liar]);
    await bench.rest();
    expect(bench.kind(liar)).toBe('no-upstream-pin');
  });

  it('and while serving its vectors are discarded', async () => {
    const { bench, first } = await founded();
    const other = { ...bench.port.engine(first.provider.id).fingerprint, upstream: 'gamma' };
    expect(bench.gate.admit(first.provider.id, bench.space().id, other)).toBe(false);
    expect(bench.admits(first.provider.id)).toBe(false);
  });

  it.each([
    ['alpha', 'alpha', true],
    ['Alpha', 'alpha/fp8', true],
    ['alpha/fp8', 'alpha/fp8', true],
    ['alpha/fp16', 'alpha/fp8', false],
    ['beta', 'alpha', false],
    [null, 'alpha', true],
    // As agents word it.
    ['alpha/fp8', 'only=alpha/fp8;quantizations=', true],
    ['alpha', 'only=alpha/fp8;quantizations=fp8', true],
    ['beta', 'only=alpha/fp8;quantizations=', false],
    ['beta', 'only=alpha,beta;quantizations=', true],
    ['beta', 'only=;quantizations=fp8', true],
  ])('reported %j under the pin %j', (name, pin, holds) => {
    expect(pinHolds(fingerprint({ upstream: name, pin }))).toBe(holds);
  });
});

describe('a reduced verdict', () => {
  it('admits nobody to a local space', async () => {
    const bench = new GateBench();
    const local = addEncoder(bench.port, { name: 'local' });
    await bench.start([local]);
    const near = upstream(bench, 'alpha', 'node-1', { quantisation: 0.03 });
    const far = upstream(bench, 'beta', 'node-2', { quantisation: 0.22 });
    bench.gate.onProviders([local, near, far]);
    await bench.rest();
    // Both have the local anchor to compare with, so none of them is reduced.
    expect([bench.kind(near), bench.kind(far)]).toEqual(['pass', 'vector-incompatible']);
  });
});

describe('a change of policy', () => {
  const pass = { kind: 'cloud', verdict: 'pass' } as const;
  const localPass = { kind: 'local', verdict: 'pass' } as const;

  it.each([
    ['local', 'local', [], true],
    ['aggregate', 'local', [], true],
    ['backup', 'local', [], true],
    ['cloud', 'local', [], false],
    ['cloud', 'local', [localPass], false],
    ['cloud', 'local', [pass], true],
    ['cloud', 'local', [{ kind: 'cloud', verdict: 'pass-reduced' }], false],
    ['cloud', 'local', [{ kind: 'cloud', verdict: 'vector-incompatible' }], false],
    ['cloud', 'cloud', [], true],
    ['local', 'cloud', [], false],
    ['aggregate', 'cloud', [pass], false],
    ['aggregate', 'cloud', [localPass], true],
    ['backup', 'cloud', [localPass], true],
  ] as const)('to %s in a space of the %s regime with %o', (policy, regime, verdicts, allowed) => {
    const change = (): void => checkPolicyChange(policy, regime, verdicts);
    if (allowed) expect(change).not.toThrow();
    else expect(change).toThrow(expect.objectContaining({ code: 'new_space_required' }));
  });

  it('is free while there is no space', () => {
    expect(() => checkPolicyChange('cloud', null, [])).not.toThrow();
  });

  it('to the cloud and back lets nobody in who has not passed', async () => {
    const bench = new GateBench();
    const local = addEncoder(bench.port, { name: 'local' });
    await bench.start([local]);
    const near = upstream(bench, 'alpha', 'node-1', { quantisation: 0.03 });
    const far = upstream(bench, 'beta', 'node-2', { quantisation: 0.22 });
    bench.gate.onProviders([local, near, far]);
    await bench.rest();
    const space = bench.space().id;
    for (const policy of ['cloud', 'aggregate', 'backup', 'aggregate'] as const) {
      bench.gate.checkPolicy('embedding', policy);
      bench.gate.onRoles(roles({ policy }));
      await bench.rest();
      expect(bench.space().id).toBe(space);
      expect(bench.admits(far.provider.id)).toBe(false);
      expect(bench.admits(near.provider.id)).toBe(true);
    }
  });

  it('that nobody can follow says so', async () => {
    const bench = new GateBench();
    await bench.start([addEncoder(bench.port, { name: 'local' })]);
    expect(() => bench.gate.checkPolicy('embedding', 'cloud')).toThrow(
      expect.objectContaining({ code: 'new_space_required' }),
    );
  });
});
