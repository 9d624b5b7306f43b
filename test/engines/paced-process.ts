import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { PacedCounts, PacedOptions } from './paced.ts';
import type { FromChild, ToChild } from './paced-child.ts';

/** A paced engine in its own process: it can be frozen and killed, and its work takes nothing from the test. */
export interface PacedProcess {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  setRate(rate: number): Promise<void>;
  counts(): Promise<PacedCounts>;
  forget(): Promise<void>;
  kill(signal: NodeJS.Signals): void;
  stop(): Promise<void>;
}

export async function startPacedProcess(options: PacedOptions): Promise<PacedProcess> {
  const child = fork(fileURLToPath(new URL('./paced-child.ts', import.meta.url)), { stdio: 'ignore' });
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const waiting: ((told: FromChild) => void)[] = [];
  child.on('message', (told) => waiting.shift()?.(told as FromChild));
  const ask = (message: ToChild): Promise<FromChild> =>
    Promise.race([
      new Promise<FromChild>((resolve) => {
        waiting.push(resolve);
        child.send(message);
      }),
      gone.then(() => {
        throw new Error('the engine is gone');
      }),
    ]);
  const { rate, ...rest } = options;
  const started = await ask({ ask: 'start', options: rest });
  if (started.told !== 'started') throw new Error('the engine did not start');
  const setRate = async (wanted: number) =>
    void (await ask({ ask: 'rate', rate: Number.isFinite(wanted) ? wanted : null }));
  if (rate !== undefined) await setRate(rate);
  return {
    url: `http://127.0.0.1:${started.port}`,
    port: started.port,
    pid: child.pid ?? 0,
    setRate,
    async counts() {
      const told = await ask({ ask: 'counts' });
      if (told.told !== 'counts') throw new Error('no counts');
      return told.counts;
    },
    forget: async () => void (await ask({ ask: 'forget' })),
    kill: (signal) => void child.kill(signal),
    async stop() {
      child.kill('SIGCONT');
      child.kill('SIGKILL');
      await gone;
    },
  };
}
