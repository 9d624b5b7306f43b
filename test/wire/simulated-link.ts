import { AgentMux } from '../../agent/wire/agent-mux.ts';
import type { CallFailure, CallHead, ResponseHead, Trailers } from '../../agent/wire/calls.ts';
import { ControllerMux } from '../../agent/wire/controller-mux.ts';
import type { MuxPort } from '../../agent/wire/mux.ts';
import type { CallEnd, CallServer } from '../../agent/wire/stream.ts';

export const chatHead: CallHead = {
  op: 'chat',
  engine: 'llama',
  model: 'qwen',
  stream: true,
  wantsUsage: false,
  path: '/v1/chat/completions',
  firstByteMs: 1000,
  betweenTokensMs: 1000,
};
export const okHead: ResponseHead = { status: 200, contentType: 'text/event-stream', count: null, width: null };
export const trailers: Trailers = {
  usage: { promptTokens: 3, completionTokens: 4, exact: true, costUsd: null },
  fingerprint: { engine: 'llama', version: null, modelDigest: null, upstream: null, pin: null, processMark: '1' },
  engineMs: 12,
  firstByteMs: null,
  tokensPerSecond: null,
  finished: true,
};
export const busy: CallFailure = {
  blame: 'busy',
  code: 'engine_busy',
  sentence: 'All slots are taken.',
  engineStatus: 503,
  retryAfterMs: 1000,
  failing: [],
  limitTokens: null,
  afterFirstByte: false,
};

/** One direction of a socket without a network: messages wait until the test delivers them. */
export class Pipe implements MuxPort {
  readonly waiting: Buffer[] = [];
  readonly sent: Buffer[] = [];
  closedFor: string | null = null;
  bufferedAmount = 0;
  /** Highest `bufferedAmount` seen. */
  peak = 0;
  #drain: () => void = () => undefined;
  readonly #record: boolean;

  constructor(record = false) {
    this.#record = record;
  }

  send(message: Buffer): void {
    this.waiting.push(message);
    if (this.#record) this.sent.push(message);
    this.bufferedAmount += message.length;
    this.peak = Math.max(this.peak, this.bufferedAmount);
  }

  onDrain(callback: () => void): void {
    this.#drain = callback;
  }

  close(reason: string): void {
    this.closedFor ??= reason;
  }

  /** The oldest message leaves; the buffer that has emptied says so. */
  take(): Buffer | undefined {
    const message = this.waiting.shift();
    if (message === undefined) return undefined;
    this.bufferedAmount -= message.length;
    if (this.bufferedAmount === 0) this.#drain();
    // A copy, as a network makes one: neither side may see later changes of the other's memory.
    return Buffer.from(message);
  }
}

/** Both ends of a data socket; nothing moves but by `tick` and `deliver`. */
export class SimulatedLink {
  readonly toAgent: Pipe;
  readonly toController: Pipe;
  readonly controller: ControllerMux;
  readonly agent: AgentMux;
  readonly faults: unknown[] = [];
  #scheduled: (() => void)[] = [];

  constructor(serve: CallServer, options: { record?: boolean; bodyPoolBytes?: number } = {}) {
    this.toAgent = new Pipe(options.record);
    this.toController = new Pipe(options.record);
    const shared = {
      schedule: (flush: () => void) => void this.#scheduled.push(flush),
      onFault: (error: unknown) => void this.faults.push(error),
    };
    this.controller = new ControllerMux(this.toAgent, shared);
    this.agent = new AgentMux(this.toController, {
      ...shared,
      controller: 'desk',
      serve,
      ...(options.bodyPoolBytes === undefined ? {} : { bodyPoolBytes: options.bodyPoolBytes }),
    });
  }

  /** The turn of the event loop ends: what was scheduled runs. */
  tick(): boolean {
    const scheduled = this.#scheduled;
    this.#scheduled = [];
    for (const flush of scheduled) flush();
    return scheduled.length > 0;
  }

  deliverToAgent(): boolean {
    const message = this.toAgent.take();
    if (message !== undefined) this.agent.receive(message);
    return message !== undefined;
  }

  deliverToController(): boolean {
    const message = this.toController.take();
    if (message !== undefined) this.controller.receive(message);
    return message !== undefined;
  }

  /** Moves everything that can move, promises of the agent's side included. */
  async settle(): Promise<void> {
    for (let idle = 0; idle < 3; ) {
      const moved = [this.tick(), this.deliverToAgent(), this.deliverToController()].some(Boolean);
      idle = moved ? 0 : idle + 1;
      await Promise.resolve();
      await Promise.resolve();
    }
  }
}

/** What a call's handlers heard. */
export class Heard {
  head: ResponseHead | null = null;
  readonly chunks: Uint8Array[] = [];
  bytes = 0;
  ends: (Trailers | CallFailure)[] = [];
  /** What was heard after a cancel. */
  cancelled: (CallEnd | null)[] = [];
  /** Bytes taken for good: what was answered with true, or followed by a resume. */
  taken = 0;
  #untaken = 0;
  /** Answers of onData, last one repeated. */
  accept: (bytes: number) => boolean = () => true;

  readonly handlers = {
    onHead: (head: ResponseHead): void => {
      this.head = head;
    },
    onData: (chunk: Uint8Array): boolean => {
      this.chunks.push(chunk);
      this.bytes += chunk.length;
      this.#untaken += chunk.length;
      const accepted = this.accept(chunk.length);
      if (accepted) this.take();
      return accepted;
    },
    onEnd: (end: Trailers): void => void this.ends.push(end),
    onFailure: (failure: CallFailure): void => void this.ends.push(failure),
    onCancelled: (last: CallEnd | null): void => void this.cancelled.push(last),
  };

  take(): void {
    this.taken += this.#untaken;
    this.#untaken = 0;
  }

  content(): Buffer {
    return Buffer.concat(this.chunks);
  }
}

/** Bytes that tell where they belong: position and seed decide each one. */
export function pattern(seed: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let at = 0; at < length; at += 1) bytes[at] = (at * 31 + seed * 97 + (at >>> 8)) & 255;
  return bytes;
}
