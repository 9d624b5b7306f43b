import { accessSync, constants, statSync } from 'node:fs';
import path from 'node:path';

/**
 * Finds a program on PATH, then in the folders where its maker puts it. A service's PATH is short, and WSL's driver is on none.
 *
 * @returns its full path, or null
 */
export function findProgram(
  name: string,
  folders: readonly string[],
  environment: NodeJS.ProcessEnv,
  platform: NodeJS.Platform = process.platform,
): string | null {
  const file = platform === 'win32' ? `${name}.exe` : name;
  const onPath = (environment.PATH ?? environment.Path ?? '').split(platform === 'win32' ? ';' : ':');
  for (const folder of [...onPath, ...folders]) {
    if (!path.isAbsolute(folder)) continue; // an empty entry means the working folder, from which nothing is run
    const candidate = path.join(folder, file);
    try {
      accessSync(candidate, constants.X_OK);
      if (statSync(candidate).isFile()) return candidate;
    } catch {
      // not there
    }
  }
  return null;
}
