import { describe, expect, it } from 'vitest';
import { ERRORS } from '../../main/domain/errors.ts';
import type { RequestId } from '../../main/domain/ids.ts';
import { INELIGIBLE } from '../../main/domain/sentences/routing.ts';
import { Parking } from '../../main/router/parking.ts';
import { replay } from '../../main/router/replay.ts';
import type { AttemptOutcome } from '../../main/router/types.ts';
import {
  broken,
  busy,
  cloud,
  type Dispatch,
  dispatches,
  type Failure,
  failures,
  item,
  ok,
  only,
  provider,
  routerWith,
  send,
  sent,
  silentEngine,
  silentNode,
} from './support.ts';

type Router = ReturnType<typeof routerWith>;

function end(router: Router, one: Dispatch, outcome: AttemptOutcome, nowMs: number) {
  const ended = router.attemptEnded(one.attempt, outcome, nowMs);
  return { ended, decisions: router.decide(nowMs) };
}

describe('attempts of one request', () => {
  it('are on at most three providers, each once, then the last failure is passed on', () => {
    const router = routerWith(['a', 'b', 'c', 'd'].map((name) => provider(name)));
    let decisions = send(router, 0, item('r'));
    const tried: string[] = [];
    for (let now = 10; failures(decisions).length === 0; now += 10) {
      const one = only(dispatches(decisions));
      tried.push(one.provider.nodeName);
      decisions = end(router, one, broken, now).decisions;
    }
    expect(new Set(tried).size).toBe(3);
    expect(tried).toHaveLength(3);
    const failed = only(failures(decisions));
    expect(failed.code).toBe('engine_error');
    expect(failed.trace.attempts.map(({ outcome }) => outcome)).toEqual(['failed', 'failed', 'failed']);
  });

  it('end when nobody is left to try', () => {
    const router = routerWith([provider('a')]);
    const { decisions } = end(router, only(dispatches(send(router, 0, item('r')))), broken, 10);
    expect(only(failures(decisions))).toMatchObject({ code: 'engine_error', reasons: [{ reason: 'already_tried' }] });
  });

  it('are never repeated after the first byte', () => {
    const router = routerWith([provider('a'), provider('b')]);
    const one = only(dispatches(send(router, 0, item('r'))));
    router.firstByte(one.attempt, 5);
    const { decisions } = end(router, one, { ...broken, code: 'stream_interrupted' }, 10);
    expect(only(failures(decisions)).code).toBe('stream_interrupted');
    expect(dispatches(decisions)).toEqual([]);
  });

  it('are repeated after a connection that broke before any byte, on another provider', () => {
    const router = routerWith([provider('a'), provider('b')]);
    const one = only(dispatches(send(router, 0, item('r'))));
    const { decisions } = end(router, one, silentEngine, 10);
    expect(only(dispatches(decisions)).provider.id).not.toBe(one.provider.id);
  });

  it('stop at a fault of the caller, an engine 500 for an over-long input too: no failover, no breaker', () => {
    const router = routerWith([provider('a'), provider('b')]);
    for (let n = 0; n < 3; n += 1) {
      const one = only(dispatches(send(router, n * 100, item(`r${n}`))));
      const { decisions } = end(router, one, { kind: 'callerFault', code: 'context_too_long' }, n * 100 + 10);
      expect(decisions).toMatchObject([{ kind: 'fail', code: 'context_too_long' }]);
    }
    expect(router.snapshot(400).providers.map(({ failuresInRow }) => failuresInRow)).toEqual([0, 0]);
  });

  it('keep the place in the queue: what comes back goes before what came later', () => {
    const router = routerWith([provider('a'), provider('b')]);
    const [one, two] = dispatches(send(router, 0, item('r1'), item('r2'), item('r3')));
    if (one === undefined || two === undefined) throw new Error('two were to be sent');
    expect(end(router, one, broken, 10).decisions.filter(({ kind }) => kind === 'fail')).toEqual([]);
    // b is free now: r1, not r3, although a has taken r3 meanwhile.
    expect(sent(end(router, two, ok, 20).decisions)).toEqual([`r1@${two.provider.nodeName}`]);
  });

  it('are counted once: a second report of the same end changes nothing', () => {
    const router = routerWith([provider('a')]);
    const one = only(dispatches(send(router, 0, item('r'))));
    expect(end(router, one, ok, 10).ended.keep).toBe(true);
    expect(end(router, one, ok, 11).ended.keep).toBe(false);
    expect(router.snapshot(11).providers[0]).toMatchObject({ running: 0 });
  });
});

describe('busy answers', () => {
  it('re-queue without counting against the provider, which is left alone for Retry-After', () => {
    const router = routerWith([provider('a'), provider('b')]);
    const one = only(dispatches(send(router, 0, item('r1'))));
    const { decisions } = end(router, one, busy(4000), 10);
    const second = only(dispatches(decisions));
    expect(second.provider.id).not.toBe(one.provider.id);
    end(router, second, ok, 500);
    expect(sent(send(router, 600, item('r2'), item('r3')))).toEqual([`r2@${second.provider.nodeName}`]);
    expect(router.snapshot(600).providers.map(({ failuresInRow }) => failuresInRow)).toEqual([0, 0]);
    expect(sent(router.decide(4010))).toEqual([`r3@${one.provider.nodeName}`]);
  });

  it('of a flooded engine reach it three times per request at most, never within a second, then Retry-After', () => {
    const router = routerWith([provider('a', { slots: 4 })]);
    let decisions = send(router, 0, item('r'));
    const times: number[] = [];
    let now = 0;
    while (failures(decisions).length === 0) {
      const one = only(dispatches(decisions));
      times.push(now);
      decisions = end(router, one, busy(), now + 5).decisions;
      if (failures(decisions).length > 0) break;
      now = router.nextWakeMs(now + 5) ?? Number.NaN;
      decisions = router.decide(now);
    }
    expect(times).toEqual([0, 1005, 2010]);
    const failed = only(failures(decisions));
    expect(failed.code).toBe('engine_busy');
    expect(failed.retryAfterMs).toBeGreaterThanOrEqual(1000);
    // A next request waits without touching it.
    expect(send(router, 2100, item('later'))).toEqual([]);
  });

  it.each([
    ['a chat in the cloud', 'code-assistant', 'cloud'],
    ['a batch of vectors in the cloud', 'embedding', 'cloud'],
    ['a batch of vectors at an engine that is always full', 'embedding', 'local'],
  ] as const)('do not put off the deadline of %s: it is not sent for ever', (_, role, kind) => {
    const router = routerWith([kind === 'cloud' ? cloud('c', { role }) : provider('c', { role })]);
    let decisions = send(router, 0, item('r', { role, class: 'interactive', context: { policy: 'aggregate' } }));
    let now = 0;
    while (failures(decisions).length === 0 && now < 120_000) {
      const [one] = dispatches(decisions);
      if (one !== undefined) decisions = end(router, one, busy(5000), now + 1).decisions;
      else {
        now = router.nextWakeMs(now + 1) ?? Number.NaN;
        decisions = router.decide(now);
      }
    }
    expect(only(failures(decisions)).code).toBe('queue_timeout');
    expect(now).toBeLessThanOrEqual(30_005);
  });

  it('nor do processes that change under every chunk, however often each passes: the batch ends', () => {
    const behindBalancer = (verifiedAtMs: number) => [provider('c', { role: 'embedding', verifiedAtMs })];
    const router = routerWith(behindBalancer(0));
    let decisions = send(router, 0, item('r', { role: 'embedding', class: 'interactive' }));
    const failed: Failure[] = [];
    let now = 0;
    for (; failed.length === 0 && now < 120_000; now += 1000) {
      const [one] = dispatches(decisions);
      if (one !== undefined) failed.push(...failures(end(router, one, { kind: 'fingerprint' }, now + 1).decisions));
      // Another process has passed.
      router.setProviders(behindBalancer(now + 500), now + 500);
      decisions = router.decide(now + 500);
      failed.push(...failures(decisions));
    }
    expect(only(failed).code).toBe('queue_timeout');
    expect(now).toBeLessThanOrEqual(32_000);
  });

  it('of a local engine speak for all its models; of a cloud upstream for itself only', () => {
    const engine = { node: 'n' as Dispatch['provider']['node'], slotPool: 'n/e', slots: 4 };
    const router = routerWith([provider('n', engine), provider('n', { ...engine, role: 'reranker', model: 'k' })]);
    end(router, only(dispatches(send(router, 0, item('r')))), busy(), 10);
    expect(send(router, 20, item('k', { role: 'reranker' }))).toEqual([]);
    const upstreams = [cloud('c1', { slotPool: 'n/or' }), cloud('c2', { slotPool: 'n/or' })];
    const cloudy = routerWith(upstreams);
    const one = only(dispatches(send(cloudy, 0, item('r'))));
    const { decisions } = end(cloudy, one, busy(), 10);
    expect(only(dispatches(decisions)).provider.id).not.toBe(one.provider.id);
  });
});

describe('silence and parking', () => {
  it('leaves a provider alone after its first silent failure until it has been probed', () => {
    const router = routerWith([provider('dead', { slots: 4, baseWeight: 10 }), provider('b', { slots: 4 })]);
    const one = only(dispatches(send(router, 0, item('r0'))));
    expect(one.provider.nodeName).toBe('dead');
    expect(sent(end(router, one, silentEngine, 3000).decisions)).toEqual(['r0@b']);
    for (let n = 1; n < 4; n += 1) expect(sent(send(router, 3000 + n, item(`r${n}`)))).toEqual([`r${n}@b`]);
    router.probed(one.provider.id, false, 5000);
    expect(sent(send(router, 5000, item('r4')))).toEqual([]);
    router.probed(one.provider.id, true, 6000);
    // A trial of one first, though it has four slots.
    expect(sent(router.decide(6000))).toEqual(['r4@dead']);
    expect(sent(send(router, 6001, item('r5')))).toEqual([]);
  });

  it('silences every engine of a machine that was lost', () => {
    const node = 'n' as Dispatch['provider']['node'];
    const router = routerWith([
      provider('n', { node, slotPool: 'n/1', engine: '1' as Dispatch['provider']['engine'] }),
      provider('n', { node, slotPool: 'n/2', engine: '2' as Dispatch['provider']['engine'], role: 'reranker' }),
      provider('other', { role: 'reranker' }),
    ]);
    end(router, only(dispatches(send(router, 0, item('r')))), silentNode, 10);
    expect(sent(send(router, 20, item('k', { role: 'reranker' })))).toEqual(['k@other']);
  });

  it('parks after two failures in a row, not after two with a success between', () => {
    const router = routerWith([provider('a', { slots: 8 })]);
    const outcomes: readonly AttemptOutcome[] = [broken, ok, broken, broken];
    outcomes.forEach((outcome, n) => {
      end(router, only(dispatches(send(router, n, item(`r${n}`)))), outcome, n);
    });
    expect(router.snapshot(4).providers[0]).toMatchObject({ failuresInRow: 2, parkedUntilMs: 20_003 });
    // Due for a trial within the deadline: waits.
    expect(send(router, 10, item('waits'))).toEqual([]);
    expect(router.nextWakeMs(10)).toBe(20_003);
    expect(sent(router.decide(20_003))).toEqual(['waits@a']);
  });

  it('fails at once when the trial comes after the deadline, with Retry-After', () => {
    const router = routerWith([provider('a')]);
    end(router, only(dispatches(send(router, 0, item('r')))), silentEngine, 0);
    let now = 20_000;
    // Trials at 20 s, 60 s, 140 s: 20 s doubling.
    for (const next of [60_000, 140_000]) {
      end(router, only(dispatches(send(router, now, item(`t${now}`)))), silentEngine, now);
      expect(router.snapshot(now).providers[0]?.parkedUntilMs).toBe(next);
      now = next;
    }
    end(router, only(dispatches(send(router, now, item('t')))), silentEngine, now);
    const late = router.submit(item('late', { class: 'interactive' }), now);
    expect(late).toMatchObject({ accepted: false, code: 'no_provider', reasons: [{ reason: 'parked' }] });
    if (!late.accepted) expect(late.retryAfterMs).toBe(160_000);
  });

  it('doubles the interval of failed trials to five minutes', () => {
    const parking = new Parking();
    let now = 0;
    const intervals: number[] = [];
    parking.failed(true, now);
    for (let n = 0; n < 7; n += 1) {
      intervals.push((parking.untilMs ?? 0) - now);
      now = parking.untilMs ?? 0;
      parking.tick(now);
      parking.failed(false, now);
    }
    expect(intervals).toEqual([20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000]);
  });

  it('lets several attempts that fail together park a provider once', () => {
    const router = routerWith([provider('a', { slots: 4 }), provider('b', { slots: 0 + 1, nodeState: 'draining' })]);
    const running = dispatches(send(router, 0, item('r1'), item('r2'), item('r3')));
    for (const one of running) router.attemptEnded(one.attempt, silentEngine, 100);
    expect(router.snapshot(100).providers[0]?.parkedUntilMs).toBe(20_100);
  });
});

describe('cancelling', () => {
  it('takes a waiting item out of the queue without a trace in it', () => {
    const router = routerWith([provider('a')]);
    const one = only(dispatches(send(router, 0, item('r1'), item('r2'), item('r3'))));
    expect(router.cancel('r2' as RequestId, 5)).toEqual([]);
    expect(sent(end(router, one, ok, 10).decisions)).toEqual(['r3@a']);
  });

  it('names the running attempt, whose slot stays taken until it has really ended; nobody learns from it', () => {
    const router = routerWith([provider('a')]);
    const one = only(dispatches(send(router, 0, item('r1'))));
    expect(send(router, 1, item('r2'))).toEqual([]);
    expect(router.traceOf('r1' as RequestId, 2)?.attempts).toHaveLength(1);
    expect(router.cancel('r1' as RequestId, 2)).toEqual([one.attempt]);
    expect(router.cancel('r1' as RequestId, 2)).toEqual([]);
    expect(router.decide(3)).toEqual([]);
    const { ended, decisions } = end(router, one, silentEngine, 100);
    expect(ended.keep).toBe(false);
    expect(sent(decisions)).toEqual(['r2@a']);
    expect(router.snapshot(100).providers[0]).toMatchObject({ failuresInRow: 0, parkedUntilMs: null });
  });
});

describe('providers that leave', () => {
  it('keep their running work and give back their slots later; rates and parking are remembered', () => {
    const router = routerWith([provider('a'), provider('b')]);
    const one = only(dispatches(send(router, 0, item('r1'))));
    router.setProviders([provider('b')], 10);
    expect(end(router, one, ok, 50).ended.keep).toBe(true);
    router.setProviders([provider('a'), provider('b')], 60);
    expect(router.snapshot(60).providers.find(({ provider: id }) => id === one.provider.id)).toMatchObject({
      running: 0,
      serviceMs: 50,
    });
  });

  it('leave waiting work to the others', () => {
    const router = routerWith([provider('a', { model: 'x' })]);
    send(router, 0, item('r1'), item('r2'));
    router.setProviders([provider('b')], 10);
    expect(sent(router.decide(10))).toEqual(['r2@b']);
  });

  it('take the waiting items that only they could serve with them', () => {
    const router = routerWith([provider('a', { model: 'x' }), provider('b')]);
    const x = (id: string) => item(id, { context: { model: 'x' } });
    send(router, 0, x('r1'), x('r2'));
    router.setProviders([provider('b')], 10);
    expect(only(failures(router.decide(10)))).toMatchObject({ request: 'r2', code: 'no_provider' });
  });

  it('may come with other context windows while items wait', () => {
    const router = routerWith([provider('a', { contextTokens: 8000 })]);
    send(router, 0, item('runs'), item('small', { neededTokens: 3000 }), item('large', { neededTokens: 7000 }));
    router.setProviders([provider('a', { contextTokens: 8000 }), provider('b', { contextTokens: 4000 })], 10);
    expect(sent(router.decide(10))).toEqual(['small@b']);
    router.setProviders([provider('b', { contextTokens: 4000 })], 20);
    expect(only(failures(router.decide(20)))).toMatchObject({ request: 'large', code: 'context_too_long' });
  });
});

it('replays every choice from its record, as plain JSON', () => {
  const fleet = [
    provider('a', { slots: 3, tokensPerSecond: 50, ttftMs: 200 }),
    provider('b', { slots: 2 }),
    cloud('c'),
  ];
  const router = routerWith(fleet);
  const pending = Array.from({ length: 12 }, (_, n) => item(`r${n}`, n % 3 === 0 ? { conversation: 'c1' } : {}));
  for (const { explanation, provider: picked } of dispatches(send(router, 0, ...pending))) {
    const stored = JSON.parse(JSON.stringify(explanation)) as typeof explanation;
    expect(stored).toEqual(explanation);
    const again = replay(stored);
    expect(again.provider).toBe(picked.id);
    expect(again.weights).toEqual(explanation.candidates.weight);
    expect(again.waitMs).toBe(explanation.wait?.waitMs ?? null);
    // Another recorded load would have been another choice or another weight.
    const busier = { ...stored, candidates: { ...stored.candidates, busy: stored.candidates.busy.map((n) => n + 9) } };
    expect(replay(busier).weights).not.toEqual(explanation.candidates.weight);
  }
});

it('has a sentence for every reason, ending like one', () => {
  for (const { en } of Object.values(INELIGIBLE)) expect(en).toMatch(/^[A-Z].*\.$/);
  expect(Object.keys(ERRORS)).toContain('no_provider');
});
