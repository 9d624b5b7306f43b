import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { NODES, NOW, REQUESTS, ROLES, VERDICTS } from '../support/console-data.ts';
import { type ConsolePage, type ConsoleRig, openConsole, startConsoleRig } from '../support/console-page.ts';
import { fullScript, fullTopics } from '../support/console-script.ts';
import { describeWithChromium } from '../support/runtime.ts';

/** Every page, and everything that opens beside or inside one. */
const PLACES = [
  ...['overview', 'fleet', 'roles', 'gate', 'budget', 'requests', 'keys', 'events', 'settings', 'welcome'],
  `fleet/${NODES[0]?.id}`,
  ...ROLES.map(({ id }) => `roles/${id}`),
  `gate/${encodeURIComponent(VERDICTS[0]?.providerId ?? '')}`,
  `requests/${REQUESTS[3]?.id}`,
];
const SIZES = [
  { width: 900, height: 600 },
  { width: 1280, height: 800 },
];

describeWithChromium('what scrolls', () => {
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

  it.each(SIZES)('is the page and never the window around it, at $width x $height', async (viewport) => {
    shown = await openConsole(rig, {
      script: fullScript(),
      topics: fullTopics(),
      nowMs: NOW,
      hash: '#/overview',
      context: { viewport, reducedMotion: 'reduce' },
    });
    const { page } = shown;
    for (const place of PLACES) {
      await page.evaluate((hash) => {
        location.hash = hash;
      }, `#/${place}`);
      const [name, target] = place.split('/');
      await page
        .locator(name === 'welcome' ? 'main .stack' : `nav a[href="#/${name}"][aria-current]`)
        .first()
        .waitFor();
      if (target && name !== 'gate') await page.locator('aside.side').waitFor();
      await expect.poll(() => page.locator('.skeleton').count()).toBe(0);
      const measured = await page.evaluate(() => {
        const root = document.scrollingElement as Element;
        const main = document.querySelector('main') as Element;
        // To the end of everything that scrolls: nothing may come into sight by moving the window itself.
        main.scrollTop = main.scrollHeight;
        root.scrollTop = root.scrollHeight;
        return {
          window: [root.scrollWidth, root.scrollHeight, root.scrollTop],
          beside: main.scrollWidth - main.clientWidth,
          rail: document.querySelector('nav')?.getBoundingClientRect().top,
        };
      });
      expect({ place, ...measured }).toEqual({
        place,
        window: [viewport.width, viewport.height, 0],
        beside: 0,
        rail: 0,
      });
    }
  });
});
