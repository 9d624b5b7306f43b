import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { ERRORS, type ErrorCode, SwitchyardError } from '../domain/errors.ts';
import type { Clock } from '../domain/time.ts';
import { type ErrorForm, errorBody, errorHeaders } from './errors.ts';

/** An unread body up to this size is read and thrown away, so that the connection can be used again. */
const SMALL_BODY = 64 * 1024;
/** How long and how much of a larger one is thrown away before the connection is closed. */
const LINGER_MS = 2000;
const LINGER_BYTES = 64 * 1024 * 1024;

/** Is some of the request's body still on its way. */
export function hasUnreadBody(request: IncomingMessage): boolean {
  if (request.complete) return false;
  return request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0;
}

/**
 * Zeroes what has come of a body that nobody will read, and what still comes: it may be a key, and Node would drop the pieces as
 * they are. Over TLS the whole body is here by the time a request is refused, and after an `Expect` that was not waited for.
 */
export function wipeBody(request: IncomingMessage): void {
  request.on('data', wipe);
  request.resume();
}

/**
 * Answers a request whose body nobody will read, once `wipeBody` looks after it. Closing at once would reset the connection while the client still writes, and
 * the reset would destroy the answer before it is read; so the answer goes out, the body is thrown away for a moment, and then the
 * connection closes.
 */
export function refuseUnread(
  request: IncomingMessage,
  response: ServerResponse,
  error: SwitchyardError,
  form: ErrorForm,
  common: readonly string[],
  clock: Clock,
): void {
  const body = Buffer.from(errorBody(error, form));
  const headers = [...common, ...errorHeaders(error), 'content-length', String(body.length)];
  const stated = Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY);
  const awaitsLeave = request.headers.expect !== undefined;
  if (stated <= SMALL_BODY && !awaitsLeave && error.code !== 'request_timeout') {
    response.writeHead(error.status, headers);
    response.end(body);
    return;
  }
  response.writeHead(error.status, [...headers, 'connection', 'close']);
  if (awaitsLeave) {
    response.end(body);
    return;
  }
  response.write(body);
  let discarded = 0;
  const done = (): void => {
    cancelLinger();
    response.end();
  };
  const cancelLinger = clock.after(LINGER_MS, done);
  request.on('data', (chunk: Buffer) => {
    discarded += chunk.length;
    if (discarded > LINGER_BYTES) done();
  });
  request.on('end', done);
  request.on('close', done);
}

function wipe(chunk: Buffer): void {
  chunk.fill(0);
}

/** Answers on a bare connection, for what never became a request: garbage, CONNECT, refused upgrades. */
export function refuseSocket(socket: Duplex, code: ErrorCode, id: string): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const error = new SwitchyardError(code);
  const body = errorBody(error, 'openai');
  const headers = [...errorHeaders(error), 'content-length', String(Buffer.byteLength(body)), 'x-request-id', id];
  let text = `HTTP/1.1 ${ERRORS[code].status} Refused\r\nconnection: close\r\n`;
  for (let at = 0; at < headers.length; at += 2) text += `${headers[at]}: ${headers[at + 1]}\r\n`;
  socket.end(`${text}\r\n${body}`, () => socket.destroy());
}
