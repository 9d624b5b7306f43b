import type { ProviderId } from '../domain/ids.ts';
import { ROLES } from '../domain/roles.ts';
import { type Fingerprint, sameFingerprint } from '../domain/verdict.ts';
import type { ProviderFacts } from './eligibility.ts';
import { Parking } from './parking.ts';
import { RateMeter } from './striping.ts';
import type { RoutedProvider } from './types.ts';

/** Slots of one engine, shared by all its providers over all roles. */
export class SlotPool {
  readonly id: string;
  slots = 1;
  foreign = 0;
  /** The router's own attempts, aborted ones included until they have really ended. */
  inFlight = 0;
  readonly members = new Set<ProviderState>();

  constructor(id: string) {
    this.id = id;
  }

  get busy(): number {
    return this.inFlight + this.foreign;
  }
}

/** What the router remembers of a provider across heartbeats. Outlives its provider's leaving while attempts run. */
export class ProviderState implements ProviderFacts {
  readonly id: ProviderId;
  readonly embeds: boolean;
  readonly parking = new Parking();
  readonly rate = new RateMeter();
  routed: RoutedProvider;
  pool: SlotPool;
  /** Position in its role's fleet order; -1: not in the fleet now. */
  index = -1;
  /** Position in its role's free list; -1: no room. */
  freeAt = -1;
  running = 0;
  /** Embedding inputs in flight. */
  inputsInFlight = 0;
  /** When its embedding work in flight should be done, by its rate; in the past with work in flight: overdue. */
  throughAtMs = Number.NEGATIVE_INFINITY;
  /** Of the smooth weighted round robin. */
  current = 0;
  speed = 1;
  serviceMs: number | null = null;
  busyUntilMs = Number.NEGATIVE_INFINITY;
  unreachableSinceMs: number | null = null;
  private voided: { readonly atMs: number; readonly fingerprint: Fingerprint } | null = null;

  constructor(routed: RoutedProvider, pool: SlotPool) {
    this.id = routed.id;
    this.routed = routed;
    this.pool = pool;
    this.embeds = ROLES[routed.role].task === 'embed';
  }

  get local(): boolean {
    return this.routed.kind === 'local';
  }

  get parkedUntilMs(): number | null {
    return this.parking.state === 'parked' ? this.parking.untilMs : null;
  }

  get verdictVoid(): boolean {
    return this.voided !== null;
  }

  voidVerdict(nowMs: number): void {
    this.voided = { atMs: nowMs, fingerprint: this.routed.fingerprint };
  }

  update(routed: RoutedProvider, nowMs: number): void {
    this.routed = routed;
    const gone = !reachable(routed);
    if (!gone) this.unreachableSinceMs = null;
    else this.unreachableSinceMs = routed.unreachableSinceMs ?? this.unreachableSinceMs ?? nowMs;
    if (this.voided === null) return;
    const checkedSince = routed.verifiedAtMs !== null && routed.verifiedAtMs > this.voided.atMs;
    // The facts of a new process come with its own verdicts; those of the old one say nothing new.
    if (checkedSince || !sameFingerprint(routed.fingerprint, this.voided.fingerprint)) this.voided = null;
  }

  /** May it take one more attempt? A second chunk beyond a single slot keeps an encoder from idling between two calls. */
  hasRoom(): boolean {
    if (this.index === -1) return false;
    if (this.parking.state === 'trial' && this.running > 0) return false;
    return this.pool.busy < this.pool.slots || this.canQueueBehindItself();
  }

  /** True when the next attempt would wait at the engine behind its own. */
  beyondSlots(): boolean {
    return this.pool.busy >= this.pool.slots;
  }

  private canQueueBehindItself(): boolean {
    const { pool } = this;
    return (
      this.embeds &&
      pool.slots === 1 &&
      pool.foreign === 0 &&
      pool.inFlight === 1 &&
      this.running === 1 &&
      this.rate.perSecond !== null
    );
  }
}

export function reachable(routed: RoutedProvider): boolean {
  return routed.reachable && routed.nodePulls && routed.nodeState !== 'unreachable' && routed.nodeState !== 'unknown';
}
