import type { PriorityClass } from '../domain/classes.ts';
import type { ProviderId } from '../domain/ids.ts';
import type { RoleId } from '../domain/roles.ts';

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
