export interface GateTiming {
  /** A standing verdict is checked again this often, while it serves. */
  readonly reRunMs: number;
  /** After a verification that could not measure: doubling from the first to the limit. */
  readonly backoffFirstMs: number;
  readonly backoffLimitMs: number;
  /** A pass that is re-run stands through so many verifications that could not measure. */
  readonly toleratedFailures: number;
  /** Founding by itself waits so long, so that a second machine that comes up at the same time is seen. */
  readonly foundingDelayMs: number;
  /** The trial waits longer: engines on the machine are looked for meanwhile. */
  readonly trialDelayMs: number;
  /** So long after the start a role without any candidate is still waited for. */
  readonly startupGraceMs: number;
}

export const GATE_TIMING: GateTiming = {
  reRunMs: 6 * 3_600_000,
  backoffFirstMs: 30_000,
  backoffLimitMs: 15 * 60_000,
  toleratedFailures: 2,
  foundingDelayMs: 500,
  trialDelayMs: 1000,
  startupGraceMs: 5000,
};

/** Wait before the next try after `failures` (at least 1) in a row: 30 s, 1 min, 2, 4, 8, then 15 for ever. */
export function backoffMs(failures: number, timing: GateTiming): number {
  return Math.min(timing.backoffLimitMs, timing.backoffFirstMs * 2 ** Math.min(failures - 1, 30));
}
