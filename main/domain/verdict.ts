/** Findings of the gate on one provider for one space (SPEC 5). */
export const VERDICT_KINDS = [
  'pass',
  'pass-reduced',
  'vector-incompatible',
  'dimension-mismatch',
  'no-upstream-pin',
  'batch-inconsistent',
  'unstable',
  'collapsed',
  'scale-mismatch',
  'silent-truncation',
  'probe-failed',
  'unverified',
] as const;
export type VerdictKind = (typeof VERDICT_KINDS)[number];

export type Regime = 'local' | 'cloud';

/** What identifies the very process whose vectors were checked; a change of any field voids the verdict at once. */
export interface Fingerprint {
  readonly engine: string;
  readonly version: string | null;
  readonly modelDigest: string | null;
  readonly upstream: string | null;
  readonly pin: string | null;
  /** pid and start time of the listener, `media_marker` or `process_start_time_seconds`; null where none can be had. */
  readonly processMark: string | null;
}

export function sameFingerprint(a: Fingerprint, b: Fingerprint): boolean {
  return (
    a.engine === b.engine &&
    a.version === b.version &&
    a.modelDigest === b.modelDigest &&
    a.upstream === b.upstream &&
    a.pin === b.pin &&
    a.processMark === b.processMark
  );
}
