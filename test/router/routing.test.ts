import { describe, expect, it } from 'vitest';
import type { ProviderId, SpaceId } from '../../main/domain/ids.ts';
import { defaultRoleSettings } from '../../main/domain/roles.ts';
import type { VerdictKind } from '../../main/domain/verdict.ts';
import type { RoutedProvider, SubmitResult } from '../../main/router/types.ts';
import {
  accept,
  cloud,
  dispatches,
  failures,
  item,
  ok,
  only,
  Permits,
  provider,
  routerWith,
  SPACE,
  send,
  sent,
} from './support.ts';

const chat = defaultRoleSettings('code-assistant');

function refusal(fleet: readonly RoutedProvider[], options: Parameters<typeof item>[1] = {}, nowMs = 0): SubmitResult {
  return routerWith(fleet).submit(item('r', options), nowMs);
}

describe('eligibility', () => {
  const reasonsOf = (result: SubmitResult): readonly string[] =>
    result.accepted ? ['accepted'] : result.reasons.map(({ reason }) => reason);

  it.each<[string, Partial<RoutedProvider>]>([
    ['node_draining', { nodeState: 'draining' }],
    ['node_maintenance', { nodeState: 'maintenance' }],
    ['node_error', { nodeState: 'error' }],
    ['node_unreachable', { nodeState: 'unreachable', unreachableSinceMs: -15_000 }],
    ['node_unknown', { nodeState: 'unknown', unreachableSinceMs: -15_000 }],
    ['node_silent', { nodePulls: false, unreachableSinceMs: -15_000 }],
    ['engine_unreachable', { reachable: false, unreachableSinceMs: -15_000 }],
    ['model_absent', { present: false }],
  ])('refuses a provider for %s, and nobody else is there: fails at once with that reason', (reason, more) => {
    const result = refusal([provider('a', more)]);
    expect(result).toMatchObject({ accepted: false, code: 'no_provider' });
    expect(reasonsOf(result)).toEqual([reason]);
  });

  it.each<[string, Partial<RoutedProvider>]>([
    ['cloud_paused', { closed: 'cloud_paused' }],
    ['spend_cap', { closed: 'spend_cap' }],
    ['key_missing', { closed: 'key_missing' }],
  ])('refuses a closed cloud provider for %s', (reason, more) => {
    expect(reasonsOf(refusal([cloud('c', more)]))).toEqual([reason]);
  });

  it('counts a degraded node as ready', () => {
    expect(refusal([provider('a', { nodeState: 'degraded' })]).accepted).toBe(true);
  });

  it('keeps cloud providers from a local request and local ones from a cloud request', () => {
    expect(reasonsOf(refusal([cloud('c')], { context: { policy: 'local' } }))).toEqual(['policy_local']);
    expect(reasonsOf(refusal([provider('a')], { context: { policy: 'cloud' } }))).toEqual(['policy_cloud']);
  });

  it('needs a context window for prompt and answer; an unknown window is large enough', () => {
    const fleet = [provider('small', { contextTokens: 4096 })];
    expect(refusal(fleet, { neededTokens: 4096 }).accepted).toBe(true);
    expect(refusal(fleet, { neededTokens: 4097 })).toMatchObject({ code: 'context_too_long' });
    expect(refusal([...fleet, provider('any')], { neededTokens: 1e6 }).accepted).toBe(true);
  });

  it('sends a long prompt to the machine whose window holds it, though another is free', () => {
    const router = routerWith([
      provider('small', { contextTokens: 4096 }),
      provider('large', { contextTokens: 32_768 }),
    ]);
    const big = item('big', { neededTokens: 10_000 });
    expect(sent(send(router, 0, big, item('little')))).toEqual(['big@large', 'little@small']);
  });

  it('serves a concrete model under its name or an explicit alias only', () => {
    const fleet = [provider('a', { model: 'qwen3:8b' }), provider('b', { model: 'x', aliases: ['Qwen/Qwen3-8B'] })];
    const router = routerWith(fleet);
    const asked = item('r1', { context: { model: 'Qwen/Qwen3-8B' } });
    expect(sent(send(router, 0, asked))).toEqual(['r1@b']);
    expect(refusal(fleet, { context: { model: 'Qwen3-8B' } })).toMatchObject({ code: 'no_provider' });
  });

  it('holds a role to its speed floor; an unknown speed passes', () => {
    const router = routerWith([provider('slow', { tokensPerSecond: 4 }), provider('new')]);
    router.setRole('code-assistant', { ...chat, minTokensPerSecond: 5 }, 0);
    expect(sent(send(router, 0, item('r1'), item('r2')))).toEqual(['r1@new']);
  });

  it('keeps in what already waits when the operator makes the role local', () => {
    const permits = new Permits(0);
    const router = routerWith([provider('a'), cloud('c')], { permits });
    const first = only(dispatches(send(router, 0, item('r1'), item('r2'))));
    router.setRole('code-assistant', { ...chat, policy: 'local' }, 10);
    permits.limit = 8;
    expect(router.decide(10)).toEqual([]);
    router.attemptEnded(first.attempt, ok, 20);
    expect(sent(router.decide(20))).toEqual(['r2@a']);
  });

  it('refuses everything of a role that is switched off, also what waits', () => {
    const router = routerWith([provider('a')]);
    send(router, 0, item('runs'), item('waits'));
    router.setRole('code-assistant', { ...chat, enabled: false }, 10);
    const failed = failures(router.decide(10)).map(({ request, code }) => [request, code]);
    expect(failed).toEqual([['waits', 'role_disabled']]);
    expect(router.submit(item('late'), 20)).toMatchObject({ accepted: false, code: 'role_disabled' });
  });
});

describe('the gate in front of embeddings', () => {
  const encoder = (name: string, verdict: VerdictKind | null, more: Partial<RoutedProvider> = {}): RoutedProvider =>
    provider(name, { role: 'embedding', spaces: verdict === null ? new Map() : new Map([[SPACE, verdict]]), ...more });
  const embed = (id: string, more: Parameters<typeof item>[1] = {}) => item(id, { role: 'embedding', ...more });

  it.each<VerdictKind>([
    'vector-incompatible',
    'dimension-mismatch',
    'batch-inconsistent',
    'unstable',
    'collapsed',
    'scale-mismatch',
    'silent-truncation',
    'no-upstream-pin',
  ])('gives no text to a provider with verdict %s', (verdict) => {
    const result = routerWith([encoder('a', verdict)]).submit(embed('r'), 0);
    expect(result).toMatchObject({ accepted: false, reasons: [{ reason: 'verdict_failed' }] });
  });

  it('waits while a verdict is being made, and dispatches when it is a pass', () => {
    const router = routerWith([encoder('a', null)]);
    expect(send(router, 0, embed('r'))).toEqual([]);
    router.setProviders([encoder('a', 'pass')], 900);
    expect(sent(router.decide(900))).toEqual(['r@a']);
  });

  it('fails what waited when the verdict turns out bad', () => {
    const router = routerWith([encoder('a', null)]);
    send(router, 0, embed('r'));
    router.setProviders([encoder('a', 'collapsed')], 900);
    expect(only(failures(router.decide(900)))).toMatchObject({ request: 'r', code: 'no_provider' });
  });

  it('takes a reduced pass in a cloud-founded space only', () => {
    const fleet = [encoder('c', 'pass-reduced', { kind: 'cloud' })];
    expect(routerWith(fleet).submit(embed('r'), 0)).toMatchObject({ reasons: [{ reason: 'verdict_reduced' }] });
    const founded = embed('r', { space: { id: SPACE, regime: 'cloud' } });
    expect(sent(send(routerWith(fleet), 0, founded))).toEqual(['r@c']);
  });

  it('refuses a cloud encoder without a pinned upstream', () => {
    const result = routerWith([encoder('c', 'pass', { kind: 'cloud', pinned: false })]).submit(embed('r'), 0);
    expect(result).toMatchObject({ reasons: [{ reason: 'no_upstream_pin' }] });
  });

  it('routes by the space of the item: a retained space is served by its own providers', () => {
    const old = 'embedding-0000000f' as SpaceId;
    const verdict: VerdictKind = 'pass';
    const router = routerWith([encoder('new', 'pass'), encoder('old', null, { spaces: new Map([[old, verdict]]) })]);
    const asserted = embed('r', { space: { id: old, regime: 'local' } });
    expect(sent(send(router, 0, asserted, embed('s')))).toEqual(['r@old', 's@new']);
  });

  it('waits for a failed probe that is repeated within the deadline, not for a later one', () => {
    const at = (nextProbeAtMs: number) => routerWith([encoder('a', 'probe-failed', { nextProbeAtMs })]);
    expect(at(120_000).submit(embed('r'), 0).accepted).toBe(true);
    expect(at(120_001).submit(embed('r'), 0)).toMatchObject({ accepted: false, retryAfterMs: 120_001 });
  });

  it('re-queues chunks and touches the provider no more when another process answers, until it is verified anew', () => {
    const router = routerWith([encoder('a', 'pass')]);
    const first = only(dispatches(send(router, 0, embed('r'))));
    const ended = router.attemptEnded(first.attempt, { kind: 'fingerprint' }, 50);
    expect(ended.keep).toBe(false);
    expect(router.decide(50)).toEqual([]);
    // The same old verdict in a later heartbeat proves nothing.
    router.setProviders([encoder('a', 'pass')], 5000);
    expect(router.decide(5000)).toEqual([]);
    router.setProviders([encoder('a', 'pass', { verifiedAtMs: 6000 })], 6001);
    expect(sent(router.decide(6001))).toEqual(['r@a']);
  });

  it('discards what the same provider still had in flight at a fingerprint change', () => {
    const router = routerWith([encoder('a', 'pass', { slots: 2 })]);
    const [one, two] = dispatches(send(router, 0, embed('r'), embed('s')));
    if (one === undefined || two === undefined) throw new Error('both were to be sent');
    router.attemptEnded(one.attempt, { kind: 'fingerprint' }, 50);
    expect(router.decide(50)).toMatchObject([{ kind: 'abort', attempt: two.attempt }]);
    expect(router.attemptEnded(two.attempt, ok, 51)).toMatchObject({ keep: false });
  });
});

describe('hope', () => {
  it('waits 15 seconds for a machine that has just become unreachable, then fails with its reason', () => {
    const lost = provider('a', { nodeState: 'unreachable', unreachableSinceMs: 1000 });
    const router = routerWith([lost]);
    expect(send(router, 2000, item('r'))).toEqual([]);
    expect(router.nextWakeMs(2000)).toBe(16_000);
    expect(router.decide(15_999)).toEqual([]);
    const failed = only(failures(router.decide(16_000)));
    expect(failed).toMatchObject({ code: 'no_provider', reasons: [{ reason: 'node_unreachable' }] });
    expect(router.submit(item('late'), 16_001)).toMatchObject({ accepted: false, code: 'no_provider' });
  });

  it('asks to be called when the hope of work that already waits ends', () => {
    const router = routerWith([provider('a')]);
    send(router, 0, item('runs'), item('waits'));
    router.setProviders([provider('a', { nodeState: 'unreachable', unreachableSinceMs: 1000 })], 1000);
    expect(router.decide(1000)).toEqual([]);
    expect(router.nextWakeMs(1000)).toBe(16_000);
    expect(only(failures(router.decide(16_000)))).toMatchObject({ request: 'waits', code: 'no_provider' });
  });

  it('measures the 15 seconds itself when the fleet does not say since when', () => {
    const router = routerWith([provider('a')]);
    router.setProviders([provider('a', { nodePulls: false })], 10_000);
    router.setProviders([provider('a', { nodePulls: false })], 15_000);
    expect(router.submit(item('r'), 24_999).accepted).toBe(true);
    expect(router.submit(item('s'), 25_000)).toMatchObject({ accepted: false });
  });

  it('waits for a provider that is cooling, and uses it when that has passed', () => {
    const router = routerWith([cloud('c', { coolingUntilMs: 4000 })]);
    expect(send(router, 0, item('r'))).toEqual([]);
    expect(router.nextWakeMs(0)).toBe(4000);
    expect(sent(router.decide(4000))).toEqual(['r@c']);
  });
});

describe('choice among free providers', () => {
  it('takes local ones first, among them those with the model loaded', () => {
    const router = routerWith([
      cloud('c', { baseWeight: 10 }),
      provider('cold', { loaded: false, baseWeight: 10 }),
      provider('warm', { loaded: true }),
    ]);
    const decisions = send(router, 0, item('r1'), item('r2'), item('r3'));
    expect(sent(decisions)).toEqual(['r1@warm', 'r2@cold', 'r3@c']);
  });

  it('does not go to the cloud while a local slot is free, and does at once when none is', () => {
    const router = routerWith([provider('a', { slots: 2 }), cloud('c')]);
    const decisions = send(router, 0, item('r1'), item('r2'), item('r3'));
    expect(sent(decisions)).toEqual(['r1@a', 'r2@a', 'r3@c']);
  });

  it('spreads by weights of this very moment: base 2 against 1, four slots each', () => {
    // weights idle 200, 100 -> a (current -100, 100); a busy 1: 200 / 1.5 = 133, b 100 -> a 33, b 200: b (33, -33);
    // 133, b 67 -> a 166, b 34: a (-34, 34); a busy 2: 100, b 67 -> a 66, b 101: b (66, -66).
    const router = routerWith([provider('a', { slots: 4, baseWeight: 2 }), provider('b', { slots: 4 })]);
    const decisions = send(router, 0, item('r1'), item('r2'), item('r3'), item('r4'));
    expect(sent(decisions)).toEqual(['r1@a', 'r2@b', 'r3@a', 'r4@b']);
  });

  it('counts foreign load of the last heartbeat: such slots are not free', () => {
    const router = routerWith([provider('a', { slots: 2, foreign: 2 }), provider('b', { slots: 1 })]);
    expect(sent(send(router, 0, item('r1'), item('r2')))).toEqual(['r1@b']);
    router.setProviders([provider('a', { slots: 2, foreign: 1 }), provider('b', { slots: 1 })], 5000);
    expect(sent(router.decide(5000))).toEqual(['r2@a']);
  });

  it('shares the slots of one engine over roles, and lets the roles take turns', () => {
    const engine = { node: 'n' as RoutedProvider['node'], slotPool: 'n/e', slots: 1 };
    const fleet = [provider('n', engine), provider('n', { ...engine, role: 'reranker', model: 'rr' })];
    const router = routerWith(fleet);
    const pending = [
      ...['c1', 'c2'].map((id) => item(id)),
      ...['k1', 'k2'].map((id) => item(id, { role: 'reranker' })),
    ];
    const order: string[] = [];
    let decisions = send(router, 0, ...pending);
    for (let now = 100; order.length < 4; now += 100) {
      const one = only(dispatches(decisions));
      order.push(one.request);
      router.attemptEnded(one.attempt, ok, now);
      decisions = router.decide(now);
    }
    expect(order.map((id) => id.charAt(0)).join('')).toMatch(/^(ckck|kckc)$/);
  });

  it('keeps nothing waiting while a slot is free: three machines of one slot, five jobs', () => {
    const router = routerWith([provider('a'), provider('b'), provider('c')]);
    const jobs = ['1', '2', '3', '4', '5'].map((id) => item(id));
    const running = [...dispatches(send(router, 0, ...jobs))];
    expect(running).toHaveLength(3);
    const freed = running[1];
    if (freed === undefined) throw new Error('three were to run');
    router.attemptEnded(freed.attempt, ok, 500);
    const next = only(dispatches(router.decide(500)));
    expect([next.request, next.provider.nodeName]).toEqual(['4', freed.provider.nodeName]);
  });

  it('is not blocked by a head of the queue that only a busy machine could serve', () => {
    const router = routerWith([provider('a', { model: 'x' }), provider('b', { model: 'y' })]);
    const x = (id: string) => item(id, { context: { model: 'x' } });
    expect(sent(send(router, 0, x('x1'), x('x2'), item('any')))).toEqual(['x1@a', 'any@b']);
  });

  it('makes the heartbeat speed count: 58 and 10 tok/s give weights 131 and 54', () => {
    const fleet = [
      provider('a', { slots: 4, tokensPerSecond: 58, ttftMs: 300 }),
      provider('b', { slots: 4, tokensPerSecond: 10, ttftMs: 300 }),
    ];
    const first = only(dispatches(send(routerWith(fleet), 0, item('r'))));
    expect(first.explanation.candidates.weight).toEqual([131, 54]);
  });
});

describe('conversations', () => {
  const said = (id: string) => item(id, { conversation: 'p/1' });

  it('go back to their last provider for ten minutes while it has a free slot, leaving current alone', () => {
    const router = routerWith([provider('a', { slots: 4 }), provider('b', { slots: 4 })]);
    const first = only(dispatches(send(router, 0, said('t1'))));
    router.attemptEnded(first.attempt, ok, 100);
    const currents = router.snapshot(100).providers.map(({ current }) => current);
    const second = only(dispatches(send(router, 1000, said('t2'))));
    expect(second.provider.nodeName).toBe(first.provider.nodeName);
    expect(router.snapshot(1000).providers.map(({ current }) => current)).toEqual(currents);
    router.attemptEnded(second.attempt, ok, 1100);
    // 1,000 + 600,000 ms: forgotten; the round robin goes on where it was, to the other machine.
    expect(only(dispatches(send(router, 601_000, said('t3')))).provider.nodeName).not.toBe(first.provider.nodeName);
  });

  it('go elsewhere when that provider is full', () => {
    const router = routerWith([provider('a'), provider('b')]);
    const first = only(dispatches(send(router, 0, said('t1'))));
    const second = only(dispatches(send(router, 10, said('t2'))));
    expect(second.provider.id).not.toBe(first.provider.id);
  });
});

describe('cloud permits', () => {
  it('holds one permit per cloud attempt until the call has really ended, and none for local ones', () => {
    const permits = new Permits(1);
    const router = routerWith([provider('a'), cloud('c')], { permits });
    const [, second] = dispatches(send(router, 0, item('r1'), item('r2'), item('r3')));
    expect(second?.provider.nodeName).toBe('c');
    expect(permits.out.size).toBe(1);
    if (second === undefined) throw new Error('two were to be sent');
    expect(router.cancel(second.request, 10)).toEqual([second.attempt]);
    expect(router.decide(10)).toEqual([]);
    expect(permits.out.size).toBe(1);
    router.attemptEnded(second.attempt, { kind: 'ignored' }, 260);
    expect(sent(router.decide(260))).toEqual(['r3@c']);
  });

  it('tells the budget who waits: best item of each project and role, and when nobody does', () => {
    const permits = new Permits(0);
    const router = routerWith([cloud('c')], { permits });
    send(router, 0, item('b1', { class: 'batch' }), item('n1'), item('q1', { project: 'q' }));
    expect(permits.demands.map(({ project, class: cls }) => [project, cls])).toEqual([
      ['p', 'normal'],
      ['q', 'normal'],
    ]);
    for (const id of ['b1', 'n1', 'q1']) router.cancel(id as ReturnType<typeof item>['context']['id'], 5);
    router.decide(5);
    expect(permits.demands).toEqual([]);
  });

  it('offers a refused claim again when the budget says so', () => {
    const permits = new Permits(0);
    permits.nextMs = 2000;
    const router = routerWith([cloud('c')], { permits });
    expect(send(router, 0, item('r'))).toEqual([]);
    expect(router.nextWakeMs(0)).toBe(2000);
    permits.limit = 1;
    expect(sent(router.decide(2000))).toEqual(['r@c']);
  });

  it('closes the cloud to an item over its spend cap: it goes on locally, or fails with that reason', () => {
    const permits = new Permits(0);
    permits.refusal = 'spend_cap';
    const router = routerWith([provider('a'), cloud('c')], { permits });
    const first = only(dispatches(send(router, 0, item('r1'), item('r2'))));
    router.attemptEnded(first.attempt, ok, 100);
    expect(sent(router.decide(100))).toEqual(['r2@a']);
    const cloudOnly = routerWith([cloud('c')], { permits });
    expect(only(failures(send(cloudOnly, 0, item('r'))))).toMatchObject({
      code: 'no_provider',
      reasons: [{ reason: 'spend_cap' }],
    });
  });
});

describe('order in the queue', () => {
  function served(router: ReturnType<typeof routerWith>, start: readonly string[], count: number): readonly string[] {
    const order = [...start];
    let running = dispatches(router.decide(0));
    for (let now = 100; order.length < count; now += 100) {
      const one = only(running);
      order.push(one.request);
      router.attemptEnded(one.attempt, ok, now);
      running = dispatches(router.decide(now));
    }
    return order;
  }

  it('serves higher classes first, but batch and normal keep a tenth of the running time', () => {
    const router = routerWith([provider('a')], { settings: { queueBound: 4000 } });
    for (let n = 0; n < 60; n += 1) {
      accept(router, item(`i${n}`, { class: 'interactive' }), 0);
      accept(router, item(`b${n}`, { class: 'batch' }), 0);
    }
    const order = served(router, [], 40);
    const batch = order.filter((id) => id.startsWith('b')).length;
    // 40 calls of 100 ms: each time its part has fallen under a tenth, batch gets the next one.
    expect(order[0]).toBe('i0');
    expect(batch).toBe(4);
  });

  it('gives equal tokens to projects, not equal requests', () => {
    const router = routerWith([provider('a')]);
    for (let n = 0; n < 12; n += 1) accept(router, item(`a${n}`, { project: 'A', costTokens: 1000 }), 0);
    for (let n = 0; n < 3; n += 1) accept(router, item(`b${n}`, { project: 'B', costTokens: 4000 }), 0);
    const order = served(router, [], 15).map((id) => id.charAt(0));
    expect(order.join('')).toBe('aaaabaaaabaaaab');
  });
});

describe('bounds and deadlines', () => {
  it('refuses the item over a quarter of the bound for one project, and over the bound for all', () => {
    const router = routerWith([provider('a')], { settings: { queueBound: 8 } });
    for (const project of ['A', 'B', 'C', 'D']) {
      for (let n = 0; n < 2; n += 1) accept(router, item(`${project}${n}`, { project }), 0);
      if (project === 'A') {
        const third = router.submit(item('A2', { project }), 0);
        expect(third).toMatchObject({ accepted: false, code: 'queue_full' });
        if (!third.accepted) expect(third.retryAfterMs).toBeGreaterThanOrEqual(1000);
      }
    }
    expect(router.submit(item('E0', { project: 'E' }), 0)).toMatchObject({ accepted: false, code: 'queue_full' });
  });

  it.each([
    ['interactive', 30_000],
    ['normal', 120_000],
    ['batch', 600_000],
  ] as const)('fails %s work that was not dispatched within %d ms', (cls, deadlineMs) => {
    const router = routerWith([provider('a')]);
    send(router, 0, item('runs', { class: 'interactive' }));
    send(router, 0, item('waits', { class: cls }));
    expect(router.decide(deadlineMs - 1)).toEqual([]);
    expect(only(failures(router.decide(deadlineMs)))).toMatchObject({ request: 'waits', code: 'queue_timeout' });
  });

  it('fails a batch that was begun and that nobody takes further, one deadline after it last moved', () => {
    const encoder = { role: 'embedding', maxBatch: 2 } as const;
    const router = routerWith([provider('a', encoder)]);
    const one = only(dispatches(send(router, 0, item('r', { role: 'embedding', units: 9 }))));
    router.setProviders([provider('a', { ...encoder, spaces: new Map() })], 500);
    router.attemptEnded(one.attempt, ok, 1000);
    expect(router.decide(1000)).toEqual([]);
    // Dispatched at 0; while a chunk was running at 120 s the deadline would move on, but nothing runs.
    expect(router.decide(119_999)).toEqual([]);
    expect(only(failures(router.decide(120_000)))).toMatchObject({ request: 'r', code: 'queue_timeout' });
  });

  it('says when it wants to be called next', () => {
    const router = routerWith([provider('a')]);
    expect(router.nextWakeMs(0)).toBeNull();
    send(router, 0, item('runs'));
    send(router, 0, item('waits', { class: 'interactive' }));
    expect(router.nextWakeMs(10)).toBe(30_000);
  });
});

describe('backup', () => {
  const backup = (id: string, more: Parameters<typeof item>[1] = {}) => {
    const { context, ...rest } = more;
    return item(id, { ...rest, context: { policy: 'backup', ...context } });
  };

  /** One machine of one slot whose calls are known to take 2 s. */
  function measured(permits = new Permits()) {
    const router = routerWith([provider('a'), cloud('c')], { permits });
    const first = only(dispatches(send(router, 0, backup('warm'))));
    router.attemptEnded(first.attempt, ok, 2000);
    return router;
  }

  it('decides before waiting: the one that would wait longer than 3 s goes to the cloud, the other stays', () => {
    const router = measured();
    // r1 runs. r2: nobody ahead, W = 2 s. r3: one ahead, W = 4 s.
    const decisions = dispatches(send(router, 2000, backup('r1'), backup('r2'), backup('r3')));
    // The slot is taken only by deciding, so all three are estimated against a free slot at arrival and looked at again.
    expect(sent(decisions)).toEqual(['r1@a']);
    expect(sent(router.decide(2250))).toEqual(['r3@c']);
    const later = dispatches(send(router, 2300, backup('r4')));
    expect(later.map(({ request, explanation }) => [request, explanation.spill, explanation.wait?.waitMs])).toEqual([
      ['r4', 'wait_over_threshold', 4000],
    ]);
    expect(only(later).explanation.wait).toMatchObject({ ahead: 1, busy: 1, slots: 1, serviceMs: [{ ms: 2000 }] });
  });

  it('uses the same estimate after an idle minute', () => {
    const router = measured();
    expect(sent(send(router, 62_000, backup('r1')))).toEqual(['r1@a']);
    expect(sent(send(router, 62_001, backup('r2')))).toEqual([]);
    expect(sent(send(router, 62_002, backup('r3')))).toEqual(['r3@c']);
  });

  it('spills what has really waited the threshold when nothing is known', () => {
    const router = routerWith([provider('a'), cloud('c')]);
    send(router, 0, backup('r1'));
    expect(send(router, 0, backup('r2'))).toEqual([]);
    for (let now = 250; now < 3000; now += 250) expect(router.decide(now)).toEqual([]);
    const spilled = only(dispatches(router.decide(3000)));
    expect([spilled.request, spilled.provider.nodeName, spilled.explanation.spill]).toEqual(['r2', 'c', 'waited']);
  });

  it('goes to the cloud when no local provider is ready, and when a local attempt has failed', () => {
    const router = routerWith([provider('a', { nodeState: 'draining' }), cloud('c')]);
    expect(only(dispatches(send(router, 0, backup('r1')))).explanation.spill).toBe('no_local');
    const two = routerWith([provider('a'), cloud('c')]);
    const first = only(dispatches(send(two, 0, backup('r1'))));
    two.attemptEnded(first.attempt, { kind: 'failed', code: 'engine_error', silent: 'no' }, 10);
    const second = only(dispatches(two.decide(10)));
    expect(second.provider.nodeName).toBe('c');
    expect(second.explanation.before).toEqual([
      { provider: first.provider.id, outcome: 'failed', code: 'engine_error' },
    ]);
  });

  it('comes back to a local slot that frees first', () => {
    const permits = new Permits(0);
    const router = measured(permits);
    const first = only(dispatches(send(router, 2000, backup('r1', { context: { policy: 'backup' } }))));
    send(router, 2001, backup('r2', { context: { maxWaitMs: 0, policy: 'backup' } }));
    router.attemptEnded(first.attempt, ok, 2500);
    expect(sent(router.decide(2500))).toEqual(['r2@a']);
  });

  it('looks at waiting items at least every 250 ms', () => {
    const router = routerWith([provider('a'), cloud('c')]);
    send(router, 0, backup('r1'), backup('r2'));
    expect(router.nextWakeMs(0)).toBeLessThanOrEqual(250);
  });
});

it('names providers in the snapshot with their weight and its factors', () => {
  const router = routerWith([provider('a', { slots: 4, baseWeight: 2 })]);
  send(router, 0, item('r1'), item('r2'));
  const [seen] = router.snapshot(500).providers;
  // load = 1 / (1 + 2 x 2 / 4) = 0.5; weight = 100 x 2 x 0.5 x 1.
  expect(seen).toMatchObject({ running: 2, queued: 0, base: 2, load: 0.5, speed: 1, weight: 100, parkedUntilMs: null });
  expect(seen?.provider).toBe('code-assistant~a~e~m' as ProviderId);
});
