import type { ItemState } from './item.ts';
import type { Lane } from './lane.ts';
import { backupSpill } from './overflow.ts';
import type { RoleState } from './role.ts';

/**
 * Decides for an item under `backup`, whose wait has just been estimated, whether the cloud is open to it.
 * @returns true when that has changed, so that the item belongs in another lane.
 */
export function reviewBackup(item: ItemState, lane: Lane, nowMs: number): boolean {
  const { context } = item.item;
  if (context.policy !== 'backup') return false;
  const spill = backupSpill({
    localEligible: lane.localCount,
    localFailed: item.localFailed,
    waitMs: item.wait?.waitMs ?? null,
    waitedMs: nowMs - item.submittedAtMs,
    thresholdMs: context.maxWaitMs,
  });
  const changed = (spill === null) !== (item.spill === null);
  item.spill = spill;
  return changed;
}

/** Looks at every waiting item under `backup` again, each behind those that stand before it. */
export function reviewQueue(role: RoleState, nowMs: number): void {
  if (!role.backupWaits()) return;
  const before = new Map<Lane, number>();
  for (const item of role.waiting()) {
    const lane = item.queue?.lane;
    if (lane === undefined) continue;
    if (item.item.context.policy === 'backup') {
      let ahead = 0;
      for (const [other, count] of before) if (other === lane || lane.sharesLocal(other)) ahead += count;
      item.wait = role.waitInSweep(lane, ahead, nowMs);
      if (reviewBackup(item, lane, nowMs)) role.queue.move(item, role.laneOf(item));
    }
    before.set(lane, (before.get(lane) ?? 0) + 1);
  }
}
