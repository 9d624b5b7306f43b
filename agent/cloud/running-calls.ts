import { EngineFailure } from '../engines/failure.ts';
import type { CallFailure } from '../wire/calls.ts';
import type { IncomingCall } from '../wire/stream.ts';

/** Says nothing of OpenRouter, so that the control plane waits before it counts the permit as free. */
const SILENT: CallFailure = {
  ...new EngineFailure('stream_interrupted', { blame: 'transport' }, 'The control plane fell silent.').failure,
};

/** The calls that run, by control plane: all of one can be ended at once. */
export class RunningCalls {
  readonly #cuts = new Map<string, Set<AbortController>>();
  count = 0;

  /** Serves a call that `abort` ends too, not only its own signal. */
  run(call: IncomingCall, serve: (call: IncomingCall) => Promise<void>): void {
    const { controller } = call;
    const cut = new AbortController();
    const cuts = this.#cuts.get(controller) ?? new Set();
    this.#cuts.set(controller, cuts.add(cut));
    this.count++;
    void serve(abortable(call, cut.signal)).finally(() => {
      this.count--;
      cuts.delete(cut);
      if (cut.signal.aborted && !call.signal.aborted) call.fail(SILENT);
    });
  }

  abort(controller: string): void {
    for (const cut of this.#cuts.get(controller) ?? []) cut.abort();
  }
}

/** The same call, ended by a second signal too. */
function abortable(call: IncomingCall, cut: AbortSignal): IncomingCall {
  return {
    controller: call.controller,
    head: call.head,
    body: call.body,
    signal: AbortSignal.any([call.signal, cut]),
    respond: (head) => call.respond(head),
    write: (chunk) => call.write(chunk),
    drained: () => call.drained(),
    end: (trailers) => call.end(trailers),
    fail: (failure) => call.fail(failure),
  };
}
