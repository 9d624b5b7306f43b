import type { ProviderState } from './fleet.ts';
import type { FleetState } from './fleet-state.ts';
import { Attempt, type ItemState } from './item.ts';
import type { Chunk } from './job.ts';
import type { RoleState } from './role.ts';
import type { AttemptId, PermitPort, PermitRef } from './types.ts';

/** Attempts in flight and what they hold: a slot of their engine, a permit, running time of their class. */
export class RunningAttempts {
  private readonly byId = new Map<AttemptId, Attempt>();
  private readonly roles: readonly RoleState[];
  private readonly fleet: FleetState;
  private readonly permits: PermitPort;
  private nextId: AttemptId = 1;

  constructor(roles: readonly RoleState[], fleet: FleetState, permits: PermitPort) {
    this.roles = roles;
    this.fleet = fleet;
    this.permits = permits;
  }

  get size(): number {
    return this.byId.size;
  }

  find(id: AttemptId): Attempt | null {
    return this.byId.get(id) ?? null;
  }

  all(): Iterable<Attempt> {
    return this.byId.values();
  }

  reserveId(): AttemptId {
    const id = this.nextId;
    this.nextId += 1;
    return id;
  }

  start(
    id: AttemptId,
    item: ItemState,
    provider: ProviderState,
    work: { readonly chunk: Chunk | null; readonly copyOf: AttemptId | null; readonly permit: PermitRef | null },
    nowMs: number,
  ): Attempt {
    const attempt = new Attempt(id, item, provider, work, nowMs);
    this.byId.set(id, attempt);
    item.began(attempt);
    item.role.running += 1;
    item.role.runningTime.started(item.rank, nowMs);
    provider.running += 1;
    provider.inputsInFlight += attempt.range?.count ?? 0;
    const inputMs = 1000 / (provider.rate.perSecond ?? Number.POSITIVE_INFINITY);
    provider.throughAtMs = Math.max(nowMs, provider.throughAtMs) + inputMs * (attempt.range?.count ?? 0);
    attempt.pool.inFlight += 1;
    this.fleet.poolChanged(attempt.pool, this.roles);
    return attempt;
  }

  /** Slot, permit and running time go back, each exactly once. @returns null when it has ended before. */
  end(id: AttemptId, nowMs: number): Attempt | null {
    const attempt = this.byId.get(id);
    if (attempt === undefined) return null;
    this.byId.delete(id);
    const { item, provider, pool } = attempt;
    item.role.running -= 1;
    item.role.runningTime.ended(item.rank, nowMs);
    item.role.pulse += 1;
    provider.running -= 1;
    provider.inputsInFlight -= attempt.range?.count ?? 0;
    if (provider.running === 0) provider.throughAtMs = nowMs;
    pool.inFlight -= 1;
    if (attempt.permit !== null) this.permits.release(attempt.permit, nowMs);
    this.fleet.poolChanged(pool, this.roles);
    return attempt;
  }
}
