import { type FrameType, FrameWriter, readFrames } from './frames.ts';

/** What a data socket must offer. Anything that keeps messages whole and in order will do. */
export interface MuxPort {
  /**
   * Sends one message. Its bytes stay untouched from then on; the `HEADROOM_BYTES` in front of them in memory are the port's.
   * Never throws; after a close it does nothing.
   */
  send(message: Buffer): void;
  /** Bytes handed to `send` that have not left this process. */
  readonly bufferedAmount: number;
  /** `callback` runs whenever a filled buffer has emptied. Called once, by the mux. */
  onDrain(callback: () => void): void;
  /** Closes the socket; `reason` is a short text of ours. */
  close(reason: string): void;
}

export interface MuxOptions {
  /** Runs the flush when the frames of this turn of the event loop have gathered; `setImmediate` unless told otherwise. */
  readonly schedule?: (flush: () => void) => void;
  /** A handler of ours threw: its call was ended, the socket lives on. */
  readonly onFault?: (error: unknown) => void;
}

/** Calls open at once on one data socket, ones whose cancellation is not yet confirmed included. */
export const MAX_STREAMS = 1024;
/** No more body bytes are handed to a socket that holds this many: what is sent next stays a choice among all streams. */
export const HIGH_WATER_BYTES = 256 * 1024;
/** A peer that lets this much pile up (small frames pass the high-water mark) has stopped reading. */
export const STALLED_BYTES = 16 * 1024 * 1024;

/** A stream with body bytes to send. */
export interface Sendable {
  /** In the ring of those waiting for their turn. Belongs to the mux. */
  queued: boolean;
  /** Sends one frame, if the window lets it. True: there is more that could go now. */
  sendSlice(writer: FrameWriter): boolean;
}

/** What both ends have in common: corked writing, turns between streams, reading, the one way to end. */
export abstract class Mux {
  protected readonly writer: FrameWriter;
  readonly #port: MuxPort;
  readonly #schedule: (flush: () => void) => void;
  readonly #onFault: (error: unknown) => void;
  readonly #flush = (): void => {
    this.#flushing = false;
    if (!this.#closed) this.writer.flush();
    if (!this.#closed && this.#port.bufferedAmount > STALLED_BYTES) this.violate('peer does not read');
  };
  #flushing = false;
  #closed = false;
  #ring: Sendable[] = [];
  #turn = 0;

  constructor(port: MuxPort, options: MuxOptions = {}) {
    this.#port = port;
    this.#schedule = options.schedule ?? ((flush) => void setImmediate(flush));
    this.#onFault = options.onFault ?? (() => undefined);
    this.writer = new FrameWriter((message) => {
      if (!this.#closed) port.send(message);
    });
    port.onDrain(() => this.pump());
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** True while the socket holds so much that body bytes have to wait. */
  get congested(): boolean {
    return this.#port.bufferedAmount + this.writer.pending >= HIGH_WATER_BYTES;
  }

  /** Takes one message off the socket. Never throws: what cannot be closes the socket and ends every call. */
  receive(message: Buffer): void {
    if (this.#closed) return;
    let reason: string | null;
    try {
      reason = readFrames(message, this.#visit);
    } catch (error) {
      this.#onFault(error);
      reason = 'internal error';
    }
    if (reason !== null) this.violate(reason);
  }

  /** The socket is gone or is about to go: every open call ends now. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#ring = [];
    this.lost();
  }

  /** Closes the socket for `reason` and ends every call. */
  violate(reason: string): void {
    if (this.#closed) return;
    this.#port.close(reason);
    this.close();
  }

  /** One frame came. Returns why it cannot be, or null. */
  protected abstract frame(type: FrameType, id: number, message: Buffer, start: number, end: number): string | null;
  /** Ends every open call, once. */
  protected abstract lost(): void;

  /** Frames were written: they leave together when this turn of the event loop is over. */
  touch(): void {
    if (this.#flushing || this.#closed) return;
    this.#flushing = true;
    this.#schedule(this.#flush);
  }

  /** The stream may have bytes to send: it gets its turns. */
  enqueue(stream: Sendable): void {
    if (!stream.queued && !this.#closed) {
      stream.queued = true;
      this.#ring.push(stream);
    }
    this.pump();
  }

  /** Gives each waiting stream one frame in turn, until the socket is full or nobody waits. */
  protected pump(): void {
    while (this.#turn < this.#ring.length && !this.congested) {
      const stream = this.#ring[this.#turn];
      this.#turn += 1;
      if (stream === undefined) continue;
      stream.queued = false;
      const more = stream.sendSlice(this.writer);
      if (more && !stream.queued) {
        stream.queued = true;
        this.#ring.push(stream);
      }
      if (this.#turn > 1024) this.#compact();
    }
    if (this.#turn >= this.#ring.length) {
      this.#ring = [];
      this.#turn = 0;
    }
    if (this.writer.pending > 0) this.touch();
  }

  /** Runs a handler of the product around the mux; what it throws ends its own call only. */
  protected guard(run: () => void, failed: () => void): void {
    try {
      run();
    } catch (error) {
      this.#onFault(error);
      failed();
    }
  }

  readonly #visit = (type: FrameType, id: number, message: Buffer, start: number, end: number): string | null =>
    // A handler may have closed the socket while an earlier frame of this message was taken.
    this.#closed ? null : this.frame(type, id, message, start, end);

  #compact(): void {
    this.#ring = this.#ring.slice(this.#turn);
    this.#turn = 0;
  }
}

/** A JSON payload as `check` takes it; null when it is none. The parser's messages quote input, so they go. */
export function parseJson<Out>(
  check: (value: unknown) => Out | null,
  message: Buffer,
  start: number,
  end: number,
): Out | null {
  try {
    return check(JSON.parse(message.toString('utf8', start, end)));
  } catch {
    return null;
  }
}
