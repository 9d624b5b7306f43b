import type { IncomingHttpHeaders } from 'node:http';
import { EngineFailure } from '../engines/failure.ts';
import { isRecord } from '../engines/sse.ts';
import type { CallFailure } from '../wire/calls.ts';
import type { CloudFailure } from '../wire/cloud.ts';

/** A cloud call that failed, in the wire's terms. */
export class CloudCallFailed extends Error {
  readonly failure: CallFailure;

  constructor(failure: CallFailure) {
    super(failure.sentence);
    this.name = 'CloudCallFailed';
    this.failure = failure;
  }
}

export const NOTHING_SAID: CloudFailure = {
  status: null,
  limitSource: null,
  fromProvider: false,
  availability: null,
  moderated: false,
  retryAfterMs: null,
  resetAtWallMs: null,
  key: null,
  wrongUpstream: false,
  costUsd: null,
};

/** Longest pause we take from anybody. */
const MAX_PAUSE_MS = 24 * 3_600_000;

/**
 * What an error object says, in numbers, flags and closed words. `status` is the HTTP status of an error answer; for errors
 * in a 200 or a stream it is 200 and the object's own code counts. Its message is never looked at.
 */
export function readRefusal(
  status: number,
  answer: unknown,
  headers: IncomingHttpHeaders,
  wallMs: number,
): CloudFailure {
  const error = isRecord(answer) && isRecord(answer.error) ? answer.error : {};
  const metadata = isRecord(error.metadata) ? error.metadata : {};
  const availability = isRecord(error.availability) ? error.availability : {};
  const hints = isRecord(metadata.headers) ? metadata.headers : {};
  const hint = (name: string) => headers[name.toLowerCase()] ?? hints[name] ?? hints[name.toLowerCase()];
  const seconds = retrySeconds(hint('Retry-After'), wallMs) ?? finite(availability.retry_after);
  const named = typeof metadata.provider_name === 'string' && metadata.provider_name !== '';
  const reset = finite(hint('X-RateLimit-Reset')) ?? time(metadata.resets_at);
  return {
    ...NOTHING_SAID,
    status: status >= 400 ? status : codeOf(error),
    limitSource: word(metadata.limit_source),
    fromProvider: named,
    availability: word(availability.code),
    moderated: Array.isArray(metadata.reasons) || Array.isArray(metadata.patterns),
    retryAfterMs: seconds === null ? null : Math.round(Math.min(MAX_PAUSE_MS, Math.max(0, seconds * 1000))),
    resetAtWallMs: reset === null || reset < 0 ? null : Math.min(reset, 1e15),
  };
}

/** Which inputs were too long is not said; only that it was that. */
export function isTooLong(answer: unknown): boolean {
  const error = isRecord(answer) && isRecord(answer.error) ? answer.error : {};
  const type = isRecord(error.metadata) ? error.metadata.error_type : null;
  return TOO_LONG.has(String(type));
}

const TOO_LONG: ReadonlySet<string> = new Set([
  'context_length_exceeded',
  'max_tokens_exceeded',
  'token_limit_exceeded',
  'string_too_long',
]);

/** The failure of a call that OpenRouter answered with an error. */
export function refusedCall(
  cloud: CloudFailure,
  how: { readonly tooLong: boolean; readonly chat: boolean; readonly afterFirstByte: boolean },
): CloudCallFailed {
  const failure = classify(cloud, how);
  return new CloudCallFailed({
    ...failure,
    engineStatus: cloud.status,
    retryAfterMs: cloud.retryAfterMs,
    afterFirstByte: how.afterFirstByte,
    cloud,
  });
}

/** A call that failed without a word of OpenRouter's. */
export function failedCall(failure: CallFailure, cloud: Partial<CloudFailure> = {}): CloudCallFailed {
  return new CloudCallFailed({ ...failure, cloud: { ...NOTHING_SAID, ...cloud } });
}

function classify(
  cloud: CloudFailure,
  how: { readonly tooLong: boolean; readonly chat: boolean; readonly afterFirstByte: boolean },
): CallFailure {
  const of = (...args: ConstructorParameters<typeof EngineFailure>) => new EngineFailure(...args).failure;
  const status = cloud.status ?? 500;
  if (how.afterFirstByte) return of('stream_interrupted', { blame: 'engine' }, 'The upstream broke the answer off.');
  if (how.tooLong) return of(how.chat ? 'context_too_long' : 'input_too_long');
  if (cloud.moderated) return of('engine_refused', {}, 'The content was refused by moderation.');
  if (status === 401 || status === 403) return of('engine_busy', {}, 'OpenRouter does not accept the key for this.');
  if (status === 402) return of('engine_busy', {}, 'OpenRouter asks for payment.');
  if (status === 429) return of('engine_busy', {}, 'OpenRouter or the upstream limits requests.');
  if (status === 503 || status === 529) return of('engine_busy', {}, 'The upstream is overloaded.');
  if (status === 404) return of('model_missing', {}, 'OpenRouter does not offer this model or upstream now.');
  if (status === 408 || status === 504 || status === 524)
    return of('engine_timeout', {}, 'The upstream did not answer in time.');
  if (status >= 400 && status < 500) return of('engine_refused', {}, 'OpenRouter refused the request as malformed.');
  return of('engine_error', {}, 'The upstream failed.');
}

/** The code of an error object is a number, or by one documented example a word. */
function codeOf(error: Readonly<Record<string, unknown>>): number {
  const code = finite(error.code);
  return code !== null && Number.isInteger(code) && code >= 400 && code < 1000 ? code : 500;
}

function finite(value: unknown): number | null {
  const number =
    typeof value === 'number' ? value : typeof value === 'string' && value !== '' ? Number(value) : Number.NaN;
  return Number.isFinite(number) ? number : null;
}

function time(value: unknown): number | null {
  if (typeof value !== 'string') return finite(value);
  const ms = Date.parse(value);
  return Number.isFinite(ms) ? ms : null;
}

/** Seconds, or an HTTP date. */
function retrySeconds(value: unknown, wallMs: number): number | null {
  const seconds = finite(value);
  if (seconds !== null) return seconds;
  const at = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isFinite(at) ? Math.max(0, (at - wallMs) / 1000) : null;
}

/** A word of OpenRouter's own vocabularies, which grow: anything else becomes `unknown` rather than text of theirs. */
function word(value: unknown): string | null {
  if (value === null || value === undefined || value === '') return null;
  return typeof value === 'string' && /^[a-z0-9_]{1,64}$/.test(value) ? value : 'unknown';
}
