import { EngineFailure } from '../engines/failure.ts';
import { isRecord } from '../engines/sse.ts';

/**
 * What a client may send on to OpenRouter. Everything else is left out: what chooses models and upstreams, runs tools on
 * OpenRouter's side, changes the price, or says who the user is.
 */
const CHAT_FIELDS = [
  'messages',
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'top_a',
  'seed',
  'stop',
  'frequency_penalty',
  'presence_penalty',
  'repetition_penalty',
  'logit_bias',
  'logprobs',
  'top_logprobs',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'response_format',
  'prediction',
  'reasoning',
  'reasoning_effort',
  'verbosity',
] as const;

/** Output tokens when neither client nor controller states any: the check of the balance takes the model's maximum otherwise. */
export const DEFAULT_MAX_TOKENS = 4096;

export interface Pin {
  readonly upstreams: readonly string[];
  readonly quantizations: readonly string[];
}

/** `provider` of a request; undefined where anything may answer. */
export function providerPreferences(pin: Pin): Readonly<Record<string, unknown>> | undefined {
  if (pin.upstreams.length === 0 && pin.quantizations.length === 0) return undefined;
  return {
    ...(pin.upstreams.length === 0 ? {} : { only: pin.upstreams, allow_fallbacks: false }),
    ...(pin.quantizations.length === 0 ? {} : { quantizations: pin.quantizations }),
  };
}

/**
 * A chat body from the allowed fields of the client's. Always a stream: only a stream can be cancelled. Compression of the
 * context is off, because it changes what the model reads without a word.
 * @throws EngineFailure `engine_refused` when the client's bytes are no JSON object
 */
export function chatBody(client: Uint8Array, model: string, pin: Pin, maxTokens: number | null): string {
  const asked = objectOf(client);
  const body: Record<string, unknown> = { model };
  for (const field of CHAT_FIELDS) if (asked[field] !== undefined) body[field] = asked[field];
  return JSON.stringify({
    ...body,
    stream: true,
    max_tokens: tokens(asked.max_completion_tokens) ?? tokens(asked.max_tokens) ?? maxTokens ?? DEFAULT_MAX_TOKENS,
    plugins: [{ id: 'context-compression', enabled: false }],
    provider: providerPreferences(pin),
  });
}

/** @throws EngineFailure `engine_refused` */
export function textsOf(bytes: Uint8Array, count: number): readonly string[] {
  const texts = parsed(bytes);
  if (!Array.isArray(texts) || texts.length !== count || !texts.every((text) => typeof text === 'string')) {
    throw new EngineFailure('engine_refused');
  }
  return texts;
}

/** @throws EngineFailure `engine_refused` */
export function rerankOf(
  bytes: Uint8Array,
  count: number,
): { readonly query: string; readonly documents: readonly string[] } {
  const asked = objectOf(bytes);
  const { query, documents } = asked;
  if (typeof query !== 'string' || !Array.isArray(documents) || documents.length !== count) {
    throw new EngineFailure('engine_refused');
  }
  if (!documents.every((document) => typeof document === 'string')) throw new EngineFailure('engine_refused');
  return { query, documents };
}

function objectOf(bytes: Uint8Array): Record<string, unknown> {
  const value = parsed(bytes);
  if (!isRecord(value)) throw new EngineFailure('engine_refused');
  return value;
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
  } catch {
    return null;
  }
}

function tokens(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : null;
}
