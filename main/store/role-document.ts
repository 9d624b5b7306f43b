import { z } from 'zod';
import { POLICIES } from '../domain/policy.ts';
import { defaultRoleSettings, type RoleId, type RoleSettings } from '../domain/roles.ts';

const amount = z.number().min(0);
const RoleDocument = z.object({
  enabled: z.boolean(),
  policy: z.enum(POLICIES),
  dimension: z.number().int().min(1).nullable(),
  threshold: z.number().min(0.99).max(1).nullable(),
  maxLocalWaitMs: amount,
  minTokensPerSecond: amount.nullable(),
  localModels: z.union([z.literal('auto'), z.array(z.string())]),
  cloud: z.object({
    model: z.string().nullable(),
    upstreams: z.array(z.string()),
    quantizations: z.array(z.string()),
  }),
  spendCaps: z.object({ dayUsd: amount.nullable(), monthUsd: amount.nullable() }),
  normalise: z.boolean(),
  cutDimensions: z.array(z.number().int().min(1)),
});

/**
 * Reads a role's stored settings. Members that an older version did not know get their default. Null: the document cannot be
 * understood, and guessing could send work out that must stay.
 */
export function readRoleDocument(role: RoleId, body: string): RoleSettings | null {
  let stored: unknown;
  try {
    stored = JSON.parse(body);
  } catch {
    return null;
  }
  if (typeof stored !== 'object' || stored === null || Array.isArray(stored)) return null;
  const parsed = RoleDocument.safeParse({ ...defaultRoleSettings(role), ...stored });
  return parsed.success ? parsed.data : null;
}

/** What serves in the place of a document that cannot be understood. */
export function closedRoleSettings(role: RoleId): RoleSettings {
  return { ...defaultRoleSettings(role), enabled: false, policy: 'local' };
}
