import { ROLES, type RoleId } from '../domain/roles.ts';
import type { Shape } from './eligibility.ts';
import type { WaitRecord } from './explanation.ts';
import { type ProviderState, reachable } from './fleet.ts';
import type { ItemState } from './item.ts';
import { Lane, type LocalService } from './lane.ts';
import { RoleQueue } from './queue.ts';
import { RunningTime } from './running-time.ts';
import type { RouterItem, RouterRoleSettings } from './types.ts';
import { waitEstimate } from './wait.ts';
import { median, speedFactors } from './weights.ts';

/** Lanes without waiting items that are kept for the next item of their shape. */
const KEPT_LANES = 16;
/** Age at which local capacity is measured again where nothing is decided by it. */
const SERVICE_STALE_MS = 250;
const SWEEP_MS = 1;

/** One role: its queue, its part of the fleet, and which of its providers have room. */
export class RoleState {
  readonly id: RoleId;
  readonly embeds: boolean;
  readonly queue = new RoleQueue();
  readonly runningTime = new RunningTime();
  readonly lanes = new Map<string, Lane>();
  /** Embedding items that have not ended. */
  readonly jobs = new Set<ItemState>();
  settings: RouterRoleSettings;
  providers: readonly ProviderState[] = [];
  /** Providers with room, in no order. */
  readonly free: ProviderState[] = [];
  running = 0;
  /** Grows whenever speeds or facts of the fleet have changed. */
  factsVersion = 0;
  /** Grows whenever a declined chunk is worth offering again. */
  pulse = 0;
  /** The fleet has changed: lanes must be looked at again. */
  stale = true;
  /** When a cooling ends or a trial is due; lanes are stale then. */
  changeAtMs = Number.POSITIVE_INFINITY;
  /** When wait estimates, declined chunks and copies are due for another look. */
  tickAtMs = Number.NEGATIVE_INFINITY;
  /** When waiting for an unreachable provider stops making sense to some lane. */
  hopeAtMs = Number.POSITIVE_INFINITY;
  /** No deadline of an item that came back is earlier. */
  returnedDueMs = Number.POSITIVE_INFINITY;
  private contexts: readonly number[] = [];

  constructor(id: RoleId, settings: RouterRoleSettings) {
    this.id = id;
    this.embeds = ROLES[id].task === 'embed';
    this.settings = settings;
  }

  setProviders(providers: readonly ProviderState[]): void {
    for (const gone of this.providers) {
      gone.index = -1;
      gone.freeAt = -1;
    }
    this.free.length = 0;
    this.providers = providers;
    providers.forEach((provider, index) => {
      provider.index = index;
      provider.freeAt = -1;
    });
    this.stale = true;
    this.pulse += 1;
    for (const provider of providers) this.roomMayHaveChanged(provider);
    const known = providers.flatMap(({ routed }) => (routed.contextTokens === null ? [] : [routed.contextTokens]));
    const contexts = [...new Set(known)].sort((a, b) => a - b);
    if (contexts.join() === this.contexts.join()) return;
    this.contexts = contexts;
    // Lanes are told apart by the smallest context window that suffices; with other windows they mean something else.
    for (const lane of this.lanes.values()) if (lane.total === 0) this.lanes.delete(lane.key);
    const old = [...this.lanes.values()];
    this.lanes.clear();
    for (const item of this.waiting()) this.queue.move(item, this.laneOf(item));
    for (const lane of old) if (lane.total > 0) throw new Error(`lane ${lane.key} still holds ${lane.total}`);
  }

  /** Keeps the free list and the lanes' counters true after anything that may give a provider room or take it. */
  roomMayHaveChanged(provider: ProviderState): void {
    const room = provider.hasRoom();
    if (room === provider.freeAt >= 0 || provider.index === -1) return;
    if (room) {
      provider.freeAt = this.free.length;
      this.free.push(provider);
      this.pulse += 1;
    } else {
      const last = this.free.pop();
      if (last !== undefined && last !== provider) {
        this.free[provider.freeAt] = last;
        last.freeAt = provider.freeAt;
      }
      provider.freeAt = -1;
    }
    if (this.stale) return;
    for (const lane of this.lanes.values()) lane.roomChanged(provider, room ? 1 : -1);
  }

  laneOf(item: ItemState): Lane {
    const shape = this.shapeOf(item.item, item);
    return this.lane(shape, item.spill !== null);
  }

  lane(shape: Shape, spilled: boolean): Lane {
    const key = [
      shape.policy,
      spilled ? 'spilled' : '',
      shape.neededTokens,
      shape.model ?? '',
      shape.space?.id ?? '',
      shape.cloudClosed ?? '',
      ...shape.failedBy,
    ].join('\n');
    const known = this.lanes.get(key);
    if (known !== undefined) return known;
    const lane = new Lane(key, shape, spilled);
    this.lanes.set(key, lane);
    if (!this.stale) this.refreshLane(lane, this.refreshedAtMs);
    return lane;
  }

  private refreshedAtMs = 0;

  /** Brings lanes and speeds up to date with the fleet. @returns true when there was something to do. */
  freshen(nowMs: number): boolean {
    if (!this.stale && nowMs < this.changeAtMs) return false;
    this.refreshedAtMs = nowMs;
    this.changeAtMs = Number.POSITIVE_INFINITY;
    for (const provider of this.providers) {
      if (provider.parking.tick(nowMs)) this.roomMayHaveChanged(provider);
      for (const atMs of [provider.parkedUntilMs, provider.busyUntilMs, provider.routed.coolingUntilMs]) {
        if (atMs !== null && atMs > nowMs) this.changeAtMs = Math.min(this.changeAtMs, atMs);
      }
    }
    this.refreshSpeeds();
    let kept = 0;
    for (const lane of this.lanes.values()) {
      if (lane.total === 0) kept += 1;
      if (lane.total === 0 && kept > KEPT_LANES) this.lanes.delete(lane.key);
      else this.refreshLane(lane, nowMs);
    }
    this.stale = false;
    this.pulse += 1;
    return true;
  }

  /** Measured rates take the place of tokens/s where the work is embedding. */
  refreshSpeeds(): void {
    this.factsVersion += 1;
    if (this.embeds) {
      const rates = this.providers.flatMap(({ rate }) => (rate.perSecond === null ? [] : [rate.perSecond]));
      const middle = median(rates);
      for (const provider of this.providers) {
        const { perSecond } = provider.rate;
        const ratio = perSecond === null || middle === null || middle <= 0 ? 1 : perSecond / middle;
        provider.speed = Math.min(4, Math.max(0.25, Math.sqrt(ratio)));
      }
      return;
    }
    const ready = this.providers.filter(({ routed }) => routed.present && reachable(routed));
    const speeds = speedFactors(ready.map(({ routed }) => routed));
    ready.forEach((provider, at) => {
      provider.speed = speeds[at] ?? 1;
    });
  }

  /** W and L for an item of this lane with `ahead` items before it; `exact` where a decision hangs on it. */
  waitOf(lane: Lane, ahead: number, exact: boolean, nowMs: number): WaitRecord {
    return this.record(lane, ahead, lane.localService(nowMs, exact ? 0 : SERVICE_STALE_MS), nowMs);
  }

  private record(lane: Lane, ahead: number, service: LocalService, nowMs: number): WaitRecord {
    return {
      atMs: nowMs,
      waitMs: lane.localCount === 0 ? null : waitEstimate(service.busy, service.slots, ahead, service.ratePerMs),
      ahead,
      busy: service.busy,
      slots: service.slots,
      serviceMs: service.serviceMs,
    };
  }

  /** Estimate for one of many items looked at in the same instant: capacity is measured once per lane. */
  waitInSweep(lane: Lane, ahead: number, nowMs: number): WaitRecord {
    return this.record(lane, ahead, lane.localService(nowMs, SWEEP_MS), nowMs);
  }

  /** Items waiting for the same local slots at the same or a higher class. */
  aheadOfNew(lane: Lane, rank: number): number {
    let ahead = 0;
    for (const other of this.lanes.values()) {
      if (other.total === 0 || !(other === lane || lane.sharesLocal(other))) continue;
      for (let higher = 0; higher <= rank; higher += 1) ahead += other.waiting[higher] ?? 0;
    }
    return ahead;
  }

  /** Every waiting item: by class, within it those that came back, then in order of arrival. A scan: not for every decision. */
  *waiting(): Generator<ItemState> {
    for (const [rank, queue] of this.queue.classes.entries()) {
      const back = [...this.queue.returned].filter((item) => item.rank === rank).sort((a, b) => a.seq - b.seq);
      yield* back;
      for (let item = queue.firstFresh; item !== null; ) {
        const next: ItemState | null = item.nextFresh;
        yield item;
        item = next;
      }
    }
  }

  /** Remembers when an item that waits for nobody eligible must be looked at again. */
  watchHope(lane: Lane, nowMs: number): void {
    if (lane.eligible.length > 0 || lane.hopeUntilMs <= nowMs) return;
    this.hopeAtMs = Math.min(this.hopeAtMs, lane.hopeUntilMs);
  }

  backupWaits(): boolean {
    for (const lane of this.lanes.values()) if (lane.total > 0 && lane.shape.policy === 'backup') return true;
    return false;
  }

  /** Latest time at which something must be looked at again without any event. */
  wakeMs(): number {
    let wakeMs = Math.min(this.hopeAtMs, this.returnedDueMs);
    if (this.queue.size > 0) wakeMs = Math.min(wakeMs, this.changeAtMs);
    for (const { firstFresh } of this.queue.classes) {
      if (firstFresh !== null) wakeMs = Math.min(wakeMs, firstFresh.deadlineAtMs);
    }
    if (this.jobs.size > 0 || this.backupWaits()) wakeMs = Math.min(wakeMs, this.tickAtMs);
    return wakeMs;
  }

  private shapeOf(item: RouterItem, state: ItemState): Shape {
    const { context } = item;
    return {
      policy: context.policy,
      model: context.model,
      space: item.space,
      neededTokens: this.contexts.find((tokens) => tokens >= item.neededTokens) ?? Number.POSITIVE_INFINITY,
      failedBy: state.failedBy,
      cloudClosed: state.cloudClosed,
    };
  }

  private refreshLane(lane: Lane, nowMs: number): void {
    lane.refresh(this.providers, this.settings, nowMs);
  }
}
