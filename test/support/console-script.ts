import { said, together } from '../../main/domain/said.ts';
import { matchesAll, parseToken } from '../../preload/contract/request-filter.ts';
import type { Input, TopicUpdate } from '../../preload/contract.ts';
import * as data from './console-data.ts';
import type { Script, Topics } from './console-page.ts';

/** A console with everything there is to see. */
export function fullTopics(): Topics {
  return {
    app: { topic: 'app', type: 'value', value: data.APP },
    nodes: { topic: 'nodes', type: 'snapshot', rows: data.NODES },
    providers: { topic: 'providers', type: 'snapshot', rows: data.NODE_DETAIL.providers },
    roles: { topic: 'roles', type: 'snapshot', rows: data.ROLES },
    gate: { topic: 'gate', type: 'snapshot', rows: data.VERDICTS },
    health: { topic: 'health', type: 'snapshot', rows: data.HEALTH },
    budget: { topic: 'budget', type: 'value', value: data.BUDGET },
    cloud: { topic: 'cloud', type: 'value', value: data.CLOUD },
    requests: { topic: 'requests', type: 'snapshot', rows: data.REQUESTS.toReversed() },
    events: { topic: 'events', type: 'snapshot', rows: data.EVENTS },
    series: { topic: 'series', type: 'snapshot', rows: [] },
  } satisfies { [Name in keyof Topics]: TopicUpdate };
}

/** A first run: nothing but the app's own machine. */
export function emptyTopics(): Topics {
  return {
    app: { topic: 'app', type: 'value', value: data.APP },
    nodes: { topic: 'nodes', type: 'snapshot', rows: [] },
    providers: { topic: 'providers', type: 'snapshot', rows: [] },
    roles: {
      topic: 'roles',
      type: 'snapshot',
      rows: [data.role({ id: 'embedding', task: 'embed', now: together(said('unfounded'), said('found_nobody')) })],
    },
    gate: { topic: 'gate', type: 'snapshot', rows: [] },
    health: { topic: 'health', type: 'snapshot', rows: [] },
    requests: { topic: 'requests', type: 'snapshot', rows: [] },
    events: { topic: 'events', type: 'snapshot', rows: [] },
    series: { topic: 'series', type: 'snapshot', rows: [] },
    cloud: {
      topic: 'cloud',
      type: 'value',
      value: {
        ...data.CLOUD,
        state: 'key-missing',
        holders: [],
        lastPush: null,
        reason: said('no_key_held'),
      },
    },
  };
}

export function fullScript(over: Script = {}): Script {
  return {
    'settings.get': () => data.SETTINGS,
    'settings.set': () => ({ settings: data.SETTINGS, restartNeeded: false }),
    'overview.get': (input) => ({ ...data.OVERVIEW, history: data.history((input as { range: '1h' }).range) }),
    'nodes.detail': () => data.NODE_DETAIL,
    'discovery.list': () => ({
      searching: true,
      problem: null,
      found: [
        {
          id: 'd1',
          name: 'attic-server',
          address: '192.168.1.77:7412',
          fingerprintShort: '9f86d081884c7d65',
          paired: false,
          seenAtMs: data.NOW,
        },
      ],
    }),
    'enrolments.list': () => ({ enrolments: [] }),
    'roles.models': () => ({
      local: [{ model: 'qwen3-coder:30b', aliases: [], nodes: 2, sizeBytes: 18e9 }],
      cloud: [
        {
          model: 'poolside/laguna-s-2.1',
          contextTokens: 131_072,
          promptUsdPerMillion: 0.3,
          completionUsdPerMillion: 1.2,
          upstreams: [
            {
              slug: 'poolside',
              name: 'Poolside',
              quantization: null,
              contextTokens: 131_072,
              promptUsdPerMillion: 0.3,
              completionUsdPerMillion: 1.2,
              healthy: true,
            },
          ],
        },
      ],
    }),
    'roles.preview': () => ({ effect: 'plain', reasons: [], founders: [], leaves: null }),
    'roles.update': () => data.ROLES[3] as (typeof data.ROLES)[number],
    'spaces.list': () => ({ spaces: data.SPACES }),
    'gate.history': (input) => data.gateHistory((input as { providerId: string }).providerId),
    'gate.verify': () => ({ started: [] }),
    'keys.list': () => ({ keys: [...data.KEYS] }),
    'requests.list': (input) => {
      const { matching = '' } = input as Input<'requests.list'>;
      const tokens = matching.split('\n').flatMap((line) => parseToken(line) ?? []);
      return { requests: data.REQUESTS.filter((row) => matchesAll(row, tokens)), more: false, lookedTo: null };
    },
    'requests.get': () => data.TRACE,
    'events.list': () => ({ events: [], more: false }),
    'cloud.status': () => data.CLOUD,
    'budget.get': () => data.BUDGET,
    'health.list': () => ({ items: [...data.HEALTH] }),
    ...over,
  };
}
