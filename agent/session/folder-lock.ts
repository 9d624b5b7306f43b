import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FILE = 'agent.lock';
/** Others may take a stale lock over at the same moment. */
const ATTEMPTS = 5;

/** What the system tells of processes; replaced by tests. */
export interface ProcessTable {
  readonly pid: number;
  /** What tells this process from a later one of the same number; null: the system tells nothing of it. */
  startOf(pid: number): string | null;
  isAlive(pid: number): boolean;
}

/** Another agent holds the folder. The message is for people. */
export class FolderLocked extends Error {
  readonly pid: number;

  constructor(folder: string, pid: number) {
    super(
      `Another agent (process ${pid}) runs with the data folder ${folder}. ` +
        'Stop that one first, or choose another folder with --data-dir DIR.',
    );
    this.name = 'FolderLocked';
    this.pid = pid;
  }
}

/**
 * Takes a data folder for this process: two agents with one identity would answer for each other. A lock whose process has ended
 * is taken over; on Linux a later process of the same number is told from it by its start.
 * @returns what gives the folder back, for the end of the process; idempotent, never throws
 * @throws FolderLocked; the system's error when the folder cannot be written
 */
export function lockFolder(folder: string, processes: ProcessTable = systemProcesses()): () => void {
  const path = join(folder, FILE);
  const { pid } = processes;
  const content = `${JSON.stringify({ pid, start: processes.startOf(pid) })}\n`;
  const own = join(folder, `.${randomBytes(6).toString('hex')}.lock`);
  writeFileSync(own, content, { mode: 0o600, flag: 'wx' });
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (place(own, path, content)) return () => release(path, content);
      const holder = holderOf(path, processes);
      if (holder !== null) throw new FolderLocked(folder, holder);
      discard(path, folder, processes);
    }
    throw new FolderLocked(folder, 0);
  } finally {
    rmSync(own, { force: true });
  }
}

/** The process of the agent that runs with this folder; null: none does. */
export function agentOf(folder: string, processes: ProcessTable = systemProcesses()): number | null {
  return holderOf(join(folder, FILE), processes);
}

/** The lock appears whole or not at all. False: there is one already. */
function place(own: string, path: string, content: string): boolean {
  try {
    linkSync(own, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
  }
  try {
    writeFileSync(path, content, { mode: 0o600, flag: 'wx' }); // a file system without links
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** The living process that holds the lock; null: nobody does. */
function holderOf(path: string, processes: ProcessTable): number | null {
  const { pid, start } = readLock(path);
  // Where numbers are given anew at each start (containers), a lock of one's own number is of an earlier life.
  if (pid === null || pid === processes.pid || !processes.isAlive(pid)) return null;
  const now = processes.startOf(pid);
  return start !== null && now !== null && start !== now ? null : pid;
}

function readLock(path: string): { readonly pid: number | null; readonly start: string | null } {
  try {
    const lock: unknown = JSON.parse(readFileSync(path, 'utf8'));
    const { pid, start } = (typeof lock === 'object' && lock !== null ? lock : {}) as Record<string, unknown>;
    const isPid = typeof pid === 'number' && Number.isInteger(pid) && pid > 0;
    return { pid: isPid ? pid : null, start: typeof start === 'string' ? start : null };
  } catch {
    return { pid: null, start: null };
  }
}

/** Moves a stale lock away, and puts it back if somebody has made it his in the meantime. */
function discard(path: string, folder: string, processes: ProcessTable): void {
  const aside = join(folder, `.${randomBytes(6).toString('hex')}.lock`);
  try {
    renameSync(path, aside);
  } catch {
    return; // another one was faster
  }
  try {
    if (holderOf(aside, processes) !== null) linkSync(aside, path);
  } catch {
    // A third one has it by now: the next attempt sees whom.
  } finally {
    rmSync(aside, { force: true });
  }
}

function release(path: string, content: string): void {
  try {
    if (readFileSync(path, 'utf8') === content) rmSync(path, { force: true });
  } catch {
    // Gone already, or the disk is; without its process the lock is stale anyway.
  }
}

function systemProcesses(): ProcessTable {
  return {
    pid: process.pid,
    startOf: (pid) => {
      if (process.platform !== 'linux') return null;
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
        // The name in parentheses may hold blanks: fields are counted from the last one. Start is field 22, in ticks since boot.
        const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
        return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${ticks}`;
      } catch {
        return null;
      }
    },
    isAlive: (pid) => {
      try {
        process.kill(pid, 0);
        return true;
      } catch (error) {
        return (error as NodeJS.ErrnoException).code === 'EPERM'; // somebody else's
      }
    },
  };
}
