import type { ChildProcess } from 'node:child_process';
import type { Clock } from '../../main/domain/time.ts';

export interface LineChildOptions {
  readonly clock: Clock;
  /** Starts the program with its stdout piped; null: it is not installed here. */
  start(): ChildProcess | null;
  onLine(line: string): void;
  /** A program that writes nothing for this long hangs (a driver in trouble) and is replaced. */
  readonly silenceMs: number;
}

const RETRY_FIRST_MS = 5_000;
const RETRY_LONGEST_MS = 300_000;
/** A program that ran this long starts the count of failures anew. */
const STEADY_MS = 60_000;
/** Drivers are installed while an agent runs, but not often. */
const LOOK_AGAIN_MS = 600_000;
const MAX_LINE = 2048;

/**
 * A program that writes a line per sample and runs as long as the agent: started anew with growing waits when it ends or hangs.
 * One long-lived program instead of one per sample, because starting it is what costs. An agent that is killed takes it along: it
 * ends when it writes into the closed pipe.
 */
export class LineChild {
  readonly #options: LineChildOptions;
  #child: ChildProcess | null = null;
  #stopped = true;
  #failures = 0;
  #startedAtMs = 0;
  #rest = '';
  #cancelRetry: () => void = () => {};
  #cancelWatch: () => void = () => {};

  constructor(options: LineChildOptions) {
    this.#options = options;
  }

  /** Starts the program and returns at once. */
  start(): void {
    if (!this.#stopped) return;
    this.#stopped = false;
    this.#launch();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelRetry();
    this.#cancelWatch();
    this.#child?.kill();
    this.#child = null;
  }

  #launch(): void {
    const { clock } = this.#options;
    if (this.#stopped) return;
    let child: ChildProcess | null;
    try {
      child = this.#options.start();
    } catch {
      this.#retry(); // no process or descriptor to be had
      return;
    }
    if (child === null) {
      this.#cancelRetry = clock.after(LOOK_AGAIN_MS, () => this.#launch());
      return;
    }
    this.#child = child;
    this.#startedAtMs = clock.nowMs();
    this.#rest = '';
    const ended = () => {
      if (this.#child !== child) return;
      this.#child = null;
      this.#cancelWatch();
      this.#retry();
    };
    child.once('error', ended);
    child.once('close', ended);
    child.stdout?.setEncoding('utf8');
    child.stdout?.on('data', (text: string) => {
      if (this.#child === child) this.#take(text);
    });
    // Whatever it complains about is not for our log, and a full pipe would stop it.
    child.stderr?.resume();
    this.#watch(child);
  }

  #take(text: string): void {
    const child = this.#child;
    if (child !== null) this.#watch(child);
    const lines = (this.#rest + text).split(/\r?\n/);
    this.#rest = (lines.pop() ?? '').slice(0, MAX_LINE);
    for (const line of lines) if (line !== '' && line.length <= MAX_LINE) this.#options.onLine(line);
  }

  #watch(child: ChildProcess): void {
    this.#cancelWatch();
    this.#cancelWatch = this.#options.clock.after(this.#options.silenceMs, () => child.kill('SIGKILL'));
  }

  #retry(): void {
    if (this.#stopped) return;
    const { clock } = this.#options;
    if (clock.nowMs() - this.#startedAtMs >= STEADY_MS) this.#failures = 0;
    const wait = Math.min(RETRY_LONGEST_MS, RETRY_FIRST_MS * 2 ** Math.min(10, this.#failures));
    this.#failures += 1;
    this.#cancelRetry = clock.after(wait, () => this.#launch());
  }
}
