import type { PriorityClass } from '../domain/classes.ts';
import type { ProviderId } from '../domain/ids.ts';
import type { RoleId } from '../domain/roles.ts';
import type { RoleState } from './role.ts';
import { rankOf } from './running-time.ts';
import { loadFactor, weightOf } from './weights.ts';

/** The router's own figures for the admin API, the console and metrics. Plain JSON. */
export interface RouterSnapshot {
  readonly roles: readonly RoleSnapshot[];
  readonly providers: readonly ProviderSnapshot[];
}

export interface RoleSnapshot {
  readonly role: RoleId;
  /** Items with work not yet handed out. */
  readonly waiting: Readonly<Record<PriorityClass, number>>;
  /** Age of the oldest waiting item, ms; null: nothing waits. */
  readonly oldestMs: number | null;
  readonly running: number;
  /** Wait estimate for a request without restrictions of class `normal` arriving now, ms; null: unknown. */
  readonly waitMs: number | null;
}

export interface ProviderSnapshot {
  readonly provider: ProviderId;
  readonly role: RoleId;
  readonly slots: number;
  /** Attempts of this provider within its engine's slots, and beyond them. */
  readonly running: number;
  readonly queued: number;
  readonly foreign: number;
  readonly weight: number;
  readonly base: number;
  readonly load: number;
  readonly speed: number;
  readonly current: number;
  /** Mean service time, ms; null: none measured. */
  readonly serviceMs: number | null;
  /** Inputs/s of an embedding provider; null: none measured. */
  readonly inputsPerSecond: number | null;
  readonly failuresInRow: number;
  /** Monotonic; null: not parked. */
  readonly parkedUntilMs: number | null;
  readonly coolingUntilMs: number | null;
}

export function takeSnapshot(roles: readonly RoleState[], nowMs: number): RouterSnapshot {
  return { roles: roles.map((role) => roleSnapshot(role, nowMs)), providers: roles.flatMap(providersOf) };
}

function roleSnapshot(role: RoleState, nowMs: number): RoleSnapshot {
  const { classes, returned } = role.queue;
  const count = (cls: PriorityClass): number => classes[rankOf(cls)]?.size ?? 0;
  let oldestAtMs = Number.POSITIVE_INFINITY;
  for (const { firstFresh } of classes) oldestAtMs = Math.min(oldestAtMs, firstFresh?.submittedAtMs ?? oldestAtMs);
  for (const item of returned) oldestAtMs = Math.min(oldestAtMs, item.submittedAtMs);
  const shape = {
    policy: role.settings.policy,
    model: null,
    space: null,
    neededTokens: 0,
    failedBy: [],
    cloudClosed: null,
  };
  const lane = role.lane(shape, false);
  return {
    role: role.id,
    waiting: { interactive: count('interactive'), normal: count('normal'), batch: count('batch') },
    oldestMs: oldestAtMs === Number.POSITIVE_INFINITY ? null : nowMs - oldestAtMs,
    running: role.running,
    waitMs: role.waitOf(lane, role.aheadOfNew(lane, rankOf('normal')), true, nowMs).waitMs,
  };
}

function providersOf(role: RoleState): readonly ProviderSnapshot[] {
  return role.providers.map((provider) => {
    const { routed, pool, parking, rate } = provider;
    const load = loadFactor(pool.busy, pool.slots);
    const queued = Math.max(0, Math.min(provider.running, pool.inFlight - pool.slots));
    return {
      provider: provider.id,
      role: role.id,
      slots: pool.slots,
      running: provider.running - queued,
      queued,
      foreign: pool.foreign,
      weight: weightOf(routed.baseWeight, load, provider.speed),
      base: routed.baseWeight,
      load,
      speed: provider.speed,
      current: provider.current,
      serviceMs: provider.serviceMs,
      inputsPerSecond: rate.perSecond,
      failuresInRow: parking.failuresInRow,
      parkedUntilMs: provider.parkedUntilMs,
      coolingUntilMs: provider.busyUntilMs === Number.NEGATIVE_INFINITY ? null : provider.busyUntilMs,
    };
  });
}
