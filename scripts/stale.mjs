// Whether out/ is older than its sources. A module of its own, so that a start with a fresh build never loads esbuild.
import { existsSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
export const stamp = path.join(root, 'out', '.built');
const sources = [
  'main',
  'agent',
  'preload',
  'renderer',
  'assets',
  'scripts/build.mjs',
  'scripts/enrol-archive.mjs',
  'package-lock.json',
  'vite.config.ts',
];

/** @returns the newest modification time (ms) below a file or folder; 0 where there is none. */
function newest(file) {
  if (!existsSync(file)) return 0;
  const stat = statSync(file);
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(stat.mtimeMs, ...readdirSync(file).map((name) => newest(path.join(file, name))));
}

export const isStale = () => newest(stamp) < Math.max(...sources.map((source) => newest(path.join(root, source))));
