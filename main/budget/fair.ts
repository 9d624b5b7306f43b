import type { ProjectId } from '../domain/ids.ts';

/** One project that waits for permits or holds some. */
export interface ProjectDemand {
  readonly project: ProjectId;
  readonly held: number;
  readonly waiting: boolean;
  /** Something of it may start now: false when all that waits is chat and chat must leave the last permit. */
  readonly grantable: boolean;
  /** Order of its last grant over all projects; null: never served. */
  readonly servedAt: number | null;
  /** Order in which it began to wait. */
  readonly waitingSince: number;
}

/**
 * Permits a waiting project may hold: max(1, ceil((usable - permits held by projects with nothing waiting) / projects
 * waiting)). Infinity when nobody waits.
 */
export function shareOf(usable: number, demands: readonly ProjectDemand[]): number {
  let waiting = 0;
  let heldByIdle = 0;
  for (const demand of demands) {
    if (demand.waiting) waiting++;
    else heldByIdle += demand.held;
  }
  if (waiting === 0) return Number.POSITIVE_INFINITY;
  return Math.max(1, Math.ceil((usable - heldByIdle) / waiting));
}

/**
 * Who gets the next free permit: the project served longest ago among those waiting with fewer than their share; never
 * served first, then who began to wait first. Null: nobody, or none is free. Held permits are never taken back.
 */
export function nextProject(usable: number, demands: readonly ProjectDemand[]): ProjectId | null {
  let held = 0;
  for (const demand of demands) held += demand.held;
  if (held >= usable) return null;
  const share = shareOf(usable, demands);
  let chosen: ProjectDemand | null = null;
  for (const demand of demands) {
    if (!demand.waiting || !demand.grantable || demand.held >= share) continue;
    if (chosen === null || comesBefore(demand, chosen)) chosen = demand;
  }
  return chosen?.project ?? null;
}

/** From this many usable permits on, chat (long streams) leaves one to the other roles. */
export const RESERVE_FROM = 4;

/** Permits that chat may hold together. */
export function chatLimit(usable: number): number {
  return usable >= RESERVE_FROM ? usable - 1 : usable;
}

function comesBefore(a: ProjectDemand, b: ProjectDemand): boolean {
  if (a.servedAt === null || b.servedAt === null) {
    if (a.servedAt === null && b.servedAt === null) return a.waitingSince < b.waitingSince;
    return a.servedAt === null;
  }
  return a.servedAt < b.servedAt;
}
