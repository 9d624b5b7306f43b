import { describe, expect, it } from 'vitest';
import type { NewEvent } from '../../main/domain/events.ts';
import type { ProviderId, SpaceId } from '../../main/domain/ids.ts';
import type { VerdictKind } from '../../main/domain/verdict.ts';
import type { Verdict } from '../../main/gate/verdict.ts';
import { gateEvents } from '../../main/house-events.ts';

const verdict = (kind: VerdictKind, provider = 'p', lastGoodAtMs: number | null = null) =>
  ({
    provider: provider as ProviderId,
    space: 's' as SpaceId,
    kind,
    sentence: `It is ${kind}.`,
    lastGoodAtMs,
  }) as Verdict;

/** What is recorded while an encoder is found to be one thing after the other. */
function told(found: readonly Verdict[], { stored = [] as readonly Verdict[], auto = false } = {}) {
  const events: NewEvent[] = [];
  const tell = gateEvents({ record: (event) => events.push(event) }, { stored, isAuto: () => auto });
  for (const one of found) tell({ type: 'verdict', verdict: one });
  return events.map(({ code, severity, needsPerson }) => [code, severity, needsPerson]);
}

describe('verdicts as events', () => {
  it('say nothing after a start while everything is as it was', () => {
    const kinds = ['pass', 'dimension-mismatch', 'vector-incompatible', 'scale-mismatch'] as const;
    const all = kinds.map((kind) => verdict(kind, kind));
    expect(told(all, { stored: all })).toEqual([]);
    expect(told(all)).toHaveLength(4);
  });

  it('tell what another start finds otherwise', () => {
    expect(told([verdict('vector-incompatible')], { stored: [verdict('pass')] })).toEqual([
      ['verdict_lost', 'warn', true],
    ]);
    expect(told([verdict('pass')], { stored: [verdict('dimension-mismatch')] })).toEqual([
      ['verdict_pass', 'info', false],
    ]);
  });

  it('say nothing of a bad encoder whose check was under way when the process ended', () => {
    const found = { kind: 'vector-incompatible' as const, sinceMs: 5 };
    const stored = [{ ...verdict('unverified'), found }];
    expect(told([verdict('vector-incompatible')], { stored })).toEqual([]);
    expect(told([verdict('scale-mismatch')], { stored })).toHaveLength(1);
  });

  it('tell of a bad encoder once, also when its engine was started again and checked anew', () => {
    const twice = [verdict('vector-incompatible'), verdict('unverified'), verdict('vector-incompatible')];
    expect(told(twice)).toEqual([
      ['verdict_vector_incompatible', 'warn', true],
      ['verdict_unverified', 'info', false],
    ]);
    expect(told([...twice, verdict('scale-mismatch')]).at(-1)).toEqual(['verdict_scale_mismatch', 'warn', true]);
  });

  it('want nobody for an encoder of another width where every encoder is looked at, unless it had passed', () => {
    expect(told([verdict('dimension-mismatch')], { auto: true })).toEqual([
      ['verdict_dimension_mismatch', 'info', false],
    ]);
    expect(told([verdict('dimension-mismatch')])).toEqual([['verdict_dimension_mismatch', 'warn', true]]);
    const changed = [verdict('unverified', 'p', 4), verdict('dimension-mismatch', 'p', 4)];
    expect(told(changed, { auto: true, stored: [verdict('pass', 'p', 4)] })).toEqual([
      ['verdict_lost', 'info', false],
      ['verdict_dimension_mismatch', 'warn', true],
    ]);
    // Whatever else was found in between.
    const between = [verdict('vector-incompatible', 'p', 4), verdict('dimension-mismatch', 'p', 4)];
    expect(told(between, { auto: true, stored: [verdict('pass', 'p', 4)] })).toEqual([
      ['verdict_lost', 'warn', true],
      ['verdict_dimension_mismatch', 'warn', true],
    ]);
  });
});
