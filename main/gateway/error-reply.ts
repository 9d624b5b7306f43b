import type { SwitchyardError } from '../domain/errors.ts';
import { type ErrorForm, errorBody, errorHeaders } from './errors.ts';
import type { Reply } from './http-reply.ts';

/** Sends an error as the whole answer, in the dialect's form. */
export function errorReply(
  reply: Reply,
  error: SwitchyardError,
  form: ErrorForm,
  headers: readonly string[] = [],
): void {
  const body = Buffer.from(errorBody(error, form));
  reply.head(error.status, [...errorHeaders(error), 'content-length', String(body.length), ...headers]);
  reply.end(body);
}

/** Sends a value as JSON. */
export function jsonReply(reply: Reply, status: number, value: unknown, headers: readonly string[] = []): void {
  const body = Buffer.from(JSON.stringify(value));
  reply.head(status, ['content-type', 'application/json', 'content-length', String(body.length), ...headers]);
  reply.end(body);
}
