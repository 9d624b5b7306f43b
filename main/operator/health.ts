import type { HealthView } from '../../preload/contract.ts';
import { ROLE_IDS } from '../domain/roles.ts';
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
  const items: Item[] = health.problems.map((sentence, at) => ({
    id: `store-problem-${at}`,
    code: 'store_problem',
    severity: 'warn',
    title: 'Something about the data folder',
    sentence,
    needsPerson: false,
    page: 'settings',
    action: 'look',
  }));
  if (health.state === 'ok') return items;
  return [
    {
      id: 'store',
      code: 'store_degraded',
      severity: 'error',
      title: 'The database cannot be written',
      sentence: health.reason ?? 'Serving goes on from the last good configuration; changes are refused.',
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
      title: 'Machines may not be found by themselves',
      sentence: discovery.problem.sentence,
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
        title: `${name} is ${state}`,
        sentence: problem?.sentence ?? 'One of its engines does not answer.',
        params: { name },
        needsPerson: state === 'error',
        page: 'fleet',
        target: id,
        action: 'see-machine',
        sinceMs: Math.round(stateSinceMs),
      },
    ];
  });
}

function gateItems(house: House): Item[] {
  const told = new Set<string>();
  return house.gate.verdicts().flatMap((verdict): Item[] => {
    if (verdict.kind === 'pass' || verdict.kind === 'pass-reduced' || verdict.kind === 'unverified') return [];
    const entry = house.catalogue().byId.get(verdict.provider)?.provider;
    if (!entry) return [];
    // With `auto` every encoder is looked at; that one of another width serves another role is no fault.
    if (verdict.kind === 'dimension-mismatch' && house.roles()[entry.role].localModels === 'auto') return [];
    // An upstream's vectors are the same whichever machine asks for them: one thing to do, told once.
    const [about, name] =
      entry.kind === 'cloud' ? [entry.model, 'OpenRouter'] : [verdict.provider as string, entry.nodeName];
    const id = `gate-${about}-${verdict.space}`;
    if (told.has(id)) return [];
    told.add(id);
    return [
      {
        id,
        code: `gate_${verdict.kind}`,
        severity: 'warn',
        title: `${entry.model} on ${name} gets no texts`,
        sentence: verdict.sentence,
        params: { model: entry.model.slice(0, 512), name },
        needsPerson: verdict.kind !== 'probe-failed',
        page: 'gate',
        target: verdict.provider,
        action: 'see-gate',
        sinceMs: Math.round(verdict.checkedAtMs),
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
          title: `The space of ${role} is lost`,
          sentence: 'Its reference vectors cannot be read. Import the space from an export.',
          params: { role },
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
        title: `${role} needs a founder`,
        sentence: space.reason,
        params: { role },
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
      title: 'No cloud key yet',
      sentence: 'A role works in the cloud alone and no agent holds the OpenRouter key.',
      needsPerson: true,
      page: 'keys',
      action: 'enter-key',
    });
  }
  for (const holder of holders) {
    if (lastPush === null || !MISSES_KEY[holder.state]) continue;
    items.push({
      id: `cloud-key-${holder.nodeId}`,
      code: `cloud_${holder.state.replace('-', '_')}`,
      severity: holder.state === 'refused' ? 'error' : 'warn',
      title: `${MISSES_KEY[holder.state]} ${holder.nodeName}`,
      sentence: holder.reason?.sentence ?? 'Enter the key again.',
      params: { name: holder.nodeName },
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
      title: 'The cloud account cannot be used',
      sentence: reason.sentence,
      needsPerson: true,
      page: 'budget',
      action: 'see-budget',
    });
  }
  return items;
}

const MISSES_KEY: Readonly<Record<string, string>> = {
  'key-missing': 'Key missing on',
  'key-stale': 'Old key on',
  refused: 'Key refused for',
};
