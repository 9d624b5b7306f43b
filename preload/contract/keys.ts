import { z } from 'zod';
import { amount, atMs, ClassName, change, count, Done, id, label, Nothing, read, usd } from './common.ts';

const limit = z.number().int().min(1).max(1e9).nullable();

export const KeyView = z.object({
  id,
  name: label,
  project: id,
  projectName: label,
  scopes: z.array(z.enum(['inference', 'admin', 'metrics'])),
  /** May send work further out than the role does. */
  allowWiden: z.boolean(),
  anyProject: z.boolean(),
  maxClass: ClassName,
  requestsPerMinute: count.nullable(),
  tokensPerMinute: count.nullable(),
  usdPerDay: usd.nullable(),
  createdAtMs: atMs,
  lastUsedAtMs: atMs.nullable(),
  revokedAtMs: atMs.nullable(),
});
export type KeyView = z.infer<typeof KeyView>;

export const KeyInput = z.strictObject({
  name: z.string().trim().min(1).max(100),
  /** Name of a project; it is made when it does not exist. */
  project: z.string().trim().min(1).max(100),
  allowWiden: z.boolean().default(false),
  anyProject: z.boolean().default(false),
  maxClass: ClassName.default('interactive'),
  requestsPerMinute: limit.default(null),
  tokensPerMinute: limit.default(null),
  usdPerDay: z.number().min(0).max(1e6).nullable().default(null),
});

export const UsageRow = z.object({
  id,
  name: label,
  requests: count,
  localRequests: count,
  cloudRequests: count,
  failed: count,
  promptTokens: count,
  completionTokens: count,
  costUsd: usd,
  /** Requests that could not be metered while the store was away. */
  unmetered: count,
});
export type UsageRow = z.infer<typeof UsageRow>;

export const keysOperations = {
  'keys.list': read('API keys of tools; only their hashes are stored', Nothing, z.object({ keys: z.array(KeyView) })),
  'keys.create': change(
    'Make an API key. The answer is the only place that ever shows it',
    KeyInput,
    z.object({ key: KeyView, secret: z.string() }),
  ),
  'keys.revoke': change('Refuse a key from now on', z.strictObject({ id }), Done),
  'usage.get': read(
    'Tokens, cost and route over some days (UTC)',
    z.strictObject({
      by: z.enum(['project', 'key', 'role', 'model']).default('project'),
      days: z.number().int().min(1).max(396).default(1),
    }),
    z.object({ rows: z.array(UsageRow), unmetered: count, totalUsd: amount }),
  ),
} as const;
