import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { FromMute, MuteOptions } from './mute-child.ts';

export interface Mute {
  readonly port: number;
  /** Texts it was shown that begin so. */
  seen(beginning: string): Promise<number>;
  /** SIGKILL; resolves when it is gone. Idempotent. */
  kill(): Promise<void>;
}

/** An engine that tells nothing of its process, as a process. */
export async function startMute(options: MuteOptions): Promise<Mute> {
  const child = fork(fileURLToPath(new URL('./mute-child.ts', import.meta.url)), { stdio: 'ignore' });
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const ask = (message: object): Promise<number> =>
    Promise.race([
      new Promise<number>((resolve) => {
        child.once('message', (told) => resolve((told as FromMute).value));
        child.send(message);
      }),
      gone.then(() => {
        throw new Error('the engine is gone');
      }),
    ]);
  const port = await ask(options);
  return {
    port,
    seen: (beginning) => ask({ count: beginning }),
    kill: async () => {
      child.kill('SIGKILL');
      await gone;
    },
  };
}
