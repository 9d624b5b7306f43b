/** Slots of one engine that a request may use: `serviceMs` is the EWMA of its service times, null while unmeasured. */
export interface ServingSlots {
  readonly slots: number;
  readonly busy: number;
  readonly serviceMs: number | null;
}

const SERVICE_ALPHA = 0.2;

/** New mean service time after one more call of `sampleMs`. */
export function serviceMean(before: number | null, sampleMs: number): number {
  return before === null ? sampleMs : before + SERVICE_ALPHA * (sampleMs - before);
}

/**
 * Calls per ms that the slots serve when all are busy: sum(slots / S). Unmeasured ones count with the slot-weighted mean of
 * the others; null when none is measured.
 */
export function serviceRate(serving: readonly ServingSlots[]): number | null {
  let knownSlots = 0;
  let weightedMs = 0;
  for (const { slots, serviceMs } of serving) {
    if (serviceMs === null) continue;
    knownSlots += slots;
    weightedMs += slots * serviceMs;
  }
  if (knownSlots === 0) return null;
  const meanMs = weightedMs / knownSlots;
  let rate = 0;
  for (const { slots, serviceMs } of serving) rate += slots / Math.max(serviceMs ?? meanMs, 1e-6);
  return rate;
}

/**
 * Little's law: the wait is what stands ahead over the rate at which it is served. Completions per second would be throughput,
 * not capacity: three to six times too long at 30 % load.
 *
 * @param ahead items waiting at the same or a higher class before this one
 * @returns ms; 0 while a slot is free; null when unknown
 */
export function waitEstimate(busy: number, slots: number, ahead: number, ratePerMs: number | null): number | null {
  if (busy < slots) return 0;
  if (ratePerMs === null || ratePerMs <= 0) return null;
  return (ahead + 1) / ratePerMs;
}
