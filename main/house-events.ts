import type { EventSink } from './domain/events.ts';
import type { GateEvent } from './gate/gate-api.ts';
import type { StoreHealth } from './store/ports.ts';

/** What the gate finds, as events for people. Routine re-runs that pass again say nothing. */
export function gateEvents(events: EventSink): (event: GateEvent) => void {
  const lastKinds = new Map<string, string>();
  return (event) => {
    switch (event.type) {
      case 'verdict': {
        const { verdict } = event;
        const key = `${verdict.provider} ${verdict.space}`;
        const before = lastKinds.get(key);
        lastKinds.set(key, verdict.kind);
        if (before === verdict.kind) return;
        const good = verdict.kind === 'pass' || verdict.kind === 'pass-reduced';
        const passing = verdict.kind === 'unverified' || verdict.kind === 'probe-failed';
        events.record({
          severity: good || passing ? 'info' : 'warn',
          source: 'gate',
          code: before === 'pass' && !good ? 'verdict_lost' : `verdict_${verdict.kind.replaceAll('-', '_')}`,
          sentence: verdict.sentence,
          needsPerson: !good && !passing,
          provider: verdict.provider,
        });
        return;
      }
      case 'space':
        events.record({
          severity: 'info',
          source: 'gate',
          code: `space_${event.change}`,
          sentence: `Space ${event.space.id} (${event.space.width} wide) was ${event.change}.`,
          role: event.space.role,
        });
        return;
      case 'drift':
        events.record({
          severity: 'error',
          source: 'gate',
          code: 'drift',
          sentence: `${event.verdict.sentence} ${event.rows} rows were written since its last good check; see gate.affected.`,
          needsPerson: true,
          provider: event.verdict.provider,
        });
        return;
      case 'store':
        events.record({
          severity: event.state === 'failing' ? 'warn' : 'info',
          source: 'gate',
          code: `gate_store_${event.state}`,
          sentence:
            event.state === 'failing'
              ? 'Findings of the gate cannot be stored now; they are kept in memory.'
              : `Findings of the gate are stored again; ${event.lostRanges} ledger ranges were lost.`,
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
    events.record(
      state === 'ok'
        ? { severity: 'info', source: 'store', code: 'store_recovered', sentence: 'The database can be written again.' }
        : {
            severity: 'error',
            source: 'store',
            code: 'store_degraded',
            sentence:
              reason ?? 'The database cannot be written; the last good configuration serves and changes are refused.',
            needsPerson: true,
          },
    );
  };
}
