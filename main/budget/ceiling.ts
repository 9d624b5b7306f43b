import { type AccountFacts, trustedRpm } from './trust.ts';

/** Permits at most, whatever anybody says. */
export const MAX_PERMITS = 256;
/** Permits while nothing at all is known: timid by default. */
export const UNKNOWN_CEILING = 4;

export type CeilingSource = 'override' | 'no-credit' | 'rate' | 'credit' | 'default';

export interface Ceiling {
  /** Calls of paid models in flight at most: 0 without credit, also under an override. */
  readonly paid: number;
  /** The same for `:free` models, which no credit limits. Equal to `paid` while there is credit. */
  readonly free: number;
  /** Which rule gave `paid`. */
  readonly source: CeilingSource;
}

/** Little's law: calls in flight = rate x time each takes. `latencyMs` without queueing. */
export function rateCeiling(rpm: number, latencyMs: number): number {
  // Divided last: 600 / 60000 x 2000 would be 20.000000000000004 and give 21.
  return clampPermits(Math.ceil((rpm * latencyMs) / 60_000));
}

/** What a prepaid balance carries in parallel. `null` when nothing is known about it. */
export function creditCeiling(creditUsd: number | null): number | null {
  if (creditUsd === null) return null;
  if (creditUsd <= 0) return 0;
  if (creditUsd < 10) return 8;
  if (creditUsd < 50) return 16;
  if (creditUsd < 200) return 32;
  return 64;
}

/** Override, else no credit, else a trusted rate, else credit, else 4. */
export function ceilingOf(facts: AccountFacts, override: number | null, latencyMs: number): Ceiling {
  const rpm = trustedRpm(facts);
  const byRate = rpm === null ? null : rateCeiling(rpm, latencyMs);
  if (facts.creditUsd !== null && facts.creditUsd <= 0) {
    return { paid: 0, free: override ?? byRate ?? UNKNOWN_CEILING, source: 'no-credit' };
  }
  if (override !== null) return both(override, 'override');
  if (byRate !== null) return both(byRate, 'rate');
  const byCredit = creditCeiling(facts.creditUsd);
  return byCredit === null ? both(UNKNOWN_CEILING, 'default') : both(byCredit, 'credit');
}

export function isOverride(value: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= MAX_PERMITS;
}

function both(permits: number, source: CeilingSource): Ceiling {
  return { paid: permits, free: permits, source };
}

function clampPermits(permits: number): number {
  return Math.min(MAX_PERMITS, Math.max(1, permits));
}
