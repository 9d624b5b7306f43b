import { z } from 'zod';
import {
  atMs,
  ClassName,
  count,
  id,
  label,
  ms,
  Nothing,
  Range,
  RoleName,
  read,
  Says,
  Series,
  text,
  usd,
} from './common.ts';
import { HEALTH_ACTIONS, PAGE_IDS } from './names.ts';

export const SeverityName = z.enum(['info', 'warn', 'error']);
export const EventView = z.object({
  id,
  atMs,
  severity: SeverityName,
  source: z.string().max(64),
  code: z.string().max(64),
  sentence: text,
  says: Says.optional(),
  needsPerson: z.boolean(),
  requestId: id.nullable(),
  nodeId: id.nullable(),
  providerId: id.nullable(),
  role: RoleName.nullable(),
});
export type EventView = z.infer<typeof EventView>;

export const HealthView = z.object({
  id,
  code: z.string().max(64),
  severity: SeverityName,
  title: label,
  sentence: text,
  says: Says.optional(),
  /** The title by code and figures, as `says` is the sentence. */
  titleSays: Says.optional(),
  sinceMs: atMs,
  /** A person has to do something; the rest heals by itself. */
  needsPerson: z.boolean(),
  /** Where that one thing is done. */
  page: z.enum(PAGE_IDS),
  /** What to open there: a node, a provider, a role. */
  target: id.nullable(),
  /** Words for the link. */
  action: z.enum(HEALTH_ACTIONS),
});
export type HealthView = z.infer<typeof HealthView>;

export const FiguresView = z.object({
  requestsPerSecond: z.number().nullable(),
  localPerSecond: z.number().nullable(),
  cloudPerSecond: z.number().nullable(),
  /** Age of the request that has waited longest; 0 when nothing waits. */
  oldestWaitMs: ms.nullable(),
  oldestWaitRole: RoleName.nullable(),
  oldestWaitClass: ClassName.nullable(),
  spentTodayUsd: usd.nullable(),
  /** Sum of the day caps; null when there is none. */
  capTodayUsd: usd.nullable(),
});
export type FiguresView = z.infer<typeof FiguresView>;

/** Something that happened at a moment and is drawn as a line across the charts. */
export const MarkView = z.object({
  atMs,
  kind: z.enum(['cut', 'node', 'gate', 'restart']),
  sentence: label,
  says: Says.optional(),
});
export type MarkView = z.infer<typeof MarkView>;
export const SpanView = z.object({ fromMs: atMs, toMs: atMs });

export const HistoryView = z.object({
  range: Range,
  stepMs: ms,
  /** Shared axis, ascending, evenly spaced, at most 400. */
  atMs: z.array(atMs).max(400),
  /** `queue.<role>`, requests waiting at the end of each step. */
  queue: z.array(Series),
  /** `latency.p50`, `.p95`, `.p99` of the chosen role, in ms to the first byte. p99 is null where n < 100. */
  latency: z.array(Series),
  latencyCount: count,
  /** `429.<upstream>`, answers per step. */
  tooMany: z.array(Series),
  /** `permits.inFlight`, `.effective`, `.ceiling`. */
  permits: z.array(Series),
  marks: z.array(MarkView),
  cooldowns: z.array(SpanView),
  /** The machine slept or the process did not run: nothing was sampled. */
  gaps: z.array(SpanView),
});
export type HistoryView = z.infer<typeof HistoryView>;

export const LastHourView = z.object({
  /** Of finished requests, 0 to 1. */
  localShare: z.number().nullable(),
  overflowed: count,
  refused: count,
  stoppedByGate: count,
});

export type LastHourView = z.infer<typeof LastHourView>;

/** One live sample, at most two per second; ids are those of the history's series. */
export const SampleView = z.object({
  id,
  atMs,
  figures: FiguresView,
  lastHour: LastHourView,
  values: z.array(z.object({ id: z.string().max(256), value: z.number().nullable() })),
});
export type SampleView = z.infer<typeof SampleView>;

export const activityOperations = {
  'overview.get': read(
    'Figures and history of a range on one time axis',
    z.strictObject({ range: Range, role: RoleName.optional() }),
    z.object({ figures: FiguresView, lastHour: LastHourView, history: HistoryView }),
  ),
  'events.list': read(
    'Events, newest first',
    z.strictObject({
      severity: SeverityName.optional(),
      source: z.string().max(64).optional(),
      text: z.string().max(200).optional(),
      /** Id of an event: what came before it. */
      before: id.optional(),
      limit: z.number().int().min(1).max(1000).default(200),
    }),
    z.object({ events: z.array(EventView), more: z.boolean() }),
  ),
  'health.list': read('What is wrong, and what needs a person', Nothing, z.object({ items: z.array(HealthView) })),
} as const;
