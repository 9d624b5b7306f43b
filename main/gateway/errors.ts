import { ERRORS, type ErrorCode, SwitchyardError } from '../domain/errors.ts';
import { told } from '../domain/said.ts';

/** How a dialect says that something went wrong. */
export type ErrorForm = 'openai' | 'rerank';

/** Codes that heal by waiting get a Retry-After even when nobody knew how long. */
const WAIT_A_SECOND: ReadonlySet<ErrorCode> = new Set([
  'queue_full',
  'queue_timeout',
  'too_many_in_flight',
  'too_many_readers',
  'rate_limited',
  'engine_busy',
  'shutting_down',
  'store_unavailable',
  'idempotency_unavailable',
  'idempotency_running',
]);

/** What is not ours is a fault of ours: its message may quote a request, so it goes nowhere. */
export function asSwitchyardError(error: unknown): SwitchyardError {
  return error instanceof SwitchyardError ? error : new SwitchyardError('internal_error');
}

/** The error object of a dialect as JSON text. */
export function errorBody(error: SwitchyardError, form: ErrorForm): string {
  const { param = null, ...extra } = error.extra;
  const { code, message, says } = error;
  const beside = says ? { says: told(says).says } : {};
  const members = { message, type: ERRORS[code].type, param, code, ...beside, ...extra };
  // Cohere's clients read `message`, Jina's `detail`; both find the code in `error`.
  return form === 'rerank'
    ? JSON.stringify({ message: error.message, detail: error.message, code: error.code, error: members })
    : JSON.stringify({ error: members });
}

/** Flat headers that an error brings along. */
export function errorHeaders(error: SwitchyardError): string[] {
  const headers = ['content-type', 'application/json'];
  const waitMs = error.retryAfterMs ?? (WAIT_A_SECOND.has(error.code) ? 1000 : null);
  if (waitMs !== null) headers.push('retry-after', String(Math.max(1, Math.ceil(waitMs / 1000))));
  if (ERRORS[error.code].status === 401) headers.push('www-authenticate', 'Bearer');
  return headers;
}

/** An error inside a stream that has begun, as OpenAI's clients expect it: no `[DONE]` may follow. */
export function streamErrorEvent(error: SwitchyardError): string {
  return `data: ${errorBody(error, 'openai')}\n\n`;
}
