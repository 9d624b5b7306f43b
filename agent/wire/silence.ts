import type { Clock } from '../../main/domain/time.ts';

export const LOOK_MS = 250;
/** A look that comes later than this was held up here: what could not be read meanwhile is no silence of the peer. */
const STALL_MS = 2000;

/** Watches how long a peer has been silent, four times a second. */
export class SilenceWatch {
  readonly #clock: Clock;
  readonly #look: (silentMs: number) => void;
  #heardAtMs: number;
  #lookedAtMs: number;
  #cancel: () => void;

  /** `look` gets the silence so far at every look. */
  constructor(clock: Clock, look: (silentMs: number) => void) {
    this.#clock = clock;
    this.#look = look;
    this.#heardAtMs = clock.nowMs();
    this.#lookedAtMs = this.#heardAtMs;
    this.#cancel = clock.after(LOOK_MS, () => this.#tick());
  }

  heard(): void {
    this.#heardAtMs = this.#clock.nowMs();
  }

  stop(): void {
    this.#cancel();
  }

  #tick(): void {
    const now = this.#clock.nowMs();
    if (now - this.#lookedAtMs > LOOK_MS + STALL_MS) this.#heardAtMs = now;
    this.#lookedAtMs = now;
    this.#cancel = this.#clock.after(LOOK_MS, () => this.#tick());
    this.#look(now - this.#heardAtMs);
  }
}
