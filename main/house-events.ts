import type { EventSink } from './domain/events.ts';
import { said, together } from './domain/said.ts';
import type { VerdictKind } from './domain/verdict.ts';
import type { GateEvent } from './gate/gate-api.ts';
import type { Verdict } from './gate/verdict.ts';
import { isFinding, saidBy } from './gate/verdict.ts';
import type { StoreHealth } from './store/ports.ts';

export interface GateEventFacts {
  /** Verdicts from before this start. */
  readonly stored: readonly Verdict[];
  /** With `auto` every local encoder is looked at: one of another width serves another role, and nobody has to do anything. */
  readonly isAuto: (verdict: Verdict) => boolean;
}

const GOOD: ReadonlySet<VerdictKind> = new Set(['pass', 'pass-reduced']);

/**
 * What the gate finds, as events for people. Told is what changes: neither a re-run that finds the same again nor a start says
 * anything, and a bad encoder that was checked anew and is as bad as before is no news.
 */
export function gateEvents(events: EventSink, { stored, isAuto }: GateEventFacts): (event: GateEvent) => void {
  const keyOf = ({ provider, space }: Verdict) => `${provider} ${space}`;
  const lastKinds = new Map(stored.map((verdict) => [keyOf(verdict), verdict.kind]));
  const lastFound = new Map<string, VerdictKind>();
  for (const verdict of stored) {
    const found = isFinding(verdict.kind) ? verdict.kind : verdict.found?.kind;
    if (found !== undefined) lastFound.set(keyOf(verdict), found);
  }
  return (event) => {
    switch (event.type) {
      case 'verdict': {
        const { verdict } = event;
        const { kind } = verdict;
        const key = keyOf(verdict);
        const before = lastKinds.get(key);
        const foundBefore = lastFound.get(key);
        lastKinds.set(key, kind);
        if (isFinding(kind)) lastFound.set(key, kind);
        const good = GOOD.has(kind);
        if (before === kind || (!good && foundBefore === kind)) return;
        const lost = before === 'pass' && !good;
        // As the list of what needs a person has it: one that ever fitted is missed.
        const neverFitted = verdict.lastGoodAtMs === null;
        const quiet = good || !isFinding(kind) || (kind === 'dimension-mismatch' && neverFitted && isAuto(verdict));
        events.record({
          severity: quiet ? 'info' : 'warn',
          source: 'gate',
          code: lost ? 'verdict_lost' : `verdict_${kind.replaceAll('-', '_')}`,
          says: saidBy(verdict),
          needsPerson: !quiet,
          provider: verdict.provider,
        });
        return;
      }
      case 'space':
        events.record({
          severity: 'info',
          source: 'gate',
          says: said(`space_${event.change}`, { space: event.space.id, width: event.space.width }),
          role: event.space.role,
        });
        return;
      case 'drift':
        events.record({
          severity: 'error',
          source: 'gate',
          code: 'drift',
          says: together(saidBy(event.verdict), said('drift_rows', { rows: event.rows })),
          needsPerson: true,
          provider: event.verdict.provider,
        });
        return;
      case 'store':
        events.record({
          severity: event.state === 'failing' ? 'warn' : 'info',
          source: 'gate',
          says:
            event.state === 'failing'
              ? said('gate_store_failing')
              : said('gate_store_recovered', { lost: event.lostRanges }),
        });
        return;
      case 'founding':
        return;
    }
  };
}

/** The database went away or came back: told once each, however often it is tried. */
export function storeEvents(events: EventSink): (health: StoreHealth) => void {
  let last: StoreHealth['state'] = 'ok';
  return ({ state, reason }) => {
    if (state === last || state === 'stopped') return;
    last = state;
    const source = 'store';
    if (state === 'ok') events.record({ severity: 'info', source, says: said('store_recovered') });
    else {
      const says = reason ?? said('store_degraded');
      events.record({ severity: 'error', source, code: 'store_degraded', says, needsPerson: true });
    }
  };
}
