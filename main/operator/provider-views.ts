import { CLOUD_ENGINE } from '../../agent/wire/cloud.ts';
import type { ProviderView } from '../../preload/contract.ts';
import { ROLES, type RoleId } from '../domain/roles.ts';
import { said } from '../domain/said.ts';
import type { ReasonCode } from '../router/reasons.ts';
import type { ProviderSnapshot } from '../router/snapshot.ts';
import type { RoutedProvider } from '../router/types.ts';
import type { House } from './house.ts';

/** Why a provider takes no work of its role now, whatever the request; empty when it does. */
export function standingReasons(provider: RoutedProvider, house: House): readonly ReasonCode[] {
  const settings = house.roles()[provider.role];
  const reasons: ReasonCode[] = [];
  if (!settings.enabled) reasons.push('role_disabled');
  if (settings.policy === 'local' && provider.kind === 'cloud') reasons.push('policy_local');
  if (settings.policy === 'cloud' && provider.kind === 'local') reasons.push('policy_cloud');
  const byState = {
    draining: 'node_draining',
    maintenance: 'node_maintenance',
    error: 'node_error',
    unreachable: 'node_unreachable',
    unknown: 'node_unknown',
  } as const;
  if (provider.nodeState !== 'ready' && provider.nodeState !== 'degraded') reasons.push(byState[provider.nodeState]);
  else if (!provider.nodePulls) reasons.push('node_silent');
  else if (!provider.reachable) reasons.push('engine_unreachable');
  if (!provider.present) reasons.push('model_absent');
  if (!provider.pinned) reasons.push('no_upstream_pin');
  if (provider.closed) reasons.push(provider.closed);
  // Cloud kind at another engine costs the account nothing.
  if (provider.engine === CLOUD_ENGINE && isCapped(provider.role, house)) reasons.push('spend_cap');
  const floor = settings.minTokensPerSecond;
  if (floor !== null && provider.tokensPerSecond !== null && provider.tokensPerSecond < floor)
    reasons.push('below_speed_floor');
  if (ROLES[provider.role].task === 'embed') {
    const verdict = verdictReason(provider, house);
    if (verdict) reasons.push(verdict);
  }
  return reasons;
}

function isCapped(role: RoleId, house: House): boolean {
  return house.cloud.cappedOut().some(({ scope, id }) => scope === 'role' && id === role);
}

/** Whether it could be given work of its role now, slots and permits aside. */
export function isOpen(provider: RoutedProvider, parkedUntilMs: number | null, house: House): boolean {
  const parked = parkedUntilMs !== null && parkedUntilMs > house.clock.nowMs();
  return !parked && standingReasons(provider, house).length === 0;
}

function verdictReason(provider: RoutedProvider, house: House): ReasonCode | null {
  const space = house.gate.roleSpace(provider.role);
  if (space.state !== 'founded') return 'unverified';
  if (house.gate.admitted(provider.id, space.space.id)) return null;
  const kind = house.gate.verdictFor(provider.id, space.space.id);
  if (kind === 'unverified') return 'unverified';
  if (kind === 'probe-failed') return 'probe_failed';
  return kind === 'pass-reduced' ? 'verdict_reduced' : 'verdict_failed';
}

export function providerView(
  provider: RoutedProvider,
  snapshot: ProviderSnapshot | undefined,
  house: House,
): ProviderView {
  const nowMs = house.clock.nowMs();
  const offsetMs = house.clock.wallMs() - nowMs;
  const entry = house.catalogue().byId.get(provider.id);
  const parkedUntilMs = snapshot?.parkedUntilMs ?? null;
  const parked = parkedUntilMs !== null && parkedUntilMs > nowMs;
  const reasons = standingReasons(provider, house).map((code) => said(code));
  if (parked) reasons.push(said('parked'));
  const running = snapshot?.running ?? 0;
  const unreachable = provider.nodeState === 'unreachable' || !provider.reachable;
  return {
    id: provider.id,
    role: provider.role,
    kind: provider.kind,
    nodeId: provider.node,
    nodeName: provider.nodeName,
    engineId: provider.engine,
    engineKind: provider.engineKind,
    engineVersion: provider.fingerprint.version,
    model: provider.model,
    upstream: provider.fingerprint.upstream ?? provider.fingerprint.pin,
    slots: provider.slots,
    running,
    queued: snapshot?.queued ?? 0,
    weight: snapshot
      ? { total: snapshot.weight, base: snapshot.base, load: snapshot.load, speed: snapshot.speed }
      : null,
    verdict: verdictOf(provider, house),
    state: parked
      ? 'parked'
      : unreachable
        ? 'unreachable'
        : reasons.some(({ code }) => code === 'role_disabled')
          ? 'disabled'
          : reasons.length > 0
            ? 'ineligible'
            : running + provider.foreign >= provider.slots
              ? 'busy'
              : 'ready',
    reasons,
    parkedUntilMs: parked ? Math.round(parkedUntilMs + offsetMs) : null,
    present: provider.present,
    loaded: provider.loaded,
    contextTokens: provider.contextTokens,
    maxBatch: provider.maxBatch,
    width: entry?.width ?? null,
    tokensPerSecond: provider.tokensPerSecond,
    itemsPerSecond: snapshot?.inputsPerSecond ?? null,
    ttftMs: provider.ttftMs,
  };
}

function verdictOf(provider: RoutedProvider, house: House): ProviderView['verdict'] {
  if (ROLES[provider.role].task !== 'embed') return null;
  const space = house.gate.roleSpace(provider.role);
  if (space.state !== 'founded') return { kind: 'unverified', minCosine: null, spaceId: null };
  const { id } = space.space;
  return {
    kind: house.gate.verdictFor(provider.id, id),
    minCosine: house.gate.verdict(provider.id, id)?.minCosine ?? null,
    spaceId: id,
  };
}

export function providerViews(house: House): readonly ProviderView[] {
  const snapshots = new Map(house.router().providers.map((each) => [each.provider, each]));
  return house.routed().map((provider) => providerView(provider, snapshots.get(provider.id), house));
}
