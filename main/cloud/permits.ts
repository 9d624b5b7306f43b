import { CLOUD_ENGINE } from '../../agent/wire/cloud.ts';
import type { Budget } from '../budget/budget.ts';
import type { CallTarget } from '../budget/circuits.ts';
import type { Permit, PermitAsk, RefusalReason } from '../budget/permit.ts';
import { ROLES } from '../domain/roles.ts';
import type {
  CloudClosure,
  CloudDemand,
  PermitPort,
  PermitRefusal,
  RoutedProvider,
  RouterItem,
} from '../router/types.ts';

/** What the budget needs to know of a cloud provider beyond the router's own facts. */
export interface CloudCall {
  /** Id at OpenRouter. */
  readonly model: string;
  /** The pin; null for none. */
  readonly upstream: string | null;
  readonly free: boolean;
  /** Upper estimate of this item at this provider; null when the price is unknown. */
  readonly estimateUsd: number | null;
}

/**
 * The router's port onto the budget. `describe` looks up the catalogue; it must not fail for a cloud provider. `isSent`: the call
 * of a permit is out, so that its end, and not the router's loss of interest, returns it.
 */
export function budgetPermits(
  budget: Budget,
  describe: (item: RouterItem, provider: RoutedProvider) => CloudCall,
  isSent: (permitId: string) => boolean = () => false,
): PermitPort {
  return {
    demand(waiting, nowMs) {
      budget.declare(
        waiting.map((demand) => ({ ...demand, id: demandId(demand), arrivedAtMs: demand.oldestAtMs })),
        nowMs,
      );
    },
    tryAcquire(item, provider, nowMs) {
      // Cloud kind without being OpenRouter's (an Ollama model that runs elsewhere): the account's limits are not its own.
      if (provider.engine !== CLOUD_ENGINE) return budget.paused ? 'cloud_off' : {};
      const { context } = item;
      const ask: PermitAsk = {
        ...describe(item, provider),
        id: demandId(context),
        project: context.project,
        keyId: context.keyId ?? null,
        role: context.role,
        class: context.class,
        arrivedAtMs: context.arrivedAtMs,
        agent: provider.node,
      };
      const decision = budget.acquire(ask, nowMs);
      return decision.granted ? decision.permit : REFUSALS[decision.reason];
    },
    release(permit, nowMs) {
      if (isPermit(permit) && !isSent(permit.id)) budget.unused(permit.id, nowMs);
    },
    nextChangeMs: (nowMs) => budget.nextWakeMs(nowMs),
  };
}

/** What a cloud provider is closed by, for the router's `closed` and `coolingUntilMs`. */
export function closureOf(
  budget: Budget,
  target: CallTarget,
  key: KeyState,
  nowMs: number,
): { readonly closed: CloudClosure | null; readonly coolingUntilMs: number | null } {
  if (key !== 'held') return { closed: KEY_CLOSURES[key], coolingUntilMs: null };
  const found = budget.closure(target, nowMs);
  if (found === null) return { closed: null, coolingUntilMs: null };
  const closed = CLOSURES.get(found.reason) ?? null;
  return closed === null ? { closed, coolingUntilMs: found.untilMs } : { closed, coolingUntilMs: null };
}

/** How the key stands at the provider's agent: `held` only for the newest. */
export type KeyState = 'held' | 'missing' | 'stale' | 'refused';

const KEY_CLOSURES = { missing: 'key_missing', stale: 'key_stale', refused: 'cloud_off' } as const;

const CLOSURES: ReadonlyMap<RefusalReason, CloudClosure> = new Map([
  ['cloud_paused', 'cloud_paused'],
  ['credit_exhausted', 'cloud_off'],
  ['key_refused', 'cloud_off'],
  ['free_tier_limit', 'free_tier_spent'],
]);

/** The permit behind the router's reference; null for anything else. */
export function permitOf(reference: object | null): Permit | null {
  return reference !== null && isPermit(reference) ? reference : null;
}

const REFUSALS: Readonly<Record<RefusalReason, PermitRefusal>> = {
  cloud_paused: 'cloud_off',
  // Another agent may hold a better key: the provider is closed, not the cloud.
  key_refused: 'cooling',
  credit_exhausted: 'cloud_off',
  free_tier_limit: 'cloud_off',
  model_cooling: 'cooling',
  provider_cooling: 'cooling',
  in_flight_budget: 'cooling',
  spend_cap: 'spend_cap',
  price_unknown: 'spend_cap',
  account_cooling: 'cooling',
  rate_window: 'no_permit',
  no_permit: 'no_permit',
  not_its_turn: 'no_permit',
};

function demandId({ project, role }: Pick<CloudDemand, 'project' | 'role'>): string {
  return `${ROLES[role].id}|${project}`;
}

function isPermit(reference: object): reference is Permit {
  return 'cuts' in reference && 'ask' in reference && 'id' in reference;
}
