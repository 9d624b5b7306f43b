import type { ProviderId, SpaceId } from '../domain/ids.ts';
import type { Said } from '../domain/said.ts';
import type { Fingerprint, Regime, VerdictKind } from '../domain/verdict.ts';

/** The checks in the order in which a matrix shows them. */
export const CHECKS = [
  'width',
  'min-cosine',
  'centred',
  'nearest',
  'batch',
  'repeat',
  'collapse',
  'norm',
  'limit',
  'drift',
] as const;
export type Check = (typeof CHECKS)[number];

export interface CheckFinding {
  readonly check: Check;
  /** `reduced`: no peer to compare with; `skipped`: does not apply; `not-run`: an earlier check decided. */
  readonly state: 'pass' | 'fail' | 'reduced' | 'skipped' | 'not-run';
  /** What was measured, in the check's own unit; null when nothing was. */
  readonly figure: number | null;
  readonly threshold: number | null;
}

export interface WorstProbe {
  readonly id: string;
  readonly text: string;
  readonly cosine: number | null;
  /** The first eight numbers of both vectors, for the eye. */
  readonly anchorHead: readonly number[];
  readonly providerHead: readonly number[];
  readonly anchorNorm: number | null;
  readonly providerNorm: number | null;
}

/** The gate's finding on one provider for one space. JSON-serialisable. */
export interface Verdict {
  readonly provider: ProviderId;
  readonly space: SpaceId;
  readonly regime: Regime;
  readonly kind: VerdictKind;
  /** Plain words: what was found and what to do about it. */
  readonly sentence: string;
  /** The same by code and figures; absent in verdicts stored before there was one. */
  readonly says?: Omit<Said, 'sentence'>;
  readonly checks: readonly CheckFinding[];
  readonly minCosine: number | null;
  readonly meanCosine: number | null;
  readonly centredMin: number | null;
  readonly worst: WorstProbe | null;
  /** Declared widths that this provider also serves cut. */
  readonly cutWidths: readonly number[];
  /** Of the process that answered every probe; null when none did. */
  readonly fingerprint: Fingerprint | null;
  /** Wall clock. */
  readonly checkedAtMs: number;
  /**
   * What it was found to be last, and since when (wall clock): checks that find the same again, and that it was not known in between,
   * change nothing. Absent before there was such a thing, and before anything was found.
   */
  readonly found?: { readonly kind: VerdictKind; readonly sinceMs: number };
  /** Wall clock of the last check that passed; null: never. */
  readonly lastGoodAtMs: number | null;
  /** The process that passed then: rows are in doubt only when it is the one that fails now. */
  readonly lastGoodFingerprint: Fingerprint | null;
}

/** Not that it is not known now. */
export function isFinding(kind: VerdictKind): boolean {
  return kind !== 'unverified' && kind !== 'probe-failed';
}

/** What a verdict with what was found before says was found, and since when; undefined: nothing yet. */
export function foundBy(
  kind: VerdictKind,
  nowMs: number,
  before: Pick<Verdict, 'kind' | 'checkedAtMs' | 'found'> | null,
): Verdict['found'] {
  const earlier =
    before?.found ??
    (before !== null && isFinding(before.kind) ? { kind: before.kind, sinceMs: before.checkedAtMs } : undefined);
  return !isFinding(kind) || earlier?.kind === kind ? earlier : { kind, sinceMs: nowMs };
}

/** What a verdict says; one that was stored before its sentence had a code keeps its English. */
export function saidBy({ kind, sentence, says }: Pick<Verdict, 'kind' | 'sentence' | 'says'>): Said {
  return { code: kind, ...says, sentence };
}
