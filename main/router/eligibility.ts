import type { ProviderId, SpaceId } from '../domain/ids.ts';
import { admitsKind, type Policy } from '../domain/policy.ts';
import type { NodeState } from '../domain/provider.ts';
import type { Regime } from '../domain/verdict.ts';
import type { ReasonCode } from './reasons.ts';
import type { RoutedProvider, RouterRoleSettings } from './types.ts';

/** How long a machine or engine that cannot be reached is worth waiting for. */
const UNREACHABLE_HOPE_MS = 15_000;

/** What of an item decides who may take it: items of one shape have the same eligible providers. */
export interface Shape {
  readonly policy: Policy;
  readonly model: string | null;
  readonly space: { readonly id: SpaceId; readonly regime: Regime } | null;
  readonly neededTokens: number;
  readonly failedBy: readonly ProviderId[];
  /** The budget has closed the cloud to this very item; null: open. */
  readonly cloudClosed: 'spend_cap' | 'cloud_off' | null;
}

/** What the router itself has learned of a provider. */
export interface ProviderFacts {
  readonly parkedUntilMs: number | null;
  /** Its own word that it is busy; in the past: not cooling. */
  readonly busyUntilMs: number;
  /** Another process answered than the one that was checked. */
  readonly verdictVoid: boolean;
  readonly unreachableSinceMs: number | null;
}

const NODE_REASONS: Readonly<Record<NodeState, ReasonCode | null>> = {
  ready: null,
  degraded: null,
  draining: 'node_draining',
  maintenance: 'node_maintenance',
  error: 'node_error',
  unreachable: 'node_unreachable',
  unknown: 'node_unknown',
};

/**
 * Why a provider may not take items of this shape, slots and permits aside; null: it may. What cannot pass by waiting is
 * looked at first, so that a reason that can pass means that nothing else stands in the way.
 */
export function refusalOf(
  provider: RoutedProvider,
  shape: Shape,
  settings: Omit<RouterRoleSettings, 'maxLocalWaitMs'>,
  facts: ProviderFacts,
  nowMs: number,
): ReasonCode | null {
  return (
    lasting(provider, shape, settings) ?? lastingState(provider, shape) ?? passing(provider, shape.space, facts, nowMs)
  );
}

function lasting(
  provider: RoutedProvider,
  shape: Shape,
  settings: Omit<RouterRoleSettings, 'maxLocalWaitMs'>,
): ReasonCode | null {
  if (!settings.enabled) return 'role_disabled';
  if (shape.model !== null && provider.model !== shape.model && !provider.aliases.includes(shape.model)) {
    return 'other_model';
  }
  if (!admitsKind(shape.policy, provider.kind)) return provider.kind === 'cloud' ? 'policy_local' : 'policy_cloud';
  // A role made local keeps everything in, also what was accepted before and still waits.
  if (settings.policy === 'local' && provider.kind === 'cloud') return 'policy_local';
  if (!provider.present) return 'model_absent';
  if (shape.space !== null) {
    if (provider.kind === 'cloud' && !provider.pinned) return 'no_upstream_pin';
    const verdict = provider.spaces.get(shape.space.id) ?? 'unverified';
    if (verdict === 'pass-reduced' && shape.space.regime !== 'cloud') return 'verdict_reduced';
    const open =
      verdict === 'pass' || verdict === 'pass-reduced' || verdict === 'unverified' || verdict === 'probe-failed';
    if (!open) return 'verdict_failed';
  }
  if (provider.contextTokens !== null && provider.contextTokens < shape.neededTokens) return 'context_too_small';
  const floor = settings.minTokensPerSecond;
  if (floor !== null && provider.tokensPerSecond !== null && provider.tokensPerSecond < floor)
    return 'below_speed_floor';
  return null;
}

function lastingState(provider: RoutedProvider, shape: Shape): ReasonCode | null {
  if (shape.failedBy.includes(provider.id)) return 'already_tried';
  if (provider.nodeState === 'draining' || provider.nodeState === 'maintenance' || provider.nodeState === 'error') {
    return NODE_REASONS[provider.nodeState];
  }
  if (provider.kind !== 'cloud') return null;
  return shape.cloudClosed ?? provider.closed;
}

function passing(
  provider: RoutedProvider,
  space: Shape['space'],
  facts: ProviderFacts,
  nowMs: number,
): ReasonCode | null {
  const node = NODE_REASONS[provider.nodeState];
  if (node !== null) return node;
  if (!provider.nodePulls) return 'node_silent';
  if (!provider.reachable) return 'engine_unreachable';
  if (space !== null) {
    const verdict = provider.spaces.get(space.id) ?? 'unverified';
    if (verdict === 'probe-failed') return 'probe_failed';
    if (verdict === 'unverified' || facts.verdictVoid) return 'unverified';
  }
  if (facts.parkedUntilMs !== null) return 'parked';
  if (facts.busyUntilMs > nowMs) return 'cooling';
  if (provider.coolingUntilMs !== null && provider.coolingUntilMs > nowMs) return 'cooling';
  return null;
}

/** Until when waiting for a refused provider makes sense. */
export interface Hope {
  /** Waiting is justified before this time; Infinity: as long as the deadline allows; -Infinity: not at all. */
  readonly untilMs: number;
  /** A trial or probe is due then: waiting is justified for items whose deadline is not earlier. Infinity: none planned. */
  readonly probeAtMs: number;
}

export function hopeFor(provider: RoutedProvider, reason: ReasonCode, facts: ProviderFacts): Hope {
  switch (reason) {
    case 'unverified':
    case 'cooling':
      return { untilMs: Number.POSITIVE_INFINITY, probeAtMs: Number.POSITIVE_INFINITY };
    case 'node_unreachable':
    case 'node_unknown':
    case 'node_silent':
    case 'engine_unreachable':
      return {
        untilMs: (facts.unreachableSinceMs ?? Number.NEGATIVE_INFINITY) + UNREACHABLE_HOPE_MS,
        probeAtMs: Number.POSITIVE_INFINITY,
      };
    case 'parked':
      return { untilMs: Number.NEGATIVE_INFINITY, probeAtMs: facts.parkedUntilMs ?? Number.POSITIVE_INFINITY };
    case 'probe_failed':
      return { untilMs: Number.NEGATIVE_INFINITY, probeAtMs: provider.nextProbeAtMs ?? Number.POSITIVE_INFINITY };
    default:
      return { untilMs: Number.NEGATIVE_INFINITY, probeAtMs: Number.POSITIVE_INFINITY };
  }
}
