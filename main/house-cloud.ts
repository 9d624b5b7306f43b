import { saidOfSource } from './budget/sources.ts';
import type { OpenCloud } from './cloud/open-room.ts';
import type { AgentPort } from './cloud/ports.ts';
import type { EventSink } from './domain/events.ts';
import type { NodeId } from './domain/ids.ts';
import { said, together } from './domain/said.ts';
import type { RoutedProvider } from './router/types.ts';

/** May a key pushed now survive a restart of an agent, and if not, what would be needed. */
export function rememberAbility(agents: AgentPort, cloud: Pick<OpenCloud, 'keys'>) {
  const ready = agents.ready();
  const can = ready.some(({ node }) => cloud.keys.status(node)?.canRemember === true);
  const note = can || ready.length === 0 ? null : said('no_keyring');
  return { can, note };
}

/** A wrong upstream behind a pin: nothing of it was kept, and a person should know who changed. */
export function wrongUpstreamEvent(events: EventSink): (provider: RoutedProvider) => void {
  return ({ id, model, node, role }) =>
    events.record({
      severity: 'error',
      source: 'cloud',
      says: said('wrong_upstream', { model }),
      needsPerson: true,
      provider: id,
      node,
      role,
    });
}

/** Codes of the refusals that a person has to do something about. */
const CREDIT_ROWS: ReadonlySet<string> = new Set([
  'credit',
  'credit, unnamed',
  'key limit',
  'guardrail budget',
  'workspace budget',
]);
const ACCOUNT_ROW = 'account limit';
const KEY_ROWS: ReadonlySet<string> = new Set(['key', 'forbidden']);
/** The same closure is not told again for so long. */
const QUIET_MS = 600_000;

/**
 * What the budget wrote into its diary since the last look, as events for people: cuts of the account, credit gone, keys
 * refused. Brief rests of a model or an upstream are in the budget's own records alone.
 */
export function budgetEvents(
  events: EventSink,
  cloud: Pick<OpenCloud, 'service'>,
  agents: Pick<AgentPort, 'name'>,
): () => void {
  let seen = 0;
  const told = new Map<string, number>();
  return () => {
    const { records, recorded } = cloud.service.diary();
    const fresh = records.slice(Math.max(0, records.length - (recorded - seen)));
    seen = recorded;
    for (const record of fresh) {
      if (record.kind === 'cut') {
        // "OpenRouter limits the account" says nothing more.
        const why = record.cause === ACCOUNT_ROW ? [] : [saidOfSource(record.cause)];
        events.record({
          severity: 'warn',
          source: 'cloud',
          says: together(said('budget_cut', { from: record.from, to: record.to }), ...why),
        });
      }
      if (record.kind !== 'circuit') continue;
      const key = `${record.name}|${record.subject ?? ''}`;
      if (record.atWallMs - (told.get(key) ?? Number.NEGATIVE_INFINITY) < QUIET_MS) continue;
      if (CREDIT_ROWS.has(record.name)) {
        events.record({
          severity: 'error',
          source: 'cloud',
          says: together(said('credit_exhausted'), saidOfSource(record.name)),
          needsPerson: true,
        });
      } else if (KEY_ROWS.has(record.name)) {
        events.record({
          severity: 'error',
          source: 'cloud',
          says: said('cloud_key_refused', { name: agents.name(record.subject as NodeId) }),
          needsPerson: true,
        });
      } else if (record.name.startsWith('free ')) {
        events.record({
          severity: 'info',
          source: 'cloud',
          says: said('free_tier_closed'),
        });
      } else continue;
      told.set(key, record.atWallMs);
    }
  };
}
