import type { Policy } from '../domain/policy.ts';
import type { SpillReason } from './explanation.ts';

/** How often the wait of every item under `backup` is looked at again. */
export const OVERFLOW_CHECK_MS = 250;

export interface BackupView {
  /** Local providers that could take the item, free or not. */
  readonly localEligible: number;
  readonly localFailed: boolean;
  /** Wait estimate from now, ms; null: unknown. It is not added to the time already waited. */
  readonly waitMs: number | null;
  readonly waitedMs: number;
  readonly thresholdMs: number;
}

/** Why an item under `backup` may go to the cloud now; null: it stays local. */
export function backupSpill(view: BackupView): SpillReason | null {
  if (view.localEligible === 0) return 'no_local';
  if (view.localFailed) return 'local_failed';
  if (view.waitMs !== null && view.waitMs > view.thresholdMs) return 'wait_over_threshold';
  // With a slot free nobody waits by the policy's doing, whatever the time since arrival.
  if (view.waitMs !== 0 && view.waitedMs >= view.thresholdMs) return 'waited';
  return null;
}

/** Is the cloud open to an item, permits and slots aside? Local slots are always offered first, in a pass of their own. */
export function cloudOpen(policy: Policy, spilled: boolean): boolean {
  return policy === 'cloud' || policy === 'aggregate' || (policy === 'backup' && spilled);
}
