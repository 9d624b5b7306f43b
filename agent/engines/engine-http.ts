import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../../main/domain/time.ts';
import { HeldBody } from '../wire/held-body.ts';
import { type Connection, Connections, type SocketWatch } from './connections.ts';
import { Exchange, type ExchangeRequest, type ExchangeSink } from './exchange.ts';
import { EngineFailure } from './failure.ts';

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface FetchOptions {
  readonly method?: 'GET' | 'POST';
  readonly body?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** For the whole answer. */
  readonly timeoutMs: number;
  /** Longer answers fail as `engine_invalid_response`. */
  readonly maxBytes: number;
  readonly signal?: AbortSignal;
  readonly generation?: number;
}

/** A running exchange that gives its connection back by itself. */
export interface RunningExchange {
  progress(): void;
  pause(): void;
  resume(): void;
  abort(): void;
}

/**
 * HTTP with one engine. Calls run on as many kept connections as there are calls; probes have one of their own, so that they
 * wait for nobody and nobody waits for them. Redirects are never followed.
 */
export class EngineHttp {
  readonly origin: string;
  readonly #clock: Clock;
  readonly #calls: Connections;
  readonly #probes: Connections;
  readonly #headers: Readonly<Record<string, string>>;
  #probedProcess: Promise<string | null> = Promise.resolve(null);
  #closed = false;

  /** `headers` go with every request (an engine's own API key). */
  constructor(origin: string, clock: Clock, watch: SocketWatch, headers: Readonly<Record<string, string>> = {}) {
    this.origin = origin;
    this.#clock = clock;
    this.#headers = headers;
    this.#calls = new Connections(origin, watch);
    this.#probes = new Connections(origin, watch, 2);
  }

  /** Takes a connection for a call; give it back with `giveBack` when its exchanges are over. */
  take(): Connection {
    return this.#calls.take();
  }

  giveBack(connection: Connection): void {
    this.#calls.give(connection);
  }

  /** In place of `giveBack`: closes it. */
  drop(connection: Connection): void {
    this.#calls.drop(connection);
  }

  /** Streams one answer on a connection that is given back afterwards. */
  stream(request: ExchangeRequest, sink: ExchangeSink, connection = this.take()): RunningExchange {
    const back = () => this.giveBack(connection);
    const wrapped: ExchangeSink = {
      onHead: (status, headers) => sink.onHead(status, headers),
      onData: (chunk) => sink.onData(chunk),
      onEnd: () => {
        back();
        sink.onEnd();
      },
      onFailure: (failure) => {
        back();
        sink.onFailure(failure);
      },
    };
    const exchange = new Exchange(connection, this.#withHeaders(request), wrapped, this.#clock);
    exchange.send();
    return {
      progress: () => exchange.progress(),
      pause: () => exchange.pause(),
      resume: () => exchange.resume(),
      abort: () => {
        exchange.abort();
        this.#calls.drop(connection); // its socket is closed anyway
      },
    };
  }

  /** Whole answer of one request on the given connection. Rejects with EngineFailure; on abort with the signal's reason. */
  fetchOn(connection: Connection, path: string, options: FetchOptions): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const { signal, maxBytes, timeoutMs } = options;
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      let status = 0;
      let headers: IncomingHttpHeaders = {};
      const body = new HeldBody(maxBytes);
      const done = (settle: () => void) => {
        signal?.removeEventListener('abort', onAbort);
        settle();
      };
      const request: ExchangeRequest = this.#withHeaders({
        method: options.method ?? (options.body === undefined ? 'GET' : 'POST'),
        path,
        firstByteMs: timeoutMs,
        betweenMs: null,
        ...(options.body === undefined ? {} : { body: options.body }),
        ...(options.headers === undefined ? {} : { headers: options.headers }),
        ...(options.generation === undefined ? {} : { generation: options.generation }),
      });
      const sink: ExchangeSink = {
        onHead: (gotStatus, gotHeaders) => {
          status = gotStatus;
          headers = gotHeaders;
          body.expect(Number(gotHeaders['content-length'] ?? 0));
        },
        onData: (chunk) => {
          if (!body.take(chunk)) {
            exchange.abort();
            done(() =>
              reject(new EngineFailure('engine_invalid_response', {}, 'The engine answered with far too much.')),
            );
          }
          return true;
        },
        onEnd: () => done(() => resolve({ status, headers, body: body.whole() })),
        onFailure: (failure) => done(() => reject(failure)),
      };
      const exchange = new Exchange(connection, request, sink, this.#clock);
      const onAbort = () => {
        exchange.abort();
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      exchange.send();
    });
  }

  /** Like `fetchOn`, on any kept connection for calls. */
  async fetch(path: string, options: FetchOptions): Promise<HttpAnswer> {
    const connection = this.take();
    try {
      return await this.fetchOn(connection, path, options);
    } finally {
      this.giveBack(connection);
    }
  }

  /** Mark of the process that answered the last probe; null before the first, and where it cannot be read. */
  get probedProcess(): Promise<string | null> {
    return this.#probedProcess;
  }

  /** Like `fetchOn`, on a kept connection that calls never use. */
  async probe(path: string, options: FetchOptions): Promise<HttpAnswer> {
    const connection = this.#probes.take();
    try {
      const answer = await this.fetchOn(connection, path, options);
      this.#probedProcess = connection.processMark;
      return answer;
    } finally {
      this.#probes.give(connection);
    }
  }

  get closed(): boolean {
    return this.#closed;
  }

  close(): void {
    this.#closed = true;
    this.#calls.close();
    this.#probes.close();
  }

  #withHeaders(request: ExchangeRequest): ExchangeRequest {
    return { ...request, headers: { ...this.#headers, ...request.headers } };
  }
}
