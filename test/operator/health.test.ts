import { describe, expect, it } from 'vitest';
import { defaultRoleSettings, ROLE_IDS, type RoleId } from '../../main/domain/roles.ts';
import { healthItems } from '../../main/operator/health.ts';
import type { House } from '../../main/operator/house.ts';
import { HEALTH_ACTIONS, TOPICS } from '../../preload/contract.ts';

interface Told {
  readonly nodes?: readonly object[];
  readonly verdicts?: readonly object[];
  readonly space?: object;
  readonly cloud?: object;
  readonly roles?: Partial<Record<RoleId, object>>;
  readonly store?: object;
}
const NOW_MS = 1_000_000;

/** Rooms that say what the test wants them to. */
const house = (told: Told): House =>
  ({
    clock: { wallMs: () => NOW_MS, nowMs: () => NOW_MS },
    store: { health: () => ({ state: 'ok', problems: [], reason: null, ...told.store }) },
    discovery: { problem: null },
    fleet: { nodes: () => told.nodes ?? [], embedded: 'own' },
    gate: { verdicts: () => told.verdicts ?? [], roleSpace: () => told.space ?? { state: 'founding' } },
    catalogue: () => ({
      byId: new Map([['p1', { provider: { model: 'bge-m3', nodeName: 'lab', role: 'embedding' } }]]),
    }),
    roles: () => Object.fromEntries(ROLE_IDS.map((id) => [id, { ...defaultRoleSettings(id), ...told.roles?.[id] }])),
    cloud: {
      status: () => ({
        state: 'key-missing',
        reason: { code: 'x', sentence: 'Why.' },
        holders: [],
        lastPush: null,
        ...told.cloud,
      }),
    },
    healthSince: () => 7,
  }) as unknown as House;
const brief = (told: Told) =>
  healthItems(house(told)).map(({ code, page, action, target, needsPerson }) => [
    code,
    page,
    action,
    target,
    needsPerson,
  ]);

describe('what needs a person', () => {
  it('is nothing in a house in order, also where nobody ever wanted the cloud', () => {
    expect(brief({})).toEqual([]);
  });

  it('names the one page and the one action for each thing', () => {
    expect(brief({ store: { state: 'degraded' } })).toEqual([['store_degraded', 'settings', 'look', null, true]]);
    const node = { id: 'n1', name: 'lab', problem: null, state: 'error', stateSinceMs: 3 };
    expect(brief({ nodes: [node] })).toEqual([['node_error', 'fleet', 'see-machine', 'n1', true]]);
    const verdict = { provider: 'p1', space: 's', kind: 'scale-mismatch', sentence: 'Longer.', checkedAtMs: 5 };
    expect(brief({ verdicts: [verdict] })).toEqual([['gate_scale-mismatch', 'gate', 'see-gate', 'p1', true]]);
    const space = {
      state: 'unfounded',
      candidates: [1, 2],
      reason: { code: 'x', sentence: 'Two encoders could found it.' },
    };
    expect(brief({ space })).toEqual([
      ['space_unfounded', 'roles', 'found-space', 'embedding', true],
      ['space_unfounded', 'roles', 'found-space', 'code-embedding', true],
    ]);
    expect(brief({ cloud: { state: 'off' } })).toEqual([['cloud_off', 'budget', 'see-budget', null, true]]);
  });

  it('an encoder is bad since it was found so, and not since it was looked at again', () => {
    const verdict = { provider: 'p1', space: 's', kind: 'scale-mismatch', sentence: 'Longer.', checkedAtMs: 50 };
    const since = (found?: object) => healthItems(house({ verdicts: [{ ...verdict, found }] }))[0]?.sinceMs;
    expect(since({ kind: 'scale-mismatch', sinceMs: 5 })).toBe(5);
    expect(since({ kind: 'pass', sinceMs: 5 })).toBe(50);
    expect(since()).toBe(50);
  });

  it('a machine that went is told of after 15 s', () => {
    const gone = (ageMs: number) => ({
      nodes: [{ id: 'n', name: 'lab', problem: null, state: 'unreachable', stateSinceMs: NOW_MS - ageMs }],
    });
    expect(brief(gone(14_999))).toEqual([]);
    expect(brief(gone(15_000))).toEqual([['node_unreachable', 'fleet', 'see-machine', 'n', false]]);
  });

  it('the own machine is started again by itself: when it stays away, a person has to look', () => {
    const nodes = ['n', 'own'].map((id) => ({ id, name: id, problem: null, state: 'unreachable', stateSinceMs: 0 }));
    expect(brief({ nodes })).toEqual([
      ['node_unreachable', 'fleet', 'see-machine', 'n', false],
      ['node_unreachable', 'fleet', 'see-machine', 'own', true],
    ]);
  });

  it('a key is missed where one was held, or where a role has nothing but the cloud', () => {
    const holders = [
      { nodeId: 'a', nodeName: 'alpha', state: 'accepted', reason: null },
      { nodeId: 'b', nodeName: 'beta', state: 'key-missing', reason: null },
      { nodeId: 'c', nodeName: 'gamma', state: 'refused', reason: { code: 'key_refused', sentence: 'Refused.' } },
    ];
    expect(brief({ cloud: { holders } })).toEqual([]);
    const lastPush = { number: 1, atMs: 1 };
    const items = healthItems(house({ cloud: { state: 'on', holders, lastPush } }));
    expect(items.map(({ title, action, page }) => [title, action, page])).toEqual([
      ['Key missing on beta', 'enter-key', 'keys'],
      ['Key refused for gamma', 'enter-key', 'keys'],
    ]);
    expect(brief({ roles: { rlm: { policy: 'cloud' } } })).toEqual([['cloud_no_key', 'keys', 'enter-key', null, true]]);
    expect(brief({ roles: { rlm: { policy: 'cloud', enabled: false } } })).toEqual([]);
  });

  it('fits the contract, and begins when its room says or when it was first seen', () => {
    const items = healthItems(
      house({
        nodes: [{ id: 'n1', name: 'lab', problem: null, state: 'error', stateSinceMs: 3.4 }],
        store: { state: 'degraded', problems: [{ code: 'x', sentence: 'The folder is open to others.' }] },
      }),
    );
    expect(items.map((item) => TOPICS.health.schema.parse(item).sinceMs)).toEqual([7, 7, 3]);
    expect(items.every(({ action }) => HEALTH_ACTIONS.includes(action))).toBe(true);
  });
});
