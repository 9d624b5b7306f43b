import { setTimeout as wait } from 'node:timers/promises';
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PacedEngine, startPaced } from '../engines/paced.ts';
import { builtApp } from '../support/built.ts';
import { CloudHouse, until } from '../support/cloud.ts';
import { removeTemporaryFolders } from '../support/processes.ts';
import { CHROMIUM, describeWithChromium } from '../support/runtime.ts';

const PAID = 'poolside/laguna-s-2.1';
const SECOND = 1000;

/** As the page writes it; its zone is UTC. */
const clock = (atMs: number) => new Date(atMs).toISOString().slice(11, 19);

interface Row {
  readonly atMs: number;
  readonly effective: number | null;
  readonly happened: string;
}

/** The permits chart read as its table, oldest row first. `nearMs`: a moment of the same day. */
async function tableOf(panel: Locator, nearMs: number): Promise<Row[]> {
  const day = new Date(nearMs).toISOString().slice(0, 10);
  const heads = await panel.locator('thead th').allTextContents();
  const column = heads.indexOf('effective');
  const cells = await panel
    .locator('tbody tr')
    .evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent ?? '')));
  return cells.toReversed().map((row) => ({
    atMs: Date.parse(`${day}T${row[0]}Z`),
    effective: row[column] === '—' ? null : Number(row[column]),
    happened: heads.includes('Happened') ? (row.at(-1) ?? '') : '',
  }));
}

/** Where the plot draws cuts and cooldowns, as shares of its width. */
function drawnIn(panel: Locator): Promise<{ readonly cuts: number[]; readonly cooldowns: number[][] }> {
  return panel.evaluate((node) => {
    const share = (x: number) => (x - plot.left) / plot.width;
    const grid = node.querySelector('.recharts-cartesian-grid-horizontal line');
    const plot = grid?.getBoundingClientRect() ?? new DOMRect();
    const lines = [...node.querySelectorAll('.recharts-reference-line line')];
    const areas = [...node.querySelectorAll('.span-cooldown path')];
    return {
      cuts: lines.map((line) => share(line.getBoundingClientRect().left)).sort((a, b) => a - b),
      cooldowns: areas
        .map((area) => area.getBoundingClientRect())
        .map(({ left, right }) => [share(left), share(right)])
        .sort(([a = 0], [b = 0]) => a - b),
    };
  });
}

/** What the console tells of the cloud, held against the admin API and OpenRouter's stand-in. */
describeWithChromium('the console over a cloud that is short', () => {
  let house: CloudHouse;
  let chat: PacedEngine;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  const complaints: string[] = [];

  beforeAll(async () => {
    await builtApp();
    chat = await startPaced({ task: 'chat', slots: 1, rate: 20, answerTokens: 40, model: 'org/chat' });
    house = await CloudHouse.start({
      agents: [{ name: 'alpha', engines: [chat.url] }],
      standIn: { account: { creditUsd: 30 }, latencyMs: 200 },
      roles: {
        'code-assistant': { policy: 'backup', maxLocalWaitMs: 3000, cloud: { model: PAID } },
        reranker: { policy: 'cloud', cloud: { model: 'cohere/rerank-4-fast' } },
      },
    });
    await house.ready('code-assistant', 'local');
    await house.ready('code-assistant', 'cloud');
    await house.ready('reranker', 'cloud');
    browser = await chromium.launch({ executablePath: CHROMIUM ?? '', args: ['--no-sandbox'] });
    context = await browser.newContext({ locale: 'en-US', timezoneId: 'UTC' });
    page = await context.newPage();
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(house.plane.consoleUrl);
    await page.locator('.chip.ok', { hasText: 'Live' }).waitFor();
  });
  afterAll(async () => {
    await browser?.close();
    await house?.stop();
    await chat?.stop();
    removeTemporaryFolders();
    expect(complaints).toEqual([]);
  });
  const go = (place: string) => page.goto(`${house.plane.endpoint}/console/#/${place}`);

  it('explains by a filter and a trace why one request overflowed: busy, W, L, S and who took it', async () => {
    const send = () => house.chat('code-assistant', { max_tokens: 40 });
    await send(); // 40 tokens at 20 a second: S is 2 s
    const running = send();
    await until(() => chat.counts().chats.begun > chat.counts().chats.completed);
    const second = send(); // W = (0 + 1) x 2 s: stays
    await wait(200);
    const third = await send(); // W = (1 + 1) x 2 s: over 3 s
    const id = third.headers.get('x-request-id') ?? '';
    expect(third.headers.get('x-switchyard-route')).toBe('cloud');

    await go('requests');
    const rows = page.locator('tbody tr');
    await expect.poll(() => rows.count()).toBeGreaterThanOrEqual(2);
    await page.keyboard.press('/');
    await page.keyboard.type('role:code-assistant');
    await page.keyboard.press('Enter');
    await page.keyboard.type('route:cloud');
    await page.keyboard.press('Enter');
    await expect.poll(() => rows.count()).toBe(1);
    const row = rows.first();
    expect(await row.getAttribute('data-row')).toBe(id);
    expect(await row.textContent()).toMatch(/code-assistant.*overflow.*alpha/);
    await row.click();

    const { steps } = await house.operator.get<{ steps: Record<string, unknown>[] }>(`requests/${id}`);
    const estimate = steps.find(({ step }) => step === 'estimated') ?? {};
    const [part] = estimate.parts as { name: string; serviceMs: number }[];
    const seconds = (ms: unknown) => `${(Number(ms) / SECOND).toFixed(1)} s`;
    const story = (words: string) => page.locator('.story > li', { hasText: words });
    const local = story('Local would take too long');
    await local.getByText(`W = ${seconds(estimate.waitMs)}, threshold 3 s`).waitFor();
    await local.getByText('1 of 1 slots busy, L = 1').waitFor();
    await local.getByText(`${part?.name}: 1 slot, S = ${seconds(part?.serviceMs)}`).waitFor();
    expect(part?.name).toBe('org/chat on alpha');
    expect(Number(estimate.waitMs)).toBeGreaterThan(3600);
    expect(Number(part?.serviceMs)).toBeGreaterThan(1800);
    await story(`${PAID} on alpha was chosen`).getByText('The estimated local wait was over the threshold.').waitFor();
    await story(`Attempt 1 at ${PAID} on alpha:`).getByText('succeeded').waitFor();
    await Promise.all([running, second]);
    expect((await house.standIn.calls()).filter(({ route }) => route === 'chat')).toHaveLength(1);
  });

  it('names as models of your machines none that only OpenRouter has', async () => {
    await go('roles/code-assistant');
    const side = page.getByRole('complementary', { name: 'code-assistant' });
    await side.getByLabel('Choose local models by itself').uncheck();
    await side.getByText('On your machines: org/chat', { exact: true }).waitFor();
  });

  it('draws the cuts, cooldowns and recoveries of a storm of 429s as the budget records them', async () => {
    await go('budget');
    await page.getByRole('radio', { name: '5 min' }).check({ force: true });
    const panel = page.locator('.panel', { has: page.getByRole('heading', { name: 'Cloud permits', exact: true }) });
    await panel.locator('.recharts-area-area').waitFor({ state: 'attached' }); // nothing is in flight: as high as nothing
    expect(await house.budget()).toMatchObject({ ceiling: 16, effective: 16, cuts: [], cooldowns: [], steps: [] });
    await house.standIn.order({ account: { concurrency: 5, retryAfterS: 2 }, forget: true });
    const leave = new AbortController();
    const clients = Array.from({ length: 20 }, async () => {
      while (!leave.signal.aborted) await house.rerank();
    });
    // 16 -> 8 -> 4; then a step after 15 s without a refusal.
    await until(async () => (await house.budget()).steps.length > 0);
    leave.abort();
    await Promise.all(clients);
    const { cuts, cooldowns, steps, effective } = await house.budget();
    expect(cuts.slice(0, 2)).toMatchObject([
      { from: 16, to: 8 },
      { from: 8, to: 4 },
    ]);
    const refusal = (await house.standIn.calls()).find(({ status }) => status === 429);
    expect(Math.abs((cuts[0]?.atMs ?? 0) - (refusal?.endMs ?? 0))).toBeLessThan(SECOND);

    // The last step is drawn by the sample that follows it.
    const large = page.locator('.figures-bar > div', { hasText: 'effective' }).locator('strong');
    await expect.poll(() => large.textContent()).toBe(String(effective));
    const drawn = await drawnIn(panel);
    const fromFirst = (share: number) => (share - (drawn.cuts[0] ?? 0)) * 300 * SECOND;
    const firstMs = cuts[0]?.atMs ?? 0;
    const near = (share: number, atMs: number) =>
      expect(Math.abs(fromFirst(share) - (atMs - firstMs))).toBeLessThan(SECOND);
    expect(drawn.cuts).toHaveLength(cuts.length);
    for (const [at, { atMs }] of cuts.entries()) near(drawn.cuts[at] ?? 0, atMs);
    expect(drawn.cooldowns).toHaveLength(cooldowns.length);
    for (const [at, { fromMs, toMs }] of cooldowns.entries()) {
      near(drawn.cooldowns[at]?.[0] ?? 0, fromMs);
      near(drawn.cooldowns[at]?.[1] ?? 0, toMs);
    }

    await panel.getByRole('button', { name: 'Table' }).click();
    await expect.poll(async () => (await tableOf(panel, firstMs)).at(-1)?.effective).toBe(effective);
    const rows = await tableOf(panel, firstMs);
    expect(rows.flatMap(({ happened }) => happened.split('; ').filter((one) => one.includes('became')))).toEqual(
      cuts.map(
        ({ atMs, from, to }) =>
          `${clock(atMs)} OpenRouter limited the account: ${from} ${from === 1 ? 'permit' : 'permits'} became ${to}.`,
      ),
    );
    expect(rows.flatMap(({ happened }) => happened.split('; ').filter((one) => one.includes('cooling')))).toEqual(
      cooldowns.map(({ fromMs, toMs }) => `${clock(fromMs)} cooling until ${clock(toMs)}`),
    );
    const known = rows.filter((row) => row.effective !== null);
    const changes = known.flatMap((row, at) => {
      const before = known[at - 1];
      return before && before.effective !== row.effective ? [{ before, row }] : [];
    });
    const recorded = [...cuts, ...steps].sort((a, b) => a.atMs - b.atMs);
    expect(changes.map(({ before, row }) => [before.effective, row.effective])).toEqual(
      recorded.map(({ from, to }) => [from, to]),
    );
    for (const [at, { atMs }] of recorded.entries()) {
      const change = changes[at];
      // A row is a second long and holds what was read at some moment of it; a busy machine leaves one out now and then.
      const second = Math.floor(atMs / SECOND) * SECOND;
      expect(second).toBeGreaterThanOrEqual((change?.before.atMs ?? Number.POSITIVE_INFINITY) - SECOND);
      expect(second).toBeLessThanOrEqual((change?.row.atMs ?? 0) + SECOND);
    }
  });
});
