import type { CallFailure, CallHead, ResponseHead, Trailers } from './calls.ts';

/** What the controller's end of a call hears, in this order: onHead once, onData any number, then one of onEnd, onFailure. */
export interface CallHandlers {
  onHead(head: ResponseHead): void;
  /** Return false to stop the flow (a slow client); call `resume` to let it go on. The chunk is owned by the receiver. */
  onData(chunk: Uint8Array): boolean;
  onEnd(trailers: Trailers): void;
  /** A lost session arrives here too: blame `transport`, code `stream_interrupted`. Never after onEnd. */
  onFailure(failure: CallFailure): void;
  /**
   * After `cancel`, and then the only one: how the call ended at the agent. Null: it stopped the work. Else it had ended by itself
   * before it heard of the cancel. Never called when the session is lost.
   */
  onCancelled?(last: CallEnd | null): void;
}

/** How a call ended by itself. */
export type CallEnd = { readonly trailers: Trailers } | { readonly failure: CallFailure };

/** The controller's handle on one running call. */
export interface OutgoingCall {
  /** Aborts at the agent; no handler but `onCancelled` is called afterwards. Idempotent. */
  cancel(): void;
  resume(): void;
}

/** Opens calls on one agent's data socket. Implemented by the session; used by dispatch and by the gate's verifier. */
export interface CallOpener {
  /** `body` must not change until the call has ended. No handler is called before this returns. */
  open(head: CallHead, body: Uint8Array, handlers: CallHandlers): OutgoingCall;
}

/** The agent's end of one call. */
export interface IncomingCall {
  /** Id of the control plane whose call it is: credential slots and foreign load go by it. */
  readonly controller: string;
  readonly head: CallHead;
  readonly body: Uint8Array;
  /** Aborted when the controller cancels or its session is lost. */
  readonly signal: AbortSignal;
  /**
   * Runs `listener` when the signal aborts, at once if it has. Returns what forgets it. Absent: ask the signal, which costs more
   * than the rest of a short call's life; see `whenAborted`.
   */
  onAbort?(listener: () => void): () => void;
  respond(head: ResponseHead): void;
  /** False: the window or the socket is full; wait for `drained` before producing more. `chunk` must not change afterwards. */
  write(chunk: Uint8Array): boolean;
  /** Resolves when writing may go on; rejects never, resolves also on abort. */
  drained(): Promise<void>;
  end(trailers: Trailers): void;
  fail(failure: CallFailure): void;
}

export type CallServer = (call: IncomingCall) => void;

/** `IncomingCall.onAbort`, by the signal where the call has none. */
export function whenAborted(call: IncomingCall, listener: () => void): () => void {
  if (call.onAbort !== undefined) return call.onAbort(listener);
  const { signal } = call;
  if (signal.aborted) listener();
  else signal.addEventListener('abort', listener, { once: true });
  return () => signal.removeEventListener('abort', listener);
}
