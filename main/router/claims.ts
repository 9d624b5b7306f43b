import type { ProjectId } from '../domain/ids.ts';
import type { ItemState } from './item.ts';
import type { Lane } from './lane.ts';
import type { Pass } from './queue.ts';
import type { RoleState } from './role.ts';
import { nextClass } from './running-time.ts';
import type { CloudDemand } from './types.ts';

/** The item with which a project would go to the cloud next. */
export interface Claim {
  readonly item: ItemState;
  readonly lane: Lane;
  /** Highest first; -1: a class under its floor, which goes before all. */
  readonly rank: number;
}

/** One claim per project of the role. A class under its floor goes first, else the highest. */
export function claimsOf(role: RoleState, pass: Pass): readonly Claim[] {
  const perProject = new Map<ProjectId, (ItemState | null)[]>();
  for (const [rank, queue] of role.queue.classes.entries()) {
    for (const project of queue.projects.values()) {
      const item = project.first(pass);
      if (item === null) continue;
      const byRank = perProject.get(project.project) ?? role.queue.classes.map(() => null);
      byRank[rank] = item;
      perProject.set(project.project, byRank);
    }
  }
  const claims: Claim[] = [];
  for (const byRank of perProject.values()) {
    const hasWork = byRank.map((item) => item !== null);
    const rank = nextClass(role.runningTime.totals, hasWork);
    const item = byRank[rank];
    if (item?.lane == null) continue;
    claims.push({ item, lane: item.lane, rank: rank === hasWork.indexOf(true) ? rank : -1 });
  }
  return claims;
}

export function byRank(a: Claim, b: Claim): number {
  return a.rank - b.rank || a.item.seq - b.item.seq;
}

export function best(claims: readonly Claim[]): Claim {
  return claims.reduce((first, claim) => (byRank(claim, first) < 0 ? claim : first));
}

export function demandOf(claims: ReadonlyMap<ProjectId, readonly Claim[]>): readonly CloudDemand[] {
  return [...claims.values()].flat().map(({ item }) => ({
    project: item.item.context.project,
    role: item.role.id,
    class: item.item.context.class,
    oldestAtMs: item.submittedAtMs,
  }));
}
