import type { FounderView, Output, RolePatch, RoleView } from '../../preload/contract.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { ProviderId } from '../domain/ids.ts';
import { ROLE_IDS, ROLES, type RoleId, type RoleSettings } from '../domain/roles.ts';
import { said, together } from '../domain/said.ts';
import type { FoundingCandidate } from '../gate/founding.ts';
import type { RoleSnapshot } from '../router/snapshot.ts';
import type { House } from './house.ts';
import { isOpen } from './provider-views.ts';

/** One sentence of what happens to a request of this role now. */
function nowSentence(role: RoleId, settings: RoleSettings, house: House): RoleView['now'] {
  if (!settings.enabled) return said('disabled');
  if (ROLES[role].task === 'embed') {
    const space = house.gate.roleSpace(role);
    if (space.state === 'unfounded') return together(said('unfounded'), space.reason);
    if (space.state === 'founding') return said('founding');
    if (space.state === 'anchor-lost') return said('anchor_lost');
  }
  if (settings.policy === 'backup') return said('backup', { waitMs: settings.maxLocalWaitMs });
  return said(settings.policy);
}

function roleView(
  role: RoleId,
  snapshot: RoleSnapshot | undefined,
  parkedUntil: ReadonlyMap<ProviderId, number | null>,
  house: House,
): RoleView {
  const settings = house.roles()[role];
  const open = house
    .routed()
    .filter((provider) => provider.role === role && isOpen(provider, parkedUntil.get(provider.id) ?? null, house));
  const space = ROLES[role].task === 'embed' ? house.gate.roleSpace(role) : null;
  const offer = settings.cloud.model ? house.cloud.offered(settings.cloud.model) : { offered: null, nearest: [] };
  const spent = house.cloud.spentUsd(role);
  const able = (kind: 'local' | 'cloud') => open.filter((provider) => provider.kind === kind).length;
  const serving = new Map<string, { model: string; kind: 'local' | 'cloud'; providers: number }>();
  for (const { model, kind } of open) {
    const key = `${kind} ${model}`;
    const seen = serving.get(key) ?? { model, kind, providers: 0 };
    seen.providers += 1;
    serving.set(key, seen);
  }
  return {
    id: role,
    task: ROLES[role].task,
    enabled: settings.enabled,
    policy: settings.policy,
    now: nowSentence(role, settings, house),
    dimension: space?.state === 'founded' ? space.space.width : settings.dimension,
    threshold: settings.threshold,
    maxLocalWaitMs: settings.maxLocalWaitMs,
    minTokensPerSecond: settings.minTokensPerSecond,
    localModels: settings.localModels === 'auto' ? 'auto' : [...settings.localModels],
    cloud: {
      model: settings.cloud.model,
      upstreams: [...settings.cloud.upstreams],
      quantizations: [...settings.cloud.quantizations],
    },
    cloudOffered: offer.offered,
    cloudNearest: [...offer.nearest],
    spendCaps: { ...settings.spendCaps },
    spentDayUsd: spent.dayUsd,
    spentMonthUsd: spent.monthUsd,
    normalise: settings.normalise,
    cutDimensions: [...settings.cutDimensions],
    space:
      space?.state === 'founded' ? { id: space.space.id, width: space.space.width, trial: space.space.trial } : null,
    serving: [...serving.values()].sort((a, b) => b.providers - a.providers),
    localReady: able('local'),
    cloudReady: able('cloud'),
    queued: snapshot ? Object.values(snapshot.waiting).reduce((sum, count) => sum + count, 0) : 0,
    running: snapshot?.running ?? 0,
    oldestWaitMs: snapshot?.oldestMs ?? null,
    // Nobody there to wait for: no wait can be told.
    waitEstimateMs: able('local') === 0 ? null : (snapshot?.waitMs ?? null),
  };
}

export function roleViews(house: House): readonly RoleView[] {
  const { roles, providers } = house.router();
  const snapshots = new Map(roles.map((each) => [each.role, each]));
  const parkedUntil = new Map(providers.map((each) => [each.provider, each.parkedUntilMs]));
  return ROLE_IDS.map((role) => roleView(role, snapshots.get(role), parkedUntil, house));
}

/** The settings after a patch. Exact optional members: what is absent stays. */
export function patchRole(before: RoleSettings, patch: RolePatch): RoleSettings {
  const { cloud, spendCaps, ...plain } = patch;
  const defined = Object.fromEntries(Object.entries(plain).filter(([, value]) => value !== undefined));
  const within = (group: object, change: object | undefined) => ({
    ...group,
    ...Object.fromEntries(Object.entries(change ?? {}).filter(([, value]) => value !== undefined)),
  });
  return {
    ...before,
    ...defined,
    cloud: within(before.cloud, cloud) as RoleSettings['cloud'],
    spendCaps: within(before.spendCaps, spendCaps) as RoleSettings['spendCaps'],
  };
}

/** What a patch would do to the role's vectors. `refused` carries the error that `roles.update` would give. */
export function roleEffect(
  role: RoleId,
  patch: RolePatch,
  house: House,
): { effect: 'plain' | 'new-space'; error: SwitchyardError | null } {
  const before = house.roles()[role];
  const after = patchRole(before, patch);
  if (ROLES[role].task !== 'embed') {
    if (patch.dimension != null || patch.threshold !== undefined || (patch.cutDimensions?.length ?? 0) > 0) {
      return {
        effect: 'plain',
        error: new SwitchyardError('invalid_request', said('no_vectors', { role })),
      };
    }
    return { effect: 'plain', error: null };
  }
  const space = house.gate.roleSpace(role);
  if (space.state !== 'founded') return { effect: 'plain', error: null };
  if (after.dimension !== null && after.dimension !== space.space.width) {
    return { effect: 'new-space', error: new SwitchyardError('confirmation_required') };
  }
  const tooWide = after.cutDimensions.find((width) => width >= space.space.width);
  if (tooWide !== undefined) {
    return {
      effect: 'plain',
      error: new SwitchyardError('invalid_request', said('cut_too_wide', { width: space.space.width, cut: tooWide })),
    };
  }
  if (after.policy !== before.policy) {
    try {
      house.gate.checkPolicy(role, after.policy);
    } catch (error) {
      if (error instanceof SwitchyardError) return { effect: 'new-space', error };
      throw error;
    }
  }
  return { effect: 'plain', error: null };
}

export function founderView(
  { encoder, provider, width, ready, reason }: FoundingCandidate,
  role: RoleId,
  house: House,
): FounderView {
  const space = house.gate.roleSpace(role);
  const verdict = space.state === 'founded' ? house.gate.verdict(provider, space.space.id) : null;
  return {
    providerId: provider,
    title: `${encoder.provider.model} on ${encoder.provider.nodeName}`,
    kind: encoder.provider.kind,
    model: encoder.provider.model,
    upstream: encoder.provider.fingerprint.upstream ?? encoder.provider.fingerprint.pin,
    width,
    minCosine: verdict?.minCosine ?? null,
    ready,
    reason: reason === null ? null : together(said('cannot_found_now'), reason),
  };
}

/** `model`: whose upstreams are wanted; undefined: those of the role's own cloud model. */
export async function roleModels(
  role: RoleId,
  model: string | undefined,
  house: House,
): Promise<Output<'roles.models'>> {
  const { task } = ROLES[role];
  const local = new Map<
    string,
    { model: string; aliases: Set<string>; nodes: Set<string>; sizeBytes: number | null }
  >();
  for (const node of house.fleet.nodes()) {
    for (const engine of node.heartbeat?.engines ?? []) {
      // What an agent reaches on the internet counts as cloud, OpenRouter's models among it.
      if (engine.reach === 'public') continue;
      for (const model of engine.models) {
        if (!model.tasks.includes(task)) continue;
        const seen = local.get(model.model) ?? {
          model: model.model,
          aliases: new Set(),
          nodes: new Set(),
          sizeBytes: null,
        };
        for (const alias of model.aliases) seen.aliases.add(alias);
        seen.nodes.add(node.id);
        seen.sizeBytes = model.sizeBytes ?? seen.sizeBytes;
        local.set(model.model, seen);
      }
    }
  }
  return {
    local: [...local.values()].map(({ model, aliases, nodes, sizeBytes }) => ({
      model,
      aliases: [...aliases],
      nodes: nodes.size,
      sizeBytes,
    })),
    cloud: await house.cloud.modelsFor(role, model ?? house.roles()[role].cloud.model),
  };
}
