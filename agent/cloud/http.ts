import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Readable } from 'node:stream';
import type { Pool } from 'undici';
import type { Clock } from '../../main/domain/time.ts';
import { EngineFailure } from '../engines/failure.ts';
import { failedCall } from './refusal.ts';

const CONNECT_MS = 3000;
const MAX_SOCKETS = 256;
/** Attribution that OpenRouter shows to the account's owner. */
const TITLE = 'Switchyard';

export interface CloudRequest {
  readonly baseUrl: string;
  readonly path: string;
  /** Null: a public route. */
  readonly authorization: string | null;
  readonly body: string | null;
  readonly firstByteMs: number;
  readonly signal: AbortSignal;
}

export interface CloudResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
}

/**
 * HTTP with OpenRouter: kept connections, redirects never followed (undici follows none unless told), our own time-outs. The
 * plain client API only: `fetch` quotes header values in its errors.
 */
export class CloudHttp {
  readonly #clock: Clock;
  /** By origin: as a rule one. */
  readonly #pools = new Map<string, Pool>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @throws EngineFailure or CloudCallFailed of ours; the abort reason when the signal fired */
  async open({ baseUrl, path, authorization, body, firstByteMs, signal }: CloudRequest): Promise<CloudResponse> {
    const late = new AbortController();
    const stop = this.#clock.after(firstByteMs, () => late.abort());
    try {
      const url = new URL(`${baseUrl}${path}`);
      const either = AbortSignal.any([signal, late.signal]);
      const common = { accept: 'application/json, text/event-stream', 'x-openrouter-title': TITLE };
      if (authorization === null && body === null) return await openPublic(url, common, either);
      // Loaded with the first call: an agent without a key need not hold undici, whose parser is WebAssembly, in memory.
      const { default: request } = await import('undici/lib/api/api-request.js');
      const { default: UndiciPool } = await import('undici/lib/dispatcher/pool.js');
      const response = await request.call(this.#pool(url.origin, UndiciPool), {
        path: `${url.pathname}${url.search}`,
        method: body === null ? 'GET' : 'POST',
        headers: {
          ...common,
          ...(body === null ? {} : { 'content-type': 'application/json' }),
          ...(authorization === null ? {} : { authorization }),
        },
        body,
        signal: either,
      });
      return { status: response.statusCode, headers: response.headers, body: response.body };
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (late.signal.aborted) throw lateFailure();
      // What was never sent has cost nothing, and must not count as spent.
      throw isUnconnected(error)
        ? failedCall(transportFailure(error).failure, { costUsd: 0 })
        : transportFailure(error);
    } finally {
      stop();
    }
  }

  /**
   * A whole JSON answer; null as `json` when it is not JSON. Used for what is small: all of it has to come within `firstByteMs`, or
   * an answer that stands still behind its head would be waited for without end.
   */
  async json(
    options: CloudRequest,
    maxBytes: number,
  ): Promise<{ readonly status: number; readonly headers: IncomingHttpHeaders; readonly json: unknown }> {
    const late = new AbortController();
    const stop = this.#clock.after(options.firstByteMs, () => late.abort());
    try {
      const { status, headers, body } = await this.open({
        ...options,
        signal: AbortSignal.any([options.signal, late.signal]),
      });
      const bytes = await readAll(body, maxBytes);
      return { status, headers, json: parseJson(bytes) };
    } catch (error) {
      if (late.signal.aborted && !options.signal.aborted) throw lateFailure();
      throw error;
    } finally {
      stop();
    }
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  #pool(origin: string, UndiciPool: typeof Pool): Pool {
    const known = this.#pools.get(origin);
    if (known !== undefined) return known;
    const pool = new UndiciPool(origin, {
      connections: MAX_SOCKETS,
      pipelining: 1,
      allowH2: false,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { timeout: CONNECT_MS },
    });
    this.#pools.set(origin, pool);
    return pool;
  }
}

/** The catalogue, asked for now and then, over a connection of its own. Rejects with the error of the socket, or of the abort. */
function openPublic(url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<CloudResponse> {
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const asked = request(url, { headers, signal, agent: false }, (response) =>
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: response }),
    );
    asked.once('error', reject);
    asked.end();
  });
}

/** @throws EngineFailure when it is longer or breaks off */
export async function readAll(body: Readable, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      size += chunk.length;
      if (size > maxBytes) break;
      chunks.push(chunk);
    }
  } catch {
    throw new EngineFailure('stream_interrupted', { blame: 'transport' }, 'The answer of OpenRouter broke off.');
  }
  if (size > maxBytes) throw new EngineFailure('engine_invalid_response', {}, 'OpenRouter answered with far too much.');
  return Buffer.concat(chunks);
}

export function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return null;
  }
}

function lateFailure(): EngineFailure {
  return new EngineFailure('engine_timeout', { blame: 'engine' }, 'OpenRouter did not answer in time.');
}

/** No connection came about: the name, the address, or the time for it. A running one fails in other system calls. */
function isUnconnected(error: unknown): boolean {
  if (error instanceof AggregateError) return true; // of the addresses that were tried
  const { code, syscall } = (typeof error === 'object' && error !== null ? error : {}) as NodeJS.ErrnoException;
  return syscall === 'connect' || syscall === 'getaddrinfo' || code === 'UND_ERR_CONNECT_TIMEOUT';
}

/** Errors of sockets and of undici may quote what was sent: only their kind is looked at. */
export function transportFailure(error: unknown): EngineFailure {
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
  const unreachable =
    /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/.test(code);
  return unreachable
    ? new EngineFailure('engine_unreachable', { blame: 'transport' }, 'OpenRouter cannot be reached from this machine.')
    : new EngineFailure('engine_error', { blame: 'transport' }, 'The connection to OpenRouter broke.');
}
