// `npm test`: types, lint, layers, a fresh build, then every suite, in two lanes at a time: most of what owns processes waits, for
// clocks, sockets or a page, and one file after the other would leave a core idle for a quarter of an hour.
// Arguments go to vitest and skip the checks before it.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';

const CHECKS = [
  ['tsc', '--noEmit'],
  ['biome', 'check', '.'],
  ['node', 'scripts/check-layers.mjs'],
  ['node', 'scripts/build.mjs', '--if-stale'],
];
const LANES = [['unit', 'fleet'], ['waiting']];

/**
 * @param {string} name of its report
 * @param {readonly string[]} args for vitest
 * @param {'now' | 'at the end'} shown  two lanes that write at once could be read by nobody
 * @returns {Promise<{ok: boolean, passed: number, failed: number, skipped: number, tell: () => void}>}
 */
async function suites(name, args, shown) {
  const report = `.cache/test-report-${name}.json`;
  rmSync(report, { force: true });
  const child = spawn('vitest', ['run', '--reporter=default', '--reporter=json', `--outputFile=${report}`, ...args], {
    stdio: ['ignore', shown === 'now' ? 'inherit' : 'pipe', shown === 'now' ? 'inherit' : 'pipe'],
  });
  /** @type {Buffer[]} */
  const said = [];
  child.stdout?.on('data', (chunk) => said.push(chunk));
  child.stderr?.on('data', (chunk) => said.push(chunk));
  const [status] = await once(child, 'close');
  const tell = () => process.stdout.write(Buffer.concat(said));
  try {
    const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(report, 'utf8'));
    return { ok: status === 0, passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests, tell };
  } catch {
    return { ok: false, passed: 0, failed: 0, skipped: 0, tell }; // It ended before it could count: its own words say why.
  }
}

mkdirSync('.cache', { recursive: true });
const args = process.argv.slice(2);
if (args.length === 0) {
  for (const [command, ...rest] of CHECKS) {
    const { status } = spawnSync(command, rest, { stdio: 'inherit' });
    if (status !== 0) process.exit(status ?? 1);
  }
}
const lanes = args.length ? [args] : LANES.map((projects) => projects.flatMap((project) => ['--project', project]));
const results = await Promise.all(lanes.map((lane, i) => suites(`${i + 1}`, lane, i === 0 ? 'now' : 'at the end')));
for (const { tell } of results) tell();
const sum = (/** @type {'passed' | 'failed' | 'skipped'} */ key) =>
  results.reduce((all, result) => all + result[key], 0);
console.log(`\n${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped`);
process.exit(results.every(({ ok }) => ok) ? 0 : 1);
