import type { Clock } from '../../main/domain/time.ts';

/** Often enough that a kept connection (llama.cpp: 5 s) stays open between two probes. */
const PERIOD_MS = 2000;
/** While calls wait for the engine: should it freeze now, they must not wait long. */
const BUSY_PERIOD_MS = 1000;
/** After a failure: three in a row are known within a second where a port refuses. */
const RETRY_MS = 250;
export const FAILURES_UNTIL_UNREACHABLE = 3;

export interface ProbeTarget {
  /** One look. Rejects when the engine does not answer as it should. */
  probe(): Promise<void>;
  /** The third failure in a row. */
  onUnreachable(): void;
  /** Calls are running. */
  busy?(): boolean;
}

/** Looks at one engine again and again, never twice at once: probes must not pile up on a slow engine. */
export class ProbeLoop {
  readonly #target: ProbeTarget;
  readonly #clock: Clock;
  #running = false;
  #stopped = true;
  #pokedWhileRunning = false;
  #failures = 0;
  #cancel: (() => void) | null = null;
  #dueAtMs = 0;

  constructor(target: ProbeTarget, clock: Clock) {
    this.#target = target;
    this.#clock = clock;
  }

  start(): void {
    this.#stopped = false;
    this.poke();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
    this.#cancel = null;
  }

  /** A call has met trouble, or somebody asks: look now, or right after the look that is under way. */
  poke(): void {
    if (this.#stopped) return;
    if (this.#running) {
      this.#pokedWhileRunning = true;
      return;
    }
    this.#cancel?.();
    void this.#once();
  }

  /** A call begins: an idle engine was to be looked at later. */
  hurry(): void {
    if (this.#stopped || this.#running) return;
    if (this.#dueAtMs - this.#clock.nowMs() > BUSY_PERIOD_MS) this.#scheduleIn(BUSY_PERIOD_MS);
  }

  #scheduleIn(delayMs: number): void {
    this.#cancel?.();
    this.#dueAtMs = this.#clock.nowMs() + delayMs;
    this.#cancel = this.#clock.after(delayMs, () => this.poke());
  }

  async #once(): Promise<void> {
    const startedMs = this.#clock.nowMs();
    this.#running = true;
    this.#pokedWhileRunning = false;
    let failed = false;
    try {
      await this.#target.probe();
      this.#failures = 0;
    } catch {
      failed = true;
      this.#failures++;
      if (this.#failures === FAILURES_UNTIL_UNREACHABLE) this.#target.onUnreachable();
    }
    this.#running = false;
    if (this.#stopped) return;
    const soon = this.#pokedWhileRunning || (failed && this.#failures < FAILURES_UNTIL_UNREACHABLE);
    // A probe that timed out has been waiting long enough already.
    if (soon) this.#scheduleIn(Math.max(0, RETRY_MS - (this.#clock.nowMs() - startedMs)));
    else this.#scheduleIn(this.#target.busy?.() ? BUSY_PERIOD_MS : PERIOD_MS);
  }
}
