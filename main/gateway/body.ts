import type { IncomingMessage } from 'node:http';
import { SwitchyardError } from '../domain/errors.ts';
import type { Clock } from '../domain/time.ts';

export interface BodyLimits {
  readonly bytes: number;
  /** From the end of the headers to the last byte. */
  readonly timeoutMs: number;
}

export const BODY_LIMITS: BodyLimits = { bytes: 32 * 1024 * 1024, timeoutMs: 60_000 };

/** Looks at each chunk as it arrives; what it throws ends the reading. */
export type ChunkInspector = (chunk: Buffer) => void;

/**
 * What the headers alone say about the body, before a byte of it is asked for.
 * @returns its stated length, or null when it comes in chunks
 * @throws SwitchyardError unsupported_encoding, payload_too_large
 */
export function checkBodyHeaders(request: IncomingMessage, limits: BodyLimits): number | null {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new SwitchyardError('unsupported_encoding');
  const stated = request.headers['content-length'];
  if (stated === undefined) return request.headers['transfer-encoding'] === undefined ? 0 : null;
  const length = Number(stated);
  if (length > limits.bytes) throw new SwitchyardError('payload_too_large');
  return length;
}

/**
 * Reads a body into one piece; a body that came in one chunk is not copied.
 *
 * @throws SwitchyardError payload_too_large, request_timeout, client_closed (it left, or stated more than it sent), and
 *   whatever `inspect` throws. The rest of the body is then still unread.
 */
export function readBody(
  request: IncomingMessage,
  limits: BodyLimits,
  clock: Clock,
  inspect: ChunkInspector,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const cancelDeadline = clock.after(limits.timeoutMs, () => settle(new SwitchyardError('request_timeout')));

    function settle(error: unknown): void {
      cancelDeadline();
      request.off('data', onData);
      request.off('end', onEnd);
      request.off('close', onClose);
      request.off('error', onClose);
      if (error !== null) {
        request.pause();
        // Without a listener a late error of an abandoned request would end the process.
        request.on('error', ignore);
        reject(error);
      } else resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, length));
    }
    function onData(chunk: Buffer): void {
      length += chunk.length;
      if (length > limits.bytes) {
        settle(new SwitchyardError('payload_too_large'));
        return;
      }
      try {
        inspect(chunk);
      } catch (error) {
        settle(error);
        return;
      }
      chunks.push(chunk);
    }
    function onEnd(): void {
      settle(null);
    }
    function onClose(): void {
      settle(new SwitchyardError('client_closed'));
    }
    request.on('data', onData);
    request.on('end', onEnd);
    request.on('close', onClose);
    request.on('error', onClose);
  });
}

function ignore(): void {}
