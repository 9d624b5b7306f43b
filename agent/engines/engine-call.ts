import { AbortListeners } from '../wire/abort-listeners.ts';
import type { CallFailure, CallHead, ResponseHead, Trailers } from '../wire/calls.ts';
import { type IncomingCall, whenAborted } from '../wire/stream.ts';

/** A call as its engine serves it: aborted by the control plane, or given up by the agent when the engine is lost. */
export class EngineCall implements IncomingCall {
  readonly head: CallHead;
  readonly body: Uint8Array;
  readonly controller: string;
  readonly #call: IncomingCall;
  readonly #abort = new AbortListeners();
  readonly #release: () => void;
  readonly #leave: () => void;
  #wrote = false;
  #over = false;

  /** `release` frees the call's slot. It runs before the end is told: the next call may follow on its heels. */
  constructor(call: IncomingCall, release: () => void = () => undefined) {
    this.#call = call;
    this.#release = release;
    this.head = call.head;
    this.body = call.body;
    this.controller = call.controller;
    this.#leave = whenAborted(call, () => this.#abort.abort());
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  onAbort(listener: () => void): () => void {
    return this.#abort.on(listener);
  }

  respond(head: ResponseHead): void {
    if (!this.#over) this.#call.respond(head);
  }

  write(chunk: Uint8Array): boolean {
    if (this.#over) return true;
    this.#wrote = true;
    return this.#call.write(chunk);
  }

  drained(): Promise<void> {
    return this.#over ? Promise.resolve() : this.#call.drained();
  }

  end(trailers: Trailers): void {
    if (this.#close()) this.#call.end(trailers);
  }

  fail(failure: CallFailure): void {
    if (this.#close()) this.#call.fail(failure);
  }

  /** The engine is gone: the call fails at once, and what still runs for it is aborted. */
  giveUp(failure: CallFailure): void {
    const wrote = this.#wrote;
    this.fail(wrote ? { ...failure, code: 'stream_interrupted', afterFirstByte: true } : failure);
    this.#abort.abort();
  }

  #close(): boolean {
    if (this.#over) return false;
    this.#over = true;
    this.#release();
    this.#leave();
    return true;
  }
}
