import { z } from 'zod';
import { CloudCall, CloudFailure } from './cloud.ts';

/**
 * Heads, response heads and trailers of the data socket's calls. A call is one stream: the controller opens it with a head
 * and a body, the agent answers with a response head, body chunks and trailers, or with a failure. Bodies are bytes:
 *
 * | op       | request body                              | answer body                                                    |
 * |----------|-------------------------------------------|----------------------------------------------------------------|
 * | chat     | the client's JSON, `switchyard` removed    | the engine's own bytes (SSE or JSON)                           |
 * | embed    | JSON array of strings                     | raw little-endian float32, count x width, normalised if asked   |
 * | rerank   | JSON `{query, documents: string[]}`        | JSON `{scores: number[]}` in the order of the documents, raw     |
 * | tokenize | JSON array of strings                     | JSON `{tokens: number[]}`, special tokens included              |
 */
const text = z.string().max(512);
const count = z.number().int().min(0).max(1e9);

export const CallHead = z.discriminatedUnion('op', [
  z.object({
    op: z.literal('chat'),
    engine: text,
    model: text,
    stream: z.boolean(),
    /** The client asked for a usage chunk itself; otherwise the agent asks and removes it. */
    wantsUsage: z.boolean(),
    /** Route of the engine in the client's dialect. */
    path: z.enum(['/v1/chat/completions', '/v1/completions']),
    firstByteMs: count,
    betweenTokensMs: count,
    /** Set on every call for OpenRouter, and on no other. */
    cloud: CloudCall.optional(),
  }),
  z.object({
    op: z.literal('embed'),
    engine: text,
    model: text,
    count,
    /** Full width expected; another is `engine_invalid_response`. Null while the gate measures. */
    width: count.nullable(),
    /** Cut to this many leading values, then normalise; null: no cut. */
    cut: count.nullable(),
    normalise: z.boolean(),
    /** The call is refused with `fingerprint-changed` before a text reaches an engine whose process mark is another. */
    processMark: text.nullable(),
    timeoutMs: count,
    cloud: CloudCall.optional(),
  }),
  z.object({
    op: z.literal('rerank'),
    engine: text,
    model: text,
    count,
    timeoutMs: count,
    cloud: CloudCall.optional(),
  }),
  z.object({ op: z.literal('tokenize'), engine: text, model: text, count, timeoutMs: count }),
]);
export type CallHead = z.infer<typeof CallHead>;
export type CallOp = CallHead['op'];

export const WireFingerprint = z.object({
  engine: text,
  version: text.nullable(),
  modelDigest: text.nullable(),
  upstream: text.nullable(),
  pin: text.nullable(),
  processMark: text.nullable(),
});

export const ResponseHead = z.object({
  /** HTTP status of the engine for `chat` (always 2xx: others are failures), 200 for the rest. */
  status: count,
  contentType: text,
  /** embed: rows and columns of the body. */
  count: count.nullable(),
  width: count.nullable(),
});
export type ResponseHead = z.infer<typeof ResponseHead>;

export const Usage = z.object({
  promptTokens: count,
  completionTokens: count,
  /** False when the engine did not say and this is an estimate. */
  exact: z.boolean(),
  costUsd: z.number().min(0).nullable(),
});
export type Usage = z.infer<typeof Usage>;

/** Ends a successful call. */
export const Trailers = z.object({
  usage: Usage.nullable(),
  /** Read on the engine connection that served this call. */
  fingerprint: WireFingerprint,
  engineMs: z.number().min(0),
  firstByteMs: z.number().min(0).nullable(),
  tokensPerSecond: z.number().min(0).nullable(),
  /** chat: a finish reason was seen and no error object. False: the answer is incomplete whatever `[DONE]` says. */
  finished: z.boolean(),
});
export type Trailers = z.infer<typeof Trailers>;

/**
 * Why a call failed. `blame` decides what happens next: `caller` is passed on and never retried elsewhere; `busy` is
 * re-queued without counting against the provider; `engine` and `transport` count.
 */
export const CallFailure = z.object({
  blame: z.enum(['caller', 'busy', 'engine', 'transport', 'fingerprint']),
  code: z.enum([
    'input_too_long',
    'context_too_long',
    'empty_input',
    'engine_refused',
    'engine_busy',
    'engine_error',
    'engine_invalid_response',
    'engine_timeout',
    'stream_interrupted',
    'engine_unreachable',
    'model_missing',
    'fingerprint_changed',
    'unsupported_task',
  ]),
  /** Ours: never the engine's own text. */
  sentence: text,
  engineStatus: count.nullable(),
  retryAfterMs: count.nullable(),
  /** Failing inputs of embed and rerank, with their token counts where known. */
  failing: z.array(z.object({ index: count, tokens: count.nullable() })).max(2048),
  limitTokens: count.nullable(),
  /** True once a byte of the answer may have left: no other provider may be tried. */
  afterFirstByte: z.boolean(),
  /** Calls for OpenRouter. */
  cloud: CloudFailure.optional(),
});
export type CallFailure = z.infer<typeof CallFailure>;
