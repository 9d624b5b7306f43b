import { execFile } from 'node:child_process';
import { childEnvironment } from './child-environment.ts';

/**
 * Keeps what the agent holds in memory out of files: new files only for this user, no environment in crash reports, no core
 * dumps where the system lets a running process lower its limit (Linux, by prlimit of util-linux). Starters add what only they
 * can: `--disable-sigusr1 --report-exclude-env`, `ulimit -c 0`, LimitCORE=0. Best effort: a machine without prlimit still runs.
 */
export function harden(): void {
  if (process.platform !== 'win32') {
    process.umask(0o077);
    process.on('SIGUSR1', () => undefined); // Node's own answer to it is to open a debugger
  }
  if (process.report !== undefined) process.report.excludeEnv = true;
  if (process.platform !== 'linux') return;
  const args = ['--pid', String(process.pid), '--core=0:0'];
  execFile('prlimit', args, { env: childEnvironment(process.env), timeout: 2000 }, () => undefined).unref();
}
