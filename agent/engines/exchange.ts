import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../../main/domain/time.ts';
import type { Connection, ResponseHandler } from './connection.ts';
import { EngineFailure } from './failure.ts';

export interface ExchangeRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Until the head of the answer. */
  readonly firstByteMs: number;
  /**
   * Between two signs of progress in the body; the sink says what counts by `progress`. Null: `firstByteMs` bounds the whole
   * answer, however slowly it drips.
   */
  readonly betweenMs: number | null;
  /** Refuses to send a byte on another socket than this generation of the connection. */
  readonly generation?: number;
}

/** Hears: onHead once, onData any number, then exactly one of onEnd and onFailure. onFailure may come first. */
export interface ExchangeSink {
  onHead(status: number, headers: IncomingHttpHeaders): void;
  /** The bytes are lent for the call. False stops the flow until `resume`. */
  onData(chunk: Buffer): boolean;
  onEnd(): void;
  onFailure(failure: EngineFailure): void;
}

/** A socket that was closed while it lay idle says so within one way there and back. Later the engine has begun. */
const MOMENT_MS = 1000;

const NO_ANSWER = 'The engine closed the connection without an answer.';

/** The socket that was agreed on is gone; nothing was sent on the new one. The caller looks at it and decides. */
export class SocketReplaced extends EngineFailure {
  constructor() {
    super('engine_error', {}, NO_ANSWER);
  }
}

/** One request on one connection. The constructor does nothing; `send` begins. */
export class Exchange implements ResponseHandler {
  readonly #connection: Connection;
  readonly #request: ExchangeRequest;
  readonly #sink: ExchangeSink;
  readonly #clock: Clock;
  #isSent = false;
  #sentAtMs = 0;
  #headSeen = false;
  #settled = false;
  #retried = false;
  #paused = false;
  #deadlineMs = Number.POSITIVE_INFINITY;
  #cancelTimer: (() => void) | null = null;
  #timerAtMs = Number.POSITIVE_INFINITY;

  constructor(connection: Connection, request: ExchangeRequest, sink: ExchangeSink, clock: Clock) {
    this.#connection = connection;
    this.#request = request;
    this.#sink = sink;
    this.#clock = clock;
  }

  send(): void {
    const { method, path, body, headers, firstByteMs } = this.#request;
    this.#deadline(firstByteMs);
    const own = body === undefined ? { ...headers } : { 'content-type': 'application/json', ...headers };
    this.#isSent = true;
    this.#sentAtMs = this.#clock.nowMs();
    this.#connection.send({ method, path, headers: own, body: body ?? null }, this);
  }

  /** A real sign of life: the time between tokens starts anew. */
  progress(): void {
    const { betweenMs } = this.#request;
    if (!this.#paused && betweenMs !== null) this.#deadline(betweenMs);
  }

  pause(): void {
    this.#paused = true;
    this.#deadlineMs = Number.POSITIVE_INFINITY; // the reader is slow, not the engine
    this.#connection.pause();
  }

  resume(): void {
    // Over: the connection may be another's by now.
    if (!this.#paused || this.#settled) return;
    this.#paused = false;
    this.progress();
    this.#connection.resume();
  }

  /** Closes the connection at once, which is what stops the engine's work. The sink hears nothing more. Idempotent. */
  abort(): void {
    if (this.#settled) return;
    this.#settle();
    this.#kill();
  }

  onStart(): Error | null {
    const { generation } = this.#request;
    return generation !== undefined && generation !== this.#connection.generation ? new SocketReplaced() : null;
  }

  onHead(status: number, headers: IncomingHttpHeaders): void {
    if (this.#settled) return;
    this.#headSeen = true;
    this.progress();
    this.#sink.onHead(status, headers);
  }

  onData(chunk: Buffer): void {
    if (!this.#settled && !this.#sink.onData(chunk)) this.pause();
  }

  onEnd(): void {
    if (this.#settled) return;
    this.#settle();
    this.#connection.served++;
    this.#sink.onEnd();
  }

  onError(error: Error): void {
    if (this.#settled) return;
    // An idle socket may be closed by the engine in the very moment in which it is used again. That, and only that, is worth
    // one more try: a kept socket, and not a byte of the answer.
    if (!this.#retried && this.#connection.served > 0 && this.#isUnheard() && isClosedSocket(error)) {
      this.#retried = true;
      this.#connection.served = 0;
      this.#isSent = false;
      queueMicrotask(() => {
        if (!this.#settled) this.send();
      });
      return;
    }
    this.#fail(error instanceof SocketReplaced ? error : this.#classify(error));
  }

  /** Nothing shows that the engine has begun: no byte of an answer, interim ones included, and it was a moment ago. */
  #isUnheard(): boolean {
    return !this.#connection.heard && this.#clock.nowMs() - this.#sentAtMs <= MOMENT_MS;
  }

  #classify(error: Error): EngineFailure {
    if (this.#headSeen) return new EngineFailure('stream_interrupted');
    switch (codeOf(error)) {
      case 'ECONNREFUSED':
      case 'EHOSTUNREACH':
      case 'ENETUNREACH':
      case 'ENOTFOUND':
      case 'EAI_AGAIN':
      case 'ETIMEDOUT':
        return new EngineFailure('engine_unreachable');
      default:
        return new EngineFailure('engine_error', {}, NO_ANSWER);
    }
  }

  #fail(failure: EngineFailure): void {
    this.#settle();
    this.#sink.onFailure(failure);
  }

  #settle(): void {
    this.#settled = true;
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  #kill(): void {
    // Between two tries the connection is closed already.
    if (this.#isSent) this.#connection.abort();
  }

  /** One timer per exchange, armed again only when it fires early: tokens come far more often than time-outs. */
  #deadline(delayMs: number): void {
    this.#deadlineMs = this.#clock.nowMs() + delayMs;
    if (this.#timerAtMs <= this.#deadlineMs && this.#cancelTimer !== null) return;
    this.#cancelTimer?.();
    this.#arm(delayMs);
  }

  #arm(delayMs: number): void {
    this.#timerAtMs = this.#clock.nowMs() + delayMs;
    this.#cancelTimer = this.#clock.after(delayMs, () => {
      this.#cancelTimer = null;
      if (this.#settled) return;
      const leftMs = this.#deadlineMs - this.#clock.nowMs();
      if (leftMs === Number.POSITIVE_INFINITY) return;
      if (leftMs > 0) {
        this.#arm(leftMs);
        return;
      }
      const failure = new EngineFailure('engine_timeout', { afterFirstByte: false });
      this.#settle();
      this.#kill();
      this.#sink.onFailure(failure);
    });
  }
}

function codeOf(error: Error): string {
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return codeOf(error.errors[0]);
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? code : '';
}

function isClosedSocket(error: Error): boolean {
  return ['ECONNRESET', 'EPIPE'].includes(codeOf(error));
}
