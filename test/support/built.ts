import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';

const root = path.resolve(import.meta.dirname, '../..');

/** Builds `out/` when a source is newer: suites that run the app as users have it never see an older one. */
export async function builtApp(): Promise<void> {
  await promisify(execFile)(process.execPath, [path.join(root, 'scripts/build.mjs'), '--if-stale'], { cwd: root });
}
