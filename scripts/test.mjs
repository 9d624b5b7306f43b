// `npm test`: types, lint, layers, a fresh build, then every suite. Arguments go to vitest and skip the checks before it.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';

const args = process.argv.slice(2);
const report = '.cache/test-report.json';
const vitest = ['vitest', 'run', '--reporter=default', '--reporter=json', `--outputFile=${report}`, ...args];
const checks = [
  ['tsc', '--noEmit'],
  ['biome', 'check', '.'],
  ['node', 'scripts/check-layers.mjs'],
  ['node', 'scripts/build.mjs', '--if-stale'],
];

mkdirSync('.cache', { recursive: true });
rmSync(report, { force: true });
let failed = 0;
for (const [command, ...rest] of args.length ? [vitest] : [...checks, vitest]) {
  const { status } = spawnSync(command, rest, { stdio: 'inherit' });
  failed = status ?? 1;
  if (failed !== 0) break;
}
try {
  const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(report, 'utf8'));
  console.log(`\n${numPassedTests} passed, ${numFailedTests} failed, ${numPendingTests} skipped`);
} catch {
  // A check before the suites failed: its own words say which.
}
process.exit(failed);
