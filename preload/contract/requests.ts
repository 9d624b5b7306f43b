import { z } from 'zod';
import {
  amount,
  atMs,
  ClassName,
  count,
  id,
  KindName,
  label,
  ms,
  PolicyName,
  Reason,
  RoleName,
  read,
  usd,
} from './common.ts';

export const OutcomeName = z.enum(['queued', 'running', 'ok', 'failed', 'cancelled']);

export const RequestView = z.object({
  id,
  atMs,
  project: id,
  projectName: label,
  role: RoleName,
  /** What was asked for: a model or the role's id. */
  model: z.string(),
  policy: PolicyName,
  policyFrom: z.enum(['header', 'field', 'suffix', 'role']),
  class: ClassName,
  route: KindName.nullable(),
  providerId: id.nullable(),
  providerName: label.nullable(),
  outcome: OutcomeName,
  errorCode: z.string().nullable(),
  /** Went to the cloud because the local wait would have been too long. */
  overflowed: z.boolean(),
  attempts: count,
  queueMs: ms.nullable(),
  firstByteMs: ms.nullable(),
  totalMs: ms.nullable(),
  promptTokens: count.nullable(),
  completionTokens: count.nullable(),
  costUsd: usd.nullable(),
});
export type RequestView = z.infer<typeof RequestView>;

/** The story of a request, in time order. `offsetMs` counts from its arrival. Never a prompt, never an answer. */
const offsetMs = ms;
export const TraceStep = z.discriminatedUnion('step', [
  z.object({
    step: z.literal('arrived'),
    offsetMs,
    path: z.string(),
    bytes: count,
    inputs: count.nullable(),
    promptTokens: count.nullable(),
    maxOutputTokens: count.nullable(),
    notes: z.array(Reason),
  }),
  z.object({
    step: z.literal('considered'),
    offsetMs,
    eligible: z.array(z.object({ providerId: id, name: label, kind: KindName })),
    refused: z.array(z.object({ providerId: id, name: label, kind: KindName, reason: Reason })),
  }),
  z.object({
    step: z.literal('estimated'),
    offsetMs,
    /** Null: no service time is known yet. */
    waitMs: ms.nullable(),
    thresholdMs: ms,
    busy: count,
    slots: count,
    ahead: count,
    parts: z.array(z.object({ providerId: id, name: label, slots: count, serviceMs: ms.nullable() })),
    overflows: z.boolean(),
  }),
  z.object({
    step: z.literal('chosen'),
    offsetMs,
    providerId: id,
    name: label,
    kind: KindName,
    why: Reason,
    weights: z.array(
      z.object({ providerId: id, name: label, total: amount, base: amount, load: amount, speed: amount }),
    ),
  }),
  z.object({
    step: z.literal('permit'),
    offsetMs,
    inFlight: count,
    usable: count,
    waitedMs: ms,
  }),
  z.object({
    step: z.literal('attempt'),
    offsetMs,
    number: count,
    providerId: id,
    name: label,
    result: z.enum(['running', 'success', 'dropped', 'ignored', 'failed']),
    reason: Reason.nullable(),
    lastedMs: ms.nullable(),
    /** Inputs of a striped batch that this attempt carried. */
    range: z.object({ from: count, to: count }).nullable(),
  }),
  z.object({ step: z.literal('first-byte'), offsetMs }),
  z.object({
    step: z.literal('ended'),
    offsetMs,
    outcome: OutcomeName,
    error: Reason.nullable(),
    promptTokens: count.nullable(),
    completionTokens: count.nullable(),
    tokensExact: z.boolean(),
    costUsd: usd.nullable(),
    spaceId: id.nullable(),
  }),
]);
export type TraceStep = z.infer<typeof TraceStep>;

export const requestsOperations = {
  'requests.list': read(
    'Requests, newest first',
    z.strictObject({
      role: RoleName.optional(),
      project: id.optional(),
      route: KindName.optional(),
      outcome: OutcomeName.optional(),
      providerId: id.optional(),
      model: z.string().max(256).optional(),
      errorCode: z.string().max(64).optional(),
      overflowed: z.boolean().optional(),
      /** Words of the console's filter, one a line, such as `provider:lab-box`: a request must match every one. */
      matching: z.string().max(2000).optional(),
      fromMs: atMs.optional(),
      toMs: atMs.optional(),
      /** Id of the last row of the page before. */
      before: id.optional(),
      limit: z.number().int().min(1).max(500).default(100),
    }),
    z.object({
      requests: z.array(RequestView),
      more: z.boolean(),
      /** With `more`: the oldest request looked at, to go on `before`. A page with few matches ends before it is full. */
      lookedTo: z.object({ id, atMs }).nullable(),
    }),
  ),
  'requests.get': read(
    'Why a request went where it went',
    z.strictObject({ id }),
    z.object({
      request: RequestView,
      steps: z.array(TraceStep),
      /** Inputs of the decision as the router core saw them; replaying them gives the same choice. */
      replay: z.string().nullable(),
    }),
  ),
} as const;
