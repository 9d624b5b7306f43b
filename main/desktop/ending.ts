import type { App } from 'electron';

/** The same key press may reach this process twice: from the terminal's group and from the launcher that passes it on. */
const SAME_SIGNAL_MS = 1000;

export interface EndingPorts {
  readonly app: Pick<App, 'on' | 'quit' | 'exit'>;
  readonly onSignal: (signal: 'SIGINT' | 'SIGTERM', listener: () => void) => void;
  readonly nowMs: () => number;
  /** Nothing of the app may keep it open any more, and nobody is asked. */
  readonly begin: () => void;
  /** Ends what runs, then the control plane. */
  readonly stopServing: () => Promise<void>;
  /** Window, tray and IPC go last. */
  readonly finish: () => void;
}

/** Quit drains: what runs may end before the process does. Asked twice, it does not wait. */
export class Ending {
  readonly #ports: EndingPorts;
  #draining: Promise<boolean> | null = null;
  #drained = false;

  constructor(ports: EndingPorts) {
    this.#ports = ports;
  }

  start(): void {
    const { app, onSignal, nowMs } = this.#ports;
    app.on('before-quit', (event) => {
      if (this.#drained) return;
      event.preventDefault();
      if (this.#draining) {
        app.exit(1);
        return;
      }
      void this.#drain().then((whole) => app.exit(whole ? 0 : 1));
    });
    let signalledMs = Number.NEGATIVE_INFINITY;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      onSignal(signal, () => {
        if (nowMs() - signalledMs < SAME_SIGNAL_MS) return;
        signalledMs = nowMs();
        app.quit();
      });
    }
  }

  /** Ends everything but the process: an update is put in place by whoever asked, and its quit passes. */
  async drain(): Promise<void> {
    await this.#drain();
  }

  /** @returns false when something did not end as it should. */
  #drain(): Promise<boolean> {
    const { begin, stopServing, finish } = this.#ports;
    this.#draining ??= (async () => {
      begin();
      const whole = await stopServing().then(
        () => true,
        () => false,
      );
      this.#drained = true;
      finish();
      return whole;
    })();
    return this.#draining;
  }
}
