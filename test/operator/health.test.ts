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
  readonly routed?: readonly object[];
  readonly requests?: readonly object[];
  readonly capped?: readonly object[];
  readonly startedAtMs?: number;
  readonly entry?: object;
  /** Which encoders each space takes: `<provider>@<space>`. */
  readonly admitted?: readonly string[];
  readonly spaces?: Partial<Record<RoleId, object>>;
}
const NOW_MS = 1_000_000;
const ENCODER = {
  model: 'bge-m3',
  nodeName: 'lab',
  role: 'embedding',
  kind: 'local',
  node: 'n1',
  engine: 'ollama',
};
const founded = (id: string) => ({ state: 'founded', space: { id } });

/** Rooms that say what the test wants them to. */
const house = (told: Told): House =>
  ({
    clock: { wallMs: () => NOW_MS, nowMs: () => NOW_MS },
    store: { health: () => ({ state: 'ok', problems: [], reason: null, ...told.store }) },
    discovery: { problem: null },
    fleet: { nodes: () => told.nodes ?? [], embedded: 'own' },
    gate: {
      verdicts: () => told.verdicts ?? [],
      roleSpace: (role: RoleId) => told.spaces?.[role] ?? told.space ?? { state: 'founding' },
      admitted: (id: string, space: string) => told.admitted?.includes(`${id}@${space}`) ?? false,
      verdictFor: () => 'vector-incompatible',
    },
    app: { startedAtMs: told.startedAtMs ?? 0, listening: () => null },
    requests: { list: () => told.requests ?? [] },
    routed: () => told.routed ?? [],
    catalogue: () => ({ byId: new Map([['p1', { provider: { ...ENCODER, ...told.entry } }]]) }),
    roles: () => Object.fromEntries(ROLE_IDS.map((id) => [id, { ...defaultRoleSettings(id), ...told.roles?.[id] }])),
    cloud: {
      status: () => ({
        state: 'key-missing',
        reason: { code: 'x', sentence: 'Why.' },
        holders: [],
        lastPush: null,
        ...told.cloud,
      }),
      cappedOut: () => told.capped ?? [],
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
    const bad = { verdicts: [verdict], spaces: { embedding: founded('s') } };
    expect(brief(bad)[0]).toEqual(['gate_scale-mismatch', 'gate', 'see-gate', 'p1', true]);
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
    const since = (found?: object) =>
      healthItems(house({ verdicts: [{ ...verdict, found }], space: founded('s') }))[0]?.sinceMs;
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
    const dropped = holders.map((holder) => ({ ...holder, reason: { code: 'key_forgotten', sentence: 'Forgotten.' } }));
    expect(brief({ cloud: { state: 'on', holders: dropped, lastPush } })).toEqual([]);
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

describe('an encoder that gets no texts', () => {
  const failed = (over: object = {}) => ({
    provider: 'p1',
    space: 's2',
    kind: 'vector-incompatible',
    sentence: 'Not the same.',
    checkedAtMs: 5,
    lastGoodAtMs: null,
    ...over,
  });
  const titles = (told: Told) =>
    healthItems(house(told)).flatMap(({ code, title }) => (code.startsWith('gate_') ? [title] : []));
  const spaces = { embedding: founded('s2') };
  const named = { roles: { embedding: { localModels: ['bge-m3'] } } };

  it('is told of once and by role: for the role’s current space, not for those that are retained', () => {
    const verdicts = ['s0', 's1', 's2'].map((space) => failed({ space }));
    expect(titles({ verdicts, spaces })).toEqual(['bge-m3 on lab gets no texts of embedding']);
    expect(titles({ verdicts: verdicts.slice(0, 2), spaces })).toEqual([]);
  });

  it('of another width is no fault under `auto`, unless it fitted once', () => {
    const wide = (lastGoodAtMs: number | null) => ({
      verdicts: [failed({ kind: 'dimension-mismatch', lastGoodAtMs })],
      spaces,
    });
    expect(titles(wide(null))).toEqual([]);
    expect(titles(wide(4))).toEqual(['bge-m3 on lab gets no texts of embedding']);
    expect(titles({ ...wide(null), ...named })).toHaveLength(1);
    // A cloud model is one that somebody chose.
    expect(titles({ ...wide(null), entry: { kind: 'cloud' } })).toHaveLength(1);
  });

  it('is no fault under `auto` when it answers for another role, or could found its space', () => {
    const other = 'code-embedding~n1~ollama~bge-m3';
    const both = { ...spaces, 'code-embedding': founded('c1') };
    expect(titles({ verdicts: [failed()], spaces: both, admitted: [`${other}@c1`] })).toEqual([]);
    expect(titles({ verdicts: [failed()], spaces: both })).toHaveLength(1);
    const unfounded = {
      state: 'unfounded',
      candidates: [{ provider: other }],
      reason: { code: 'x', sentence: 'One.' },
    };
    expect(titles({ verdicts: [failed()], spaces: { ...spaces, 'code-embedding': unfounded } })).toEqual([]);
    // A person named it for this role, or it fitted before.
    expect(titles({ verdicts: [failed()], spaces: both, admitted: [`${other}@c1`], ...named })).toHaveLength(1);
    expect(titles({ verdicts: [failed({ lastGoodAtMs: 4 })], spaces: both, admitted: [`${other}@c1`] })).toHaveLength(
      1,
    );
  });
});

describe('a role that nobody serves', () => {
  const LATER = { nodes: [{ id: 'n1', name: 'lab', state: 'ready', stateSinceMs: 0 }] };
  const chat = (role: string, over: object = {}) => ({
    id: `${role}-1`,
    role,
    kind: 'local',
    node: 'n1',
    nodeState: 'ready',
    nodePulls: true,
    reachable: true,
    present: true,
    pinned: true,
    closed: null,
    tokensPerSecond: null,
    ...over,
  });
  const items = (told: Told) =>
    healthItems(house({ ...LATER, ...told }))
      .filter(({ code }) => code === 'role_unserved')
      .map(({ title, sentence, target, needsPerson }) => [title, sentence, target, needsPerson]);

  it('is named, several with one reason in one item, once its machine is away for 15 s', () => {
    const gone = (ageMs: number) => ({
      nodes: [{ id: 'n1', name: 'lab', problem: null, state: 'unreachable', stateSinceMs: NOW_MS - ageMs }],
    });
    const away = { nodeState: 'unreachable' };
    const routed = [chat('rlm', away), chat('code-assistant', away)];
    expect(items({ routed, ...gone(14_999) })).toEqual([]);
    const why = 'Requests for it are refused. Its machine cannot be reached.';
    expect(items({ routed, ...gone(15_000) })).toEqual([['Nothing serves code-assistant, rlm', why, null, true]]);
    expect(items({ routed: routed.slice(0, 1), ...gone(15_000) })).toEqual([['Nothing serves rlm', why, 'rlm', true]]);
    expect(items({ routed: [...routed, chat('rlm'), chat('code-assistant')], ...gone(15_000) })).toEqual([]);
    const ids = [routed, routed.slice(0, 1)].map(
      (some) => healthItems(house({ ...gone(15_000), routed: some }))[1]?.id,
    );
    expect(ids).toEqual(Array(2).fill('role_unserved-node_unreachable'));
    expect(items({ routed, ...gone(15_000), startedAtMs: NOW_MS - 14_999 })).toEqual([]);
  });

  it('is told of where it was asked for, named a model or has a space, and not in a house that never used it', () => {
    expect(items({})).toEqual([]);
    const asked = (arrivedAtMs: number) => [{ summary: { role: 'reranker', arrivedAtMs } }];
    expect(items({ requests: asked(NOW_MS - 600_000) }).map(([title]) => title)).toEqual(['Nothing serves reranker']);
    expect(items({ requests: asked(NOW_MS - 600_001) })).toEqual([]);
    expect(items({ roles: { rlm: { localModels: ['qwen3'] } } })).toHaveLength(1);
    expect(items({ spaces: { embedding: founded('s') } }).map(([title]) => title)).toEqual([
      'Nothing serves embedding',
    ]);
    expect(items({ roles: { rlm: { localModels: ['qwen3'], enabled: false } } })).toEqual([]);
  });

  it('in the cloud alone: no agent, no model; the key, a pause and a cap have items of their own', () => {
    const alone = { roles: { rlm: { policy: 'cloud' } } };
    const model = (cloud: string | null) => ({
      roles: { rlm: { policy: 'cloud', cloud: { model: cloud, upstreams: [], quantizations: [] } } },
    });
    expect(items({ ...alone, ...model('a/b'), cloud: { state: 'no-agent' } })).toEqual([
      ['Nothing serves rlm', 'No agent is there that could use the cloud.', 'rlm', true],
    ]);
    expect(items({ ...model(null), cloud: { state: 'on' } })).toEqual([
      ['Nothing serves rlm', 'It works in the cloud alone and no cloud model is chosen for it.', 'rlm', true],
    ]);
    expect(items({ ...model('a/b') })).toEqual([]);
    for (const closed of ['key_missing', 'cloud_paused', 'cloud_off'])
      expect(items({ ...alone, routed: [chat('rlm', { kind: 'cloud', closed })] })).toEqual([]);
    expect(items({ ...alone, routed: [chat('rlm', { kind: 'cloud', closed: 'free_tier_spent' })] })).toHaveLength(1);
    expect(items({ ...alone, routed: [chat('rlm')], cloud: { state: 'no-agent' } })).toHaveLength(1);
  });

  it('because of a spend cap says which, until when and what to do; where a machine serves too it can wait', () => {
    const untilMs = Date.UTC(2026, 11, 1);
    const cap = { scope: 'role', id: 'rlm', name: 'rlm', reason: 'spend_cap', period: 'day', capUsd: 0.5, untilMs };
    const open = chat('rlm', { kind: 'cloud', engine: 'openrouter' });
    const told = (over: Told, ...capped: object[]) =>
      healthItems(house({ ...LATER, capped, ...over })).map(({ code, title, sentence, severity, needsPerson }) => [
        code,
        title,
        sentence,
        severity,
        needsPerson,
      ]);
    const roles = { rlm: { policy: 'aggregate' } };
    const title = 'rlm has reached its spend cap';
    const says =
      'Its cap of 0.50 USD a day has no room for another call: nothing paid starts until 2026-12-01T00:00:00.000Z. Raise the cap, or wait.';
    expect(told({ roles, routed: [open] }, cap)).toEqual([['spend_cap', title, says, 'error', true]]);
    expect(told({ roles, routed: [open, chat('rlm')] }, cap)).toEqual([['spend_cap', title, says, 'warn', false]]);
    expect(told({ routed: [open] }, cap)).toEqual([]); // `rlm` is local: nothing of it goes out
    expect(told({}, { ...cap, scope: 'project', id: 'p', name: 'web' })[0]?.slice(0, 2)).toEqual([
      'spend_cap',
      'The project web has reached its spend cap',
    ]);
  });
});
