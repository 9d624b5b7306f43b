import { CallFailure, type CallHead, type ResponseHead, type Trailers } from './calls.ts';
import { ChunkQueue } from './chunks.ts';
import { FRAME, type FrameType, INITIAL_WINDOW_BYTES, MAX_BODY_BYTES, MAX_DATA_BYTES } from './frames.ts';
import { MAX_STREAMS, Mux, type MuxOptions, type MuxPort, parseJson } from './mux.ts';
import { Outflow } from './outflow.ts';
import type { CallEnd, CallHandlers, CallOpener, OutgoingCall } from './stream.ts';
import { callHeadOf, responseHeadOf, trailersOf } from './well-formed.ts';

/** Credit goes back in pieces of this size: two per window keep the stream moving, one per chunk would be noise. */
const GRANT_BYTES = INITIAL_WINDOW_BYTES / 2;
/** Small bodies go with the head even when the socket is full. */
const SMALL_BODY_BYTES = 4096;

type LocalFailure = Pick<CallFailure, 'blame' | 'code' | 'sentence'>;

const LOST: LocalFailure = {
  blame: 'transport',
  code: 'stream_interrupted',
  sentence: 'The connection to the agent was lost.',
};
const FULL: LocalFailure = {
  blame: 'busy',
  code: 'engine_busy',
  sentence: 'Too many calls are open on this connection.',
};
const REFUSED: LocalFailure = {
  blame: 'caller',
  code: 'engine_refused',
  sentence: 'The call does not fit the protocol: a name is too long or the body is over 32 MiB.',
};
const FAULT: LocalFailure = {
  blame: 'transport',
  code: 'stream_interrupted',
  sentence: 'The answer could not be taken.',
};

const failureOf = (value: unknown) => CallFailure.safeParse(value).data ?? null;

function localFailure(cause: LocalFailure, afterFirstByte: boolean): CallFailure {
  return { ...cause, engineStatus: null, retryAfterMs: null, failing: [], limitTokens: null, afterFirstByte };
}

/** A failed call that never was a stream: the caller hears of it after `open` has returned. */
function failedCall(handlers: CallHandlers, cause: LocalFailure): OutgoingCall {
  let wanted = true;
  queueMicrotask(() => {
    if (wanted) handlers.onFailure(localFailure(cause, false));
  });
  return {
    cancel: () => {
      wanted = false;
    },
    resume: () => undefined,
  };
}

/** An opener for links that are not running: every call fails as lost. */
export const closedOpener: CallOpener = { open: (_head, _body, handlers) => failedCall(handlers, LOST) };

/** The controller's end of a data socket. */
export class ControllerMux extends Mux implements CallOpener {
  readonly #streams = new Map<number, OutgoingStream>();
  #lastId = 0;

  constructor(port: MuxPort, options: MuxOptions = {}) {
    super(port, options);
  }

  /** Calls whose id is in use, ones whose cancellation the agent has not confirmed included. */
  get openCalls(): number {
    return this.#streams.size;
  }

  /** The body must not change until the call has ended. Handlers are never called before this returns. */
  open(head: CallHead, body: Uint8Array, handlers: CallHandlers): OutgoingCall {
    if (this.closed) return failedCall(handlers, LOST);
    if (this.#streams.size >= MAX_STREAMS) return failedCall(handlers, FULL);
    const checked = callHeadOf(head);
    if (checked === null || body.length > MAX_BODY_BYTES) return failedCall(handlers, REFUSED);
    this.#lastId += 1;
    const id = this.#lastId;
    const prefix = body.length > SMALL_BODY_BYTES && this.congested ? 0 : Math.min(body.length, MAX_DATA_BYTES);
    const stream = new OutgoingStream(this, this.writer, id, handlers, {
      run: (handler) => this.guard(handler, () => stream.fail(FAULT)),
      over: () => void this.#streams.delete(id),
    });
    this.#streams.set(id, stream);
    this.writer.open(id, JSON.stringify(checked), body.length, body.subarray(0, prefix));
    this.touch();
    if (prefix < body.length) stream.sendRest(body, prefix);
    return stream;
  }

  protected override frame(type: FrameType, id: number, message: Buffer, start: number, end: number): string | null {
    const stream = this.#streams.get(id);
    if (stream === undefined) return 'unknown stream';
    switch (type) {
      case FRAME.data:
        return stream.takeData(message.subarray(start, end));
      case FRAME.head: {
        const head = parseJson(responseHeadOf, message, start, end);
        return head === null ? 'invalid head' : stream.takeHead(head);
      }
      case FRAME.end: {
        const trailers = parseJson(trailersOf, message, start, end);
        return trailers === null ? 'invalid trailers' : stream.takeEnd(trailers);
      }
      case FRAME.failure: {
        const failure = parseJson(failureOf, message, start, end);
        return failure === null ? 'invalid failure' : stream.takeFailure(failure);
      }
      case FRAME.window:
        return stream.takeWindow(message.readUInt32BE(start));
      case FRAME.cancel:
        return stream.takeCancelled();
      default:
        return 'not a frame of the agent';
    }
  }

  protected override lost(): void {
    for (const stream of [...this.#streams.values()]) stream.lose();
  }
}

interface StreamContext {
  /** Runs a handler; when it throws the call is ended. */
  readonly run: (handler: () => void) => void;
  /** The id is done: nothing comes for it any more. */
  readonly over: () => void;
}

class OutgoingStream implements OutgoingCall {
  readonly #mux: Mux;
  readonly #writer: Mux['writer'];
  readonly #id: number;
  readonly #context: StreamContext;
  /** Null once the call has ended for its caller: by the last handler or by `cancel`. */
  #handlers: CallHandlers | null;
  /** Cancelled by its caller, who wants to hear how it ended at the agent. */
  #cancelled: CallHandlers | null = null;
  #out: Outflow | null = null;
  /** Bytes that the agent may still send. */
  #window = INITIAL_WINDOW_BYTES;
  /** Bytes taken by the caller and not yet given back as credit. */
  #taken = 0;
  #headSeen = false;
  #dataGiven = false;
  #paused = false;
  /** Inside `onData`; a `resume` there must count even though its `false` is still to come. */
  #giving = false;
  #resumed = false;
  readonly #queue = new ChunkQueue();
  #last: CallEnd | null = null;
  /** The agent may still send frames for this id. */
  #onWire = true;

  constructor(mux: Mux, writer: Mux['writer'], id: number, handlers: CallHandlers, context: StreamContext) {
    this.#mux = mux;
    this.#writer = writer;
    this.#id = id;
    this.#handlers = handlers;
    this.#context = context;
  }

  sendRest(body: Uint8Array, sent: number): void {
    this.#out = new Outflow(this.#mux, this.#writer, this.#id, sent, () => undefined);
    this.#out.write(body.subarray(sent));
  }

  cancel(): void {
    const last = this.#last;
    if (this.#handlers === null) return;
    this.#cancelled = this.#handlers;
    this.#forget();
    if (last !== null) this.#tellCancelled(last);
    if (!this.#onWire || this.#mux.closed) return;
    this.#writer.cancel(this.#id);
    this.#mux.touch();
  }

  resume(): void {
    if (this.#giving) {
      this.#resumed = true;
      return;
    }
    if (!this.#paused) return;
    this.#paused = false;
    // What was given before the pause has been taken now; what waits here is still inside the window.
    this.#grant();
    this.#giveQueued();
  }

  takeHead(head: ResponseHead): string | null {
    if (this.#headSeen) return 'second head';
    this.#headSeen = true;
    const handlers = this.#handlers;
    if (handlers !== null) this.#context.run(() => handlers.onHead(head));
    return null;
  }

  takeData(chunk: Uint8Array): string | null {
    if (!this.#headSeen) return 'body before its head';
    if (chunk.length > this.#window) return 'window exceeded';
    this.#window -= chunk.length;
    if (this.#handlers === null) return null;
    if (this.#paused || this.#giving) {
      this.#queue.push(chunk);
      return null;
    }
    this.#give(chunk);
    if (this.#queue.bytes > 0) this.#giveQueued();
    this.#grant();
    return null;
  }

  takeEnd(trailers: Trailers): string | null {
    if (this.#handlers !== null && !this.#headSeen) return 'trailers before the head';
    if (this.#handlers !== null && this.#out !== null && this.#out.waiting > 0) return 'answer before the question';
    this.#leaveWire();
    this.#takeLast({ trailers });
    return null;
  }

  takeFailure(failure: CallFailure): string | null {
    this.#leaveWire();
    this.#takeLast({ failure });
    return null;
  }

  takeWindow(bytes: number): string | null {
    if (bytes === 0) return 'empty window';
    if (this.#handlers === null) return null;
    return this.#out?.grant(bytes) === true ? null : 'window without a body';
  }

  takeCancelled(): string | null {
    if (this.#handlers !== null) return 'cancelled by nobody';
    this.#leaveWire();
    this.#tellCancelled(null);
    return null;
  }

  /** The socket is gone. What the agent had finished is still given to a slow caller; anything else fails now. */
  lose(): void {
    this.#leaveWire();
    this.fail(LOST);
  }

  /** Ends the call on this side, at the agent too where it still runs. */
  fail(cause: LocalFailure): void {
    const handlers = this.#handlers;
    if (handlers === null) return;
    const failure = localFailure(cause, this.#dataGiven);
    this.cancel();
    this.#cancelled = null;
    this.#context.run(() => handlers.onFailure(failure));
  }

  #takeLast(last: CallEnd): void {
    if (this.#cancelled !== null) {
      this.#tellCancelled(last);
      return;
    }
    this.#last = last;
    this.#giveLast();
  }

  #tellCancelled(last: CallEnd | null): void {
    const handlers = this.#cancelled;
    this.#cancelled = null;
    if (handlers?.onCancelled !== undefined) this.#context.run(() => handlers.onCancelled?.(last));
  }

  #give(chunk: Uint8Array): void {
    const handlers = this.#handlers;
    if (handlers === null) return;
    this.#dataGiven = true;
    this.#taken += chunk.length;
    this.#giving = true;
    this.#resumed = false;
    this.#context.run(() => {
      this.#paused = !handlers.onData(chunk) && !this.#resumed;
    });
    this.#giving = false;
  }

  #giveQueued(): void {
    while (!this.#paused && this.#handlers !== null) {
      const chunk = this.#queue.shift();
      if (chunk === null) break;
      this.#give(chunk);
    }
    this.#giveLast();
    this.#grant();
  }

  #giveLast(): void {
    const handlers = this.#handlers;
    const last = this.#last;
    if (handlers === null || last === null || this.#paused || this.#giving || this.#queue.bytes > 0) return;
    this.#forget();
    this.#context.run(() => {
      if ('trailers' in last) handlers.onEnd(last.trailers);
      else handlers.onFailure(last.failure);
    });
  }

  /** Lets the agent send on, as far as the caller has really taken what came. */
  #grant(): void {
    if (this.#paused || !this.#onWire || this.#handlers === null || this.#taken < GRANT_BYTES) return;
    this.#window += this.#taken;
    this.#writer.window(this.#id, this.#taken);
    this.#taken = 0;
    this.#mux.touch();
  }

  #forget(): void {
    this.#handlers = null;
    this.#queue.clear();
    this.#out?.clear();
    this.#last = null;
  }

  #leaveWire(): void {
    if (!this.#onWire) return;
    this.#onWire = false;
    this.#context.over();
  }
}
