import { z } from 'zod';
import { VERDICT_KINDS } from '../../main/domain/verdict.ts';
import {
  amount,
  atMs,
  change,
  count,
  FileIn,
  FileOut,
  id,
  KindName,
  label,
  Nothing,
  Reason,
  RoleName,
  read,
  text,
} from './common.ts';
import { CHECK_IDS } from './names.ts';
import { FounderView, RolePatch } from './roles.ts';

export const VerdictName = z.enum(VERDICT_KINDS);
export const RegimeName = z.enum(['local', 'cloud']);

export const CheckView = z.object({
  check: z.enum(CHECK_IDS),
  /** `reduced`: could not be made for want of a peer; `skipped`: does not apply; `not-run`: an earlier check decided. */
  state: z.enum(['pass', 'fail', 'reduced', 'skipped', 'not-run', 'running']),
  figure: z.number().nullable(),
  threshold: z.number().nullable(),
  note: Reason.nullable(),
});
export type CheckView = z.infer<typeof CheckView>;

export const VerdictView = z.object({
  /** Provider and space: one row per verdict. */
  id,
  providerId: id,
  title: label,
  role: RoleName,
  kind: KindName,
  nodeName: label,
  engineKind: z.string(),
  model: z.string(),
  upstream: z.string().nullable(),
  spaceId: id.nullable(),
  regime: RegimeName.nullable(),
  founder: z.boolean(),
  verdict: VerdictName,
  reason: Reason.nullable(),
  checks: z.array(CheckView),
  minCosine: z.number().nullable(),
  meanCosine: z.number().nullable(),
  centredMin: z.number().nullable(),
  worstProbe: z
    .object({
      probe: z.string(),
      text,
      cosine: z.number().nullable(),
      /** The first numbers of both vectors, for the eye. */
      anchorHead: z.array(z.number()).max(8),
      providerHead: z.array(z.number()).max(8),
    })
    .nullable(),
  anchorNorm: amount.nullable(),
  providerNorm: amount.nullable(),
  fingerprint: z
    .object({
      engine: z.string(),
      version: z.string().nullable(),
      modelDigest: z.string().nullable(),
      upstream: z.string().nullable(),
      pin: z.string().nullable(),
      processMark: z.string().nullable(),
    })
    .nullable(),
  checkedAtMs: atMs.nullable(),
  nextCheckAtMs: atMs.nullable(),
  running: z.boolean(),
  /** Rows written since the last good check, when drift was found. */
  rowsInDoubt: count.nullable(),
});
export type VerdictView = z.infer<typeof VerdictView>;

export const SpaceView = z.object({
  id,
  role: RoleName,
  width: count,
  regime: RegimeName,
  trial: z.boolean(),
  state: z.enum(['current', 'retained', 'retired', 'anchor-lost']),
  founder: z.object({ title: label, model: z.string(), nodeName: label, upstream: z.string().nullable() }),
  foundedAtMs: atMs,
  tokenLimit: count.nullable(),
  threshold: z.number(),
  probeSet: z.string(),
  probes: count,
  cutDimensions: z.array(count),
  passing: count,
});
export type SpaceView = z.infer<typeof SpaceView>;

export const gateOperations = {
  'gate.list': read(
    'Verdicts of every embedding provider, one per space',
    z.strictObject({ role: RoleName.optional() }),
    z.object({ verdicts: z.array(VerdictView) }),
  ),
  'gate.verify': change(
    'Check one provider again, or all of them',
    z.strictObject({ providerId: id.optional() }),
    z.object({ started: z.array(id) }),
  ),
  'gate.history': read(
    'Minimum cosine of a provider over time',
    z.strictObject({ providerId: id, spaceId: id.optional() }),
    z.object({
      threshold: z.number(),
      points: z.array(z.object({ atMs, minCosine: z.number().nullable(), verdict: VerdictName })),
    }),
  ),
  'gate.affected': read(
    'What a provider wrote since its last good check',
    z.strictObject({ providerId: id }),
    z.object({
      since: atMs.nullable(),
      ranges: z.array(z.object({ requestId: id, from: count, to: count, atMs, spaceId: id })),
    }),
  ),
  'spaces.list': read(
    'Vector spaces, retired ones included',
    z.strictObject({ role: RoleName.optional() }),
    z.object({ spaces: z.array(SpaceView) }),
  ),
  'spaces.candidates': read(
    'Encoders that could found a space',
    z.strictObject({ role: RoleName }),
    z.object({ founders: z.array(FounderView) }),
  ),
  'spaces.found': change(
    'Found a space; replacing one means rebuilding the index',
    z.strictObject({
      role: RoleName,
      founder: id,
      width: z.number().int().min(1).max(65_536).optional(),
      /** Settings of the role that change with it, in one step: both or neither. */
      patch: RolePatch.optional(),
      confirm: z.boolean().optional(),
    }),
    SpaceView,
  ),
  'spaces.retire': change(
    'Stop serving an old space',
    z.strictObject({ id, confirm: z.boolean().optional() }),
    SpaceView,
  ),
  'spaces.export': read('Probes and anchor of a space', z.strictObject({ id }), FileOut),
  'spaces.import': change(
    'Bring a space back from an export',
    z.strictObject({ content: FileIn, confirm: z.boolean().optional() }),
    SpaceView,
  ),
  'gate.probes': read('Version and size of the probe set', Nothing, z.object({ version: z.string(), probes: count })),
} as const;
