import {
  type CatalogueEndpoint,
  type CatalogueModel,
  type CloudAnswer,
  type CloudAsk,
  type CloudOffer,
  type CloudStatus,
  cloudModelName,
  pinText,
} from '../../agent/wire/cloud.ts';
import type { ModelPrice } from '../budget/spend.ts';
import { type AccountFacts, requestsPerMinute } from '../budget/trust.ts';
import type { NodeId } from '../domain/ids.ts';
import { ROLE_IDS, ROLES, type RoleId, type RoleSettings } from '../domain/roles.ts';
import type { Clock } from '../domain/time.ts';
import type { AgentPort } from './ports.ts';

const ANSWER_MS = 30_000;
const FRESH_MS = 600_000;
/** Models whose upstreams are remembered. */
const MAX_REMEMBERED = 64;

/** One cloud provider that an agent could serve: a model, with one pinned upstream where vectors must be comparable. */
export interface CloudRoute {
  readonly node: NodeId;
  readonly role: RoleId;
  /** As reports and call heads name it. */
  readonly name: string;
  readonly offer: CloudOffer;
}

/** What a role asks for and an agent does not serve now. */
export interface MissingRoute {
  readonly node: NodeId;
  readonly role: RoleId;
  readonly name: string;
  readonly upstream: string | null;
  readonly pin: string | null;
  /** The live catalogue has been read and does not list it; false: it may yet, or the key is not there. */
  readonly notOffered: boolean;
}

export interface CloudCatalogueOptions {
  readonly clock: Clock;
  readonly agents: AgentPort;
  readonly status: (node: NodeId) => CloudStatus | null;
  readonly holds: (node: NodeId) => boolean;
}

/** What the agents report of OpenRouter's live catalogue, and what a person asks of it. */
export class CloudCatalogue {
  readonly #options: CloudCatalogueOptions;
  readonly #asked = new Map<number, { readonly node: NodeId; readonly settle: (answer: CloudAnswer | null) => void }>();
  #nextAsk = 1;
  #models: { readonly list: readonly CatalogueModel[]; readonly atMs: number } | null = null;
  readonly #endpoints = new Map<string, { readonly list: readonly CatalogueEndpoint[]; readonly atMs: number }>();

  constructor(options: CloudCatalogueOptions) {
    this.#options = options;
  }

  /** Providers to build for the router, of agents that hold the newest key. */
  routes(): readonly CloudRoute[] {
    return this.#options.agents.ready().flatMap(({ node }) => {
      if (!this.#options.holds(node)) return [];
      const offers = this.#options.status(node)?.offers ?? [];
      return offers.map((offer) => ({
        node,
        role: offer.role,
        name: cloudModelName(offer.model, offer.upstream),
        offer,
      }));
    });
  }

  /** Everything else that roles are set to: shown with its reason, and never called. */
  missing(roles: Readonly<Record<RoleId, RoleSettings>>): readonly MissingRoute[] {
    const served = new Set(this.routes().map(({ node, role, name }) => `${node} ${role} ${name}`));
    return this.#options.agents.ready().flatMap(({ node }) => {
      const lacking = this.#options.status(node)?.notOffered ?? [];
      return ROLE_IDS.flatMap((role) =>
        wantedOf(role, roles[role]).flatMap(({ model, upstream, pin }) => {
          const name = cloudModelName(model, upstream);
          if (served.has(`${node} ${role} ${name}`)) return [];
          const notOffered = lacking.some(
            (entry) =>
              entry.role === role && entry.model === model && (entry.upstream === null || entry.upstream === upstream),
          );
          return [{ node, role, name, upstream, pin, notOffered }];
        }),
      );
    });
  }

  /** The offer behind a provider's model name in a role; null when nobody offers it now. */
  offer(node: NodeId, role: RoleId, name: string): CloudOffer | null {
    const offers = this.#options.status(node)?.offers ?? [];
    return offers.find((offer) => offer.role === role && cloudModelName(offer.model, offer.upstream) === name) ?? null;
  }

  /** Is a role's model offered? Null: no agent could ask. */
  offered(role: RoleId, model: string): { readonly offered: boolean | null; readonly nearest: readonly string[] } {
    for (const { node } of this.#options.agents.ready()) {
      const status = this.#options.status(node);
      if (status === null || status.catalogueAtWallMs === null) continue;
      const missing = status.notOffered.find((entry) => entry.role === role && entry.model === model);
      if (missing !== undefined) return { offered: false, nearest: missing.nearest };
      if (status.offers.some((offer) => offer.role === role && offer.model === model))
        return { offered: true, nearest: [] };
    }
    return { offered: null, nearest: [] };
  }

  /** When the newest reading of the catalogue was made; null: none. */
  get readAtWallMs(): number | null {
    const times = this.#options.agents.ready().map(({ node }) => this.#options.status(node)?.catalogueAtWallMs ?? 0);
    const newest = Math.max(0, ...times);
    return newest === 0 ? null : newest;
  }

  /** All models of the live catalogue, read by any agent; kept 10 min. Null: it could not be read. */
  async models(): Promise<readonly CatalogueModel[] | null> {
    const nowMs = this.#options.clock.nowMs();
    if (this.#models !== null && nowMs - this.#models.atMs < FRESH_MS) return this.#models.list;
    const answer = await this.#askAnyone({ what: 'catalogue' });
    if (answer?.models == null) return this.#models?.list ?? null;
    this.#models = { list: answer.models, atMs: nowMs };
    return answer.models;
  }

  /** Where a model is served, read by any agent; kept 10 min. Null: it could not be read, or is not offered. */
  async endpoints(model: string): Promise<readonly CatalogueEndpoint[] | null> {
    const nowMs = this.#options.clock.nowMs();
    const known = this.#endpoints.get(model);
    if (known !== undefined && nowMs - known.atMs < FRESH_MS) return known.list;
    const list = (await this.#askAnyone({ what: 'endpoints', model }))?.endpoints ?? null;
    if (list === null) return null;
    this.#endpoints.delete(model);
    this.#endpoints.set(model, { list, atMs: nowMs });
    for (const oldest of this.#endpoints.keys()) {
      if (this.#endpoints.size <= MAX_REMEMBERED) break;
      this.#endpoints.delete(oldest);
    }
    return list;
  }

  /** Lets one agent ask `/key`. True: the key works. */
  async test(node: NodeId): Promise<boolean> {
    return (await this.#ask(node, { what: 'account' }))?.ok ?? false;
  }

  /** Only of whom it was asked: prices, and pins that passed, are not for every paired machine to say. */
  onAnswer(node: NodeId, answer: CloudAnswer): void {
    const asked = this.#asked.get(answer.id);
    if (asked?.node === node) asked.settle(answer);
  }

  sessionLost(node: NodeId): void {
    for (const asked of this.#asked.values()) if (asked.node === node) asked.settle(null);
  }

  async #askAnyone(ask: Omit<CloudAsk, 't' | 'id'>): Promise<CloudAnswer | null> {
    const ready = this.#options.agents.ready().map(({ node }) => node);
    const holding = ready.filter((node) => this.#options.holds(node));
    for (const node of holding) {
      const answer = await this.#ask(node, ask);
      if (answer?.ok === true) return answer;
    }
    return null;
  }

  #ask(node: NodeId, ask: Omit<CloudAsk, 't' | 'id'>): Promise<CloudAnswer | null> {
    const id = this.#nextAsk++;
    return new Promise((resolve) => {
      const stop = this.#options.clock.after(ANSWER_MS, () => settle(null));
      const settle = (answer: CloudAnswer | null) => {
        stop();
        this.#asked.delete(id);
        resolve(answer);
      };
      this.#asked.set(id, { node, settle });
      if (!this.#options.agents.send(node, { t: 'cloud-ask', id, ...ask })) settle(null);
    });
  }
}

/** The providers a role is set to have in the cloud: for embeddings one for each pin, and one that is refused where there is none. */
function wantedOf(role: RoleId, { enabled, policy, cloud }: RoleSettings) {
  const { model, upstreams, quantizations } = cloud;
  if (!enabled || policy === 'local' || model === null) return [];
  if (ROLES[role].task !== 'embed') return [{ model, upstream: null, pin: pinText(upstreams, quantizations) }];
  if (upstreams.length === 0) return [{ model, upstream: null, pin: null }];
  return upstreams.map((upstream) => ({ model, upstream, pin: pinText([upstream], quantizations) }));
}

/** What the budget learns from a reading of `/key`. */
export function accountFacts(status: CloudStatus): AccountFacts | null {
  const { account } = status;
  if (account === null) return null;
  return {
    creditUsd: account.creditUsd,
    isFreeTier: account.isFreeTier,
    rpm: requestsPerMinute(account.rateRequests, account.rateIntervalMs),
  };
}

/** Null: the catalogue names no price. A reranker without token prices costs by the search, which the estimate adds. */
export function priceOf(offer: CloudOffer): ModelPrice | null {
  if (offer.promptUsd === null || offer.completionUsd === null) return null;
  return { promptUsd: offer.promptUsd, completionUsd: offer.completionUsd, requestUsd: offer.requestUsd ?? 0 };
}
