import { describe, expect, it } from 'vitest';
import { defaultRoleSettings, ROLE_IDS, type RoleId } from '../../main/domain/roles.ts';
import type { House } from '../../main/operator/house.ts';
import { roleViews } from '../../main/operator/role-views.ts';
import { TOPICS } from '../../preload/contract.ts';

const NOW_MS = 50_000;
const SPACE = { id: 's1', width: 64, trial: false };

const provider = (id: string, over: object = {}) => ({
  id,
  role: 'rlm',
  kind: 'local',
  model: 'qwen3:8b',
  nodeState: 'ready',
  nodePulls: true,
  reachable: true,
  present: true,
  pinned: true,
  closed: null,
  tokensPerSecond: null,
  ...over,
});
const cloud = (id: string, over: object = {}) => provider(id, { kind: 'cloud', model: 'org/cloud', ...over });

/** What of the house a role's view is made from. */
function viewOf(
  role: RoleId,
  settings: object,
  providers: readonly object[],
  parkedUntil: Readonly<Record<string, number>> = {},
  capped: readonly RoleId[] = [],
  waitMs: number | null = null,
) {
  const house = {
    clock: { nowMs: () => NOW_MS, wallMs: () => NOW_MS },
    roles: () =>
      Object.fromEntries(ROLE_IDS.map((id) => [id, { ...defaultRoleSettings(id), ...(id === role ? settings : {}) }])),
    routed: () => providers,
    router: () => ({
      roles: [{ role, waiting: {}, oldestMs: null, running: 0, waitMs }],
      providers: Object.entries(parkedUntil).map(([id, parkedUntilMs]) => ({ provider: id, parkedUntilMs })),
    }),
    gate: {
      roleSpace: () => ({ state: 'founded', space: SPACE }),
      admitted: (id: string) => !id.startsWith('refused'),
      verdictFor: () => 'vector-incompatible',
    },
    cloud: {
      offered: () => ({ offered: true, nearest: [] }),
      spentUsd: () => ({ dayUsd: 0, monthUsd: 0 }),
      cappedOut: () => capped.map((id) => ({ scope: 'role', id })),
    },
  } as unknown as House;
  const view = roleViews(house).find(({ id }) => id === role);
  if (!view) throw new Error(role);
  return TOPICS.roles.schema.parse(view);
}

function ready(...told: Parameters<typeof viewOf>) {
  const { localReady, cloudReady, serving } = viewOf(...told);
  return [localReady, cloudReady, serving.map(({ model, providers: count }) => `${model} ${count}`)];
}

describe('what a role has ready and serves with', () => {
  const both = [provider('a'), provider('b'), cloud('c')];

  it('is what its policy lets work, and nothing else', () => {
    expect(ready('rlm', { policy: 'aggregate' }, both)).toEqual([2, 1, ['qwen3:8b 2', 'org/cloud 1']]);
    expect(ready('rlm', { policy: 'local' }, both)).toEqual([2, 0, ['qwen3:8b 2']]);
    expect(ready('rlm', { policy: 'cloud' }, both)).toEqual([0, 1, ['org/cloud 1']]);
    expect(ready('rlm', { policy: 'aggregate', enabled: false }, both)).toEqual([0, 0, []]);
  });

  it('leaves out who holds no key, who is away, drained, parked or too slow, and whose model is gone', () => {
    const none = (one: object, parked = {}) =>
      expect(ready('rlm', { policy: 'aggregate', minTokensPerSecond: 20 }, [one], parked)).toEqual([0, 0, []]);
    none(cloud('c', { closed: 'key_missing' }));
    none(provider('a', { reachable: false }));
    none(provider('a', { nodePulls: false }));
    none(provider('a', { nodeState: 'draining' }));
    none(provider('a', { present: false }));
    none(provider('a', { tokensPerSecond: 19.9 }));
    none(provider('a'), { a: NOW_MS + 1 });
    expect(ready('rlm', {}, [provider('a')], { a: NOW_MS })).toEqual([1, 0, ['qwen3:8b 1']]);
  });

  it('leaves out an encoder that the gate refuses, and one in the cloud without a pin', () => {
    const encoder = (id: string, over: object = {}) => provider(id, { role: 'embedding', model: 'bge-m3', ...over });
    const encoders = [encoder('a'), encoder('refused'), encoder('c', { kind: 'cloud', pinned: false })];
    expect(ready('embedding', { policy: 'aggregate' }, encoders)).toEqual([1, 0, ['bge-m3 1']]);
  });
});

describe('what cannot be had', () => {
  it('is no cloud that a spend cap keeps shut, but one that costs the account nothing', () => {
    const both = [cloud('c', { engine: 'openrouter' }), cloud('d', { engine: 'e7', model: 'remote' })];
    expect(ready('rlm', { policy: 'cloud' }, both)).toEqual([0, 2, ['org/cloud 1', 'remote 1']]);
    expect(ready('rlm', { policy: 'cloud' }, both, {}, ['rlm'])).toEqual([0, 1, ['remote 1']]);
    expect(ready('rlm', { policy: 'cloud' }, both, {}, ['reranker'])[1]).toBe(2);
  });

  it('is no local wait where nothing local is ready', () => {
    const wait = (providers: readonly object[]) => viewOf('rlm', {}, providers, {}, [], 0).waitEstimateMs;
    expect(wait([provider('a')])).toBe(0);
    expect(wait([provider('a', { reachable: false })])).toBeNull();
  });
});
