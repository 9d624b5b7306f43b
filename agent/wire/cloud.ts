import { z } from 'zod';

/**
 * What the wire carries for OpenRouter: the key push (a binary message on the control socket, because a key must never be
 * JSON), its acknowledgement and the state of the key, the end of cancelled calls, and additions to call heads and failures.
 */
const count = z.number().int().min(0).max(1e9);
/** Pushes are numbered up to here. */
export const MAX_PUSH = 1e9;
const pushNumber = z.number().int().min(0).max(MAX_PUSH);
const amount = z.number().min(0).max(1e15);
/** Short, because a call's head has to fit its frame. */
const short = z.string().max(160);
const roleName = z.enum(['embedding', 'code-embedding', 'reranker', 'code-assistant', 'rlm']);

/** Id of the OpenRouter engine of every agent. */
export const CLOUD_ENGINE = 'openrouter';

/** `author/slug`, or `author/slug@upstream` where the upstream is pinned: what reports and call heads name as model. */
export function cloudModelName(model: string, upstream: string | null): string {
  return upstream === null ? model : `${model}@${upstream}`;
}

export function splitCloudModel(name: string): { readonly model: string; readonly upstream: string | null } {
  const at = name.indexOf('@');
  return at < 0 ? { model: name, upstream: null } : { model: name.slice(0, at), upstream: name.slice(at + 1) };
}

/** The pin as fingerprints carry it; null: any upstream may answer. */
export function pinText(upstreams: readonly string[], quantizations: readonly string[]): string | null {
  if (upstreams.length === 0 && quantizations.length === 0) return null;
  return `only=${[...upstreams].sort().join(',')};quantizations=${[...quantizations].sort().join(',')}`;
}

/** In the head of a call for OpenRouter. */
export const CloudCall = z.object({
  /** Permit of the budget; named again when a cancelled call has really ended. */
  permit: short,
  role: roleName,
  /** The pin the controller believes in force; the agent refuses a call that was routed under another. */
  pin: z.string().max(512).nullable(),
  /** chat: sent as max_tokens when the client states none. */
  maxTokens: count.nullable(),
});
export type CloudCall = z.infer<typeof CloudCall>;

/** In a failure: what OpenRouter or the upstream said, in numbers, flags and words of a narrow alphabet. */
export const CloudFailure = z.object({
  /** HTTP status, or the code inside a 200 or a stream; null: nothing was said (no key, transport, unusable answer). */
  status: count.nullable(),
  limitSource: z
    .string()
    .regex(/^[a-z0-9_]{1,64}$/)
    .nullable(),
  /** The error names an upstream. */
  fromProvider: z.boolean(),
  availability: z
    .string()
    .regex(/^[a-z0-9_]{1,64}$/)
    .nullable(),
  moderated: z.boolean(),
  retryAfterMs: count.nullable(),
  /** Epoch ms. */
  resetAtWallMs: amount.nullable(),
  /** The agent itself would not call: it holds no key, or one older than the newest. */
  key: z.enum(['missing', 'stale']).nullable(),
  /** Another upstream than the pin has answered: the answer was thrown away. */
  wrongUpstream: z.boolean(),
  /** What the failed call cost, where it was reported. */
  costUsd: z.number().min(0).nullable(),
});
export type CloudFailure = z.infer<typeof CloudFailure>;

const RoleRoute = z.object({
  model: short.nullable().optional(),
  upstreams: z.array(short).max(16).optional(),
  quantizations: z.array(z.string().max(16)).max(16).optional(),
  /** `local`: the agent refuses every cloud call of the role, whoever asks. */
  policy: z.enum(['local', 'backup', 'aggregate', 'cloud']).optional(),
});

/** Everything of a push but the key. What is absent stays as the agent holds it. */
export const PushMeta = z.object({
  /** Number of the newest push that carried a key; a key from an older one is stale. */
  keyPush: pushNumber,
  /** Base URL of the API the key is for; absent: the agent's own. Another origin drops the key held. */
  baseUrl: z.string().max(300).optional(),
  roles: z.partialRecord(roleName, RoleRoute).optional(),
  /** The key of this push may be kept encrypted to survive a restart, where the agent has a keyring. */
  remember: z.boolean().optional(),
  /** Drop the key, in memory and at rest. */
  forget: z.literal(true).optional(),
});
export type PushMeta = z.infer<typeof PushMeta>;

export const MIN_KEY_BYTES = 8;
export const MAX_KEY_BYTES = 512;
const PUSH_MARK = 0x4b; // K
const PUSH_HEADER_BYTES = 9;
const MAX_META_BYTES = 16 * 1024;

/** Why a push cannot be understood. */
export class BadPush extends Error {}

/**
 * `K`, push number (u32), length of the meta (u32), meta as JSON, then the key's bytes, or nothing. The result is one fresh
 * buffer outside the pool: whoever sends it zeroes it.
 */
export function encodePush(number: number, meta: PushMeta, key: Uint8Array | null): Buffer {
  const json = Buffer.from(JSON.stringify(meta));
  const frame = Buffer.allocUnsafeSlow(PUSH_HEADER_BYTES + json.length + (key?.length ?? 0));
  frame[0] = PUSH_MARK;
  frame.writeUInt32BE(number, 1);
  frame.writeUInt32BE(json.length, 5);
  frame.set(json, PUSH_HEADER_BYTES);
  if (key !== null) frame.set(key, PUSH_HEADER_BYTES + json.length);
  return frame;
}

export interface Push {
  readonly number: number;
  readonly meta: PushMeta;
  /** A view into the frame; null: none. */
  readonly key: Uint8Array | null;
}

/** @throws BadPush, which quotes nothing of the frame */
export function decodePush(frame: Uint8Array): Push {
  const bytes = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength);
  if (bytes.length < PUSH_HEADER_BYTES || bytes[0] !== PUSH_MARK) throw new BadPush('not a push');
  const length = bytes.readUInt32BE(5);
  const end = PUSH_HEADER_BYTES + length;
  if (length > MAX_META_BYTES || end > bytes.length) throw new BadPush('meta too long');
  const meta = PushMeta.safeParse(parsed(bytes.subarray(PUSH_HEADER_BYTES, end)));
  if (!meta.success) throw new BadPush('meta not understood');
  const key = end === bytes.length ? null : bytes.subarray(end);
  if (key !== null && !isKey(key)) throw new BadPush('not a key');
  const number = bytes.readUInt32BE(1);
  if (number > MAX_PUSH) throw new BadPush('number too high');
  return { number, meta: meta.data, key };
}

/** 8 to 512 printable ASCII bytes without spaces. */
export function isKey(bytes: Uint8Array): boolean {
  if (bytes.length < MIN_KEY_BYTES || bytes.length > MAX_KEY_BYTES) return false;
  return bytes.every((byte) => byte > 0x20 && byte < 0x7f);
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return null;
  }
}

/** What `/key` says, as numbers and flags. */
export const CloudAccount = z.object({
  /** What the key may still spend; null: no limit is reported. */
  creditUsd: z.number().nullable(),
  usageUsd: z.number().nullable(),
  isFreeTier: z.boolean().nullable(),
  rateRequests: z.number().nullable(),
  rateIntervalMs: amount.nullable(),
  freeUsed: z.number().nullable(),
  freeLimit: z.number().nullable(),
  expiresAtWallMs: amount.nullable(),
});
export type CloudAccount = z.infer<typeof CloudAccount>;

/** A model that a role asks for and the live catalogue offers, through the upstreams asked for. */
export const CloudOffer = z.object({
  role: roleName,
  model: short,
  /** Pinned upstream; null: any. */
  upstream: short.nullable(),
  pin: z.string().max(512).nullable(),
  contextTokens: count.nullable(),
  promptUsd: amount.nullable(),
  completionUsd: amount.nullable(),
  requestUsd: amount.nullable(),
  free: z.boolean(),
});
export type CloudOffer = z.infer<typeof CloudOffer>;

export const CloudStatus = z.object({
  t: z.literal('cloud-status'),
  /** Newest push applied; 0: none. */
  push: pushNumber,
  /** Push that brought the key held; null: no key. */
  keyPush: pushNumber.nullable(),
  key: z.enum(['held', 'missing', 'stale']),
  /** OpenRouter refused the key when it was last used. */
  keyRefused: z.boolean(),
  remembered: z.boolean(),
  /** This agent has a keyring and may remember. */
  canRemember: z.boolean(),
  baseUrl: z.string().max(300),
  account: CloudAccount.nullable(),
  offers: z.array(CloudOffer).max(256),
  notOffered: z
    .array(z.object({ role: roleName, model: short, upstream: short.nullable(), nearest: z.array(short).max(5) }))
    .max(64),
  /** When the catalogue was read (agent's wall clock); null: it could not be. */
  catalogueAtWallMs: amount.nullable(),
});
export type CloudStatus = z.infer<typeof CloudStatus>;

export const CloudAck = z.object({
  t: z.literal('cloud-ack'),
  push: pushNumber,
  result: z.enum(['applied', 'refused']),
  /** Why it was refused. */
  reason: z.enum(['malformed', 'out-of-order', 'bad-base-url']).nullable(),
});
export type CloudAck = z.infer<typeof CloudAck>;

/** A cancelled call is over at OpenRouter. */
export const CloudEnded = z.object({
  t: z.literal('cloud-ended'),
  permit: short,
  /** True: the agent closed the connection just now. False: it has read to the end, or nothing was ever sent. */
  aborted: z.boolean(),
  costUsd: z.number().min(0).nullable(),
});
export type CloudEnded = z.infer<typeof CloudEnded>;

export const CATALOGUE_KINDS = ['chat', 'embed', 'rerank'] as const;

export const CatalogueModel = z.object({
  model: short,
  kind: z.enum(CATALOGUE_KINDS),
  contextTokens: count.nullable(),
  promptUsd: amount.nullable(),
  completionUsd: amount.nullable(),
});
export type CatalogueModel = z.infer<typeof CatalogueModel>;

export const CatalogueEndpoint = z.object({
  /** What a pin names. */
  tag: short,
  upstream: short,
  quantization: z.string().max(32).nullable(),
  contextTokens: count.nullable(),
  promptUsd: amount.nullable(),
  completionUsd: amount.nullable(),
  healthy: z.boolean(),
});
export type CatalogueEndpoint = z.infer<typeof CatalogueEndpoint>;

/** Controller to agent. `id` comes back with the answer. */
export const CloudAsk = z.object({
  t: z.literal('cloud-ask'),
  id: count,
  what: z.enum(['catalogue', 'endpoints', 'account']),
  /** endpoints: which model's. */
  model: short.optional(),
});
export type CloudAsk = z.infer<typeof CloudAsk>;

/** What one answer lists at most. The agent reads no more of the live catalogue. */
export const MAX_CATALOGUE_MODELS = 5000;
export const MAX_CATALOGUE_ENDPOINTS = 256;

export const CloudAnswer = z.object({
  t: z.literal('cloud-answer'),
  id: count,
  /** False: it could not be asked; `account`: the key does not work. */
  ok: z.boolean(),
  models: z.array(CatalogueModel).max(MAX_CATALOGUE_MODELS).nullable(),
  endpoints: z.array(CatalogueEndpoint).max(MAX_CATALOGUE_ENDPOINTS).nullable(),
});
export type CloudAnswer = z.infer<typeof CloudAnswer>;

export type CloudFromAgent = CloudStatus | CloudAck | CloudEnded | CloudAnswer;
