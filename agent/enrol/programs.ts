import { spawn } from 'node:child_process';
import { childEnvironment } from '../child-environment.ts';

export interface Ran {
  /** Exit code; null when it could not be started or was ended by a signal. */
  readonly status: number | null;
  readonly stdout: string;
}

/** An account of this machine by its numbers. */
export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

const MAX_BYTES = 64 * 1024;

/** Runs a program without a shell, with the environment of every child of the agent. Never rejects. */
export function run(program: string, args: readonly string[], as: Account | null = null): Promise<Ran> {
  return new Promise((resolve) => {
    const child = spawn(program, [...args], {
      stdio: ['ignore', 'pipe', 'ignore'],
      cwd: process.platform === 'win32' ? undefined : '/',
      env: childEnvironment(process.env),
      windowsHide: true,
      ...(as === null ? {} : { uid: as.uid, gid: as.gid }),
    });
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout = `${stdout}${text}`.slice(0, MAX_BYTES);
    });
    child.once('error', () => resolve({ status: null, stdout: '' }));
    child.once('close', (status) => resolve({ status, stdout }));
  });
}

/** Null when there is no account of that name. */
export async function findAccount(name: string): Promise<Account | null> {
  const [uid, gid] = await Promise.all(['-u', '-g'].map((flag) => run('id', [flag, name])));
  const number = (ran: Ran | undefined) =>
    ran?.status === 0 && /^\d+\n$/.test(ran.stdout) ? Number(ran.stdout) : null;
  const [user, group] = [number(uid), number(gid)];
  return user === null || group === null ? null : { name, uid: user, gid: group };
}

/** Asks until `done` says yes, or `withinMs` have passed. */
export async function until(done: () => Promise<boolean>, withinMs: number, everyMs = 250): Promise<boolean> {
  const endMs = performance.now() + withinMs;
  for (;;) {
    if (await done()) return true;
    if (performance.now() >= endMs) return false;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
