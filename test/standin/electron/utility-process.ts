import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { fileURLToPath } from 'node:url';
import { __standin } from './state.ts';

interface ForkOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly execArgv?: readonly string[];
  readonly cwd?: string;
  readonly stdio?: 'pipe' | 'ignore' | 'inherit';
  readonly serviceName?: string;
}

/** A child process of Node whose channel plays the message port; `process.parentPort` is made by utility-side.ts. */
class UtilityProcess extends EventEmitter {
  readonly #child: ChildProcess;

  constructor(child: ChildProcess) {
    super();
    this.#child = child;
    child.on('message', (message) => this.emit('message', message));
    child.once('spawn', () => this.emit('spawn'));
    child.once('exit', (code) => this.emit('exit', code ?? 1));
    child.on('error', () => this.emit('exit', 1));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get stdout() {
    return this.#child.stdout;
  }

  get stderr() {
    return this.#child.stderr;
  }

  postMessage(message: unknown): void {
    if (this.#child.connected) this.#child.send(message as string);
  }

  kill(): boolean {
    return this.#child.kill();
  }
}

export const utilityProcess = {
  fork: (modulePath: string, args: readonly string[] = [], options: ForkOptions = {}): UtilityProcess => {
    const side = fileURLToPath(new URL('../utility-side.ts', import.meta.url));
    const stdio = options.stdio ?? 'inherit';
    const child = fork(modulePath, [...args], {
      execArgv: ['--import', side, ...(options.execArgv ?? [])],
      env: { ...(options.env ?? process.env) },
      stdio: ['ignore', stdio, stdio, 'ipc'],
      serialization: 'advanced',
      ...(options.cwd ? { cwd: options.cwd } : {}),
    });
    const utility = new UtilityProcess(child);
    __standin.utilities.push({ pid: child.pid, serviceName: options.serviceName ?? 'Node Utility Process' });
    return utility;
  },
};
