import { SwitchyardError } from '../domain/errors.ts';
import { said } from '../domain/said.ts';
import type { Clock } from '../domain/time.ts';
import type { FaultKind } from './faults.ts';
import type { WorkerApi, WorkerCall, WorkerMethod, WorkerReply } from './worker-api.ts';

/** What the channel needs of a `node:worker_threads` Worker. */
export interface WorkerThread {
  postMessage(call: WorkerCall): void;
  on(event: 'message', listener: (reply: WorkerReply) => void): unknown;
  on(event: 'error', listener: (error: unknown) => void): unknown;
  on(event: 'exit', listener: (code: number) => void): unknown;
  terminate(): Promise<unknown>;
}

export interface ChannelOptions {
  readonly spawn: () => WorkerThread;
  readonly clock: Clock;
  /** After every answer: what is wrong with the database, null when nothing is. */
  readonly onFault: (fault: FaultKind | null) => void;
  /** The thread died. Open calls have failed; the next one is spawned after a pause. */
  readonly onCrash: () => void;
  /** A new thread runs after a crash; it has not opened anything yet. */
  readonly onRespawn: () => void;
}

interface OpenCall {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: SwitchyardError) => void;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
/** A thread that lived this long starts the pauses anew when it dies. */
const STABLE_MS = 60_000;

const stopped = (): SwitchyardError => new SwitchyardError('store_unavailable', said('store_thread_stopped'));

/** Typed calls into the store's thread, which is started again when it dies. */
export class WorkerChannel {
  readonly #options: ChannelOptions;
  readonly #calls = new Map<number, OpenCall>();
  #thread: WorkerThread | null = null;
  #cancelRespawn: (() => void) | null = null;
  #nextId = 1;
  #pauseMs = FIRST_PAUSE_MS;
  #spawnedAtMs = 0;
  #isClosed = false;

  constructor(options: ChannelOptions) {
    this.#options = options;
  }

  /** Starts the thread. Once. */
  start(): void {
    this.#spawn();
  }

  /**
   * @returns the answer. Rejects with the code the thread gave, or `store_unavailable` when it died. Without a time limit of its
   * own: see `within`.
   */
  call<Method extends WorkerMethod>(
    method: Method,
    ...args: Parameters<WorkerApi[Method]>
  ): Promise<ReturnType<WorkerApi[Method]>> {
    const thread = this.#thread;
    if (!thread) return Promise.reject(stopped());
    const id = this.#nextId;
    this.#nextId += 1;
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve: resolve as (value: unknown) => void, reject });
      thread.postMessage({ id, method, args });
    });
  }

  /** `answer`, or `store_unavailable` after `ms`; the call itself goes on in the thread. */
  within<Value>(ms: number, answer: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      const cancel = this.#options.clock.after(ms, () => {
        reject(new SwitchyardError('store_unavailable', 'The database did not answer in time.'));
      });
      answer.then(resolve, reject).finally(cancel);
    });
  }

  /** Ends the thread for good. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRespawn?.();
    const thread = this.#thread;
    this.#thread = null;
    this.#failAll();
    await thread?.terminate();
  }

  #spawn(): void {
    const thread = this.#options.spawn();
    this.#thread = thread;
    this.#spawnedAtMs = this.#options.clock.nowMs();
    thread.on('message', (reply) => this.#answer(reply));
    // The exit that follows does the work; without a listener the error would end the process.
    thread.on('error', () => undefined);
    thread.on('exit', () => this.#onExit(thread));
  }

  #answer(reply: WorkerReply): void {
    const call = this.#calls.get(reply.id);
    this.#calls.delete(reply.id);
    this.#options.onFault(reply.fault);
    if ('error' in reply) {
      const { code, sentence, says } = reply.error;
      call?.reject(new SwitchyardError(code, says ?? sentence));
    } else call?.resolve(reply.value);
  }

  #onExit(thread: WorkerThread): void {
    if (this.#isClosed || this.#thread !== thread) return;
    this.#thread = null;
    this.#failAll();
    const { clock, onCrash, onRespawn } = this.#options;
    if (clock.nowMs() - this.#spawnedAtMs > STABLE_MS) this.#pauseMs = FIRST_PAUSE_MS;
    onCrash();
    this.#cancelRespawn = clock.after(this.#pauseMs, () => {
      this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2);
      this.#spawn();
      onRespawn();
    });
  }

  #failAll(): void {
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const { reject } of calls) reject(stopped());
  }
}
