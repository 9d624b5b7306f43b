import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { PAGE_IDS } from '../../preload/contract.ts';
import { seriousOn } from '../support/axe.ts';
import { BUDGET, NOW, SETTINGS } from '../support/console-data.ts';
import { type ConsolePage, type ConsoleRig, openConsole, Refusal, startConsoleRig } from '../support/console-page.ts';
import { fullScript, fullTopics } from '../support/console-script.ts';
import { describeWithChromium } from '../support/runtime.ts';

/** Label, label around it, words: as a screen reader would name what has the focus. */
const focused = (page: Page) =>
  page.evaluate(() => {
    const one = document.activeElement;
    return (one?.getAttribute('aria-label') ?? one?.closest('label')?.textContent ?? one?.textContent ?? '').trim();
  });

/** To something of the page itself, not of the frame around it. */
async function tabTo(page: Page, name: string | RegExp, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
  for (let presses = 0; presses < 100; presses += 1) {
    await page.keyboard.press(key);
    const at = await focused(page);
    const inPage = await page.evaluate(() => document.activeElement?.closest('main') !== null);
    if (inPage && (typeof name === 'string' ? at === name : name.test(at))) return;
  }
  throw new Error(`${key} never reached "${name}"`);
}

describeWithChromium('the console without a pointer', () => {
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
  const show = async (place: string, options: Partial<Parameters<typeof openConsole>[1]> = {}) => {
    shown = await openConsole(rig, {
      script: fullScript(),
      topics: fullTopics(),
      nowMs: NOW,
      hash: `#/${place}`,
      context: { viewport: { width: 900, height: 600 }, reducedMotion: 'reduce' },
      ...options,
    });
    await shown.page.getByRole('navigation').waitFor();
    await shown.page.locator('.skeleton').first().waitFor({ state: 'detached' });
    return shown.page;
  };
  const called = (name: string) => shown.calls.filter((call) => call.name === name).map((call) => call.input);

  it.each(PAGE_IDS)('%s: Tab goes through and out again, and where it stands can be seen', async (place) => {
    const page = await show(place);
    const stops: string[] = [];
    for (let presses = 0; presses < 120; presses += 1) {
      await page.keyboard.press('Tab');
      const stop = await page.evaluate(() => {
        const one = document.activeElement;
        if (!one || one === document.body) return null;
        // A radio button lies unseen over its label, which shows the focus for it.
        const seen = one.matches('.segments input') ? one.closest('label') : one;
        const style = getComputedStyle(seen ?? one);
        const box = one.getBoundingClientRect();
        const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
        const words = one.getAttribute('aria-label') ?? one.closest('label')?.textContent ?? one.textContent;
        const outlined = style.outlineStyle !== 'none' && Number.parseFloat(style.outlineWidth) >= 2;
        return { words: `${one.tagName} ${words?.slice(0, 40)}`, outlined, inside };
      });
      if (stop === null) break;
      expect(stop, stop.words).toMatchObject({ outlined: true, inside: true });
      stops.push(stop.words);
    }
    // Nine pages, the address, the bar above, and something of the page itself; and the last press left the page.
    expect(stops.length).toBeGreaterThan(12);
    expect(stops.length).toBeLessThan(120);
  });

  it('Budget: a ceiling is set, a refusal is told, the chart is read as a table', async () => {
    let refuse = true;
    const page = await show('budget', {
      script: fullScript({
        'budget.set': () => {
          if (refuse) throw new Refusal('store_unavailable');
          return BUDGET;
        },
      }),
    });
    await tabTo(page, /^Ceiling set by hand/);
    await page.keyboard.type('12');
    await page.keyboard.press('Enter');
    await page.getByText('store_unavailable').waitFor();
    expect(await seriousOn(page)).toEqual([]);
    refuse = false;
    await page.keyboard.press('Enter');
    await page.getByText('store_unavailable').waitFor({ state: 'detached' });
    expect(called('budget.set')).toEqual([{ override: 12 }, { override: 12 }]);
    await tabTo(page, 'Table Cloud permits', 'Shift+Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('columnheader', { name: 'Happened' }).waitFor();
    expect(await page.getByRole('cell', { name: /^\d\d:\d\d:\d\d OpenRouter limited the account/ }).count()).toBe(2);
    expect(await seriousOn(page)).toEqual([]);
    await page.keyboard.press('Enter');
    await page.locator('.recharts-area-area').waitFor();
  });

  it('Requests: filtered, opened, read, closed; the filter is taken away again', async () => {
    const page = await show('requests');
    const rows = page.locator('tbody tr');
    const all = await rows.count();
    await page.keyboard.press('/');
    await page.keyboard.type('route:cloud');
    await page.keyboard.press('Enter');
    await expect.poll(() => rows.count()).toBeLessThan(all);
    await tabTo(page, 'Remove the filter route:cloud');
    await tabTo(page, /^\d\d:\d\d:\d\d/);
    await page.keyboard.press('j');
    const id = await rows.nth(1).getAttribute('data-row');
    expect(await page.evaluate(() => document.activeElement?.getAttribute('data-row'))).toBe(id);
    await page.keyboard.press('Enter');
    await page.locator('.story > li').first().waitFor();
    expect(called('requests.get')).toEqual([{ id }]);
    await page.keyboard.press('Escape');
    await page.locator('.story').waitFor({ state: 'detached' });
    expect(await page.evaluate(() => document.activeElement?.getAttribute('data-row'))).toBe(id);
    await tabTo(page, 'Remove the filter route:cloud', 'Shift+Tab');
    await page.keyboard.press('Enter');
    await expect.poll(() => rows.count()).toBe(all);
  });

  it('Events: scrolled, followed again, searched', async () => {
    const rows = Array.from({ length: 200 }, (_, at) => ({
      id: `e${String(at).padStart(4, '0')}`,
      atMs: NOW - (200 - at) * 1000,
      severity: 'info' as const,
      source: 'fleet',
      code: 'node_paired',
      sentence: `machine ${at} was paired`,
      needsPerson: false,
      requestId: null,
      nodeId: null,
      providerId: null,
      role: null,
    }));
    const page = await show('events', {
      topics: { ...fullTopics(), events: { topic: 'events', type: 'snapshot', rows } },
    });
    await page.getByText('machine 199 was paired').waitFor();
    await tabTo(page, 'Events');
    await page.keyboard.press('Home');
    await page.getByText('machine 0 was paired').waitFor();
    await tabTo(page, 'Follow', 'Shift+Tab');
    await page.keyboard.press('Enter');
    await page.getByText('machine 199 was paired').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('machine 42 ');
    await page.getByText('1 of 200 events').waitFor();
    await page.keyboard.press('Escape');
    await page.getByText('200 of 200 events').waitFor();
  });

  it('Settings: a theme is chosen, discovery switched off, an address refused', async () => {
    const page = await show('settings', {
      script: fullScript({
        'settings.set': (input) => {
          if ('endpoint' in (input as object)) throw new Refusal('invalid_request');
          return { settings: SETTINGS, restartNeeded: false };
        },
      }),
    });
    await tabTo(page, 'As the system');
    await page.keyboard.press('ArrowRight');
    await expect.poll(() => called('settings.set')).toEqual([{ console: { theme: 'light' } }]);
    await tabTo(page, 'Listen on');
    await page.keyboard.press('Control+a');
    await page.keyboard.type('0.0.0.0');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('invalid_request').waitFor();
    expect(await seriousOn(page)).toEqual([]);
    await tabTo(page, 'Look for machines on the network');
    await page.keyboard.press('Space');
    await expect.poll(() => called('settings.set').at(-1)).toEqual({ discovery: { enabled: false } });
  });
});
