import { spawnSync } from 'node:child_process';
import { cpus, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { cleanUp, root } from './processes.ts';
import { met, type Row, type RowResult, table } from './report.ts';
import { chat } from './rows/chat.ts';
import { consoleEvents, consoleRow, consoleSoak } from './rows/console.ts';
import { router, wire } from './rows/cores.ts';
import { embeddings } from './rows/embeddings.ts';
import { memory, soak, start } from './rows/standing.ts';
import { streaming } from './rows/streaming.ts';
import { striping } from './rows/striping.ts';

const USAGE = `npm run bench -- [options]
  --quick      within ten minutes; rows that take longer are listed as skipped
  --json       one JSON object on stdout, the table on stderr
  --only NAME  rows whose name contains it; may be repeated
  --no-build   use the bundles as they are`;

const ROWS: readonly Row[] = [
  start,
  memory,
  router,
  wire,
  chat,
  streaming,
  embeddings,
  striping,
  consoleRow,
  consoleEvents,
  soak,
  consoleSoak,
];
/** Goals that this bench does not measure, and what does. */
const ELSEWHERE: readonly RowResult[] = [
  { row: 'budget', figures: [], skipped: 'simulated in test/budget, where the hidden limit is known' },
  { row: 'chat against @portkey-ai/gateway', figures: [], skipped: 'the gateway is not among the installed packages' },
];

function busyNote(): string {
  const load = loadavg()[0] ?? 0;
  const cores = cpus().length;
  const quiet = load < 0.5 * cores;
  return `${cores} cores, load average ${load.toFixed(1)} before the start${quiet ? '' : ': other work ran, figures are worse than they need be'}`;
}

async function measure(row: Row, quick: boolean): Promise<RowResult> {
  if (row.long && quick) return { row: row.name, figures: [], skipped: 'takes too long for --quick' };
  try {
    return { row: row.name, figures: await row.run({ quick }), skipped: null };
  } catch (error) {
    return { row: row.name, figures: [], skipped: error instanceof Error ? error.message : 'it failed' };
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true, default: [] },
      'no-build': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return;
  }
  if (!values['no-build']) {
    const built = spawnSync(process.execPath, ['scripts/build.mjs', '--if-stale'], {
      cwd: root,
      stdio: ['ignore', 2, 2],
    });
    if (built.status !== 0) throw new Error('The bundles could not be built.');
  }
  const machine = busyNote();
  const chosen = ROWS.filter(({ name }) => values.only.length === 0 || values.only.some((part) => name.includes(part)));
  const results: RowResult[] = [];
  for (const row of chosen) {
    console.error(`measuring ${row.name}`);
    results.push(await measure(row, values.quick));
  }
  if (values.only.length === 0) results.push(...ELSEWHERE);
  const text = `${machine}\n\n${table(results)}`;
  if (!values.json) {
    console.log(text);
    return;
  }
  console.error(text);
  const rows = results.map(({ figures, ...row }) => ({
    ...row,
    figures: figures.map((figure) => ({ ...figure, met: met(figure) })),
  }));
  console.log(JSON.stringify({ machine, node: process.version, quick: values.quick, rows }));
}

try {
  await main();
} finally {
  await cleanUp();
}
