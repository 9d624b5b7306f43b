import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../../main/domain/time.ts';
import type { CallFailure, Trailers, Usage } from '../wire/calls.ts';
import { type IncomingCall, whenAborted } from '../wire/stream.ts';
import { ChatAssembler } from './assemble-chat.ts';
import type { EngineHttp, RunningExchange } from './engine-http.ts';
import type { ExchangeSink } from './exchange.ts';
import { EngineFailure } from './failure.ts';
import { jsonOf } from './json-answer.ts';
import { isRecord, readUsage, SseScanner, type StreamUsage } from './sse.ts';

/** A whole JSON answer is kept to be looked at before a byte of it leaves. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const MAX_ERROR_BYTES = 64 * 1024;
const STATUS_OF_EVENTS = 500;

export interface ChatExchange {
  readonly path: string;
  readonly body: Uint8Array;
  /** False: the caller wants one JSON answer. If the engine streams all the same, its events are put together. */
  readonly stream: boolean;
  /** Let the usage chunk through: the client asked for it. */
  readonly keepUsage: boolean;
  readonly firstByteMs: number;
  readonly betweenMs: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ChatOutcome {
  readonly usage: Usage | null;
  readonly engineMs: number;
  readonly firstByteMs: number | null;
  readonly tokensPerSecond: number | null;
}

/** How an engine says no: from status and body of an answer that is not 2xx. */
export type ClassifyError = (status: number, body: unknown, headers: IncomingHttpHeaders) => EngineFailure;

/**
 * Passes one chat answer from engine to call. Resolves when the answer was whole (the caller ends the call), rejects with
 * EngineFailure otherwise, and with the signal's reason after an abort, by which time the engine's connection is closed.
 */
export function relayChat(
  http: EngineHttp,
  exchange: ChatExchange,
  call: IncomingCall,
  clock: Clock,
  classify: ClassifyError,
): Promise<ChatOutcome> {
  return new Promise((resolve, reject) => {
    new Relay(http, exchange, call, clock, classify, resolve, reject).start();
  });
}

class Relay implements ExchangeSink {
  readonly #http: EngineHttp;
  readonly #exchange: ChatExchange;
  readonly #call: IncomingCall;
  readonly #clock: Clock;
  readonly #classify: ClassifyError;
  readonly #resolve: (outcome: ChatOutcome) => void;
  readonly #reject: (reason: unknown) => void;
  #leave: () => void = () => undefined;
  #running: RunningExchange | null = null;
  #scanner: SseScanner | null = null;
  #assembler: ChatAssembler | null = null;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #startedMs = 0;
  #firstMs: number | null = null;
  #responded = false;
  #over = false;
  #buffered: Buffer[] = [];
  #size = 0;

  constructor(
    http: EngineHttp,
    exchange: ChatExchange,
    call: IncomingCall,
    clock: Clock,
    classify: ClassifyError,
    resolve: (outcome: ChatOutcome) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#http = http;
    this.#exchange = exchange;
    this.#call = call;
    this.#clock = clock;
    this.#classify = classify;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  start(): void {
    this.#leave = whenAborted(this.#call, () => this.#aborted());
    if (this.#over) return;
    this.#startedMs = this.#clock.nowMs();
    const { path, body, firstByteMs, betweenMs, headers = {} } = this.#exchange;
    this.#running = this.#http.stream({ method: 'POST', path, body, firstByteMs, betweenMs, headers }, this);
  }

  onHead(status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    this.#headers = headers;
    const type = headers['content-type'] ?? '';
    if (status >= 300 || !type.startsWith('text/event-stream')) return;
    const assembler = this.#exchange.stream ? null : new ChatAssembler();
    this.#assembler = assembler;
    this.#scanner = new SseScanner(this.#exchange.keepUsage, assembler && ((event) => assembler.add(event)));
  }

  onData(lent: Buffer): boolean {
    if (this.#over) return true;
    const chunk = Buffer.from(lent);
    if (this.#scanner === null) {
      this.#running?.progress();
      this.#size += chunk.length;
      if (this.#size <= (this.#status < 300 ? MAX_ANSWER_BYTES : MAX_ERROR_BYTES)) this.#buffered.push(chunk);
      else if (this.#status < 300) this.#break(new EngineFailure('engine_invalid_response'));
      return true;
    }
    const step = this.#scanner.push(chunk);
    const flows = this.#assembler !== null || this.#pass(step.bytes);
    if (step.kind === 'error') {
      this.#break(this.#streamError(step.malformed));
      return true;
    }
    if (step.progress) {
      this.#firstMs ??= this.#clock.nowMs();
      this.#running?.progress();
    }
    if (!flows) void this.#resumeWhenDrained();
    return flows;
  }

  onEnd(): void {
    if (this.#over) return;
    try {
      this.#finish();
    } catch (error) {
      this.#settle(() => this.#reject(error));
    }
  }

  onFailure(failure: EngineFailure): void {
    if (this.#over) return;
    this.#settle(() => this.#reject(this.#responded ? afterFirstByte(failure) : failure));
  }

  #finish(): void {
    if (this.#status >= 300) throw this.#classify(this.#status, parse(this.#buffered), this.#headers);
    if (this.#scanner === null) {
      this.#finishJson();
      return;
    }
    const rest = this.#scanner.flush();
    if (rest.kind === 'error') throw this.#streamError(rest.malformed);
    if (this.#assembler === null) this.#pass(rest.bytes);
    // `[DONE]` alone proves nothing, and its absence nothing either: only a finish reason ends an answer.
    if (!this.#scanner.finished) throw this.#interrupted();
    const { usage, dataEvents } = this.#scanner;
    if (this.#assembler !== null) this.#passWhole(this.#assembler);
    this.#succeed(usage, dataEvents);
  }

  #finishJson(): void {
    const answer = parse(this.#buffered);
    const choices = isRecord(answer) && Array.isArray(answer.choices) ? answer.choices : [];
    const whole = choices.length > 0 && choices.every((choice) => isRecord(choice) && isFinished(choice));
    if (!isRecord(answer) || isError(answer.error) || !whole) {
      throw new EngineFailure(
        'engine_error',
        { engineStatus: this.#status },
        'The engine answered 200 without an answer.',
      );
    }
    this.#firstMs = this.#clock.nowMs();
    for (const chunk of this.#buffered) this.#pass(chunk);
    this.#succeed(readUsage(answer), 0);
  }

  #passWhole(assembler: ChatAssembler): void {
    const answer = assembler.answer();
    if (answer === null) throw new EngineFailure('engine_invalid_response');
    this.#headers = { 'content-type': 'application/json; charset=utf-8' };
    this.#pass(Buffer.from(JSON.stringify(answer)));
  }

  #succeed(counted: StreamUsage | null, events: number): void {
    const nowMs = this.#clock.nowMs();
    const usage: Usage | null = counted
      ? { ...counted, exact: true, costUsd: null }
      : events > 0
        ? { promptTokens: 0, completionTokens: events, exact: false, costUsd: null }
        : null;
    // A stream's rate is counted from its first token; a whole answer's only from its start, prompt included.
    const sinceMs = this.#scanner === null ? this.#startedMs : (this.#firstMs ?? this.#startedMs);
    const tokens = (usage?.completionTokens ?? 0) - (this.#scanner === null ? 0 : 1);
    this.#settle(() =>
      this.#resolve({
        usage,
        engineMs: nowMs - this.#startedMs,
        firstByteMs: this.#scanner === null || this.#firstMs === null ? null : this.#firstMs - this.#startedMs,
        tokensPerSecond: tokens > 0 && nowMs > sinceMs ? (tokens / (nowMs - sinceMs)) * 1000 : null,
      }),
    );
  }

  /** @returns false when the call cannot take more for now */
  #pass(bytes: Uint8Array): boolean {
    if (bytes.length === 0) return true;
    if (!this.#responded) {
      this.#responded = true;
      const contentType = this.#headers['content-type'] ?? 'application/json';
      this.#call.respond({ status: this.#status, contentType, count: null, width: null });
    }
    return this.#call.write(bytes);
  }

  async #resumeWhenDrained(): Promise<void> {
    await this.#call.drained();
    if (!this.#over) this.#running?.resume();
  }

  #streamError(malformed: boolean): EngineFailure {
    if (this.#responded) return this.#interrupted();
    const error = this.#scanner?.error ?? null;
    // The status was sent before the engine knew better. TGI says 422 in the event whatever happened, so only its words count.
    if (error !== null) return this.#classify(STATUS_OF_EVENTS, error, this.#headers);
    return new EngineFailure(malformed ? 'engine_invalid_response' : 'engine_error', { engineStatus: this.#status });
  }

  #interrupted(): EngineFailure {
    return new EngineFailure('stream_interrupted', { engineStatus: this.#status, afterFirstByte: this.#responded });
  }

  /** Nothing more is wanted from this answer. */
  #break(failure: EngineFailure): void {
    this.#settle(() => this.#reject(failure));
    this.#running?.abort();
  }

  #aborted(): void {
    if (this.#over) return;
    this.#settle(() => this.#reject(this.#call.signal.reason));
    this.#running?.abort();
  }

  #settle(settle: () => void): void {
    this.#over = true;
    this.#leave();
    settle();
  }
}

const parse = (chunks: readonly Buffer[]) => jsonOf({ body: Buffer.concat(chunks) });

const isError = (value: unknown) => value !== undefined && value !== null;

function isFinished(choice: Record<string, unknown>): boolean {
  const reason = choice.finish_reason;
  return typeof reason === 'string' && reason !== 'error' && !isError(choice.error);
}

function afterFirstByte(failure: EngineFailure): EngineFailure {
  const { code, blame, engineStatus }: CallFailure = failure.failure;
  const interrupted = code === 'engine_timeout' ? code : 'stream_interrupted';
  return new EngineFailure(interrupted, {
    blame,
    afterFirstByte: true,
    ...(engineStatus === null ? {} : { engineStatus }),
  });
}

/** What every adapter sends at the end of a chat call. */
export function chatTrailers(outcome: ChatOutcome, fingerprint: Trailers['fingerprint']): Trailers {
  return { ...outcome, fingerprint, finished: true };
}
