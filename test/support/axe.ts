import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

interface Violation {
  readonly id: string;
  readonly impact: string | null;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** What axe finds serious on a page as it stands. Its own script is put in past the page's policy, by the debugger. */
export async function seriousOn(page: Page): Promise<string[]> {
  await page.evaluate(await readFile(axe, 'utf8'));
  const found = (await page.evaluate(
    `axe.run(document, { resultTypes: ['violations'], rules: { 'color-contrast': { enabled: true } } }).then((r) => r.violations)`,
  )) as Violation[];
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary}`).join(' | ')}`);
}
