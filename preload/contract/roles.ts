import { z } from 'zod';
import {
  amount,
  change,
  count,
  id,
  KindName,
  label,
  ms,
  Nothing,
  PolicyName,
  Reason,
  RoleName,
  read,
  usd,
} from './common.ts';

const models = z.union([z.literal('auto'), z.array(z.string().min(1).max(256)).max(64)]);
const upstreams = z.array(z.string().min(1).max(128)).max(16);
const cap = z.number().min(0).max(1e6).nullable();

export const CloudModelView = z.object({ model: z.string().nullable(), upstreams, quantizations: upstreams });
export const SpendCapsView = z.object({ dayUsd: cap, monthUsd: cap });

export const RoleView = z.object({
  id: RoleName,
  task: z.enum(['embed', 'rerank', 'chat']),
  enabled: z.boolean(),
  policy: PolicyName,
  /** What happens now: "Local first; to the cloud when the wait would pass 3 s". */
  now: Reason,
  /** Width of the space; null until one is founded, and for roles without vectors. */
  dimension: count.nullable(),
  threshold: z.number().nullable(),
  maxLocalWaitMs: ms,
  minTokensPerSecond: amount.nullable(),
  localModels: models,
  cloud: CloudModelView,
  /** Does the live catalogue offer the cloud model; null when it could not be asked. */
  cloudOffered: z.boolean().nullable(),
  /** Closest ids that are offered, when the configured one is not. */
  cloudNearest: z.array(z.string()),
  spendCaps: SpendCapsView,
  spentDayUsd: usd.nullable(),
  spentMonthUsd: usd.nullable(),
  normalise: z.boolean(),
  cutDimensions: z.array(count),
  /** The current space of an embedding role. */
  space: z.object({ id, width: count, trial: z.boolean() }).nullable(),
  /** Models of the providers that could be given work now, those of most providers first. */
  serving: z.array(z.object({ model: z.string(), kind: KindName, providers: count })),
  /** Providers that could be given work now: by policy, machine, gate, key and budget. */
  localReady: count,
  cloudReady: count,
  queued: count,
  running: count,
  oldestWaitMs: ms.nullable(),
  /** Wait that a new request of class normal would meet locally. */
  waitEstimateMs: ms.nullable(),
});
export type RoleView = z.infer<typeof RoleView>;

/** Only the members that are sent change. */
export const RolePatch = z.strictObject({
  enabled: z.boolean().optional(),
  policy: PolicyName.optional(),
  dimension: z.number().int().min(1).max(65_536).nullable().optional(),
  threshold: z.number().min(0.99).max(1).optional(),
  maxLocalWaitMs: z.number().int().min(0).max(3_600_000).optional(),
  minTokensPerSecond: z.number().min(0).max(1e6).nullable().optional(),
  localModels: models.optional(),
  cloud: z
    .strictObject({
      model: z.string().min(1).max(256).nullable().optional(),
      upstreams: upstreams.optional(),
      quantizations: upstreams.optional(),
    })
    .optional(),
  spendCaps: z.strictObject({ dayUsd: cap.optional(), monthUsd: cap.optional() }).optional(),
  normalise: z.boolean().optional(),
  cutDimensions: z.array(z.number().int().min(1).max(65_536)).max(32).optional(),
});
export type RolePatch = z.infer<typeof RolePatch>;

/** An encoder that could found a space, with how far it is from the present one. */
export const FounderView = z.object({
  providerId: id,
  title: label,
  kind: KindName,
  model: z.string(),
  upstream: z.string().nullable(),
  width: count.nullable(),
  /** Smallest cosine against the present space's anchor; null when never measured or of another width. */
  minCosine: z.number().nullable(),
  ready: z.boolean(),
  reason: Reason.nullable(),
});
export type FounderView = z.infer<typeof FounderView>;

/** Where texts of a role would go that so far stay in the network. */
export const LeavingView = z.object({
  /** Null when the role has no cloud model. `hosts`: where the agents that may call reach it; empty while none has said so. */
  openRouter: z.object({ hosts: z.array(label), model: z.string(), upstreams }).nullable(),
  /** Hosts of engines at public addresses that serve the role. */
  elsewhere: z.array(label),
});
export type LeavingView = z.infer<typeof LeavingView>;

export const rolesOperations = {
  'roles.list': read('The five roles, in their fixed order', Nothing, z.object({ roles: z.array(RoleView) })),
  'roles.get': read('One role', z.strictObject({ id: RoleName }), RoleView),
  'roles.update': change(
    'Change settings of a role, field by field',
    z.strictObject({ id: RoleName, patch: RolePatch, confirm: z.boolean().optional() }),
    RoleView,
  ),
  'roles.preview': read(
    'What a change would mean, before it is made',
    z.strictObject({ id: RoleName, patch: RolePatch }),
    z.object({
      effect: z.enum(['plain', 'new-space', 'refused']),
      reasons: z.array(Reason),
      /** Of a change that is made as it stands: what a person should know about it. */
      notes: z.array(Reason).optional(),
      /** With `new-space`: who could found it. */
      founders: z.array(FounderView),
      /** The change lets texts leave that so far may not; a person is asked before it is made. Null: it lets out no more. */
      leaves: LeavingView.nullable(),
    }),
  ),
  'roles.models': read(
    'Models that could serve a role, and where one of them is served in the cloud',
    /** `model`: the cloud model whose upstreams are wanted; absent: the one the role is set to. */
    z.strictObject({ id: RoleName, model: z.string().min(1).max(160).optional() }),
    z.object({
      local: z.array(
        z.object({ model: z.string(), aliases: z.array(z.string()), nodes: count, sizeBytes: amount.nullable() }),
      ),
      /** From the live catalogue; null when it could not be read. */
      cloud: z
        .array(
          z.object({
            model: z.string(),
            contextTokens: count.nullable(),
            promptUsdPerMillion: amount.nullable(),
            completionUsdPerMillion: amount.nullable(),
            /** Where it may be pinned to; null when nobody asked for this model's, or they could not be read. */
            upstreams: z
              .array(
                z.object({
                  /** What a pin names. */
                  slug: z.string(),
                  name: z.string(),
                  quantization: z.string().nullable(),
                  contextTokens: count.nullable(),
                  promptUsdPerMillion: amount.nullable(),
                  completionUsdPerMillion: amount.nullable(),
                  healthy: z.boolean(),
                }),
              )
              .nullable(),
          }),
        )
        .nullable(),
    }),
  ),
} as const;
