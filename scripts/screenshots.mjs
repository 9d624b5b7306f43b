// `npm run screenshots`: pictures of every page of the console from a running rehearsal, into docs/screenshots.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { isStale } from './stale.mjs';

if (isStale()) {
  const built = spawnSync(process.execPath, [fileURLToPath(new URL('build.mjs', import.meta.url))], {
    stdio: ['ignore', 2, 2],
  });
  if (built.status !== 0) process.exit(built.status ?? 1);
}
await import(new URL('../test/demo/screenshots.ts', import.meta.url).href);
