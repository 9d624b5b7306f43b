import type { SpaceView, VerdictView } from '../../preload/contract.ts';
import type { NodeId, ProviderId, SpaceId } from '../domain/ids.ts';
import { ROLES } from '../domain/roles.ts';
import type { Space } from '../gate/space.ts';
import { saidBy, type Verdict } from '../gate/verdict.ts';
import type { RoutedProvider } from '../router/types.ts';
import type { House } from './house.ts';

/** One row per (encoder, space of its role): those that were checked, and those that wait for it. */
export function verdictViews(house: House): readonly VerdictView[] {
  const spaces = house.gate.spaces().filter(({ retiredAtMs }) => retiredAtMs === null);
  const providers = house.routed().filter(({ role }) => ROLES[role].task === 'embed');
  const rows = providers.flatMap((provider) => {
    const mine = spaces.filter(({ role }) => role === provider.role);
    if (mine.length === 0) return [verdictView(provider, null, null, house)];
    return mine
      .filter((space) => isCurrent(space, house) || house.gate.admitted(provider.id, space.id))
      .map((space) => verdictView(provider, space, house.gate.verdict(provider.id, space.id), house));
  });
  const known = new Set(rows.map(({ id }) => id));
  const here = new Set(providers.map(({ id }) => id));
  const gone = house.gate
    .verdicts()
    .filter((verdict) => !here.has(verdict.provider) && !known.has(rowId(verdict.provider, verdict.space)));
  return [
    ...rows,
    ...gone.flatMap((verdict) => {
      const space = spaces.find(({ id }) => id === verdict.space);
      const counts = space && (isCurrent(space, house) || isPass(verdict));
      return counts ? [goneView(verdict, space, house)] : [];
    }),
  ];
}

/** A retained space is answered by those that passed it; what others are in it is no news to anybody. */
function isCurrent(space: Space, house: House): boolean {
  const current = house.gate.roleSpace(space.role);
  return (current.state === 'founded' || current.state === 'anchor-lost') && current.space.id === space.id;
}

const rowId = (provider: ProviderId, space: SpaceId | null) => `${provider}@${space ?? 'unfounded'}`;

function figures(verdict: Verdict | null) {
  return {
    reason: verdict ? saidBy(verdict) : null,
    checks: (verdict?.checks ?? []).map((check) => ({ ...check, note: null })),
    minCosine: verdict?.minCosine ?? null,
    meanCosine: verdict?.meanCosine ?? null,
    centredMin: verdict?.centredMin ?? null,
    worstProbe: verdict?.worst
      ? {
          probe: verdict.worst.id,
          text: verdict.worst.text.slice(0, 4096),
          cosine: verdict.worst.cosine,
          anchorHead: [...verdict.worst.anchorHead],
          providerHead: [...verdict.worst.providerHead],
        }
      : null,
    anchorNorm: verdict?.worst?.anchorNorm ?? null,
    providerNorm: verdict?.worst?.providerNorm ?? null,
    fingerprint: verdict?.fingerprint ? { ...verdict.fingerprint } : null,
    checkedAtMs: verdict ? Math.round(verdict.checkedAtMs) : null,
    nextCheckAtMs: null,
    rowsInDoubt: null,
  };
}

function verdictView(
  provider: RoutedProvider,
  space: Space | null,
  verdict: Verdict | null,
  house: House,
): VerdictView {
  return {
    id: rowId(provider.id, space?.id ?? null),
    providerId: provider.id,
    title: `${provider.model} on ${provider.nodeName}`,
    role: provider.role,
    kind: provider.kind,
    nodeName: provider.nodeName,
    engineKind: provider.engineKind,
    model: provider.model,
    upstream: provider.fingerprint.upstream ?? provider.fingerprint.pin,
    spaceId: space?.id ?? null,
    regime: space?.regime ?? null,
    founder: space?.founder.provider === provider.id,
    ...figures(verdict),
    verdict: space ? house.gate.verdictFor(provider.id, space.id) : 'unverified',
    running: space ? house.gate.pending(provider.id, space.id) : false,
  };
}

const isPass = ({ kind }: Verdict): boolean => kind === 'pass' || kind === 'pass-reduced';

/** A provider that serves the role no more, its machine gone or its model not named: its last finding stays to be seen. */
function goneView(verdict: Verdict, space: Space, house: House): VerdictView {
  const [, id = '', , model = ''] = verdict.provider.split('~').map(decodeURIComponent);
  const founded = space.founder.provider === verdict.provider ? space.founder.nodeName : null;
  const here = house.fleet.get(id as NodeId)?.name ?? null;
  const node = here ?? founded ?? id.slice(0, 8);
  return {
    id: rowId(verdict.provider, verdict.space),
    providerId: verdict.provider,
    title: here === null ? `${model} (not in the fleet now)` : `${model} on ${here}`,
    role: space.role,
    kind: verdict.regime,
    nodeName: node,
    engineKind: verdict.fingerprint?.engine ?? '',
    model,
    upstream: verdict.fingerprint?.upstream ?? null,
    spaceId: verdict.space,
    regime: verdict.regime,
    founder: space.founder.provider === verdict.provider,
    ...figures(verdict),
    verdict: verdict.kind,
    running: false,
  };
}

export function spaceView(space: Space, house: House): SpaceView {
  return {
    id: space.id,
    role: space.role,
    width: space.width,
    regime: space.regime,
    trial: space.trial,
    state:
      space.retiredAtMs !== null
        ? 'retired'
        : space.anchor === null
          ? 'anchor-lost'
          : isCurrent(space, house)
            ? 'current'
            : 'retained',
    founder: {
      title: `${space.founder.model} on ${space.founder.nodeName}`,
      model: space.founder.model,
      nodeName: space.founder.nodeName,
      upstream: space.founder.fingerprint.upstream ?? space.founder.fingerprint.pin,
    },
    foundedAtMs: Math.round(space.createdAtMs),
    tokenLimit: space.limitTokens,
    threshold: space.threshold,
    probeSet: String(space.probes.version),
    probes: space.probes.texts.length + space.probes.equalLength.length,
    cutDimensions: [...space.cutDimensions],
    passing: house
      .routed()
      .filter((provider) => provider.role === space.role && house.gate.admitted(provider.id, space.id)).length,
  };
}
