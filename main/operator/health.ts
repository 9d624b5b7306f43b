import type { HealthView } from '../../preload/contract.ts';
import { ROLE_IDS } from '../domain/roles.ts';
import { type Said, said, told } from '../domain/said.ts';
import { saidBy } from '../gate/verdict.ts';
import type { House } from './house.ts';

/** What a room says is wrong; when it began is looked up. */
type Item = Omit<HealthView, 'sinceMs' | 'target'> & { readonly sinceMs?: number; readonly target?: string | null };

/** A machine that just went is given a moment: a restart of an agent is no reason to look up. */
const UNREACHABLE_SHOWS_MS = 15_000;

/** What is wrong now and what needs a person; made from the rooms' states, so that an item goes when its cause does. */
export function healthItems(house: House): readonly HealthView[] {
  const rooms = [storeItems, discoveryItems, nodeItems, gateItems, spaceItems, cloudItems];
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
    if (mayBeShort && wallMs - stateSinceMs < UNREACHABLE_SHOWS_MS) return [];
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
    // With `auto` every encoder is looked at; that one of another width serves another role is no fault. One that fitted and does not
    // any more is.
    const isOther = verdict.kind === 'dimension-mismatch' && verdict.lastGoodAtMs === null;
    if (isOther && house.roles()[entry.role].localModels === 'auto') return [];
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
        ...titled(said('title_gate', { model: entry.model.slice(0, 512), name })),
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

function spaceItems(house: House): Item[] {
  return (['embedding', 'code-embedding'] as const).flatMap((role): Item[] => {
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
    if (lastPush === null || title === undefined) continue;
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

/** A title by its code, and beside it what it says in another language. */
function titled({ sentence, ...titleSays }: Said): Pick<Item, 'title' | 'titleSays'> {
  return { title: sentence, titleSays };
}
