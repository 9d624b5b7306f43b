import type { EventView, Output, ParsedInput, Range } from '../../preload/contract.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { EventRecord } from '../domain/events.ts';
import { ROLE_IDS, type RoleId } from '../domain/roles.ts';
import { said } from '../domain/said.ts';
import { timeOfEventId } from '../telemetry/event-log.ts';
import { TIERS } from '../telemetry/time-series.ts';
import type { House } from './house.ts';

type Overview = Output<'overview.get'>;
type Figures = Overview['figures'];

export function eventView({ request, node, provider, role, ...event }: EventRecord): EventView {
  return {
    ...event,
    atMs: Math.round(event.atMs),
    requestId: request ?? null,
    nodeId: node ?? null,
    providerId: provider ?? null,
    role: role ?? null,
  };
}

/** Newest first, those before one event where that is asked. @throws SwitchyardError invalid_request, store_unavailable. */
export async function listEvents(filter: ParsedInput<'events.list'>, house: House): Promise<Output<'events.list'>> {
  const { severity, source, text, limit, before } = filter;
  const atMs = before === undefined ? undefined : timeOfEventId(before);
  if (atMs === null) throw new SwitchyardError('invalid_request', 'before takes the id of an event.');
  const { items, next } = await house.store.events.list(
    {
      ...(severity ? { severity } : {}),
      ...(source ? { source: source as EventRecord['source'] } : {}),
      ...(text ? { text } : {}),
    },
    limit,
    atMs === undefined ? undefined : `${atMs}.${before}`,
  );
  return { events: items.map(eventView), more: next !== null };
}

/** Requests of the last seconds that count as "now". */
const NOW_MS = 10_000;

export function figures(house: House): Figures {
  const nowMs = house.clock.wallMs();
  const ended = house.requests
    .list()
    .filter(({ summary }) => summary.arrivedAtMs + summary.totalMs >= nowMs - NOW_MS)
    .map(({ summary }) => summary);
  const rate = (count: number) => Math.round((count * 10_000) / NOW_MS) / 10;
  const snapshot = house.router();
  const oldest = [...snapshot.roles]
    .filter(({ oldestMs }) => oldestMs !== null)
    .sort((a, b) => (b.oldestMs ?? 0) - (a.oldestMs ?? 0))[0];
  const spent = ROLE_IDS.map((role) => house.cloud.spentUsd(role).dayUsd).filter((usd) => usd !== null);
  const caps = ROLE_IDS.map((role) => house.roles()[role].spendCaps.dayUsd).filter((usd) => usd !== null);
  const waiting = oldest
    ? (['interactive', 'normal', 'batch'] as const).find((each) => oldest.waiting[each] > 0)
    : undefined;
  return {
    requestsPerSecond: rate(ended.length),
    localPerSecond: rate(ended.filter(({ route }) => route === 'local').length),
    cloudPerSecond: rate(ended.filter(({ route }) => route === 'cloud').length),
    oldestWaitMs: oldest?.oldestMs ?? 0,
    oldestWaitRole: oldest?.role ?? null,
    oldestWaitClass: waiting ?? null,
    spentTodayUsd: spent.length === 0 ? null : spent.reduce((sum, usd) => sum + usd, 0),
    capTodayUsd: caps.length === 0 ? null : caps.reduce((sum, usd) => sum + usd, 0),
  };
}

export function lastHour(house: House): Overview['lastHour'] {
  const { series } = house.series.read('1h', house.clock.wallMs(), (id) => id.startsWith('count.'));
  const total = (id: string) => (series.get(id) ?? []).reduce<number>((sum, value) => sum + (value ?? 0), 0);
  const [local, cloud] = [total('count.local'), total('count.cloud')];
  return {
    localShare: local + cloud === 0 ? null : local / (local + cloud),
    overflowed: total('count.overflowed'),
    refused: total('count.refused'),
    stoppedByGate: total('count.gate'),
  };
}

export function overview(range: Range, role: RoleId, house: House): Overview {
  const wallMs = house.clock.wallMs();
  const { atMs, series } = house.series.read(range, wallMs);
  const pick = (prefix: string) =>
    [...series].filter(([id]) => id.startsWith(prefix)).map(([id, values]) => ({ id, values: [...values] }));
  const latency = (['p50', 'p95', 'p99'] as const).map((name) => ({
    id: `latency.${name}`,
    values: [...(series.get(`latency.${role}.${name}`) ?? atMs.map(() => null))],
  }));
  const counts = series.get(`finished.${role}`) ?? [];
  const from = atMs[0] ?? wallMs;
  const stepMs = TIERS.find((tier) => tier.range === range)?.stepMs ?? 1000;
  return {
    figures: figures(house),
    lastHour: lastHour(house),
    history: {
      range,
      stepMs,
      atMs: [...atMs],
      queue: ROLE_IDS.map((id) => ({
        id: `queue.${id}`,
        values: [...(series.get(`queue.${id}`) ?? atMs.map(() => null))],
      })),
      latency,
      latencyCount: counts.reduce<number>((sum, value) => sum + (value ?? 0), 0),
      tooMany: pick('429.'),
      permits: pick('permits.'),
      marks: marksSince(from, house),
      cooldowns: [...house.cloud.cooldowns(from)],
      gaps: gapsOf(atMs, series.get('alive') ?? [], stepMs),
    },
  };
}

/** Lines across the charts. A cut is the budget's to tell: its records outlive the process. */
function marksSince(fromMs: number, house: House): Overview['history']['marks'] {
  const events = house.events.recent().flatMap(({ atMs, code, sentence, says }) => {
    const kind = MARKS[code];
    if (atMs < fromMs || kind === undefined) return [];
    return [{ atMs: Math.round(atMs), kind, sentence: sentence.slice(0, 256), ...(says ? { says } : {}) }];
  });
  const cuts = house.cloud.budget().cuts.flatMap(({ atMs, from, to }) => {
    if (atMs < fromMs) return [];
    const { sentence, ...says } = said('budget_cut', { from, to });
    return [{ atMs, kind: 'cut' as const, sentence, says }];
  });
  return [...events, ...cuts].sort((a, b) => a.atMs - b.atMs);
}

/** Events that are drawn as such a line. */
const MARKS: Readonly<Record<string, 'node' | 'gate' | 'restart'>> = {
  node_closed: 'node',
  node_silent: 'node',
  node_bye: 'node',
  verdict_lost: 'gate',
  space_founded: 'gate',
  started: 'restart',
};

/** Stretches without a sample between two samples: the machine slept or the process did not run. */
function gapsOf(
  atMs: readonly number[],
  alive: readonly (number | null)[],
  stepMs: number,
): { fromMs: number; toMs: number }[] {
  const gaps: { fromMs: number; toMs: number }[] = [];
  let lastAlive: number | null = null;
  atMs.forEach((at, index) => {
    if (alive[index] === null || alive[index] === undefined) return;
    if (lastAlive !== null && at - lastAlive > stepMs) gaps.push({ fromMs: lastAlive + stepMs, toMs: at });
    lastAlive = at;
  });
  return gaps;
}
