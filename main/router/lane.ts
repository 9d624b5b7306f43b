import { PRIORITY_CLASSES } from '../domain/classes.ts';
import type { ProviderId } from '../domain/ids.ts';
import { hopeFor, refusalOf, type Shape } from './eligibility.ts';
import type { WaitRecord } from './explanation.ts';
import type { ProviderState, SlotPool } from './fleet.ts';
import { cloudOpen } from './overflow.ts';
import type { ProviderRefusal, RouterRoleSettings } from './types.ts';
import { type ServingSlots, serviceRate } from './wait.ts';

/** Local capacity of a lane at one moment. */
export interface LocalService {
  readonly atMs: number;
  readonly busy: number;
  readonly slots: number;
  readonly ratePerMs: number | null;
  readonly serviceMs: WaitRecord['serviceMs'];
}

interface PoolShare {
  readonly pool: SlotPool;
  readonly members: readonly ProviderState[];
}

/**
 * Items of one shape: their eligible providers are found once for all of them, and counters say without a search whether one
 * of those has room. Valid for one state of the fleet; `refresh` after every change of it.
 */
export class Lane {
  readonly key: string;
  readonly shape: Shape;
  readonly cloudOpen: boolean;
  readonly waiting: number[] = PRIORITY_CLASSES.map(() => 0);
  total = 0;

  eligible: readonly ProviderState[] = [];
  eligibleIds: readonly ProviderId[] = [];
  refused: readonly ProviderRefusal[] = [];
  /** 1 at the index of every eligible provider. */
  member = new Uint8Array(0);
  localCount = 0;
  freeLocal = 0;
  freeCloud = 0;
  /** With nobody eligible: until when waiting makes sense, and the earliest trial or probe that may change it. */
  hopeUntilMs = Number.NEGATIVE_INFINITY;
  probeAtMs = Number.POSITIVE_INFINITY;

  totalRate = 0;
  fastestRate = 0;
  private ratesPulse = -1;
  private localPools: readonly PoolShare[] = [];
  private service: LocalService | null = null;
  private readonly overlaps = new Map<Lane, boolean>();

  constructor(key: string, shape: Shape, spilled: boolean) {
    this.key = key;
    this.shape = shape;
    this.cloudOpen = cloudOpen(shape.policy, spilled);
  }

  waits(rank: number, by: number): void {
    this.waiting[rank] = (this.waiting[rank] ?? 0) + by;
    this.total += by;
  }

  refresh(providers: readonly ProviderState[], settings: RouterRoleSettings, nowMs: number): void {
    const eligible: ProviderState[] = [];
    const refused: ProviderRefusal[] = [];
    const pools = new Map<SlotPool, ProviderState[]>();
    this.member = new Uint8Array(providers.length);
    this.localCount = 0;
    this.freeLocal = 0;
    this.freeCloud = 0;
    this.hopeUntilMs = Number.NEGATIVE_INFINITY;
    this.probeAtMs = Number.POSITIVE_INFINITY;
    for (const provider of providers) {
      const reason = refusalOf(provider.routed, this.shape, settings, provider, nowMs);
      if (reason !== null) {
        refused.push({ provider: provider.id, reason });
        const hope = hopeFor(provider.routed, reason, provider);
        this.hopeUntilMs = Math.max(this.hopeUntilMs, hope.untilMs);
        this.probeAtMs = Math.min(this.probeAtMs, hope.probeAtMs);
        continue;
      }
      eligible.push(provider);
      this.member[provider.index] = 1;
      if (provider.freeAt >= 0) this.roomChanged(provider, 1);
      if (!provider.local) continue;
      this.localCount += 1;
      const members = pools.get(provider.pool);
      if (members === undefined) pools.set(provider.pool, [provider]);
      else members.push(provider);
    }
    this.eligible = eligible;
    this.eligibleIds = eligible.map(({ id }) => id);
    this.refused = refused;
    this.localPools = [...pools].map(([pool, members]) => ({ pool, members }));
    this.service = null;
    this.ratesPulse = -1;
    this.overlaps.clear();
  }

  roomChanged(provider: ProviderState, by: number): void {
    if (this.member[provider.index] !== 1) return;
    if (provider.local) this.freeLocal += by;
    else this.freeCloud += by;
  }

  /** May an item with this deadline still be served, now or after something that is due? */
  hopeful(deadlineAtMs: number, nowMs: number): boolean {
    return this.eligible.length > 0 || nowMs < this.hopeUntilMs || this.probeAtMs <= deadlineAtMs;
  }

  /** Sum and maximum of the known embedding rates, looked up anew when something has completed since. */
  refreshRates(pulse: number): void {
    if (this.ratesPulse === pulse) return;
    this.ratesPulse = pulse;
    this.totalRate = 0;
    this.fastestRate = 0;
    for (const { rate } of this.eligible) {
      const perSecond = rate.perSecond ?? 0;
      this.totalRate += perSecond;
      if (perSecond > this.fastestRate) this.fastestRate = perSecond;
    }
  }

  /** Local capacity, at most `staleMs` old. */
  localService(nowMs: number, staleMs: number): LocalService {
    if (this.service !== null && nowMs - this.service.atMs <= staleMs && staleMs > 0) return this.service;
    let busy = 0;
    let slots = 0;
    const serving: ServingSlots[] = [];
    const serviceMs: { provider: ProviderId; slots: number; ms: number | null }[] = [];
    for (const { pool, members } of this.localPools) {
      let known = 0;
      let sumMs = 0;
      for (const { serviceMs: ms } of members) {
        if (ms === null) continue;
        known += 1;
        sumMs += ms;
      }
      const meanMs = known === 0 ? null : sumMs / known;
      const poolBusy = Math.min(pool.slots, pool.busy);
      busy += poolBusy;
      slots += pool.slots;
      serving.push({ slots: pool.slots, busy: poolBusy, serviceMs: meanMs });
      const first = members[0];
      if (first !== undefined) serviceMs.push({ provider: first.id, slots: pool.slots, ms: meanMs });
    }
    this.service = { atMs: nowMs, busy, slots, ratePerMs: serviceRate(serving), serviceMs };
    return this.service;
  }

  /** Do items of the other lane compete for the same local slots? */
  sharesLocal(other: Lane): boolean {
    const known = this.overlaps.get(other);
    if (known !== undefined) return known;
    const shares = this.localPools.some(({ members }) => members.some(({ index }) => other.member[index] === 1));
    this.overlaps.set(other, shares);
    return shares;
  }
}
