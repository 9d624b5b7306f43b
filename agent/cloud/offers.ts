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
  /** Endpoints of each model that a route pins. */
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
    if (kind !== 'embed') {
      const { contextTokens, promptUsd, completionUsd } = found;
      offers.push({ ...base, upstream: null, pin: pinOf(route, null), contextTokens, promptUsd, completionUsd });
      continue;
    }
    const endpoints = reading.endpoints.get(model) ?? [];
    for (const upstream of route.upstreams) {
      const endpoint =
        endpoints.find(({ tag }) => tag === upstream) ?? endpoints.find(({ tag }) => tag.split('/')[0] === upstream);
      if (endpoint === undefined) {
        notOffered.push({ role, model, upstream, nearest: endpoints.map(({ tag }) => tag).slice(0, 5) });
        continue;
      }
      offers.push({
        ...base,
        upstream,
        pin: pinOf(route, upstream),
        contextTokens: endpoint.contextTokens ?? found.contextTokens,
        promptUsd: endpoint.promptUsd ?? found.promptUsd,
        completionUsd: endpoint.completionUsd ?? found.completionUsd,
      });
    }
  }
  return { offers, notOffered };
}
