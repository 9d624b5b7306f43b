import type { Clock } from '../main/domain/time.ts';
import type { Heartbeat } from './wire/control.ts';

const PERIOD_MS = 5000;
/** Changes that come together go out together. */
const GATHER_MS = 20;

export interface HeartbeatOptions {
  readonly clock: Clock;
  /** All but number and time. */
  compose(): Promise<Omit<Heartbeat, 't' | 'seq' | 'atMs'>>;
  send(heartbeat: Heartbeat): void;
}

/** A heartbeat every 5 s, and at once when something changed. Each is complete and replaces the one before. */
export class Heartbeats {
  readonly #options: HeartbeatOptions;
  #seq = 0;
  #stopped = true;
  #cancel: (() => void) | null = null;
  #gathering = false;
  #composing = false;
  #again = false;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  /** Sends the first one; resolves when it is out. */
  async start(): Promise<void> {
    this.#stopped = false;
    await this.#beat();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  changed(): void {
    if (this.#stopped || this.#gathering) return;
    this.#gathering = true;
    this.#options.clock.after(GATHER_MS, () => {
      this.#gathering = false;
      void this.#beat();
    });
  }

  async #beat(): Promise<void> {
    if (this.#stopped) return;
    if (this.#composing) {
      this.#again = true;
      return;
    }
    this.#cancel?.();
    this.#composing = true;
    this.#again = false;
    try {
      const { clock, compose, send } = this.#options;
      const body = await compose();
      if (!this.#stopped) send({ t: 'heartbeat', seq: ++this.#seq, atMs: clock.wallMs(), ...body });
    } finally {
      this.#composing = false;
    }
    if (this.#stopped) return;
    if (this.#again) void this.#beat();
    else this.#cancel = this.#options.clock.after(PERIOD_MS, () => void this.#beat());
  }
}
