import type { CallFailure, ResponseHead, Trailers } from '../../agent/wire/calls.ts';
import type { OutgoingCall } from '../../agent/wire/stream.ts';
import type { CallSize } from '../budget/spend.ts';
import type { SwitchyardError } from '../domain/errors.ts';
import type { ChatSink, ChatWork, RequestContext, Route, WorkUsage } from '../domain/work.ts';
import type { AttemptId, RouterItem } from '../router/types.ts';
import { transportFailure } from './agent-calls.ts';
import type { DispatchDecision, Job, JobHost } from './job.ts';
import { outcomeOf } from './outcomes.ts';

/** Time-outs of engines, settable; headers after 310 s are fine. */
export interface ChatTimeouts {
  readonly firstByteMs: number;
  readonly betweenTokensMs: number;
}

/** An answer that is not streamed is held back whole up to here, so that a death in its middle can still be mended elsewhere. */
const HOLD_BYTES = 4 << 20;

/** What a request counts for that states no output length. */
const UNSTATED_TOKENS = 1024;
/** What it may take of a cloud model: OpenRouter's check of the balance would assume the model's maximum. */
const CLOUD_TOKENS = 8192;

/** A chat: one attempt at a time, bytes passed on as they come. */
export class ChatJob implements Job {
  readonly context: RequestContext;
  readonly item: RouterItem;
  readonly #work: ChatWork;
  readonly #sink: ChatSink;
  readonly #host: JobHost;
  readonly #timeouts: ChatTimeouts;
  readonly #nowMs: () => number;
  #attempt: AttemptId | null = null;
  #call: OutgoingCall | null = null;
  #head: ResponseHead | null = null;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  #started = false;
  #trailers: Trailers | null = null;
  /** Of a stream, as far as the client has been given it. */
  #events = 0;
  firstByteAtMs: number | null = null;
  route: Route | null = null;

  constructor(work: ChatWork, sink: ChatSink, host: JobHost, timeouts: ChatTimeouts, nowMs: () => number) {
    this.context = work.context;
    this.#work = work;
    this.#sink = sink;
    this.#host = host;
    this.#timeouts = timeouts;
    this.#nowMs = nowMs;
    this.item = {
      context: work.context,
      task: 'chat',
      units: 1,
      neededTokens: work.promptTokens + work.maxOutputTokens,
      costTokens: Math.max(1, work.promptTokens + work.maxOutputTokens),
      conversation: work.conversation,
      space: null,
    };
  }

  /** 1,024 may be what the client stated, or nothing: the dearer of both counts. */
  get size(): CallSize {
    const { body, maxOutputTokens } = this.#work;
    const output = maxOutputTokens === UNSTATED_TOKENS ? CLOUD_TOKENS : maxOutputTokens;
    return { promptBytes: body.byteLength, maxOutputTokens: output, documents: 0 };
  }

  /** Of a stream that broke off an estimate: engines tell at the end, and send an event for a token. */
  get usage(): WorkUsage | null {
    if (this.#trailers !== null || this.#events === 0) return this.#trailers?.usage ?? null;
    const { promptTokens } = this.#work;
    return { promptTokens, completionTokens: this.#events, exact: false, costUsd: null };
  }

  start(decision: DispatchDecision, route: Route): void {
    const { attempt, provider } = decision;
    this.#attempt = attempt;
    this.#head = null;
    this.#held = [];
    this.#heldBytes = 0;
    this.route = route;
    const room = (provider.contextTokens ?? Number.POSITIVE_INFINITY) - this.#work.promptTokens;
    const opener = this.#host.opener(decision, Math.max(UNSTATED_TOKENS, Math.min(CLOUD_TOKENS, room)));
    if (!opener) {
      this.#ended(attempt, transportFailure('The machine has no session now.'));
      return;
    }
    const { stream, wantsUsage, path, body } = this.#work;
    // These two and no more: the settings they come from may hold others, and a head with a member too many is copied.
    const { firstByteMs, betweenTokensMs } = this.#timeouts;
    const mine = () => this.#attempt === attempt;
    this.#call = opener.open(
      {
        op: 'chat',
        engine: provider.engine,
        model: provider.model,
        stream,
        wantsUsage,
        path,
        firstByteMs,
        betweenTokensMs,
      },
      body,
      {
        onHead: (head) => {
          if (mine()) this.#head = head;
        },
        onData: (chunk) => (mine() ? this.#data(attempt, chunk) : true),
        onEnd: (trailers) => {
          if (mine()) this.#end(attempt, trailers);
        },
        onFailure: (failure) => {
          if (mine()) this.#ended(attempt, failure);
        },
      },
    );
  }

  abort(attempt: AttemptId): void {
    if (this.#attempt !== attempt) return;
    this.#attempt = null;
    this.#call?.cancel();
    this.#call = null;
  }

  finish(): void {
    this.#release();
    this.#sink.onEnd(this.usage);
  }

  fail(error: SwitchyardError): void {
    this.#sink.onFailure(error);
  }

  resume(): void {
    this.#call?.resume();
  }

  #data(attempt: AttemptId, chunk: Uint8Array): boolean {
    if (!this.#started && !this.#work.stream && this.#heldBytes + chunk.byteLength <= HOLD_BYTES) {
      this.#held.push(chunk);
      this.#heldBytes += chunk.byteLength;
      return true;
    }
    if (!this.#started) {
      this.#host.firstByte(attempt);
      this.#release();
    }
    if (this.#work.stream) this.#events += eventsIn(chunk);
    return this.#sink.onData(chunk);
  }

  /** Gives the head and what was held back to the client: from here on the route is final. */
  #release(): void {
    if (this.#started || !this.route || !this.#head) return;
    this.#started = true;
    this.firstByteAtMs = this.#nowMs();
    this.#sink.onHead(this.route, this.#head);
    for (const chunk of this.#held) this.#sink.onData(chunk);
    this.#held = [];
  }

  #end(attempt: AttemptId, trailers: Trailers): void {
    if (!trailers.finished || !this.#head) {
      this.#ended(attempt, {
        ...transportFailure('The engine ended the answer without a finish reason.'),
        blame: 'engine',
        code: 'stream_interrupted',
        afterFirstByte: this.#started,
      });
      return;
    }
    this.#trailers = trailers;
    this.#attempt = null;
    this.#call = null;
    this.#host.ended(attempt, { kind: 'success' }, null);
  }

  #ended(attempt: AttemptId, failure: CallFailure): void {
    this.#attempt = null;
    this.#call = null;
    this.#host.ended(attempt, outcomeOf(failure), failure);
  }
}

const EVENT_END = Buffer.from('\n\n');

/** Server-sent events that end in these bytes; one whose end is cut in two is not counted. */
function eventsIn(chunk: Uint8Array): number {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  let count = 0;
  for (let at = bytes.indexOf(EVENT_END); at >= 0; at = bytes.indexOf(EVENT_END, at + EVENT_END.length)) count += 1;
  return count;
}
