import type { CatalogueEndpoint, CloudOffer, CloudStatus } from '../wire/cloud.ts';
import { isFree, nearest, type OfferedModel } from './catalogue.ts';
import { type CloudRole, pinOf, type RoleRoute } from './credential.ts';

const KINDS: Readonly<Record<CloudRole, OfferedModel['kind']>> = {
  embedding: 'embed',
  'code-embedding': 'embed',
  reranker: 'rerank',
  'code-assistant': 'chat',
  rlm: 'chat',
};

export function kindOfRole(role: CloudRole): OfferedModel['kind'] {
  return KINDS[role];
}

/** One answer of the catalogue, as far as the routes ask for it. */
export interface CatalogueReading {
  readonly models: readonly OfferedModel[];
  /** Endpoints of each model that a route names. */
  readonly endpoints: ReadonlyMap<string, readonly CatalogueEndpoint[]>;
  readonly atWallMs: number;
}

export interface Offers {
  readonly offers: readonly CloudOffer[];
  readonly notOffered: CloudStatus['notOffered'];
}

/** A role may leave the network at all. Without a policy nobody has said that it may not. */
export function mayLeave(route: RoleRoute): boolean {
  return route.model !== null && route.policy !== 'local';
}

/** A pin names one variant of an upstream, or all of them. */
const isOf = (pin: string, { tag }: CatalogueEndpoint): boolean => tag === pin || tag.split('/')[0] === pin;

/**
 * The dearest that may serve it: a spend cap is checked before anybody knows who will. The model's own price stands for those that name
 * none, and beside the others where nothing is pinned.
 */
function dearest(
  found: OfferedModel,
  endpoints: readonly CatalogueEndpoint[],
  { upstreams, quantizations }: Pick<RoleRoute, 'upstreams' | 'quantizations'>,
): Pick<CloudOffer, 'promptUsd' | 'completionUsd'> {
  const allowed = endpoints.filter(
    (endpoint) =>
      (upstreams.length === 0 || upstreams.some((pin) => isOf(pin, endpoint))) &&
      (quantizations.length === 0 || endpoint.quantization === null || quantizations.includes(endpoint.quantization)),
  );
  const priced = upstreams.length > 0 && allowed.length > 0 ? allowed : [found, ...allowed];
  const most = (of: 'promptUsd' | 'completionUsd') => {
    const prices = priced.map((each) => each[of] ?? found[of]).filter((price) => price !== null);
    return prices.length === 0 ? null : Math.max(...prices);
  };
  return { promptUsd: most('promptUsd'), completionUsd: most('completionUsd') };
}

/**
 * What of the configured routes the catalogue offers. Embeddings: one offer per pinned upstream and none without a pin, because
 * two upstreams of a model do not promise the same vectors. The others: one offer through all upstreams listed.
 */
export function offersOf(routes: ReadonlyMap<CloudRole, RoleRoute>, reading: CatalogueReading): Offers {
  const offers: CloudOffer[] = [];
  const notOffered: CloudStatus['notOffered'] = [];
  for (const [role, route] of routes) {
    const { model } = route;
    if (model === null || !mayLeave(route)) continue;
    const kind = KINDS[role];
    const found = reading.models.find((candidate) => candidate.model === model && candidate.kind === kind);
    if (found === undefined) {
      notOffered.push({ role, model, upstream: null, nearest: [...nearest(model, kind, reading.models)] });
      continue;
    }
    const base = { role, model, free: isFree(found), requestUsd: found.requestUsd };
    const endpoints = reading.endpoints.get(model) ?? [];
    if (kind !== 'embed') {
      const { contextTokens } = found;
      const price = dearest(found, endpoints, route);
      offers.push({ ...base, upstream: null, pin: pinOf(route, null), contextTokens, ...price });
      continue;
    }
    for (const upstream of route.upstreams) {
      const endpoint = endpoints.find(({ tag }) => tag === upstream) ?? endpoints.find((each) => isOf(upstream, each));
      if (endpoint === undefined) {
        notOffered.push({ role, model, upstream, nearest: endpoints.map(({ tag }) => tag).slice(0, 5) });
        continue;
      }
      offers.push({
        ...base,
        upstream,
        pin: pinOf(route, upstream),
        contextTokens: endpoint.contextTokens ?? found.contextTokens,
        ...dearest(found, endpoints, { ...route, upstreams: [upstream] }),
      });
    }
  }
  return { offers, notOffered };
}
