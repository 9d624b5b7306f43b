// `npm test`: types, lint, layers, a fresh build, then every suite. Arguments go to vitest and skip the checks before it.
import { spawnSync } from 'node:child_process';

const args = process.argv.slice(2);
const steps = args.length
  ? [['vitest', 'run', ...args]]
  : [
      ['tsc', '--noEmit'],
      ['biome', 'check', '.'],
      ['node', 'scripts/check-layers.mjs'],
      ['node', 'scripts/build.mjs', '--if-stale'],
      ['vitest', 'run'],
    ];
for (const [command, ...rest] of steps) {
  const { status } = spawnSync(command, rest, { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
