import type { Clock } from '../domain/time.ts';

/** Runs until done or aborted; must settle soon after an abort and never reject. */
export type Job = (signal: AbortSignal) => Promise<void>;

interface Entry {
  readonly key: string;
  readonly lane: string;
  readonly job: Job;
  /** Cancels the timer of an entry that is not yet due. */
  cancelTimer: () => void;
  readonly dueAtMs: number;
}

interface Running {
  readonly key: string;
  readonly controller: AbortController;
  readonly done: Promise<void>;
}

/** One job at a time per lane (an engine), one entry per key (a provider in a space); entries may wait for their time. */
export class VerificationQueue {
  readonly #clock: Clock;
  readonly #delayed = new Map<string, Entry>();
  readonly #waiting = new Map<string, Entry[]>();
  readonly #running = new Map<string, Running>();
  #stopped = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Replaces whatever stands under the key; a running job of that key is aborted first. */
  schedule(key: string, lane: string, job: Job, delayMs = 0): void {
    if (this.#stopped) return;
    this.cancel(key);
    const entry: Entry = { key, lane, job, cancelTimer: () => {}, dueAtMs: this.#clock.nowMs() + delayMs };
    if (delayMs <= 0) {
      this.#enqueue(entry);
      return;
    }
    entry.cancelTimer = this.#clock.after(delayMs, () => {
      this.#delayed.delete(key);
      this.#enqueue(entry);
    });
    this.#delayed.set(key, entry);
  }

  /** Takes an entry out, due or not, and aborts its job. */
  cancel(key: string): void {
    this.#delayed.get(key)?.cancelTimer();
    this.#delayed.delete(key);
    for (const [lane, entries] of this.#waiting) {
      this.#waiting.set(
        lane,
        entries.filter((entry) => entry.key !== key),
      );
    }
    for (const running of this.#running.values()) if (running.key === key) running.controller.abort();
  }

  /** Being done or about to be; an entry whose time has not come is neither. */
  isActive(key: string): boolean {
    for (const running of this.#running.values()) {
      if (running.key === key && !running.controller.signal.aborted) return true;
    }
    for (const entries of this.#waiting.values()) if (entries.some((entry) => entry.key === key)) return true;
    return false;
  }

  /** Milliseconds until an entry's time comes; null when none waits for it. */
  dueInMs(key: string): number | null {
    const entry = this.#delayed.get(key);
    return entry === undefined ? null : Math.max(0, entry.dueAtMs - this.#clock.nowMs());
  }

  has(key: string): boolean {
    return this.#delayed.has(key) || this.isActive(key);
  }

  /** Aborts everything and resolves when nothing runs. Idempotent. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const entry of this.#delayed.values()) entry.cancelTimer();
    this.#delayed.clear();
    this.#waiting.clear();
    const running = [...this.#running.values()];
    for (const { controller } of running) controller.abort();
    await Promise.all(running.map(({ done }) => done));
  }

  #enqueue(entry: Entry): void {
    if (this.#stopped) return;
    const entries = this.#waiting.get(entry.lane) ?? [];
    this.#waiting.set(entry.lane, [...entries, entry]);
    this.#next(entry.lane);
  }

  #next(lane: string): void {
    if (this.#stopped || this.#running.has(lane)) return;
    const [entry, ...rest] = this.#waiting.get(lane) ?? [];
    if (entry === undefined) {
      this.#waiting.delete(lane);
      return;
    }
    this.#waiting.set(lane, rest);
    const controller = new AbortController();
    const done = entry.job(controller.signal).finally(() => {
      this.#running.delete(lane);
      this.#next(lane);
    });
    this.#running.set(lane, { key: entry.key, controller, done });
  }
}
