import { describe, expect, it } from 'vitest';
import { defaultRoleSettings } from '../../main/domain/roles.ts';
import type { Shape } from '../../main/router/eligibility.ts';
import { ItemState } from '../../main/router/item.ts';
import { backupSpill } from '../../main/router/overflow.ts';
import { RoleState } from '../../main/router/role.ts';
import { nextClass } from '../../main/router/running-time.ts';
import { chunkSize, copyPays } from '../../main/router/striping.ts';
import { pickSmooth, settleSmooth } from '../../main/router/swrr.ts';
import { serviceRate, waitEstimate } from '../../main/router/wait.ts';
import { loadFactor, speedFactors, weightOf } from '../../main/router/weights.ts';
import chunks from '../cases/chunks.json' with { type: 'json' };
import fair from '../cases/fair.json' with { type: 'json' };
import swrr from '../cases/swrr.json' with { type: 'json' };
import wait from '../cases/wait.json' with { type: 'json' };
import weights from '../cases/weights.json' with { type: 'json' };
import { item } from './support.ts';

describe('smooth weighted round robin', () => {
  it.each(swrr.cases)('$name', ({ order, steps, picks }) => {
    const current = new Map(order.map((name) => [name, 0]));
    let weightByName: Record<string, number> = {};
    const picked: string[] = [];
    for (const step of steps) {
      if ('weights' in step) {
        weightByName = step.weights as Record<string, number>;
        continue;
      }
      const only = step.pick as readonly string[] | null;
      const names = order.filter((name) => only === null || only.includes(name));
      const w = names.map((name) => weightByName[name] ?? 0);
      const c = names.map((name) => current.get(name) ?? 0);
      const at = pickSmooth(w, c);
      settleSmooth(w, at, (i, change) => {
        const name = names[i] ?? '';
        current.set(name, (current.get(name) ?? 0) + change);
      });
      picked.push(names[at] ?? '');
    }
    expect(picked).toEqual(picks);
  });
});

describe('weights', () => {
  it.each(weights.cases)('$n', ({ providers, expect: expected }) => {
    const speeds = speedFactors(
      providers.map(([, , , , tps, ttft]) => ({ tokensPerSecond: tps ?? null, ttftMs: ttft ?? null })),
    );
    const found = providers.map(([base, running, queued, slots], at) => {
      const load = loadFactor((running ?? 0) + (queued ?? 0), slots ?? 1);
      const speed = speeds[at] ?? 0;
      const round = (value: number): number => Math.round(value * 1000) / 1000;
      return [round(load), round(speed), weightOf(base ?? 1, load, speed)];
    });
    expect(found).toEqual(expected);
  });

  it('gives the picks of the first case', () => {
    const current = [0, 0];
    const picks = weights.picks.sequence.map(() => {
      const at = pickSmooth(weights.picks.weights, current);
      settleSmooth(weights.picks.weights, at, (i, change) => {
        current[i] = (current[i] ?? 0) + change;
      });
      return at;
    });
    expect(picks).toEqual(weights.picks.sequence);
  });
});

describe('chunk size', () => {
  it.each(chunks.cases)('$n', ({ left, rates, me, max, inFlight, chunksInFlight, chunk }) => {
    const known = (rates as (number | null)[]).filter((rate): rate is number => rate !== null);
    const size = chunkSize({
      left,
      providers: rates.length,
      totalRate: known.reduce((sum, rate) => sum + rate, 0),
      fastestRate: Math.max(0, ...known),
      rate: rates[me] ?? null,
      maxBatch: max,
      inFlight,
      chunksInFlight,
      idleS: 0,
    });
    expect(size).toBe(chunk);
  });
});

describe('copies', () => {
  it.each(chunks.copies)('$n', ({ now, sent, expected, inputs, rate, copied, copy }) => {
    const pays = copyPays({ nowMs: now, sentAtMs: sent, expectedAtMs: expected, inputs, rate });
    expect(pays && !copied).toBe(copy);
  });
});

describe('wait estimate and spill', () => {
  it.each(wait.cases)('$n', ({ providers, L, waitedMs, thresholdMs, W, spill }) => {
    const serving = providers.map(([slots, busy, ms]) => ({
      slots: slots ?? 0,
      busy: busy ?? 0,
      serviceMs: ms ?? null,
    }));
    const busy = serving.reduce((sum, one) => sum + one.busy, 0);
    const slots = serving.reduce((sum, one) => sum + one.slots, 0);
    const waitMs = waitEstimate(busy, slots, L, serviceRate(serving));
    expect(waitMs === null ? null : Math.round(waitMs * 1000) / 1000).toBe(W);
    const view = { localEligible: providers.length, localFailed: false, waitMs, waitedMs, thresholdMs };
    expect(backupSpill(view) !== null).toBe(spill);
  });
});

describe('deficit round robin over projects', () => {
  const shape: Shape = {
    policy: 'local',
    model: null,
    space: null,
    neededTokens: 0,
    failedBy: [],
    cloudClosed: null,
  };
  it.each(fair.tokens)('$n', ({ steps }) => {
    const role = new RoleState('code-assistant', defaultRoleSettings('code-assistant'));
    const lane = role.lane(shape, false);
    const queue = role.queue.classes[1];
    let seq = 0;
    for (const step of steps) {
      if (step[0] === 'push') {
        const [, project, costTokens, count] = step as [string, string, number, number];
        for (let n = 0; n < count; n += 1) {
          seq += 1;
          const pushed = new ItemState(item(`r${seq}`, { project, costTokens }), role, seq, 1, null, 0, 1e9);
          role.queue.insert(pushed, lane);
        }
        continue;
      }
      const [, count, expected] = step as [string, number, string];
      const popped = Array.from({ length: count }, () => {
        const next = queue?.select({ laneOpen: () => true, shunned: () => false });
        if (next == null) return 'nothing';
        queue?.charge(next, next.item.costTokens);
        role.queue.remove(next);
        return `${next.item.context.project}${next.item.costTokens}`;
      });
      expect(popped.join(' ')).toBe(expected);
    }
  });
});

describe('class that goes next', () => {
  const cases = fair.classes as unknown as readonly [number[], boolean[], string | null][];
  it.each(cases)('%j %j: %s', (running, hasWork, expected) => {
    const rank = nextClass(running, hasWork);
    expect([null, 'interactive', 'normal', 'batch'][rank + 1]).toBe(expected);
  });
});
