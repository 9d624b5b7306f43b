import type { HealthView } from '../../preload/contract.ts';
import { providerId } from '../domain/ids.ts';
import type { Provider } from '../domain/provider.ts';
import { ROLE_IDS } from '../domain/roles.ts';
import { said, told } from '../domain/said.ts';
import { saidBy } from '../gate/verdict.ts';
import { endpointItems } from './health-endpoint.ts';
import { type Item, SHOWS_AFTER_MS, titled } from './health-item.ts';
import { capItems, unservedItems } from './health-roles.ts';
import type { House } from './house.ts';

const EMBED_ROLES = ['embedding', 'code-embedding'] as const;

/** What is wrong now and what needs a person; made from the rooms' states, so that an item goes when its cause does. */
export function healthItems(house: House): readonly HealthView[] {
  const rooms = [
    storeItems,
    endpointItems,
    discoveryItems,
    nodeItems,
    gateItems,
    spaceItems,
    unservedItems,
    cloudItems,
    capItems,
  ];
  return rooms
    .flatMap((room) => room(house))
    .map((item) => ({
      target: null,
      ...item,
      title: item.title.slice(0, 256),
      sinceMs: item.sinceMs ?? house.healthSince(item.id),
    }));
}

function storeItems({ store }: House): Item[] {
  const health = store.health();
  const items = health.problems.map(
    (problem, at): Item => ({
      id: `store-problem-${at}`,
      code: 'store_problem',
      severity: 'warn',
      ...titled(said('title_store_problem')),
      ...told(problem),
      needsPerson: false,
      page: 'settings',
      action: 'look',
    }),
  );
  if (health.state === 'ok') return items;
  return [
    {
      id: 'store',
      code: 'store_degraded',
      severity: 'error',
      ...titled(said('title_store_degraded')),
      ...told(health.reason ?? said('store_last_good')),
      needsPerson: true,
      page: 'settings',
      action: 'look',
    },
    ...items,
  ];
}

function discoveryItems({ discovery }: House): Item[] {
  if (!discovery.problem) return [];
  return [
    {
      id: 'discovery',
      code: discovery.problem.code,
      severity: 'info',
      ...titled(said('title_discovery')),
      ...told(discovery.problem),
      needsPerson: false,
      page: 'fleet',
      action: 'add-machine',
    },
  ];
}

function nodeItems(house: House): Item[] {
  const wallMs = house.clock.wallMs();
  return house.fleet.nodes().flatMap((node): Item[] => {
    const { state, problem, id, name, stateSinceMs } = node;
    if (state === 'ready' || state === 'draining' || state === 'maintenance') return [];
    const mayBeShort = state === 'unreachable' || state === 'unknown';
    if (mayBeShort && wallMs - stateSinceMs < SHOWS_AFTER_MS) return [];
    return [
      {
        id: `node-${id}`,
        code: `node_${state}`,
        severity: state === 'error' || state === 'unreachable' ? 'error' : 'warn',
        ...titled(said(`title_node_${state}`, { name })),
        ...told(problem ?? said('engine_silent_one')),
        // This app starts its own agent again by itself: one that is away for so long does not come up any more.
        needsPerson: state === 'error' || (state === 'unreachable' && id === house.fleet.embedded),
        page: 'fleet',
        target: id,
        action: 'see-machine',
        sinceMs: Math.round(stateSinceMs),
      },
    ];
  });
}

function gateItems(house: House): Item[] {
  const seen = new Set<string>();
  return house.gate.verdicts().flatMap((verdict): Item[] => {
    if (verdict.kind === 'pass' || verdict.kind === 'pass-reduced' || verdict.kind === 'unverified') return [];
    const entry = house.catalogue().byId.get(verdict.provider)?.provider;
    if (!entry) return [];
    const { role } = entry;
    // Of a space that is retained nobody misses anything: it is answered by those that passed it.
    const space = house.gate.roleSpace(role);
    if (space.state !== 'founded' || space.space.id !== verdict.space) return [];
    // With `auto` every encoder is looked at; that one of another width, or one at work in another role, does not belong here is no
    // fault. One that fitted and does not any more is.
    const looksOnly = entry.kind === 'local' && house.roles()[role].localModels === 'auto';
    const isOther = verdict.kind === 'dimension-mismatch' || servesElsewhere(entry, house);
    if (looksOnly && isOther && verdict.lastGoodAtMs === null) return [];
    // An upstream's vectors are the same whichever machine asks for them: one thing to do, told once.
    const [about, name] =
      entry.kind === 'cloud' ? [entry.model, 'OpenRouter'] : [verdict.provider as string, entry.nodeName];
    const id = `gate-${about}-${verdict.space}`;
    if (seen.has(id)) return [];
    seen.add(id);
    return [
      {
        id,
        code: `gate_${verdict.kind}`,
        severity: 'warn',
        ...titled(said('title_gate', { model: entry.model.slice(0, 128), name: name.slice(0, 64), role })),
        ...told(saidBy(verdict)),
        needsPerson: verdict.kind !== 'probe-failed',
        page: 'gate',
        target: verdict.provider,
        action: 'see-gate',
        // Checked again and found the same: it began then, not now.
        sinceMs: Math.round(verdict.found?.kind === verdict.kind ? verdict.found.sinceMs : verdict.checkedAtMs),
      },
    ];
  });
}

/** The same encoder answers for another role, or could found its space. */
function servesElsewhere({ role, node, engine, model }: Provider, house: House): boolean {
  return EMBED_ROLES.some((other) => {
    if (other === role || !house.roles()[other].enabled) return false;
    const id = providerId(other, node, engine, model);
    const space = house.gate.roleSpace(other);
    if (space.state === 'founded') return house.gate.admitted(id, space.space.id);
    return space.state === 'unfounded' && space.candidates.some(({ provider }) => provider === id);
  });
}

function spaceItems(house: House): Item[] {
  return EMBED_ROLES.flatMap((role): Item[] => {
    const space = house.gate.roleSpace(role);
    if (space.state === 'anchor-lost') {
      return [
        {
          id: `space-${role}`,
          code: 'space_anchor_lost',
          severity: 'error',
          ...titled(said('title_space_anchor_lost', { role })),
          ...told(said('anchor_lost')),
          needsPerson: true,
          page: 'gate',
          target: space.space.id,
          action: 'see-gate',
        },
      ];
    }
    if (space.state !== 'unfounded' || space.candidates.length < 2) return [];
    return [
      {
        id: `space-${role}`,
        code: 'space_unfounded',
        severity: 'warn',
        ...titled(said('title_space_unfounded', { role })),
        ...told(space.reason),
        needsPerson: true,
        page: 'roles',
        target: role,
        action: 'found-space',
      },
    ];
  });
}

/**
 * The key is missed only where it was held once, or where a role has nowhere else to go: who never wanted the cloud is left in
 * peace.
 */
function cloudItems(house: House): Item[] {
  const { state, reason, holders, lastPush } = house.cloud.status();
  const items: Item[] = [];
  const roles = house.roles();
  const onCloudAlone = ROLE_IDS.some((role) => roles[role].enabled && roles[role].policy === 'cloud');
  if (lastPush === null && onCloudAlone && state === 'key-missing') {
    items.push({
      id: 'cloud-key',
      code: 'cloud_no_key',
      severity: 'warn',
      ...titled(said('title_cloud_no_key')),
      ...told(said('cloud_no_key')),
      needsPerson: true,
      page: 'keys',
      action: 'enter-key',
    });
  }
  for (const holder of holders) {
    const title = MISSES_KEY[holder.state];
    if (lastPush === null || title === undefined || holder.reason?.code === 'key_forgotten') continue;
    items.push({
      id: `cloud-key-${holder.nodeId}`,
      code: `cloud_${holder.state.replace('-', '_')}`,
      severity: holder.state === 'refused' ? 'error' : 'warn',
      ...titled(said(title, { name: holder.nodeName })),
      ...told(holder.reason ?? said('enter_key_again')),
      needsPerson: true,
      page: 'keys',
      action: 'enter-key',
    });
  }
  if (state === 'off') {
    items.push({
      id: 'cloud-off',
      code: 'cloud_off',
      severity: 'error',
      ...titled(said('title_cloud_off')),
      ...told(reason),
      needsPerson: true,
      page: 'budget',
      action: 'see-budget',
    });
  }
  return items;
}

const MISSES_KEY: Readonly<
  Partial<Record<string, 'title_cloud_key_missing' | 'title_cloud_key_stale' | 'title_cloud_refused'>>
> = {
  'key-missing': 'title_cloud_key_missing',
  'key-stale': 'title_cloud_key_stale',
  refused: 'title_cloud_refused',
};
