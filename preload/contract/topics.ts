import type { z } from 'zod';
import { EventView, HealthView, SampleView } from './activity.ts';
import { BudgetView, CloudView } from './cloud.ts';
import { NodeView, ProviderView } from './fleet.ts';
import { VerdictView } from './gate.ts';
import { TOPIC_KINDS, type TopicName } from './names.ts';
import { RequestView } from './requests.ts';
import { RoleView } from './roles.ts';
import { AppView, SettingsView } from './settings.ts';

/** One map of events: topic -> how it is sent and what a row or value of it is. */
export const TOPICS = {
  nodes: { ...TOPIC_KINDS.nodes, schema: NodeView },
  providers: { ...TOPIC_KINDS.providers, schema: ProviderView },
  roles: { ...TOPIC_KINDS.roles, schema: RoleView },
  gate: { ...TOPIC_KINDS.gate, schema: VerdictView },
  health: { ...TOPIC_KINDS.health, schema: HealthView },
  requests: { ...TOPIC_KINDS.requests, schema: RequestView },
  events: { ...TOPIC_KINDS.events, schema: EventView },
  series: { ...TOPIC_KINDS.series, schema: SampleView },
  budget: { ...TOPIC_KINDS.budget, schema: BudgetView },
  cloud: { ...TOPIC_KINDS.cloud, schema: CloudView },
  app: { ...TOPIC_KINDS.app, schema: AppView },
  settings: { ...TOPIC_KINDS.settings, schema: SettingsView },
} as const satisfies Record<TopicName, { readonly kind: string; readonly schema: z.ZodType }>;

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
