import { type Said, said, together } from '../domain/said.ts';
import type { Ceiling } from './ceiling.ts';
import type { OpenCircuit } from './circuits.ts';
import type { LimitState } from './limit.ts';
import type { AccountFacts } from './trust.ts';

export type BudgetState = LimitState | 'off';

export interface Situation {
  readonly state: BudgetState;
  readonly paused: boolean;
  readonly creditOff: OpenCircuit | null;
  readonly ceiling: Ceiling;
  readonly facts: AccountFacts;
  readonly latencyMs: number;
  /** False: no call was measured yet, `latencyMs` is an assumption. */
  readonly latencyMeasured: boolean;
  readonly effective: number;
  readonly usable: number;
  readonly plateau: number | null;
  /** Wall clock; null when not cooling. */
  readonly cooldownUntilWallMs: number | null;
  /** Wall clock of the next step up; null: none ahead. */
  readonly nextStepWallMs: number | null;
}

/** One plain sentence or two: how many permits there are now and where the number comes from. */
export function describe(situation: Situation): Said {
  if (situation.paused) return said('budget_paused');
  if (situation.creditOff !== null) return said(situation.creditOff.code);
  if (situation.ceiling.paid === 0) return said('budget_spent', { permits: situation.usable });
  const { usable, plateau, cooldownUntilWallMs: untilAtMs, nextStepWallMs: nextAtMs } = situation;
  const part = origin(situation, usable);
  switch (situation.state) {
    case 'cooling':
      return together(untilAtMs === null ? said('budget_cooling_open') : said('budget_cooling', { untilAtMs }), part);
    case 'backing-off':
      // No more than the ceiling is to be had: with one permit, or before `/key` is read.
      return usable < situation.ceiling.paid
        ? together(part, said('budget_limited'))
        : together(origin(situation, null), said('budget_limited_open'));
    case 'ramping':
      return together(part, nextAtMs === null ? said('budget_climbing_open') : said('budget_climbing', { nextAtMs }));
    default:
      if (plateau !== null && usable === plateau && situation.effective < situation.ceiling.paid) {
        return together(part, nextAtMs === null ? said('budget_plateau_open') : said('budget_plateau', { nextAtMs }));
      }
      return origin(situation, null);
  }
}

/** @param usable when fewer than all permits may be used now; null: all of them. */
function origin({ ceiling, facts, latencyMs, latencyMeasured }: Situation, usable: number | null): Said {
  const permits = ceiling.paid;
  switch (ceiling.source) {
    case 'override':
      return usable === null ? said('permits_override', { permits }) : said('permits_of_override', { permits, usable });
    case 'rate': {
      const figures = { permits, perMinute: facts.rpm ?? '—', callMs: latencyMs };
      if (usable === null) return said(latencyMeasured ? 'permits_rate' : 'permits_rate_assumed', figures);
      return said(latencyMeasured ? 'permits_of_rate' : 'permits_of_rate_assumed', { ...figures, usable });
    }
    case 'credit': {
      const figures = { permits, creditUsd: facts.creditUsd ?? 0 };
      return usable === null ? said('permits_credit', figures) : said('permits_of_credit', { ...figures, usable });
    }
    default:
      return usable === null ? said('permits_default', { permits }) : said('permits_of_default', { permits, usable });
  }
}
