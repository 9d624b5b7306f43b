import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { SOURCES, type SourceRow } from '../../main/budget/sources.ts';

/** One line of the table in docs/budget.md. */
function lineOf(row: SourceRow): string {
  const source = row.limitSource === 'absent' ? 'none' : row.limitSource === null ? 'any' : `\`${row.limitSource}\``;
  const named = row.fromProvider === null ? 'any' : row.fromProvider ? 'yes' : 'no';
  const when = row.moderated ? ', moderated' : row.availability ? `, ${row.availability.join(', ')}` : '';
  const seconds = (ms: number | null) => (ms === null ? '' : `${ms / 1000} s`);
  const pause =
    row.pauseMs === null
      ? ''
      : row.maxMs === null || row.maxMs === row.pauseMs
        ? seconds(row.pauseMs)
        : `${seconds(row.pauseMs)} to ${seconds(row.maxMs)}`;
  return `| ${row.name} | ${row.statuses?.join(', ') ?? 'any'}${when} | ${source} | ${named} | ${row.scope} | ${pause} |`;
}

it('docs/budget.md prints the table of refusals as it is', () => {
  const docs = readFileSync(new URL('../../docs/budget.md', import.meta.url), 'utf8');
  const table = docs.split('\n').filter((line) => line.startsWith('| '));
  const missing = SOURCES.map(lineOf).filter((line) => !table.includes(line));
  expect(missing).toEqual([]);
});
