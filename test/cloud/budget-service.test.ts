import { describe, expect, it } from 'vitest';
import { type Booked, BudgetService } from '../../main/cloud/budget-service.ts';
import { budgetPermits, closureOf, permitOf } from '../../main/cloud/permits.ts';
import type { NodeId, ProjectId } from '../../main/domain/ids.ts';
import type { Clock } from '../../main/domain/time.ts';
import type { RoutedProvider, RouterItem } from '../../main/router/types.ts';
import type { Json } from '../../main/store/ports.ts';
import { ask, refusal } from '../budget/driver.ts';

/** Of every permit that `ask` asks for. */
const AGENT = 'n1' as NodeId;

/** A clock that stands still until it is told to go on. */
class StillClock implements Clock {
  ms = 0;
  #timers: { readonly atMs: number; readonly run: () => void }[] = [];

  nowMs(): number {
    return this.ms;
  }

  wallMs(): number {
    return Date.UTC(2026, 10, 30, 12) + this.ms;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { atMs: this.ms + delayMs, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  goTo(ms: number): void {
    for (;;) {
      const next = this.#timers.toSorted((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined || next.atMs > ms) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.ms = next.atMs;
      next.run();
    }
    this.ms = ms;
  }
}

function make(stored: Json = null, atMs = 0) {
  const clock = new StillClock();
  clock.ms = atMs;
  const saved: Json[] = [];
  const spent: [string | null, number][] = [];
  const told: Booked[] = [];
  let changes = 0;
  const service = new BudgetService({
    clock,
    random: () => 0.5,
    store: { load: () => stored, save: (state) => saved.push(state) },
    onChange: () => {
      changes++;
    },
    onSpent: (booked) => {
      told.push(booked);
      spent.push([booked.keyId, booked.usd]);
    },
  });
  service.start();
  const start = (id: string, changed = {}) => {
    const decision = service.budget.acquire(ask(id, changed), clock.ms);
    if (!decision.granted) throw new Error(decision.reason);
    service.touched();
    return decision.permit;
  };
  return { clock, saved, spent, told, service, start, changes: () => changes };
}

describe('budget service', () => {
  it('a cancelled stream returns its permit 250 ms after the agent closed the connection', () => {
    const { clock, service, start } = make();
    const permit = start('a');
    let returned = false;
    service.cancelled(permit, () => {
      returned = true;
    });
    clock.goTo(400);
    expect(service.snapshot().inFlight).toBe(1);
    service.onEnded(AGENT, { t: 'cloud-ended', permit: permit.id, aborted: true, costUsd: 0.01 });
    clock.goTo(649);
    expect([returned, service.snapshot().inFlight]).toEqual([false, 1]);
    clock.goTo(650);
    expect([returned, service.snapshot().inFlight]).toEqual([true, 0]);
    expect(service.budget.spendState().spent).toMatchObject({ 'role|embedding|2026-11-30': 0.01 });
  });

  it('a cancelled call whose upstream went on returns it when that has ended', () => {
    const { clock, service, start } = make();
    const permit = start('a');
    let returned = false;
    service.cancelled(permit, () => {
      returned = true;
    });
    clock.goTo(30_000);
    expect(returned).toBe(false);
    service.onEnded(AGENT, { t: 'cloud-ended', permit: permit.id, aborted: false, costUsd: null });
    expect([returned, service.snapshot().inFlight]).toEqual([true, 0]);
  });

  it('the end of a call from before a restart gives back no permit of now, and books nothing for it', () => {
    const before = make();
    const old = before.start('a', { estimateUsd: 0.5 });
    before.service.cancelled(old);
    before.service.stop();
    const { service, start } = make(JSON.parse(JSON.stringify(before.saved.at(-1))), 1500);
    const permit = start('b', { estimateUsd: 0.2 });
    // Its agent has read the old call to its end, and tells the session of now.
    service.onEnded(AGENT, { t: 'cloud-ended', permit: old.id, aborted: false, costUsd: 0.01 });
    expect(service.snapshot().inFlight).toBe(1);
    service.ended(permit, { kind: 'success', latencyMs: 100, costUsd: 0.1 });
    // 0.5 of the call that ran when the process ended, and 0.1 of the one that has been told of.
    expect(service.budget.spendState().spent['role|embedding|2026-11']).toBeCloseTo(0.6, 9);
  });

  it('a call costs its key what it cost, once, also when the client has left or it broke off', () => {
    const { clock, service, spent, start } = make();
    const of = (keyId: string | null) => start(`work of ${keyId}`, { keyId, estimateUsd: 0.5 });
    const left = of('left');
    service.cancelled(left);
    service.onEnded(AGENT, { t: 'cloud-ended', permit: left.id, aborted: true, costUsd: 0.3 });
    service.onEnded(AGENT, { t: 'cloud-ended', permit: left.id, aborted: true, costUsd: 0.3 });
    service.ended(of('whole'), { kind: 'success', latencyMs: 100, costUsd: 0.2 });
    service.ended(of('broken'), { kind: 'ended', costUsd: null });
    service.ended(of('refused'), { kind: 'ended', costUsd: 0 });
    service.ended(of(null), { kind: 'success', latencyMs: 100, costUsd: 0.2 });
    expect(spent).toEqual([
      ['left', 0.3],
      ['whole', 0.2],
      ['broken', 0.5],
      [null, 0.2],
    ]);
    // Nobody says what this one has cost: as much as was estimated.
    service.cancelled(of('silent'));
    service.sessionLost(AGENT);
    clock.goTo(70_000);
    service.snapshot();
    expect(spent.at(-1)).toEqual(['silent', 0.5]);
  });

  it('tells what was booked with all that usage is summed by, on the day of its start', () => {
    const { clock, service, told, start } = make();
    const permit = start('a', { keyId: 'k1', model: 'x/y', upstream: 'z', estimateUsd: 0.5 });
    clock.goTo(13 * 3_600_000);
    service.ended(permit, { kind: 'success', latencyMs: 100, costUsd: 0.2 });
    expect(told).toEqual([
      {
        keyId: 'k1',
        project: permit.ask.project,
        role: 'embedding',
        model: 'x/y@z',
        startedWallMs: Date.UTC(2026, 10, 30, 12),
        usd: 0.2,
      },
    ]);
  });

  it('books what runs as estimated when it stops: its end will be told to nobody', () => {
    const { service, spent, saved, start } = make();
    const permit = start('a', { keyId: 'cut', estimateUsd: 0.5 });
    service.cancelled(permit);
    service.stop();
    expect(spent).toEqual([['cut', 0.5]]);
    expect(saved.at(-1)).toMatchObject({ spent: { 'role|embedding|2026-11-30': 0.5 } });
    service.onEnded(AGENT, { t: 'cloud-ended', permit: permit.id, aborted: true, costUsd: 0.3 });
    expect(spent).toHaveLength(1);
  });

  it('the end of a call is told by its own agent only', () => {
    const { service, start } = make();
    const permit = start('a', { estimateUsd: 0.5 });
    for (const aborted of [false, true]) {
      service.onEnded('n2' as NodeId, { t: 'cloud-ended', permit: permit.id, aborted, costUsd: 0 });
    }
    service.ended(permit, { kind: 'success', latencyMs: 100, costUsd: 0.4 });
    expect(service.budget.spendState().spent['role|embedding|2026-11']).toBeCloseTo(0.4, 9);
  });

  it('a lost session returns permits after 5 s, those of cancelled calls too, and wakes the router', () => {
    const { clock, service, start, changes } = make();
    const [first] = [start('a'), start('b')];
    let returned = false;
    service.cancelled(first, () => {
      returned = true;
    });
    service.sessionLost('n1' as NodeId);
    clock.goTo(4999);
    expect(service.snapshot().inFlight).toBe(2);
    const before = changes();
    clock.goTo(5000);
    expect([returned, service.snapshot().inFlight]).toEqual([true, 0]);
    expect(changes()).toBeGreaterThan(before);
  });

  it('wakes the router at the end of a cooldown', () => {
    const { clock, service, start, changes } = make();
    const permit = start('a');
    expect(service.ended(permit, { kind: 'refused', refusal: refusal(), costUsd: 0 }).cut).toBe(true);
    const before = changes();
    clock.goTo(1999);
    expect(changes()).toBe(before);
    clock.goTo(2000);
    expect(changes()).toBe(before + 1);
  });

  it('remembers override, pause and spending', () => {
    const { saved, service, start, clock } = make();
    service.setOverride(12);
    service.setPaused(true);
    service.setPaused(false);
    const permit = start('a', { estimateUsd: 0.5 });
    service.ended(permit, { kind: 'success', latencyMs: 100, costUsd: 0.2 });
    start('b', { estimateUsd: 0.3 });
    clock.goTo(1000);
    const again = make(JSON.parse(JSON.stringify(saved.at(-1))));
    expect(again.service.snapshot()).toMatchObject({ override: 12, effective: 12, paused: false });
    // 0.2 reported, and 0.3 of the call that ran when the process died.
    expect(again.service.budget.spendState().spent['role|embedding|2026-11']).toBeCloseTo(0.5, 9);
    const damaged = make({ version: 1, override: 9999, paused: true, spent: {} });
    expect(damaged.service.snapshot()).toMatchObject({ override: null, ceiling: 4 });
  });
});

it('one damaged figure of the spending loses neither a pause nor the rest', () => {
  const { service } = make({
    version: 1,
    override: 7,
    paused: true,
    spent: { 'role|rlm|2026-11': -1e-9, 'role|rlm|2026-11-30': 2 },
  });
  expect(service.snapshot()).toMatchObject({ override: 7, paused: true });
  expect(service.budget.spendState().spent).toEqual({ 'role|rlm|2026-11-30': 2 });
});

const facts = { creditUsd: 250, isFreeTier: false, rpm: null };

describe('what was learnt of the account, after a restart', () => {
  /** 64 from the credit, cut to 32 at 10 s with a Retry-After of 4 s, saved. */
  function cutOnce(retryAfterMs = 4000) {
    const first = make();
    first.service.discovered(facts);
    const permits = Array.from({ length: 8 }, (_, at) => first.start(`c${at}`));
    first.clock.goTo(10_000);
    const [refused] = permits;
    if (refused === undefined) throw new Error('nothing started');
    first.service.ended(refused, { kind: 'refused', refusal: refusal({ retryAfterMs }), costUsd: 0 });
    return JSON.parse(JSON.stringify(first.saved.at(-1))) as Json;
  }

  it('is taken up again: what it carries, the cooldown that runs, the next step', () => {
    // 4 s + 0.5 x min(1 s, 5 s): it cools until 14.5 s.
    const { service, clock } = make(cutOnce(), 12_000);
    expect(service.snapshot()).toMatchObject({ effective: 32, usable: 4, state: 'cooling' });
    service.discovered(facts);
    expect(service.snapshot()).toMatchObject({ ceiling: 64, effective: 32, usable: 32, state: 'cooling' });
    clock.goTo(14_499);
    expect(service.snapshot().state).toBe('cooling');
    clock.goTo(14_500);
    expect(service.snapshot().state).toBe('backing-off');
    clock.goTo(29_499);
    expect(service.snapshot().effective).toBe(32);
    clock.goTo(29_500);
    expect(service.snapshot().effective).toBe(33);
  });

  it('is steady after a restart where the 15 s were over before it, and where nothing was ever refused', () => {
    const again = (saved: Json, atMs: number) => make(JSON.parse(JSON.stringify(saved)) as Json, atMs).service;
    const cut = make(cutOnce(), 12_000);
    cut.service.discovered(facts);
    // Cools until 14.5 s; from 29.5 s a step every 15 s: 64 at 494.5 s.
    cut.clock.goTo(494_500);
    cut.service.stop();
    const afterwards = again(cut.saved.at(-1) ?? null, 500_000);
    expect(afterwards.snapshot()).toMatchObject({ state: 'steady', usable: 4 });
    expect(afterwards.snapshot().sentence).toBe('4 permits: nothing could be discovered about the account.');
    afterwards.discovered(facts);
    expect(afterwards.snapshot()).toMatchObject({ state: 'steady', effective: 64 });
    expect(afterwards.snapshot().sentence).toBe('64 permits: the key may still spend 250.00 USD.');
    const never = make();
    never.service.discovered(facts);
    never.service.stop();
    expect(again(never.saved.at(-1) ?? null, 2000).snapshot()).toMatchObject({ state: 'steady', usable: 4 });
  });

  it('backs off for what is left of the 15 s, and promises no step where all that is known is in use', () => {
    // Saved at 10 s while it cooled until 14.5 s.
    const { service, clock } = make(cutOnce(), 20_000);
    expect(service.snapshot()).toMatchObject({ state: 'backing-off', usable: 4, ceiling: 4 });
    expect(service.snapshot().sentence).toBe(
      '4 permits: nothing could be discovered about the account. OpenRouter limited the account.',
    );
    clock.goTo(29_499);
    expect(service.snapshot().state).toBe('backing-off');
    clock.goTo(29_500);
    expect(service.snapshot().state).toBe('steady');
    service.discovered(facts);
    expect(service.snapshot()).toMatchObject({ state: 'ramping', usable: 33, ceiling: 64 });
  });

  it('keeps its last records, also where what was learnt is too old, and tells none of them a second time', () => {
    const { service, saved } = make(cutOnce(), 700_000);
    const cut = { kind: 'cut', from: 64, to: 32, cause: 'account limit' };
    expect(service.snapshot().records[0]).toMatchObject({ kind: 'ceiling', from: 4, to: 64 });
    expect(service.snapshot().records[1]).toMatchObject({ ...cut, atWallMs: Date.UTC(2026, 10, 30, 12, 0, 10) });
    expect(service.diary().recorded).toBe(0);
    for (let at = 0; at < 200; at++) service.setPaused(at % 2 === 0);
    const { records } = saved.at(-1) as { records: { kind: string }[] };
    // The last 64, and the cut that they have pushed out.
    expect(records.map(({ kind }) => kind === 'cut')).toEqual([true, ...Array.from({ length: 64 }, () => false)]);
    const again = make(JSON.parse(JSON.stringify(saved.at(-1))) as Json, 800_000);
    expect(again.service.snapshot().records).toHaveLength(65);
  });

  it('is forgotten after 10 min, and when the clock was set back', () => {
    for (const atMs of [610_001, 9000]) {
      const { service } = make(cutOnce(), atMs);
      service.discovered(facts);
      expect(service.snapshot()).toMatchObject({ effective: 64, state: 'steady' });
    }
  });

  it('keeps a cooldown of any length until its end', () => {
    for (const [retryAfterMs, atMs] of [
      [3_600_000, 12_000],
      [3_600_000, 700_000],
      [86_400_000, 12_000],
      [86_400_000, 80_000_000],
    ] as const) {
      const { service } = make(cutOnce(retryAfterMs), atMs);
      service.discovered(facts);
      expect(service.snapshot()).toMatchObject({ effective: 32, state: 'cooling' });
    }
  });

  it('counts the starts of before in the window of a trusted rate', () => {
    const rate = { creditUsd: 40, isFreeTier: false, rpm: 60 };
    const first = make();
    first.service.discovered(rate);
    for (let second = 0; second < 30; second++) {
      first.clock.goTo(second * 1000 + 500);
      const permit = first.start(`s${second}`);
      first.service.ended(permit, { kind: 'success', latencyMs: 2000, costUsd: 0 });
    }
    const { service, clock } = make(JSON.parse(JSON.stringify(first.saved.at(-1))) as Json, 31_000);
    service.discovered(rate);
    expect(service.snapshot().window).toEqual({ limit: 60, starts: 30 });
    // The first was at 0.5 s, taken for up to a second younger.
    clock.goTo(61_400);
    expect(service.snapshot().window?.starts).toBe(30);
    clock.goTo(62_600);
    expect(service.snapshot().window?.starts).toBeLessThanOrEqual(29);
  });

  it('is nothing before anything was found out: the first reading still sets the number', () => {
    const first = make();
    first.start('a', { estimateUsd: 0.1 });
    const { service } = make(JSON.parse(JSON.stringify(first.saved.at(-1))) as Json, 1000);
    service.discovered(facts);
    expect(service.snapshot()).toMatchObject({ ceiling: 64, effective: 64 });
  });

  it('keeps a latency that was measured, and takes none that was only assumed for one', () => {
    const { service } = make(cutOnce(), 12_000);
    expect(service.snapshot()).toMatchObject({ latencyMs: 2000, latencyMeasured: false });
    const first = make();
    first.service.discovered(facts);
    first.service.ended(first.start('a'), { kind: 'success', latencyMs: 1000, costUsd: 0.2 });
    const again = make(JSON.parse(JSON.stringify(first.saved.at(-1))) as Json, 1000);
    expect(again.service.snapshot()).toMatchObject({ latencyMs: 1800, latencyMeasured: true });
  });

  it('that cannot be understood is learnt again, and the spending stays', () => {
    const stored = cutOnce() as Record<string, Json>;
    const { service } = make({ ...stored, spent: { 'role|rlm|2026-11-30': 2 }, learnt: { limit: 'none' } }, 12_000);
    service.discovered(facts);
    expect(service.snapshot()).toMatchObject({ effective: 64, cuts: 0 });
    expect(service.budget.spendState().spent).toEqual({ 'role|rlm|2026-11-30': 2 });
  });
});

describe('a record of the budget that is there and cannot be understood', () => {
  it.each([
    ['unreadable'],
    [{ version: 2, paused: false }],
    [{ version: 1, override: 9999, paused: false, spent: {} }],
  ])('keeps the cloud off until a person resumes it: %j', (stored) => {
    const { service } = make(stored as Json);
    service.discovered(facts);
    expect(service.snapshot()).toMatchObject({ state: 'off' });
    service.setPaused(false);
    expect(service.snapshot()).toMatchObject({ state: 'steady', effective: 64 });
  });

  it('is not what a first start finds', () => {
    const { service } = make(null);
    service.discovered(facts);
    expect(service.snapshot()).toMatchObject({ state: 'steady' });
  });
});

describe('the router’s port', () => {
  const item = (project: string): RouterItem =>
    ({
      context: {
        id: 'r',
        project: project as ProjectId,
        keyId: `key of ${project}`,
        role: 'embedding',
        class: 'normal',
        arrivedAtMs: 0,
      },
    }) as unknown as RouterItem;
  const provider = { node: 'n1', engine: 'openrouter', model: 'a/b' } as unknown as RoutedProvider;
  const call = { model: 'a/b', upstream: null, free: false, estimateUsd: 0 };

  it('grants by fairness, says why not, and takes permits back', () => {
    const { service } = make();
    const port = budgetPermits(service.budget, () => call);
    const waiting = ['A', 'B'].map((project) => ({
      project: project as ProjectId,
      role: 'embedding' as const,
      class: 'normal' as const,
      oldestAtMs: 0,
    }));
    const granted: string[] = [];
    const references: object[] = [];
    for (let round = 0; round < 3; round++) {
      port.demand(waiting, 0);
      for (const project of ['A', 'B']) {
        const answer = port.tryAcquire(item(project), provider, 0);
        if (typeof answer === 'string') expect(answer).toBe('no_permit');
        else {
          granted.push(project);
          references.push(answer);
        }
      }
    }
    expect(granted.join('')).toBe('ABAB');
    const [first] = references;
    expect(permitOf(first ?? null)?.ask.project).toBe('A');
    port.release(first ?? {}, 10);
    port.demand(waiting, 10);
    expect(typeof port.tryAcquire(item('A'), provider, 10)).toBe('object');
  });

  it('keeps a permit for work that waits but has not asked yet', () => {
    const { service } = make();
    const port = budgetPermits(service.budget, () => call);
    const waiting = (['A', 'B'] as const).map((project) => ({
      project: project as ProjectId,
      role: 'embedding' as const,
      class: 'normal' as const,
      oldestAtMs: 0,
    }));
    port.demand(waiting, 0);
    expect(typeof port.tryAcquire(item('A'), provider, 0)).toBe('object');
    // B was never served: the next is B's, however often A asks.
    expect(port.tryAcquire(item('A'), provider, 1)).toBe('no_permit');
    expect(typeof port.tryAcquire(item('B'), provider, 2)).toBe('object');
    expect(typeof port.tryAcquire(item('A'), provider, 3)).toBe('object');
  });

  it('leaves the end of a sent call to the call', () => {
    const { service } = make();
    const port = budgetPermits(
      service.budget,
      () => call,
      (permit) => service.isSent(permit),
    );
    const permit = permitOf(port.tryAcquire(item('A'), provider, 0) as object);
    if (permit === null) throw new Error('no permit');
    expect(permit.ask.keyId).toBe('key of A');
    service.sent(permit);
    port.release(permit, 0);
    expect(service.snapshot().inFlight).toBe(1);
    service.ended(permit, { kind: 'success', latencyMs: 5, costUsd: 0 });
    expect(service.snapshot().inFlight).toBe(0);
  });

  it('limits OpenRouter alone, but a pause stops every cloud provider', () => {
    const { service } = make();
    const port = budgetPermits(service.budget, () => call);
    const elsewhere = { node: 'n1', engine: '127.0.0.1:11434', model: 'big:cloud' } as unknown as RoutedProvider;
    expect(typeof port.tryAcquire(item('A'), elsewhere, 0)).toBe('object');
    expect(service.snapshot().inFlight).toBe(0);
    service.setPaused(true);
    expect(port.tryAcquire(item('A'), elsewhere, 0)).toBe('cloud_off');
  });

  it('tells a closed cloud from one that cools', () => {
    const { service, clock } = make();
    const port = budgetPermits(service.budget, () => call);
    service.setPaused(true);
    expect(port.tryAcquire(item('A'), provider, 0)).toBe('cloud_off');
    service.setPaused(false);
    service.setCaps('project', 'A', { dayUsd: 0, monthUsd: null });
    expect(
      budgetPermits(service.budget, () => ({ ...call, estimateUsd: 0.1 })).tryAcquire(item('A'), provider, 0),
    ).toBe('spend_cap');
    const permit = permitOf(port.tryAcquire(item('B'), provider, 0) as object);
    if (permit === null) throw new Error('no permit');
    service.ended(permit, { kind: 'refused', refusal: refusal(), costUsd: 0 });
    expect(port.tryAcquire(item('B'), provider, clock.ms)).toBe('cooling');
    expect(port.nextChangeMs(clock.ms)).toBe(2000);
  });

  it('says what closes one provider, and what closes none', () => {
    const { service } = make();
    const target = ask('x');
    const closed = (key: 'held' | 'missing' | 'stale', changed = {}) =>
      closureOf(service.budget, { ...target, ...changed }, key, 0);
    expect(closed('held')).toEqual({ closed: null, coolingUntilMs: null });
    expect(closed('missing').closed).toBe('key_missing');
    expect(closed('stale').closed).toBe('key_stale');
    const refuseWith = (changes: Parameters<typeof refusal>[0]) => {
      const decision = service.budget.acquire(ask('y'), 0);
      if (decision.granted) service.ended(decision.permit, { kind: 'refused', refusal: refusal(changes), costUsd: 0 });
    };
    refuseWith({ status: 503, retryAfterMs: 5000 });
    expect(closed('held')).toEqual({ closed: null, coolingUntilMs: 5000 });
    expect(closed('held', { upstream: 'elsewhere' })).toEqual({ closed: null, coolingUntilMs: null });
    service.discovered({ creditUsd: 0, isFreeTier: false, rpm: null });
    expect(closed('held', { upstream: 'elsewhere' }).closed).toBe('cloud_off');
    expect(closed('held', { free: true, model: 'a/b:free' })).toEqual({ closed: null, coolingUntilMs: null });
    service.setPaused(true);
    expect(closed('held').closed).toBe('cloud_paused');
  });
});
