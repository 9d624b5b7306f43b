import type { utilityProcess } from 'electron';

export interface UtilityAgentOptions {
  readonly fork: typeof utilityProcess.fork;
  /** The bundled agent. */
  readonly entry: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly onLog: (line: string) => void;
}

interface Handlers {
  onLine(line: string): void;
  onExit(): void;
}

/**
 * Starts the embedded agent as a utility process: a process of its own, so that no cloud key is ever in this one. Lines cross its
 * message port; it ends with this process by itself.
 */
export function utilityAgentProcess(options: UtilityAgentOptions) {
  return ({ onLine, onExit }: Handlers) => {
    const child = options.fork(options.entry, [...options.args], {
      serviceName: 'Switchyard agent',
      execArgv: ['--disable-sigusr1', '--report-exclude-env'],
      env: { ...options.env },
      stdio: 'pipe',
    });
    child.on('message', (message: unknown) => {
      if (typeof message === 'string') onLine(message);
    });
    child.stderr?.on('data', (chunk: Buffer) => options.onLog(chunk.toString('utf8').trimEnd()));
    child.stdout?.resume(); // a full pipe would stop the agent
    child.on('exit', onExit);
    return {
      get pid() {
        return child.pid;
      },
      send: (line: string) => child.postMessage(line),
      end: () => child.postMessage(JSON.stringify({ end: true })),
      kill: () => {
        child.kill();
      },
    };
  };
}
