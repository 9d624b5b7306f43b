import { afterAll, beforeAll, expect, it } from 'vitest';
import { PAGE_IDS } from '../../preload/contract.ts';
import { seriousOn } from '../support/axe.ts';
import { HEALTH, NOW, SETTINGS, VERDICTS } from '../support/console-data.ts';
import { type ConsolePage, type ConsoleRig, openConsole, Refusal, startConsoleRig } from '../support/console-page.ts';
import { emptyTopics, fullScript, fullTopics } from '../support/console-script.ts';
import { describeWithChromium } from '../support/runtime.ts';

const PLACES = [...PAGE_IDS, 'welcome', 'fleet/n3', 'roles/code-assistant', 'gate/v3', 'requests/req_ffd'];
const SIZES = [
  { width: 1280, height: 800 },
  { width: 900, height: 600 },
] as const;

describeWithChromium('the console in Chromium', () => {
  let rig: ConsoleRig;
  let open: ConsolePage | null = null;
  beforeAll(async () => {
    rig = await startConsoleRig();
  });
  afterAll(async () => {
    await rig?.close();
  });
  const show = async (options: Partial<Parameters<typeof openConsole>[1]> = {}) => {
    await open?.close();
    open = await openConsole(rig, { script: fullScript(), topics: fullTopics(), nowMs: NOW, ...options });
    return open;
  };
  const go = async (shown: ConsolePage, place: string) => {
    await shown.page.evaluate((hash) => {
      location.hash = hash;
    }, `#/${place}`);
    await shown.page.locator('.skeleton').first().waitFor({ state: 'detached' });
  };
  const serious = (shown: ConsolePage) => seriousOn(shown.page);

  it.each([
    ['light', SIZES[0]],
    ['dark', SIZES[1]],
  ] as const)(
    'shows every page in %s without a complaint and with nothing serious for axe',
    async (colorScheme, viewport) => {
      const shown = await show({ context: { colorScheme, viewport, reducedMotion: 'reduce' } });
      for (const place of PLACES) {
        await go(shown, place);
        expect(await serious(shown), place).toEqual([]);
        const wide = await shown.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        expect(wide, `${place} scrolls sideways`).toBeLessThanOrEqual(0);
      }
      expect(shown.complaints).toEqual([]);
    },
  );

  it.each(['en', 'fr'] as const)(
    '%s: the matrix of the gate fits a window of 1280, and scrolls inside one of 900',
    async (language) => {
      // Every width of word there is: not run, skipped, and the longest verdicts.
      const unfit = (row: (typeof VERDICTS)[number], state: 'not-run' | 'skipped') => ({
        ...row,
        verdict: 'dimension-mismatch' as const,
        checks: row.checks.map((check) => ({ ...check, state, figure: null })),
      });
      const rows = VERDICTS.map((row, at) =>
        at === 1 ? unfit(row, 'not-run') : at === 3 ? unfit(row, 'skipped') : row,
      );
      for (const viewport of SIZES) {
        const { page } = await show({
          hash: '#/gate',
          context: { viewport },
          topics: { ...fullTopics(), gate: { topic: 'gate', type: 'snapshot', rows } },
          script: fullScript({
            'settings.get': () => ({ ...SETTINGS, console: { ...SETTINGS.console, language } }),
          }),
        });
        await page.getByRole('heading', { name: language === 'en' ? 'Gate' : 'Contrôle', exact: true }).waitFor();
        const matrices = page.locator('.scroll-x', { has: page.locator('.matrix') });
        await matrices.nth(1).waitFor();
        for (const matrix of await matrices.all()) {
          const last = matrix.locator('thead th').last();
          const edges = () =>
            last.evaluate((head) => {
              const box = head.closest('.scroll-x')?.getBoundingClientRect();
              return {
                beyond: head.getBoundingClientRect().right - (box?.right ?? 0),
                page: document.documentElement.scrollWidth,
              };
            });
          if (viewport.width === 900) {
            expect((await edges()).beyond).toBeGreaterThan(0);
            await matrix.evaluate((region) => region.scrollTo({ left: region.scrollWidth }));
          }
          const { beyond, page: pageWidth } = await edges();
          expect(beyond).toBeLessThanOrEqual(1);
          expect(pageWidth).toBeLessThanOrEqual(viewport.width);
        }
      }
    },
  );

  it('draws marks in every chart, and the same as a table', async () => {
    const shown = await show();
    const charts = shown.page.locator('.charts .panel');
    await charts.locator('.recharts-surface').nth(3).waitFor();
    for (const [at, marks] of [
      [0, '.recharts-line-curve'],
      [1, '.recharts-line-curve'],
      [2, '.recharts-bar-rectangle path'],
      [3, '.recharts-area-area'],
    ] as const) {
      const drawn = await charts
        .nth(at)
        .locator(marks)
        .evaluateAll((all) => all.filter((one) => one.getAttribute('d')).length);
      expect(drawn, marks).toBeGreaterThan(0);
    }
    // The nap is a gap: the line is in two pieces.
    const path = await charts.nth(1).locator('.recharts-line-curve').first().getAttribute('d');
    expect(path?.match(/M/g)).toHaveLength(2);
    await charts.nth(0).getByRole('button', { name: 'Table' }).click();
    const rows = charts.nth(0).locator('tbody tr');
    expect(await rows.count()).toBe(180);
    // Time, five roles, what happened.
    expect(await rows.nth(0).locator('td').count()).toBe(7);
    expect(await charts.nth(0).getByText('mac-studio: nothing was heard of the agent for 15 s.').count()).toBe(1);
    expect(await charts.nth(0).getByText('—').count()).toBeGreaterThan(10);
  });

  it('stands still on a stretch that is drawn with the pointer until live is resumed', async () => {
    const shown = await show();
    const plot = shown.page.locator('.charts .panel').nth(1).locator('.recharts-surface').first();
    const box = await plot.boundingBox();
    if (!box) throw new Error('no chart');
    await shown.page.mouse.move(box.x + 120, box.y + 80);
    await shown.page.mouse.down();
    await shown.page.mouse.move(box.x + 160, box.y + 80);
    await shown.page.mouse.move(box.x + 220, box.y + 80);
    await shown.page.mouse.up();
    const resume = shown.page.getByRole('button', { name: 'Resume live' });
    await resume.click();
    await resume.waitFor({ state: 'detached' });
  });

  it('says why there is nothing, and what to do about it', async () => {
    const shown = await show({
      topics: emptyTopics(),
      script: fullScript({
        'keys.list': () => ({ keys: [] }),
        'spaces.list': () => ({ spaces: [] }),
        'requests.list': () => ({ requests: [], more: false, lookedTo: null }),
      }),
    });
    for (const [place, words] of [
      ['overview', 'Nothing needs you.'],
      ['fleet', 'No machine yet.'],
      ['gate', 'No encoder serves this role.'],
      ['keys', 'No key yet.'],
      ['requests', 'No request yet.'],
    ] as const) {
      await go(shown, place);
      await shown.page.getByText(words).waitFor();
    }
    expect(await serious(shown)).toEqual([]);
  });

  it('tells an error in words with its code, and tries again', async () => {
    let failing = true;
    const shown = await show({
      hash: '#/keys',
      script: fullScript({
        'keys.list': () => {
          if (failing) throw new Refusal('store_unavailable');
          return { keys: [] };
        },
      }),
    });
    await shown.page.clock.runFor(2000);
    await shown.page.getByText('The database cannot be written.').waitFor();
    await shown.page.getByText('store_unavailable').waitFor();
    expect(await serious(shown)).toEqual([]);
    failing = false;
    await shown.page.getByRole('button', { name: 'Try again' }).click();
    await shown.page.getByText('No key yet.').waitFor();
  });

  it('dims what is stale and says how old it is, and is itself again with the next sample', async () => {
    const shown = await show({ hash: '#/fleet' });
    await shown.page.getByText('workstation-2').waitFor();
    await shown.page.clock.fastForward(15_000);
    await shown.page.locator('[data-stale]').waitFor();
    expect(await serious(shown)).toEqual([]);
    await shown.push({ topic: 'nodes', type: 'delta', changed: [], removed: [] });
    await shown.page.locator('[data-stale]').waitFor({ state: 'detached' });
  });

  it('waits 300 ms before it shows that it waits', async () => {
    const shown = await show({ topics: {}, hash: '#/fleet' });
    const delay = await shown.page
      .locator('.skeleton')
      .first()
      .evaluate((one) => getComputedStyle(one).animationDelay);
    expect(delay).toBe('0.3s');
  });

  it('shows what is unknown as a dash and an idle GPU as 0 %', async () => {
    const shown = await show({ hash: '#/fleet' });
    const lost = shown.page.locator('[data-row=n4] td');
    // GPU, memory, running, waiting, tok/s, first byte
    for (const at of [3, 4, 5, 6, 7, 8]) expect(await lost.nth(at).textContent()).toBe('—');
    expect(await shown.page.locator('[data-row=n2] .gpu').textContent()).toBe('0 %');
  });

  it('does not shift while data arrives at 900 x 600', async () => {
    const long = HEALTH.map((item) => ({
      ...item,
      sentence: `${item.sentence} ${'And what to do about it. '.repeat(6)}`,
    }));
    const shown = await show({
      topics: { ...fullTopics(), health: { topic: 'health', type: 'snapshot', rows: long } },
      context: { viewport: SIZES[1] },
    });
    await shown.page.getByText('Last hour').waitFor();
    await shown.page.locator('.charts .recharts-surface').first().waitFor();
    const shift = await shown.page.evaluate(
      () =>
        new Promise<number>((resolve) => {
          let total = 0;
          new PerformanceObserver((list) => {
            for (const entry of list.getEntries()) total += (entry as PerformanceEntry & { value: number }).value;
          }).observe({ type: 'layout-shift', buffered: true });
          requestAnimationFrame(() => requestAnimationFrame(() => resolve(total)));
        }),
    );
    expect(shift).toBeLessThan(0.1);
  });

  it('speaks French throughout when asked to', async () => {
    const shown = await show({
      script: fullScript({ 'settings.get': () => ({ ...SETTINGS, console: { ...SETTINGS.console, language: 'fr' } }) }),
    });
    await shown.page.getByRole('heading', { name: 'Vue d’ensemble' }).waitFor();
    expect(await shown.page.evaluate(() => document.documentElement.lang)).toBe('fr');
    for (const place of PLACES) {
      await go(shown, place);
      const words = await shown.page.locator('#root').textContent();
      expect(words, place).not.toMatch(/\b(Settings|Waiting|Machine yet|Loading|Save|Cancel)\b/);
    }
  });
});
