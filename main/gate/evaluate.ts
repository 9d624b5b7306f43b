import type { VerdictKind } from '../domain/verdict.ts';
import {
  centredCosines,
  closestPair,
  cutRows,
  firstUnusable,
  least,
  type Matrix,
  mean,
  misplaced,
  norm,
  normDeviation,
  row,
  rowCosines,
  rows,
  stack,
  worstIndex,
} from './compare.ts';
import type { Measurement } from './measurement.ts';
import type { ProbeText } from './probes.ts';
import type { Check, CheckFinding, WorstProbe } from './verdict.ts';

/** Limits of the checks. All but the first hold for every role. */
export const CENTRED_THRESHOLD = 0.98;
export const BATCH_THRESHOLD = 0.999;
export const REPEAT_THRESHOLD = 0.9999;
export const COLLAPSE_LIMIT = 0.9999;
export const NORM_TOLERANCE = 0.01;

/** What a provider is compared with. */
export type Reference =
  | { readonly of: 'anchor' | 'peer'; readonly vectors: Matrix }
  /** A single cloud upstream: nobody else serves this model, so there is nothing to compare with. */
  | { readonly of: 'nobody' };

export interface Rules {
  /** On the minimum cosine, at least 0.99. */
  readonly threshold: number;
  readonly normalise: boolean;
  readonly probes: readonly ProbeText[];
  /** Rows of `probes` that are the equal-length texts: the last so many. */
  readonly equalLength: number;
  /** The provider's own first vectors; null: these are the first. */
  readonly first: { readonly vectors: Matrix; readonly sameProcess: boolean } | null;
}

export interface Evaluation {
  readonly kind: VerdictKind;
  /** The check that decided; null for a pass. */
  readonly failed: Check | 'usable' | null;
  readonly checks: readonly CheckFinding[];
  readonly minCosine: number | null;
  readonly meanCosine: number | null;
  readonly centredMin: number | null;
  readonly worst: WorstProbe | null;
  readonly cutWidths: readonly number[];
  /** Ids of the two most alike probes, of the first misplaced one, or of the first unusable one: for the sentence. */
  readonly witnesses: readonly string[];
}

const figure = (value: number): number | null => (Number.isFinite(value) ? value : null);

function finding(check: Check, passed: boolean, value: number, threshold: number | null): CheckFinding {
  return { check, state: passed ? 'pass' : 'fail', figure: figure(value), threshold };
}

/** Compares one measurement with the space. Pure; every width has been found equal to the space's before. */
export function evaluate(measured: Measurement, reference: Reference, rules: Rules): Evaluation {
  const { singles, batched } = measured;
  const id = (index: number): string => rules.probes[index % rules.probes.length]?.id ?? '';
  const unusable = firstUnusable(stack([singles, batched]));
  const alike = closestPair(singles);
  const compared = compareWith(reference, measured, rules);
  const drift = driftOf(measured, rules);
  const checks: readonly CheckFinding[] = [
    { check: 'width', state: 'pass', figure: singles.width, threshold: singles.width },
    ...compared.checks,
    atLeastCheck('batch', least(rowCosines(batched, singles)), BATCH_THRESHOLD),
    atLeastCheck('repeat', least(rowCosines(measured.again, measured.before)), REPEAT_THRESHOLD),
    finding('collapse', alike.cosine <= COLLAPSE_LIMIT, alike.cosine, COLLAPSE_LIMIT),
    normCheck(singles, reference, rules),
    limitCheck(measured),
    drift,
  ];
  const witnesses = unusable >= 0 ? [id(unusable)] : [id(alike.a), id(alike.b), ...compared.misplaced.map(id)];
  const verdict = decide(checks, reference, {
    unusable: unusable >= 0,
    sameProcess: rules.first?.sameProcess === true,
    shortCollapsed: !(closestPair(shortRows(singles, rules.probes)).cosine <= COLLAPSE_LIMIT),
  });
  return {
    ...verdict,
    checks,
    minCosine: compared.min,
    meanCosine: compared.mean,
    centredMin: compared.centredMin,
    worst: compared.worst,
    cutWidths: servedCuts(measured, reference, rules),
    witnesses,
  };
}

function atLeastCheck(check: Check, value: number, threshold: number): CheckFinding {
  return finding(check, value >= threshold, value, threshold);
}

interface Compared {
  readonly checks: readonly CheckFinding[];
  readonly min: number | null;
  readonly mean: number | null;
  readonly centredMin: number | null;
  readonly worst: WorstProbe | null;
  readonly misplaced: readonly number[];
}

/** Both the vectors of single texts and those of batches count: production sends either. */
function compareWith(reference: Reference, { singles, batched }: Measurement, rules: Rules): Compared {
  if (reference.of === 'nobody') {
    const reduced = (check: Check): CheckFinding => ({ check, state: 'reduced', figure: null, threshold: null });
    const checks = [reduced('min-cosine'), reduced('centred'), reduced('nearest')];
    return { checks, min: null, mean: null, centredMin: null, worst: null, misplaced: [] };
  }
  const anchor = reference.vectors;
  const both = stack([singles, batched]);
  const twice = stack([anchor, anchor]);
  const cosines = rowCosines(both, twice);
  const min = least(cosines);
  const centredMin = least(centredCosines(both, twice));
  const wrong = misplaced(singles, anchor);
  const worst = worstIndex(cosines);
  return {
    checks: [
      finding('min-cosine', min > rules.threshold, min, rules.threshold),
      finding('centred', centredMin > CENTRED_THRESHOLD, centredMin, CENTRED_THRESHOLD),
      finding('nearest', wrong.length === 0, wrong.length, 0),
    ],
    min: figure(min),
    mean: figure(mean(cosines)),
    centredMin: figure(centredMin),
    worst: worstProbe(worst, both, twice, rules, cosines),
    misplaced: wrong,
  };
}

const HEAD = 8;
const WORST_TEXT = 200;

function worstProbe(
  index: number,
  provider: Matrix,
  anchor: Matrix,
  rules: Rules,
  cosines: Float64Array,
): WorstProbe | null {
  const probe = rules.probes[index % rules.probes.length];
  if (probe === undefined) return null;
  const head = (source: Matrix): number[] => Array.from(row(source, index).subarray(0, HEAD), (x) => figure(x) ?? 0);
  return {
    id: probe.id,
    text: probe.text.length > WORST_TEXT ? `${probe.text.slice(0, WORST_TEXT)}…` : probe.text,
    cosine: figure(cosines[index] ?? Number.NaN),
    anchorHead: head(anchor),
    providerHead: head(provider),
    anchorNorm: figure(norm(row(anchor, index))),
    providerNorm: figure(norm(row(provider, index))),
  };
}

function normCheck(singles: Matrix, reference: Reference, rules: Rules): CheckFinding {
  if (rules.normalise) return { check: 'norm', state: 'skipped', figure: null, threshold: null };
  if (reference.of === 'nobody') return { check: 'norm', state: 'reduced', figure: null, threshold: null };
  const deviation = normDeviation(singles, reference.vectors);
  return finding('norm', deviation <= NORM_TOLERANCE, deviation, NORM_TOLERANCE);
}

/**
 * A refusal is right. An answer is right only when the tail and the head each show in the vector: an encoder that reads
 * more than the space promises does no harm, one that cuts gives one vector for two texts.
 */
function limitCheck({ overLimit, singles }: Measurement): CheckFinding {
  if (overLimit.answer === 'refused') return { check: 'limit', state: 'pass', figure: null, threshold: COLLAPSE_LIMIT };
  const { base, otherTail, otherHead } = overLimit;
  const sameWidth = [base, otherTail, otherHead].every(({ width }) => width === singles.width);
  const pair = closestPair(sameWidth ? stack([base, otherTail]) : base);
  const heads = closestPair(sameWidth ? stack([base, otherHead]) : base);
  const alike = Math.max(pair.cosine, heads.cosine);
  return finding('limit', sameWidth && alike <= COLLAPSE_LIMIT, alike, COLLAPSE_LIMIT);
}

/** Bytes up to which no window in use cuts a text. */
const SHORT_TEXT = 120;

function shortRows(source: Matrix, probes: readonly ProbeText[]): Matrix {
  return stack(
    probes.flatMap(({ text }, i) => (text.length <= SHORT_TEXT && i < source.count ? [rows(source, i, i + 1)] : [])),
  );
}

function driftOf({ singles }: Measurement, rules: Rules): CheckFinding {
  if (rules.first === null) return { check: 'drift', state: 'skipped', figure: null, threshold: null };
  const min = least(rowCosines(singles, rules.first.vectors));
  const centredMin = least(centredCosines(singles, rules.first.vectors));
  return finding('drift', min > rules.threshold && centredMin > CENTRED_THRESHOLD, min, rules.threshold);
}

/** A cut width is served when its vectors agree with the anchor cut alike; a failure costs that width alone. */
function servedCuts({ cuts, singles }: Measurement, reference: Reference, rules: Rules): readonly number[] {
  const source = reference.of === 'nobody' ? singles : reference.vectors;
  return cuts
    .filter((cut) => {
      if (cut.width >= source.width || cut.count !== source.count - rules.equalLength) return false;
      const expected = cutRows(rows(source, 0, cut.count), cut.width);
      const close = least(rowCosines(cut, expected)) > rules.threshold;
      return close && least(centredCosines(cut, expected)) > CENTRED_THRESHOLD && misplaced(cut, expected).length === 0;
    })
    .map(({ width }) => width);
}

/**
 * When several checks fail, the one that explains the others decides. Chance comes first (nothing else can be trusted of an
 * encoder that does not repeat itself), then what it does to its own vectors, and only then how far they are from the
 * anchor's: a constant or a cut vector is also far, but "far" would send the operator looking for another model.
 */
function decide(
  checks: readonly CheckFinding[],
  reference: Reference,
  known: { readonly unusable: boolean; readonly sameProcess: boolean; readonly shortCollapsed: boolean },
): Pick<Evaluation, 'kind' | 'failed'> {
  if (known.unusable) return { kind: 'vector-incompatible', failed: 'usable' };
  const order: readonly (readonly [Check, VerdictKind])[] = [
    ['repeat', 'unstable'],
    // Long texts with one beginning collapse too when an encoder cuts them; then the cut is the cause.
    ...(known.shortCollapsed ? [] : [['limit', 'silent-truncation'] as const]),
    ['collapse', 'collapsed'],
    ['batch', 'batch-inconsistent'],
    ['limit', 'silent-truncation'],
    // In the process that gave the first vectors a change is drift; in another one it is another encoder.
    ...(known.sameProcess ? [['drift', 'unstable'] as const] : []),
    ['min-cosine', 'vector-incompatible'],
    ['centred', 'vector-incompatible'],
    ['nearest', 'vector-incompatible'],
    ['norm', 'scale-mismatch'],
    ['drift', 'unstable'],
  ];
  for (const [check, kind] of order) {
    if (checks.some((found) => found.check === check && found.state === 'fail')) return { kind, failed: check };
  }
  return { kind: reference.of === 'nobody' ? 'pass-reduced' : 'pass', failed: null };
}
