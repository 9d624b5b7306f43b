import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { EngineSpec, EnginesState, FromEngines, ToEngines } from './engines-child.ts';

/** The engines of one machine, in a process that can be frozen and ended. */
export interface Engines {
  readonly urls: readonly string[];
  readonly pid: number;
  /** Null when the process does not answer: frozen, or gone. */
  state(): Promise<EnginesState | null>;
  freeze(): void;
  thaw(): void;
  stop(): Promise<void>;
}

const ANSWERS_WITHIN_MS = 2_000;

export async function startEngines(specs: readonly EngineSpec[]): Promise<Engines> {
  const child = fork(fileURLToPath(new URL('engines-child.ts', import.meta.url)), { stdio: 'ignore' });
  const gone = new Promise<null>((resolve) => child.once('close', () => resolve(null)));
  const waiting: ((told: FromEngines) => void)[] = [];
  child.on('message', (told) => waiting.shift()?.(told as FromEngines));
  const ask = (message: ToEngines): Promise<FromEngines | null> =>
    Promise.race([
      new Promise<FromEngines>((resolve) => {
        waiting.push(resolve);
        child.send(message);
      }),
      gone,
    ]);
  const started = await ask({ ask: 'start', engines: specs });
  if (started?.told !== 'started') throw new Error('the engines did not start');
  let pending: Promise<FromEngines | null> | null = null;
  return {
    urls: started.urls,
    pid: child.pid ?? 0,
    async state() {
      // One question at a time: a frozen process would answer all of them when it thaws.
      pending ??= ask({ ask: 'state' }).finally(() => {
        pending = null;
      });
      const late = new Promise<null>((resolve) => setTimeout(resolve, ANSWERS_WITHIN_MS, null).unref());
      const told = await Promise.race([pending, late]);
      return told?.told === 'state' ? told.state : null;
    },
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    async stop() {
      child.kill('SIGCONT');
      child.kill('SIGKILL');
      await gone;
    },
  };
}
