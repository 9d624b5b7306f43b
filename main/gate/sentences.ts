import { type Said, said, together } from '../domain/said.ts';
import type { Evaluation } from './evaluate.ts';
import type { FailureReason } from './measurement.ts';

/** What stands for a figure that is not a number. */
const NONE = '—';

/** A finished comparison in words: what was found, and what the operator does about it. */
export function sayingOf(found: Evaluation): Said {
  const figure = found.checks.find(({ check }) => check === found.failed)?.figure ?? null;
  const cosine = figure ?? NONE;
  const [first = NONE, second = NONE, third = NONE] = found.witnesses;
  switch (found.kind) {
    case 'pass':
      return said('gate_pass', { minCosine: found.minCosine ?? NONE });
    case 'pass-reduced':
      return said('gate_pass_reduced');
    case 'vector-incompatible':
      return incompatible(found, figure, first, third);
    case 'scale-mismatch':
      return figure === null ? said('gate_scale_unknown') : said('gate_scale', { offPercent: 100 * figure });
    case 'batch-inconsistent':
      return said('gate_batch', { cosine });
    case 'collapsed':
      return said('gate_collapsed', { first, second, cosine });
    case 'silent-truncation':
      return said('gate_truncates');
    case 'unstable':
      return said(found.failed === 'drift' ? 'gate_drifted' : 'gate_unrepeatable', { cosine });
    default:
      return said('gate_unchecked');
  }
}

function incompatible(found: Evaluation, figure: number | null, first: string, misplaced: string): Said {
  if (found.failed === 'usable') return said('gate_unusable', { probe: first });
  const what =
    found.failed === 'centred'
      ? said('gate_centred', { cosine: figure ?? NONE })
      : found.failed === 'nearest'
        ? said('gate_misplaced', { count: figure ?? NONE, probe: misplaced })
        : said('gate_incompatible', { minCosine: found.minCosine ?? NONE, probe: found.worst?.id ?? NONE });
  return together(what, said('gate_serve_founding'));
}

const FAILURES = {
  busy: 'gate_busy',
  unreachable: 'gate_unreachable',
  timeout: 'gate_timeout',
  refused: 'gate_refused',
  unusable: 'gate_no_vector',
  count: 'gate_count',
  engine: 'gate_engine',
  moved: 'gate_moved',
  unmarked: 'gate_unmarked',
} as const satisfies Readonly<Record<FailureReason, string>>;

/** Why a check could not be completed. */
export function failureSaid(reason: FailureReason): Said {
  return together(said(FAILURES[reason]), said('gate_again_by_itself'));
}
