import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { matchesAll, parseToken } from '../../preload/contract/request-filter.ts';
import type { RequestView } from '../../preload/contract.ts';
import { NOW, REQUESTS } from '../support/console-data.ts';
import { type ConsolePage, type ConsoleRig, openConsole, startConsoleRig } from '../support/console-page.ts';
import { fullScript, fullTopics } from '../support/console-script.ts';
import { describeWithChromium } from '../support/runtime.ts';

const plain = REQUESTS[4] as RequestView;
const one = (at: number, over: Partial<RequestView> = {}): RequestView => ({
  ...plain,
  id: `req_${String(at).padStart(4, '0')}`,
  atMs: NOW - at * 1000,
  outcome: at % 250 === 249 ? 'failed' : 'ok',
  errorCode: at % 250 === 249 ? 'queue_timeout' : null,
  ...over,
});
/** Newest first; three failed, the last of them older than the newest 500, which are live. */
const KEPT = Array.from({ length: 900 }, (_, at) => one(at));
const LIVE = KEPT.slice(0, 500).toReversed();

/** The core's answer: 200 rows of what matches, and where to go on. */
const listed = (input: unknown) => {
  const { limit, before, matching = '' } = input as { limit: number; before?: string; matching?: string };
  const tokens = matching.split('\n').flatMap((line) => parseToken(line) ?? []);
  const from = before === undefined ? 0 : KEPT.findIndex(({ id }) => id === before) + 1;
  const found = KEPT.slice(from).filter((row) => matchesAll(row, tokens));
  const requests = found.slice(0, limit);
  const last = requests.at(-1);
  const more = found.length > limit;
  return { requests, more, lookedTo: more && last ? { id: last.id, atMs: last.atMs } : null };
};

describeWithChromium('the requests that are kept', () => {
  let rig: ConsoleRig;
  let shown: ConsolePage;
  beforeAll(async () => {
    rig = await startConsoleRig();
  });
  afterEach(async () => {
    expect(shown.complaints).toEqual([]);
    await shown.close();
  });
  afterAll(async () => {
    await rig?.close();
  });
  const show = async (hash = '#/requests') => {
    shown = await openConsole(rig, {
      script: fullScript({ 'requests.list': listed }),
      topics: { ...fullTopics(), requests: { topic: 'requests', type: 'snapshot', rows: LIVE } },
      nowMs: NOW,
      hash,
    });
    const rows = shown.page.locator('tbody tr');
    await rows.first().waitFor();
    return { page: shown.page, rows };
  };
  const ids = () =>
    shown.page.locator('tbody tr').evaluateAll((rows) => rows.map((row) => row.getAttribute('data-row')));
  const filter = async (typed: string) => {
    await shown.page.getByLabel('Filter requests').fill(typed);
    await shown.page.keyboard.press('Enter');
  };

  it('are loaded back to the first, without a hole or a double, while new ones come', async () => {
    const { page, rows } = await show();
    const older = page.getByRole('button', { name: 'Load older' });
    await expect.poll(() => rows.count()).toBe(200);
    for (const count of [400, 600, 800, 900]) {
      await older.click();
      await expect.poll(() => rows.count()).toBe(count);
    }
    await older.waitFor({ state: 'detached' });
    expect(await ids()).toEqual(KEPT.map(({ id }) => id));
    const fresh = one(-1, { id: 'req_fresh' });
    await shown.push({ topic: 'requests', type: 'delta', changed: [fresh], removed: [] });
    await expect.poll(async () => (await ids())[0]).toBe('req_fresh');
  });

  it('that match a filter are asked of the core, also when none that is held does', async () => {
    const { page, rows } = await show();
    await filter('outcome:failed');
    await expect.poll(ids).toEqual(['req_0249', 'req_0499', 'req_0749']);
    await page.getByText('3 requests, all that are kept').waitFor();
    await page.getByRole('button', { name: 'Remove the filter outcome:failed' }).click();
    await filter('id:req_0888');
    await expect.poll(ids).toEqual(['req_0888']);
    await filter('role:rlm');
    await page.getByText('Nothing matches the filter.').waitFor();
    expect(await rows.count()).toBe(0);
  });

  it('stay filtered over a reload and while one is open', async () => {
    const { page } = await show();
    await filter('outcome:failed');
    await expect.poll(ids).toHaveLength(3);
    await page.reload();
    await expect.poll(ids).toEqual(['req_0249', 'req_0499', 'req_0749']);
    await page.locator('tbody tr').nth(1).click();
    await page.locator('.story').waitFor();
    expect(new URL(page.url()).hash).toBe('#/requests/req_0499?f=outcome%3Afailed');
    await page.keyboard.press('Escape');
    await page.locator('.story').waitFor({ state: 'detached' });
    expect(await ids()).toHaveLength(3);
    await page.goBack();
    await page.goBack();
    await page.goBack();
    await expect.poll(ids).toHaveLength(200);
  });

  it('a field that there is not and a value that no request has are told', async () => {
    const { page } = await show();
    await filter('foo:bar');
    await page.getByText('There is no field “foo”').waitFor();
    await filter('outcome:broken');
    await page.getByText('Values of outcome: ok, failed, cancelled.').waitFor();
    await page.getByRole('button', { name: 'Remove the filter foo:bar' }).click();
    await page.getByRole('button', { name: 'Remove the filter outcome:broken' }).click();
    await filter('qwen3:8b');
    await page.getByText('Nothing matches the filter.').waitFor();
    expect(await page.getByText('There is no field').count()).toBe(0);
  });
});
