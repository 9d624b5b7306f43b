import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { StartAgentProcess } from '../fleet/embedded-agent.ts';

export interface NodeAgentOptions {
  /** The bundled or the source entry of the agent. */
  readonly entry: string;
  readonly args: readonly string[];
  /** Where what it prints besides its ready line goes. */
  readonly onLog: (line: string) => void;
}

/** Variables an agent may see; everything else of this process's environment (keys, tokens) stays here. */
const PASSED = [
  'PATH',
  'HOME',
  'USER',
  'LANG',
  'LC_ALL',
  'TMPDIR',
  'TEMP',
  'TMP',
  'SystemRoot',
  'APPDATA',
  'LOCALAPPDATA',
  'SWITCHYARD_KEYRING',
  'SWITCHYARD_KEYRING_FILE',
];

/** What an agent may see of an environment. */
export function agentEnvironment(from: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(PASSED.flatMap((name) => (from[name] ? [[name, from[name]]] : [])));
}

/**
 * The young generation of the heap is limited, in MiB: V8 lets it grow to more than 100 while calls come and go, and gives
 * nothing back as long as there is work. Measured under clients that disconnect: 295 MB resident without, 155 MB with.
 */
const AGENT_FLAGS = ['--disable-sigusr1', '--report-exclude-env', '--max-semi-space-size=8'] as const;
/** glibc's allocator keeps what each of its arenas once held; by itself it makes eight of them per core. */
const ALLOCATOR = { MALLOC_ARENA_MAX: '2' } as const;

/**
 * Starts the embedded agent under Node: no inspector by signal, no environment in crash reports, no core files where a shell
 * can forbid them. The pipe to its stdin stays open: its end tells the agent that this process is gone.
 */
export function nodeAgentProcess({ entry, args, onLog }: NodeAgentOptions): StartAgentProcess {
  return ({ onLine, onExit }) => {
    const command = [process.execPath, ...AGENT_FLAGS, entry, ...args];
    const [program, rest] =
      process.platform === 'win32'
        ? [command[0] ?? process.execPath, command.slice(1)]
        : ['/bin/sh', ['-c', 'ulimit -c 0; exec "$@"', 'sh', ...command]];
    const env = { ...agentEnvironment(process.env), ...ALLOCATOR };
    const child = spawn(program, rest, { stdio: ['pipe', 'pipe', 'pipe'], env, windowsHide: true });
    createInterface({ input: child.stdout }).on('line', onLine);
    createInterface({ input: child.stderr }).on('line', onLog);
    let exited = false;
    const exit = () => {
      if (exited) return;
      exited = true;
      onExit();
    };
    child.once('exit', exit);
    child.once('error', exit);
    child.stdin.on('error', () => {}); // it ended while we wrote: `exit` tells
    return {
      pid: child.pid,
      send: (line) => child.stdin.write(`${line}\n`),
      end: () => child.stdin.end(),
      kill: () => child.kill('SIGKILL'),
    };
  };
}
