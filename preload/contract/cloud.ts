import { z } from 'zod';
import { atMs, change, count, Done, id, label, ms, Nothing, Reason, RoleName, read, usd } from './common.ts';

/** One agent's hold on the key. The key itself is nowhere in this contract: it travels as bytes (`KeyPush`). */
export const KeyHolderView = z.object({
  nodeId: id,
  nodeName: label,
  state: z.enum(['accepted', 'pending', 'refused', 'key-missing', 'key-stale', 'unreachable']),
  reason: Reason.nullable(),
  /** Accepted: when the agent took this key; else since when the agent says so. */
  atMs: atMs.nullable(),
  push: count.nullable(),
  /** Kept encrypted on that machine to survive a restart. */
  remembered: z.boolean(),
  /** Where this agent makes its calls; null until it has said so. */
  baseUrl: z.string().max(300).nullable(),
});
export type KeyHolderView = z.infer<typeof KeyHolderView>;

export const CloudView = z.object({
  state: z.enum(['on', 'paused', 'off', 'key-missing', 'no-agent']),
  reason: Reason,
  paused: z.boolean(),
  holders: z.array(KeyHolderView),
  /** The newest push: its number and when, nothing derived from the key. */
  lastPush: z.object({ number: count, atMs }).nullable(),
  catalogueAtMs: atMs.nullable(),
  /** OS keychain on this machine could remember the key for the embedded agent. */
  canRemember: z.boolean(),
  rememberNote: Reason.nullable(),
});
export type CloudView = z.infer<typeof CloudView>;

/** What travels beside the key's bytes: to whom (all ready agents when absent) and whether it may rest encrypted there. */
export const KeyPush = z.strictObject({ nodeIds: z.array(id).max(256).optional(), remember: z.boolean().optional() });
export type KeyPush = z.infer<typeof KeyPush>;

export const ShareView = z.object({ project: id, name: label, held: count, waiting: count, share: count });

export const SpendView = z.object({
  id,
  name: label,
  dayUsd: usd.nullable(),
  dayCapUsd: usd.nullable(),
  monthUsd: usd.nullable(),
  monthCapUsd: usd.nullable(),
});
export type SpendView = z.infer<typeof SpendView>;

export const BudgetView = z.object({
  ceiling: count,
  effective: count,
  /** min(effective, ceiling). */
  usable: count,
  inFlight: count,
  waiting: count,
  state: z.enum(['steady', 'ramping', 'backing-off', 'cooling', 'off']),
  /** Where the number comes from: "16 permits: from credit, 412 USD left". */
  sentence: Reason,
  source: z.enum(['override', 'no-credit', 'rate', 'credit', 'default']),
  override: count.nullable(),
  overrideMax: count,
  creditUsd: usd.nullable(),
  rate: z.object({ perMinute: z.number().nullable(), trusted: z.boolean(), reason: Reason }).nullable(),
  /** Of successful calls; null before the first one that was measured. */
  latencyMs: ms.nullable(),
  /** What is reckoned with until then. */
  assumedLatencyMs: ms.nullable(),
  coolingUntilMs: atMs.nullable(),
  nextStepAtMs: atMs.nullable(),
  plateau: count.nullable(),
  /** Starts in the sliding window of a trusted rate. */
  window: z.object({ starts: count, limit: count, seconds: count }).nullable(),
  /** The newest, as are cooldowns and steps. */
  cuts: z.array(z.object({ atMs, from: count, to: count, cause: Reason })),
  /** No call started within; what refusals lengthened is one span. */
  cooldowns: z.array(z.object({ fromMs: atMs, toMs: atMs })),
  /** One permit more, after a while without a refusal. */
  steps: z.array(z.object({ atMs, from: count, to: count })),
  suggestion: z.object({ override: count, reason: Reason }).nullable(),
  freeTierClosedUntilMs: atMs.nullable(),
  shares: z.array(ShareView),
  spendByRole: z.array(SpendView.extend({ id: RoleName })),
  spendByProject: z.array(SpendView),
  discoveredAtMs: atMs.nullable(),
});
export type BudgetView = z.infer<typeof BudgetView>;

export const cloudOperations = {
  'cloud.status': read('Who holds the key, and whether the cloud is used', Nothing, CloudView),
  'cloud.pause': change('Stop all cloud work at once', Nothing, CloudView),
  'cloud.resume': change('Let roles use the cloud again', Nothing, CloudView),
  'cloud.forget': change(
    'Make agents drop the key',
    z.strictObject({ nodeIds: z.array(id).max(256).optional() }),
    CloudView,
  ),
  'cloud.test': change(
    'Let each holder ask OpenRouter whether the key works',
    Nothing,
    z.object({ results: z.array(z.object({ nodeId: id, nodeName: label, works: z.boolean(), reason: Reason })) }),
  ),
  'budget.get': read('The account-wide pool of cloud permits', Nothing, BudgetView),
  'budget.set': change(
    'Set or lift the override of the ceiling',
    z.strictObject({ override: z.number().int().min(1).max(256).nullable() }),
    BudgetView,
  ),
  'budget.capProject': change(
    'Cap what a project may spend in the cloud, per UTC day and month; null lifts a cap, what is absent stays',
    z.strictObject({
      id,
      dayUsd: z.number().min(0).max(1e6).nullable().optional(),
      monthUsd: z.number().min(0).max(1e6).nullable().optional(),
    }),
    BudgetView,
  ),
  'budget.dismiss': change('Set the suggestion aside', Nothing, Done),
} as const;
