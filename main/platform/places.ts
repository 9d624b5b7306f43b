import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import packageFile from '../../package.json' with { type: 'json' };

export const PRODUCT_VERSION: string = packageFile.version;

/** Where everything is kept unless `--data-dir` says otherwise; follows each system's custom. */
export function defaultDataFolder(): string {
  if (process.platform === 'win32')
    return path.join(process.env.APPDATA ?? path.join(homedir(), 'AppData', 'Roaming'), 'Switchyard');
  if (process.platform === 'darwin') return path.join(homedir(), 'Library', 'Application Support', 'Switchyard');
  return path.join(process.env.XDG_DATA_HOME ?? path.join(homedir(), '.local', 'share'), 'switchyard');
}

/** A file that lies beside the bundle when this code is bundled, and in the source tree when it runs from there. */
export function bundledFile(from: string, bundled: string, source: string): URL {
  const beside = new URL(bundled, from);
  return existsSync(fileURLToPath(beside)) ? beside : new URL(source, from);
}
