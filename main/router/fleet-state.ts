import type { ProviderId } from '../domain/ids.ts';
import { ProviderState, SlotPool } from './fleet.ts';
import type { RoleState } from './role.ts';
import type { RoutedProvider } from './types.ts';

/** A provider that left may come back: its rates and its parking are remembered this long. */
const REMEMBERED_MS = 600_000;

/** Providers by id and engines by slot pool; hands each role its part. */
export class FleetState {
  private readonly states = new Map<ProviderId, ProviderState>();
  private readonly pools = new Map<string, SlotPool>();
  private readonly goneAtMs = new Map<ProviderState, number>();

  find(id: ProviderId): ProviderState | null {
    return this.states.get(id) ?? null;
  }

  all(): Iterable<ProviderState> {
    return this.states.values();
  }

  /** Every role whose part has changed is stale afterwards. */
  update(providers: readonly RoutedProvider[], roles: readonly RoleState[], nowMs: number): void {
    const perRole = new Map(roles.map((role) => [role.id, [] as ProviderState[]]));
    const changed = new Set<string>();
    for (const routed of providers) {
      const pool = this.poolOf(routed);
      let state = this.states.get(routed.id);
      if (state === undefined) {
        state = new ProviderState(routed, pool);
        this.states.set(routed.id, state);
        changed.add(routed.role);
      } else if (state.routed !== routed) {
        changed.add(routed.role);
      }
      if (state.pool !== pool) state.pool.members.delete(state);
      state.pool = pool;
      pool.members.add(state);
      state.update(routed, nowMs);
      this.goneAtMs.delete(state);
      perRole.get(routed.role)?.push(state);
    }
    for (const role of roles) {
      const part = perRole.get(role.id) ?? [];
      const same = part.length === role.providers.length && part.every((state, at) => role.providers[at] === state);
      if (same && !changed.has(role.id)) continue;
      const here = new Set(part);
      for (const state of role.providers) if (!here.has(state)) this.goneAtMs.set(state, nowMs);
      role.setProviders(part);
    }
    this.forget(nowMs);
    // An engine's slots and foreign load are shared over roles: each member's room hangs on them.
    for (const pool of this.pools.values()) this.poolChanged(pool, roles);
  }

  poolChanged(pool: SlotPool, roles: readonly RoleState[]): void {
    for (const member of pool.members) roleOf(roles, member)?.roomMayHaveChanged(member);
  }

  private poolOf(routed: RoutedProvider): SlotPool {
    let pool = this.pools.get(routed.slotPool);
    if (pool === undefined) {
      pool = new SlotPool(routed.slotPool);
      this.pools.set(routed.slotPool, pool);
    }
    pool.slots = Math.max(1, routed.slots);
    pool.foreign = Math.max(0, routed.foreign);
    return pool;
  }

  private forget(nowMs: number): void {
    for (const [state, atMs] of this.goneAtMs) {
      if (nowMs - atMs < REMEMBERED_MS || state.running > 0) continue;
      this.goneAtMs.delete(state);
      this.states.delete(state.id);
      state.pool.members.delete(state);
      if (state.pool.members.size === 0 && state.pool.inFlight === 0) this.pools.delete(state.pool.id);
    }
  }
}

export function roleOf(roles: readonly RoleState[], state: ProviderState): RoleState | null {
  return roles.find(({ id }) => id === state.routed.role) ?? null;
}
