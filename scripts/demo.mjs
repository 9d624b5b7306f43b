// `npm run demo`: a rehearsal with a simulated fleet, clients and bad weather; see test/demo/README.md.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { isStale } from './stale.mjs';

if (isStale()) {
  console.error('Building Switchyard, because its sources are newer than the last build…');
  const built = spawnSync(process.execPath, [fileURLToPath(new URL('build.mjs', import.meta.url))], {
    stdio: ['ignore', 2, 2],
  });
  if (built.status !== 0) process.exit(built.status ?? 1);
}
await import(new URL('../test/demo/index.ts', import.meta.url).href);
