import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ConsoleFile } from '../gateway/ports.ts';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
  '.json': 'application/json',
};

/** Where the built console lies: beside a bundle, and for code that runs from the source tree in `out/`. */
export function consoleFolder(from: string): URL {
  const beside = new URL('../renderer/', from);
  // Beside the source there are sources, which no browser reads.
  return existsSync(new URL('main.tsx', beside)) ? new URL('../out/renderer/', from) : beside;
}

/** The built console as a fixed map, read once: no request ever becomes a path. Empty where it was not built. */
export async function readConsoleFiles(folder: URL): Promise<ReadonlyMap<string, ConsoleFile>> {
  const root = fileURLToPath(folder);
  const files = new Map<string, ConsoleFile>();
  let entries: readonly { readonly parentPath: string; readonly name: string; isFile(): boolean }[];
  try {
    entries = await readdir(root, { recursive: true, withFileTypes: true });
  } catch {
    return files;
  }
  for (const entry of entries) {
    const contentType = TYPES[path.extname(entry.name)];
    if (!entry.isFile() || !contentType) continue;
    const file = path.join(entry.parentPath, entry.name);
    files.set(path.relative(root, file).split(path.sep).join('/'), { contentType, body: await readFile(file) });
  }
  return files;
}
