/** What `/key` and the operator say about the account. Null: not known, which never counts as zero. */
export interface AccountFacts {
  /** What the key may still spend, in USD. */
  readonly creditUsd: number | null;
  readonly isFreeTier: boolean | null;
  /** Requests per minute as reported, trusted or not. */
  readonly rpm: number | null;
}

export const NOTHING_KNOWN: AccountFacts = { creditUsd: null, isFreeTier: null, rpm: null };

/** An account that has paid: only for those the vestigial "1 request per interval" of `/key` is common. */
export function isFunded(facts: AccountFacts): boolean {
  return facts.isFreeTier !== true && !(facts.creditUsd !== null && facts.creditUsd <= 0);
}

/** requests x 60 s / interval; null when either is missing or cannot be a rate. */
export function requestsPerMinute(requests: number | null, intervalMs: number | null): number | null {
  if (requests === null || intervalMs === null || !(intervalMs > 0)) return null;
  return (requests * 60_000) / intervalMs;
}

/**
 * Whether a reported rate may limit us. `-1`, 0 and 1 are left-overs of a retired field, and a funded account has no
 * request rate below 60 per minute, so a lower figure there is such a left-over too.
 */
export function isTrustedRpm(facts: AccountFacts): boolean {
  const { rpm } = facts;
  if (rpm === null || !Number.isFinite(rpm) || rpm < 2) return false;
  return rpm >= 60 || !isFunded(facts);
}

export function trustedRpm(facts: AccountFacts): number | null {
  return isTrustedRpm(facts) ? facts.rpm : null;
}
