import type { OpenCloud } from './cloud/open-room.ts';
import type { AgentPort } from './cloud/ports.ts';
import type { Reason } from './cloud/room.ts';
import type { EventSink } from './domain/events.ts';
import type { RoutedProvider } from './router/types.ts';

/** May a key pushed now survive a restart of an agent, and if not, what would be needed. */
export function rememberAbility(agents: AgentPort, cloud: Pick<OpenCloud, 'keys'>) {
  const ready = agents.ready();
  const can = ready.some(({ node }) => cloud.keys.status(node)?.canRemember === true);
  const note: Reason | null =
    can || ready.length === 0
      ? null
      : {
          code: 'no_keyring',
          sentence:
            'Agents forget the key when they restart. One that is started with SWITCHYARD_KEYRING can keep it encrypted.',
        };
  return { can, note };
}

/** A wrong upstream behind a pin: nothing of it was kept, and a person should know who changed. */
export function wrongUpstreamEvent(events: EventSink): (provider: RoutedProvider) => void {
  return ({ id, model, node, role }) =>
    events.record({
      severity: 'error',
      source: 'cloud',
      code: 'wrong_upstream',
      sentence: `Another upstream than the pinned one has answered for ${model}; its answer was thrown away and it gets no work.`,
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
        events.record({
          severity: 'warn',
          source: 'cloud',
          code: 'budget_cut',
          sentence: `OpenRouter limited the account (${record.cause}): ${record.from} permits became ${record.to}.`,
        });
      }
      if (record.kind !== 'circuit') continue;
      const key = `${record.name}|${record.subject ?? ''}`;
      if (record.atWallMs - (told.get(key) ?? Number.NEGATIVE_INFINITY) < QUIET_MS) continue;
      if (CREDIT_ROWS.has(record.name)) {
        events.record({
          severity: 'error',
          source: 'cloud',
          code: 'credit_exhausted',
          sentence: `OpenRouter refuses paid models (${record.name}). Add credit, then resume the cloud.`,
          needsPerson: true,
        });
      } else if (KEY_ROWS.has(record.name)) {
        events.record({
          severity: 'error',
          source: 'cloud',
          code: 'cloud_key_refused',
          sentence: `OpenRouter refuses the key of ${agents.name(record.subject as Parameters<AgentPort['name']>[0])}. Enter another one.`,
          needsPerson: true,
        });
      } else if (record.name.startsWith('free ')) {
        events.record({
          severity: 'info',
          source: 'cloud',
          code: 'free_tier_closed',
          sentence: `The limit of the free models is reached (${record.name}); they rest until it is reset.`,
        });
      } else continue;
      told.set(key, record.atWallMs);
    }
  };
}
