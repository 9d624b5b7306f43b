import type { z } from 'zod';
import { EventView, HealthView, SampleView } from './activity.ts';
import { BudgetView, CloudView } from './cloud.ts';
import { NodeView, ProviderView } from './fleet.ts';
import { VerdictView } from './gate.ts';
import { RequestView } from './requests.ts';
import { RoleView } from './roles.ts';
import { AppView } from './settings.ts';

/**
 * What a console hears by itself. A `rows` topic is a set of rows with an `id`: a snapshot first, then rows that changed and ids
 * that went. A `log` topic is the same, but a reader keeps only the newest `keep` rows. A `value` topic sends its whole value.
 */
export type Topic =
  | { readonly kind: 'rows'; readonly schema: z.ZodType<{ readonly id: string }> }
  | { readonly kind: 'log'; readonly schema: z.ZodType<{ readonly id: string }>; readonly keep: number }
  | { readonly kind: 'value'; readonly schema: z.ZodType };

export const TOPICS = {
  nodes: { kind: 'rows', schema: NodeView },
  providers: { kind: 'rows', schema: ProviderView },
  roles: { kind: 'rows', schema: RoleView },
  gate: { kind: 'rows', schema: VerdictView },
  /** Few and urgent: sent at once, never held for the next half second. */
  health: { kind: 'rows', schema: HealthView },
  requests: { kind: 'log', schema: RequestView, keep: 500 },
  events: { kind: 'log', schema: EventView, keep: 1000 },
  /** Live samples: their `id` is the time in text. */
  series: { kind: 'log', schema: SampleView, keep: 700 },
  budget: { kind: 'value', schema: BudgetView },
  cloud: { kind: 'value', schema: CloudView },
  app: { kind: 'value', schema: AppView },
} as const satisfies Record<string, Topic>;

export type TopicName = keyof typeof TOPICS;
export const TOPIC_NAMES = Object.keys(TOPICS) as TopicName[];
export type TopicRow<Name extends TopicName> = z.infer<(typeof TOPICS)[Name]['schema']>;
export type RowTopicName = {
  [Name in TopicName]: (typeof TOPICS)[Name]['kind'] extends 'value' ? never : Name;
}[TopicName];
export type ValueTopicName = Exclude<TopicName, RowTopicName>;

/** One message of a topic. The first after subscribing is a `snapshot` or a `value`. `urgent` passes the 2 Hz coalescing. */
export type TopicUpdate<Name extends TopicName = TopicName> = Name extends RowTopicName
  ?
      | { readonly topic: Name; readonly type: 'snapshot'; readonly rows: readonly TopicRow<Name>[] }
      | {
          readonly topic: Name;
          readonly type: 'delta';
          readonly changed: readonly TopicRow<Name>[];
          readonly removed: readonly string[];
          readonly urgent?: boolean;
        }
  : { readonly topic: Name; readonly type: 'value'; readonly value: TopicRow<Name>; readonly urgent?: boolean };
