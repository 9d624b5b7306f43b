import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/**
 * Replaces a secret file: the new content is on the disk, whole, when this resolves; a crash leaves the old or the new one.
 * Mode 0600 from the first byte, folder 0700.
 */
export async function writeSecretFile(path: string, content: string): Promise<void> {
  const folder = dirname(path);
  await makeSecretFolder(folder);
  const temporary = join(folder, `.${randomBytes(6).toString('hex')}.tmp`);
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(folder);
}

/** Makes a folder for its owner alone, level by level: `recursive` never ends below /proc. Throws the system's error. */
export async function makeSecretFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return;
    const parent = dirname(folder);
    if (code !== 'ENOENT' || parent === folder || existsSync(parent)) throw error;
    await makeSecretFolder(parent);
    await mkdir(folder, { mode: 0o700 });
  }
}

/** Content, or null when there is no such file. A file that others may read is closed to them first. */
export async function readSecretFile(path: string): Promise<string | null> {
  try {
    // Only when needed: a change of mode is a change to whoever watches the folder, and the agent watches its own.
    if (process.platform !== 'win32' && ((await stat(path)).mode & 0o077) !== 0) await chmod(path, 0o600);
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** The rename itself must survive a power cut. Windows cannot open folders; NTFS journals the rename. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
