import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import path from 'node:path';

/** Files are for their owner alone; folders too. */
export const FILE_MODE = 0o600;
export const FOLDER_MODE = 0o700;
const TEMPORARY = /^\..+\.tmp-[0-9]+$/;

export interface FolderOptions {
  readonly platform: NodeJS.Platform;
  /** Runs a program of the system; for Windows' access lists. */
  readonly run: (program: string, args: readonly string[]) => void;
}

const thisMachine: FolderOptions = {
  platform: process.platform,
  run: (program, args) => {
    execFileSync(program, args, { stdio: 'ignore', windowsHide: true });
  },
};

/**
 * Makes a folder that only its owner can enter, or closes one that others could. On Windows the access list is cut down to the
 * user when the folder is made. Throws the system's error.
 */
export function ensurePrivateFolder(folder: string, options: FolderOptions = thisMachine): void {
  const isNew = !existsSync(folder);
  makeFolder(folder);
  if (options.platform === 'win32') {
    if (isNew) options.run('icacls', [folder, '/inheritance:r', '/grant:r', `${userInfo().username}:(OI)(CI)F`]);
  } else if ((statSync(folder).mode & 0o777) !== FOLDER_MODE) chmodSync(folder, FOLDER_MODE);
}

/** Level by level: Node's own `recursive` never ends where the system answers ENOENT below an existing folder (/proc/x). */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  const parent = path.dirname(folder);
  if (parent !== folder) makeFolder(parent);
  mkdirSync(folder, { mode: FOLDER_MODE });
}

/** Makes an empty file for its owner alone, or closes an existing one to others. SQLite gives its journals the same mode. */
export function ensurePrivateFile(file: string): void {
  closeSync(openSync(file, 'a', FILE_MODE));
  if (process.platform !== 'win32' && (statSync(file).mode & 0o777) !== FILE_MODE) chmodSync(file, FILE_MODE);
}

/** A name beside `file` for writing it anew; leftovers of killed processes are found by `removeLeftovers`. */
export function temporaryBeside(file: string): string {
  return path.join(path.dirname(file), `.${path.basename(file)}.tmp-${process.pid}`);
}

/** Puts a finished temporary file in the place of `file`; after a power cut one of both is there, whole. */
export function moveIntoPlace(temporary: string, file: string): void {
  syncPath(temporary, 'r+');
  renameSync(temporary, file);
  // Windows has no fsync of folders; its rename is journalled.
  if (process.platform !== 'win32') syncPath(path.dirname(file), 'r');
}

function syncPath(target: string, flags: string): void {
  const handle = openSync(target, flags);
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Replaces a file as a whole: readers see the old content or the new, also after a kill. Throws the system's error. */
export function writeWhole(file: string, content: Uint8Array | string): void {
  const temporary = temporaryBeside(file);
  rmSync(temporary, { force: true });
  const handle = openSync(temporary, 'wx', FILE_MODE);
  try {
    const bytes = typeof content === 'string' ? Buffer.from(content, 'utf8') : content;
    for (let done = 0; done < bytes.length; ) done += writeSync(handle, bytes, done);
  } finally {
    closeSync(handle);
  }
  moveIntoPlace(temporary, file);
}

/** Removes what writers left behind that were killed in the middle. Only while nobody else owns the folder. */
export function removeLeftovers(folder: string): void {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    if (TEMPORARY.test(name)) rmSync(path.join(folder, name), { force: true });
  }
}

/** The places of a data folder. */
export function dataFiles(folder: string): {
  readonly folder: string;
  readonly database: string;
  readonly lastGood: string;
  readonly backups: string;
  readonly keyFile: string;
  readonly keychainFile: string;
  readonly lock: string;
  readonly owner: string;
} {
  const at = (name: string): string => path.join(folder, name);
  return {
    folder,
    database: at('switchyard.db'),
    lastGood: at('last-good.db'),
    backups: at('backups'),
    keyFile: at('vault.key'),
    keychainFile: at('vault.keychain'),
    lock: at('owner.lock'),
    owner: at('owner.json'),
  };
}
