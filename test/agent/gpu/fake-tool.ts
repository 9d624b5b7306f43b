import type { ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';

/** A program under the test's hand: it writes and ends when told. */
export class FakeTool {
  readonly #events = new EventEmitter();
  readonly #stdout = Object.assign(new EventEmitter(), { setEncoding: () => undefined });
  killed = false;

  get child(): ChildProcess {
    const child = Object.assign(this.#events, {
      stdout: this.#stdout,
      stderr: null,
      kill: () => {
        this.killed = true;
        return true;
      },
    });
    return child as unknown as ChildProcess;
  }

  write(text: string): void {
    this.#stdout.emit('data', text);
  }

  end(): void {
    this.#events.emit('close', 1, null);
  }
}
