import { z } from 'zod';

/**
 * What a machine that is being added and its control plane tell each other over the one-time address. Every word is from a
 * fixed list: whoever has read the token off a process list can report a wrong step, and never a text of their own.
 */

/** In the order of the installation. */
export const STEP_CODES = ['system', 'runtime', 'agent', 'account', 'engine', 'model', 'service', 'join'] as const;
export type StepCode = (typeof STEP_CODES)[number];

export const STEP_STATES = ['running', 'done', 'failed'] as const;
export type StepState = (typeof STEP_STATES)[number];

/** Beside a step: what was found or what went wrong. The sentences are in main/domain/sentences/enrolment.ts. */
export const STEP_DETAILS = [
  // Done
  'already', // there from an earlier run
  'adopted', // an engine that runs already is used
  'not_asked', // no engine or no model was asked for
  // Failed: the machine
  'system_unsupported',
  'arch_unsupported',
  'tool_missing',
  'not_root',
  'no_service_manager',
  'disk_full',
  // Failed: a step
  'download_failed',
  'checksum_wrong',
  'unpack_failed',
  'account_failed',
  'engine_missing',
  'engine_failed',
  'engine_old',
  'model_unknown',
  'model_failed',
  'port_taken', // another program listens where the agent should
  'service_failed',
  'agent_not_ready',
  'join_failed',
  'interrupted',
  'unexpected',
] as const;
export type StepDetail = (typeof STEP_DETAILS)[number];

/** Largest body that the control plane takes on these routes, in bytes. */
export const MAX_ENROLMENT_BODY_BYTES = 16 * 1024;

/** `POST step` -> 204. */
export const StepReport = z.strictObject({
  v: z.literal(1),
  code: z.enum(STEP_CODES),
  state: z.enum(STEP_STATES),
  percent: z.number().min(0).max(100).nullable(),
  detail: z.enum(STEP_DETAILS).nullable(),
});
export type StepReport = z.infer<typeof StepReport>;

/** `POST join`: the agent listens on `port` of the address that this request comes from. */
export const JoinReport = z.strictObject({
  v: z.literal(1),
  port: z.number().int().min(1).max(65_535),
  joinCode: z.string().min(1).max(64),
  /** Of the agent's key: SHA-256 over its SPKI, 64 lower-case hex digits. */
  fingerprint: z.string().regex(/^[0-9a-f]{64}$/),
});
export type JoinReport = z.infer<typeof JoinReport>;

/** The answer to `POST join`: 200 when the machine is in the fleet, 409 when not. `code` is one of docs/errors.md. */
export const JoinAnswer = z.union([
  z.object({ state: z.literal('joined') }),
  z.object({ state: z.literal('failed'), code: z.string().regex(/^[a-z_]{1,64}$/) }),
]);
export type JoinAnswer = z.infer<typeof JoinAnswer>;

/** A name that may stand in a command, in a path of an engine's API and in a log. */
export const ENROLMENT_NAME = /^[A-Za-z0-9._:/@-]{1,128}$/;

/** The answer to `GET options`. */
export const EnrolmentOptions = z.object({
  v: z.literal(1),
  model: z.string().regex(ENROLMENT_NAME).nullable(),
  /** Null: the one that runs is adopted, and none is installed. */
  engine: z.literal('ollama').nullable(),
  controlPlane: z.string().regex(ENROLMENT_NAME),
});
export type EnrolmentOptions = z.infer<typeof EnrolmentOptions>;
