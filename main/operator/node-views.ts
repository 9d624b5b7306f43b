import type { EngineReport } from '../../agent/wire/control.ts';
import type { EngineView, NodeDetail, NodeView, ProviderView } from '../../preload/contract.ts';
import { ROLE_IDS } from '../domain/roles.ts';
import { knownFrom, said } from '../domain/said.ts';
import type { FleetNode } from '../fleet/fleet-node.ts';
import type { House } from './house.ts';
import { providerViews } from './provider-views.ts';

const STATES = {
  unknown: 'machine_unknown',
  draining: 'machine_draining',
  maintenance: 'machine_maintenance',
  degraded: 'machine_degraded',
} as const;
const isTold = (state: string): state is keyof typeof STATES => Object.hasOwn(STATES, state);

export function nodeView(node: FleetNode, providers: readonly ProviderView[], house: House): NodeView {
  const record = house.fleet.record(node.id);
  const { welcome, state } = node;
  const last = node.heartbeat;
  // What it did when it was last heard is not what it does: unknown, and not its last figures.
  const heartbeat = isHeard(node) ? last : null;
  // What a machine does itself: calls for OpenRouter cost it next to nothing.
  const engines = (heartbeat?.engines ?? []).filter(({ kind }) => kind !== 'openrouter');
  const mine = providers.filter(({ nodeId }) => nodeId === node.id);
  const ageMs = node.heartbeatAtMs === null ? null : house.clock.nowMs() - node.heartbeatAtMs;
  const ttfts = mine.flatMap(({ ttftMs }) => (ttftMs === null ? [] : [ttftMs])).sort((a, b) => a - b);
  return {
    id: node.id,
    name: node.name,
    address: node.id === house.fleet.embedded ? null : (record?.address ?? node.target?.address ?? null),
    embedded: node.id === house.fleet.embedded,
    state,
    stateSinceMs: Math.round(node.stateSinceMs),
    reason: state === 'ready' ? null : reasonOf(node, state),
    lastHeartbeatAgeMs: ageMs === null ? null : Math.round(ageMs),
    lastHeartbeatAtMs: ageMs === null ? null : Math.round(house.clock.wallMs() - ageMs),
    pairedAtMs: record?.addedAtMs ?? null,
    agentVersion: welcome?.agentVersion ?? null,
    upgradeTo: welcome && welcome.agentVersion !== house.app.version ? house.app.version : null,
    platform: welcome?.platform ?? null,
    arch: welcome?.arch ?? null,
    cpu: welcome?.cpu ?? null,
    cores: welcome?.cores ?? null,
    cpuPercent: heartbeat?.host.cpuPercent ?? null,
    memoryUsedBytes: heartbeat?.host.memoryUsedBytes ?? null,
    memoryTotalBytes: last?.host.memoryTotalBytes ?? welcome?.memoryTotalBytes ?? null,
    uptimeS: heartbeat?.host.uptimeS ?? null,
    gpus: (last?.gpus ?? []).map(({ uuid: _, ...gpu }) => (heartbeat ? gpu : { ...gpu, ...NO_FIGURES })),
    roles: ROLE_IDS.flatMap((role) => {
      const ours = mine.filter((provider) => provider.role === role);
      if (ours.length === 0) return [];
      const serving = ours.some(({ state: at }) => at === 'ready' || at === 'busy');
      return [{ role, serving, reason: serving ? null : (ours[0]?.reasons[0] ?? null) }];
    }),
    slots: heartbeat ? sum(engines, ({ slots }) => slots) : null,
    running: heartbeat ? sum(engines, ({ running }) => running) : null,
    queued: engines.every(({ queued }) => queued === null) ? null : sum(engines, ({ queued }) => queued ?? 0),
    foreign: heartbeat ? sum(engines, ({ foreign }) => foreign) : null,
    tokensPerSecond: fastest(engines),
    ttftP50Ms: heartbeat === null ? null : (ttfts[Math.floor((ttfts.length - 1) / 2)] ?? null),
    controllers: heartbeat?.controllers ?? null,
  };
}

const NO_FIGURES = { utilisationPercent: null, memoryUsedBytes: null, temperatureC: null, powerW: null } as const;

/** A session runs, and it was heard since this computer slept. */
function isHeard({ opener, state }: Pick<FleetNode, 'opener' | 'state'>): boolean {
  return opener !== null && state !== 'unknown';
}

function reasonOf(node: FleetNode, state: string): NodeView['reason'] {
  if (node.problem && state !== 'draining' && state !== 'maintenance') return node.problem;
  return said(isTold(state) ? STATES[state] : 'machine_not_ready');
}

function sum<Item>(items: readonly Item[], value: (item: Item) => number): number {
  return items.reduce((total, item) => total + value(item), 0);
}

/** The fastest model's rate: what this machine can do, not what it happens to do. */
function fastest(engines: readonly EngineReport[]): number | null {
  const rates = engines.flatMap(({ models }) =>
    models.flatMap(({ tokensPerSecond }) => (tokensPerSecond === null ? [] : [tokensPerSecond])),
  );
  return rates.length === 0 ? null : Math.max(...rates);
}

export function nodeViews(house: House): readonly NodeView[] {
  const providers = providerViews(house);
  return house.fleet.nodes().map((node) => nodeView(node, providers, house));
}

/** What calls OpenRouter can do nothing without a key: no fault where nobody has given one. */
function standing(
  { kind, state }: Pick<EngineReport, 'kind' | 'state'>,
  reason: string | null,
  noKeyYet: boolean,
): Pick<EngineView, 'state' | 'reason'> {
  if (kind === 'openrouter' && state === 'error' && noKeyYet) {
    return { state: 'no-key', reason: said('key_none') };
  }
  // What an engine says in its own words stays in them.
  return {
    state,
    reason: reason === null ? null : (knownFrom(reason) ?? { code: 'engine_says', sentence: reason }),
  };
}

/** Of an engine whose machine is not heard nobody knows more. */
const AWAY = { state: 'unreachable', reason: said('node_unreachable') } as const;

/** Points of a machine's last hour, thinned to what a sparkline can show. */
const HISTORY_POINTS = 120;

export function nodeDetail(node: FleetNode, house: House): NodeDetail {
  const providers = providerViews(house);
  const slice = house.series.read('1h', house.clock.wallMs(), (id) => id.startsWith(`node.${node.id}.`));
  const keep = Math.ceil(slice.atMs.length / HISTORY_POINTS);
  const noKeyYet = house.cloud.status().lastPush === null;
  const thin = <Value>(values: readonly Value[]) => values.filter((_, at) => at % keep === keep - 1);
  return {
    node: nodeView(node, providers, house),
    engines: (node.heartbeat?.engines ?? []).map(({ engine, reason, processMark: _, models, ...rest }) => ({
      ...rest,
      id: engine,
      ...(isHeard(node) ? standing(rest, reason, noKeyYet) : AWAY),
      models: models.map(({ model, aliases, digest, tasks, contextTokens, width, sizeBytes, loaded, remoteHost }) => ({
        model,
        aliases,
        digest,
        tasks,
        contextTokens,
        width,
        sizeBytes,
        loaded,
        remoteHost,
      })),
    })),
    providers: providers.filter(({ nodeId }) => nodeId === node.id),
    history: {
      atMs: thin(slice.atMs),
      series: [...slice.series].map(([id, values]) => ({
        id: id.slice(`node.${node.id}.`.length),
        values: thin(values),
      })),
    },
  };
}
