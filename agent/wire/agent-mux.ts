import { AbortListeners } from './abort-listeners.ts';
import { BodyPool } from './bodypool.ts';
import { CallFailure, type CallHead, type ResponseHead, type Trailers } from './calls.ts';
import {
  FRAME,
  type FrameType,
  INITIAL_WINDOW_BYTES,
  MAX_BODY_BYTES,
  MAX_HEAD_BYTES,
  OPEN_HEADER_BYTES,
} from './frames.ts';
import { MAX_STREAMS, Mux, type MuxOptions, type MuxPort, parseJson } from './mux.ts';
import { Outflow } from './outflow.ts';
import type { CallServer, IncomingCall } from './stream.ts';
import { callHeadOf, responseHeadOf, trailersOf } from './well-formed.ts';

export interface AgentMuxOptions extends MuxOptions {
  /** Id of the control plane at the other end. */
  readonly controller: string;
  readonly serve: CallServer;
  readonly bodyPoolBytes?: number;
}

/** What the agent says when its own code failed a call. */
function ownFault(afterFirstByte: boolean): CallFailure {
  return {
    blame: 'engine',
    code: 'engine_error',
    sentence: 'The agent failed while it served this call.',
    engineStatus: null,
    retryAfterMs: null,
    failing: [],
    limitTokens: null,
    afterFirstByte,
  };
}

/** The agent's end of a data socket: collects each call's body, hands the call to the server, carries its answer. */
export class AgentMux extends Mux {
  readonly #controller: string;
  readonly #serve: CallServer;
  readonly #pool: BodyPool;
  readonly #streams = new Map<number, IncomingStream>();
  #lastId = 0;
  #total = 0;

  constructor(port: MuxPort, options: AgentMuxOptions) {
    super(port, options);
    this.#controller = options.controller;
    this.#serve = options.serve;
    this.#pool = new BodyPool(options.bodyPoolBytes);
  }

  get openCalls(): number {
    return this.#streams.size;
  }

  get callsTotal(): number {
    return this.#total;
  }

  protected override frame(type: FrameType, id: number, message: Buffer, start: number, end: number): string | null {
    if (type === FRAME.open) return this.#open(id, message, start, end);
    if (id > this.#lastId) return 'unknown stream';
    const stream = this.#streams.get(id);
    switch (type) {
      case FRAME.data:
        // Sent before the controller heard how its call ended; so are late windows and cancels.
        return stream === undefined ? null : stream.takeBody(message.subarray(start, end));
      case FRAME.window: {
        const bytes = message.readUInt32BE(start);
        if (bytes === 0) return 'empty window';
        return stream === undefined || stream.grant(bytes) ? null : 'window too large';
      }
      case FRAME.cancel:
        stream?.cancel();
        return null;
      default:
        return 'not a frame of the controller';
    }
  }

  protected override lost(): void {
    for (const stream of [...this.#streams.values()]) stream.abort();
  }

  #open(id: number, message: Buffer, start: number, end: number): string | null {
    if (id !== this.#lastId + 1) return 'stream out of order';
    if (this.#streams.size >= MAX_STREAMS) return 'too many streams';
    const bodyLength = message.readUInt32BE(start);
    const headLength = message.readUInt16BE(start + 4);
    const bodyStart = start + OPEN_HEADER_BYTES + headLength;
    if (headLength > MAX_HEAD_BYTES || bodyStart > end) return 'head cut short';
    if (bodyLength > MAX_BODY_BYTES) return 'body too large';
    const prefix = message.subarray(bodyStart, end);
    if (prefix.length > bodyLength) return 'body too long';
    const head = parseJson(callHeadOf, message, start + OPEN_HEADER_BYTES, bodyStart);
    if (head === null) return 'invalid call';
    this.#lastId = id;
    this.#total += 1;
    const stream = new IncomingStream(this, {
      id,
      head,
      controller: this.#controller,
      writer: this.writer,
      began: (call) =>
        this.guard(
          () => this.#serve(call),
          () => call.fail(ownFault(false)),
        ),
      over: () => void this.#streams.delete(id),
    });
    this.#streams.set(id, stream);
    stream.expectBody(bodyLength, prefix, this.#pool);
    return null;
  }
}

interface StreamContext {
  readonly id: number;
  readonly head: CallHead;
  readonly controller: string;
  readonly writer: Mux['writer'];
  readonly began: (call: IncomingCall) => void;
  /** The last frame was written, or the call is lost: the id is done. */
  readonly over: () => void;
}

const NOTHING = new Uint8Array(0);

const UNBEGUN: CallFailure = {
  blame: 'transport',
  code: 'stream_interrupted',
  sentence: 'The call was cancelled before it had arrived.',
  engineStatus: null,
  retryAfterMs: null,
  failing: [],
  limitTokens: null,
  afterFirstByte: false,
};

class IncomingStream implements IncomingCall {
  readonly head: CallHead;
  readonly controller: string;
  body: Uint8Array = NOTHING;
  readonly #mux: Mux;
  readonly #context: StreamContext;
  readonly #out: Outflow;
  #expected = 0;
  #received = 0;
  /** Bytes of the body that the controller may still send. */
  #window = INITIAL_WINDOW_BYTES;
  #release: (() => void) | null = null;
  #responded = false;
  #wrote = false;
  /** Last frame, waiting for the bytes before it. */
  #last: { readonly type: typeof FRAME.end | typeof FRAME.failure; readonly json: string } | null = null;
  #over = false;
  readonly #abort = new AbortListeners();
  #waiters: (() => void)[] = [];

  constructor(mux: Mux, context: StreamContext) {
    this.#mux = mux;
    this.#context = context;
    this.head = context.head;
    this.controller = context.controller;
    this.#out = new Outflow(mux, context.writer, context.id, 0, () => this.#emptied());
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  onAbort(listener: () => void): () => void {
    return this.#abort.on(listener);
  }

  expectBody(length: number, prefix: Uint8Array, pool: BodyPool): void {
    this.#expected = length;
    if (prefix.length === length) {
      this.body = prefix;
      this.#received = length;
      this.#window = 0;
      this.#context.began(this);
      return;
    }
    if (length <= INITIAL_WINDOW_BYTES) {
      this.body = Buffer.allocUnsafeSlow(length);
    } else {
      // The rest is let through only when there is room to keep it. Until then the beginning waits in a small buffer.
      this.body = Buffer.allocUnsafeSlow(INITIAL_WINDOW_BYTES);
      this.#release = pool.claim(length, () => this.#grow());
    }
    this.takeBody(prefix);
  }

  /** Takes a piece of the body; returns why it cannot be, or null. */
  takeBody(bytes: Uint8Array): string | null {
    if (bytes.length > this.#window) return 'window exceeded';
    if (this.#received + bytes.length > this.#expected) return 'body too long';
    this.body.set(bytes, this.#received);
    this.#received += bytes.length;
    this.#window -= bytes.length;
    if (this.#received === this.#expected) this.#context.began(this);
    return null;
  }

  grant(bytes: number): boolean {
    return this.#out.grant(bytes);
  }

  /**
   * The controller wants it no more. What it hears last tells it whether work was stopped now (the frame's echo) or the call was
   * over before: then its own last frame, without the bytes that waited before it; a call that never began failed.
   */
  cancel(): void {
    if (this.#over) return;
    const { writer, id } = this.#context;
    if (this.#last === null && this.#received < this.#expected) this.fail(UNBEGUN);
    if (this.#over) return;
    if (this.#last !== null) writer.json(this.#last.type, id, this.#last.json);
    else writer.cancel(id);
    this.#mux.touch();
    this.abort();
  }

  /** Cancelled, or the session is lost. */
  abort(): void {
    if (this.#over) return;
    this.#finish();
    this.#abort.abort();
  }

  respond(head: ResponseHead): void {
    if (this.#over || this.#last !== null) return;
    const checked = responseHeadOf(head);
    if (this.#responded || checked === null) {
      this.fail(ownFault(this.#wrote));
      return;
    }
    this.#responded = true;
    this.#context.writer.json(FRAME.head, this.#context.id, JSON.stringify(checked));
    this.#mux.touch();
  }

  write(chunk: Uint8Array): boolean {
    if (this.#over || this.#last !== null) return false;
    if (!this.#responded) {
      this.fail(ownFault(false));
      return false;
    }
    this.#wrote = true;
    return this.#out.write(chunk);
  }

  drained(): Promise<void> {
    if (this.#over || this.#out.waiting === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  end(trailers: Trailers): void {
    const checked = trailersOf(trailers);
    if (!this.#responded || checked === null) this.fail(ownFault(this.#wrote));
    else this.#conclude(FRAME.end, JSON.stringify(checked));
  }

  fail(failure: CallFailure): void {
    const parsed = CallFailure.safeParse(failure);
    this.#conclude(FRAME.failure, JSON.stringify(parsed.success ? parsed.data : ownFault(this.#wrote)));
  }

  #conclude(type: typeof FRAME.end | typeof FRAME.failure, json: string): void {
    if (this.#over || this.#last !== null) return;
    this.#last = { type, json };
    if (this.#out.waiting === 0) this.#emptied();
  }

  #emptied(): void {
    if (this.#last === null) {
      this.#wake();
      return;
    }
    this.#context.writer.json(this.#last.type, this.#context.id, this.#last.json);
    this.#mux.touch();
    this.#finish();
  }

  #finish(): void {
    this.#over = true;
    this.#out.clear();
    this.#release?.();
    this.#release = null;
    this.#context.over();
    this.#wake();
  }

  #wake(): void {
    const waiters = this.#waiters;
    if (waiters.length === 0) return;
    this.#waiters = [];
    for (const resolve of waiters) resolve();
  }

  /** There is room for the whole body: move to its final place and let the rest come. */
  #grow(): void {
    if (this.#mux.closed) return;
    const whole = Buffer.allocUnsafeSlow(this.#expected);
    whole.set(this.body.subarray(0, this.#received));
    this.body = whole;
    const rest = this.#expected - INITIAL_WINDOW_BYTES;
    this.#window += rest;
    this.#context.writer.window(this.#context.id, rest);
    this.#mux.touch();
  }
}
