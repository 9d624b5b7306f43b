import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { EventView } from '../../preload/contract.ts';
import { NOW } from '../support/console-data.ts';
import { type ConsolePage, type ConsoleRig, openConsole, startConsoleRig } from '../support/console-page.ts';
import { fullScript, fullTopics } from '../support/console-script.ts';
import { describeWithChromium } from '../support/runtime.ts';

const EVENTS = 100_000;
const ROW_PX = 30;

/** Uses nothing of this file: it is called in the page too. */
const makeEvent = (index: number, firstMs: number): EventView => ({
  id: `e${String(index).padStart(8, '0')}`,
  atMs: firstMs + index * 500,
  severity: index % 50 === 0 ? 'error' : 'info',
  source: 'fleet',
  code: 'node_silent',
  sentence: `workstation-${index}: no heartbeat for 15 s`,
  needsPerson: false,
  requestId: null,
  nodeId: null,
  providerId: null,
  role: null,
});
const FIRST_MS = NOW - EVENTS * 500;
const event = (index: number): EventView => makeEvent(index, FIRST_MS);
const many = (from: number, count: number) => Array.from({ length: count }, (_, at) => event(from + at));

/** As many events as a page holds. The tests are one story, in this order. */
describeWithChromium('100,000 events in the console', () => {
  let rig: ConsoleRig;
  let shown: ConsolePage;
  let next = EVENTS;

  beforeAll(async () => {
    rig = await startConsoleRig();
    shown = await openConsole(rig, {
      hash: '#/events',
      script: fullScript({ 'events.list': () => ({ events: [event(EVENTS - 501)], more: true }) }),
      topics: { ...fullTopics(), events: { topic: 'events', type: 'snapshot', rows: many(EVENTS - 500, 500) } },
    });
    await list().waitFor();
    // Pages of older ones are made in the page: to bring 100,000 rows there takes the test's own bridge half a minute.
    await shown.page.evaluate(`{
      const makeEvent = ${makeEvent};
      const { call } = switchyard;
      switchyard.call = (name, input) => {
        if (name !== 'events.list') return call(name, input);
        const end = Number(input.before.slice(1));
        const from = Math.max(0, end - input.limit);
        const events = Array.from({ length: end - from }, (_, at) => makeEvent(end - 1 - at, ${FIRST_MS}));
        return Promise.resolve({ ok: true, value: { events, more: from > 0 } });
      };
    }`);
  });
  afterAll(async () => {
    expect(shown.complaints).toEqual([]);
    await shown.close();
    await rig?.close();
  });
  const list = () => shown.page.locator('.event-list');
  const footer = () => shown.page.locator('.page p small').last();
  const arrive = async (count: number) => {
    await shown.push({ topic: 'events', type: 'delta', changed: many(next, count), removed: [] });
    next += count;
  };
  /** The sentences that stand inside the list's frame, from above. */
  const visible = () =>
    list().evaluate((frame) => {
      const { top, bottom } = frame.getBoundingClientRect();
      return [...frame.querySelectorAll('.event')]
        .map((row) => ({ box: row.getBoundingClientRect(), words: row.querySelector('.sentence')?.textContent ?? '' }))
        .filter(({ box }) => box.top >= top - 1 && box.bottom <= bottom + 1)
        .sort((a, b) => a.box.top - b.box.top)
        .map(({ words }) => Number(/workstation-(\d+)/.exec(words)?.[1]));
    });
  const atEnd = () => list().evaluate((frame) => frame.scrollHeight - frame.scrollTop - frame.clientHeight < 2);

  it('are loaded page by page, and what is read stays in its place while older rows come before it', async () => {
    const { page } = shown;
    await expect.poll(async () => (await visible()).at(-1)).toBe(EVENTS - 1);
    await list().evaluate((frame, px) => frame.scrollTo({ top: 3 * px }), ROW_PX);
    await page.getByRole('button', { name: 'Follow', exact: true }).waitFor();
    const [reading] = await visible();
    expect(reading).toBe(EVENTS - 500 + 3);
    await page.getByRole('button', { name: 'Load older' }).click();
    await expect.poll(() => footer().textContent()).toBe('1,500 of 1,500 events');
    expect((await visible())[0]).toBe(reading);
    // Older ones are nothing new.
    expect(await page.getByText(/new, follow/).count()).toBe(0);
    // The rest of them, as fast as they come.
    await page.evaluate(async () => {
      const older = () => [...document.querySelectorAll('button')].find((one) => one.textContent === 'Load older');
      for (let at = 0; older() && at < 200; at += 1) {
        const before = document.querySelector('.page p small')?.textContent;
        older()?.click();
        while (document.querySelector('.page p small')?.textContent === before && older()) {
          await new Promise((done) => requestAnimationFrame(done));
        }
      }
    });
    await expect.poll(() => footer().textContent()).toBe('100,000 of 100,000 events');
    expect((await visible())[0]).toBe(reading);
    expect(await list().locator('.event').count()).toBeLessThan(100);
  });

  it('are followed, until somebody scrolls up: then nothing moves, and it says how many are new', async () => {
    const { page } = shown;
    await page.getByRole('button', { name: 'Follow', exact: true }).click();
    await expect.poll(atEnd).toBe(true);
    await arrive(3);
    await expect.poll(async () => (await visible()).at(-1)).toBe(EVENTS + 2);
    await list().hover();
    await page.mouse.wheel(0, -900);
    await page.getByRole('button', { name: 'Follow', exact: true }).waitFor();
    const reading = await visible();
    expect(reading.at(-1)).toBeLessThanOrEqual(EVENTS + 2 - 20);
    // The page holds 100,000: the oldest are given up above, and still nothing moves.
    await arrive(12);
    await page.getByRole('button', { name: '12 new, follow' }).waitFor();
    expect(await visible()).toEqual(reading);
    for (let at = 0; at < 10; at += 1) await page.mouse.wheel(0, 600);
    await expect.poll(atEnd).toBe(true);
    await arrive(1);
    await expect.poll(async () => (await visible()).at(-1)).toBe(EVENTS + 15);
    expect(await list().locator('.event').count()).toBeLessThan(100);
  });

  it('are searched, copied and saved, all of them or what a search leaves', async () => {
    const { page } = shown;
    await page.evaluate(() => {
      document.addEventListener('copy', ({ clipboardData }) => {
        const lines = clipboardData?.getData('text/plain').split('\n') ?? [];
        Object.assign(globalThis, { copied: [lines.length, lines[0], lines.at(-1)] });
      });
    });
    const copied = async () => {
      await page.getByRole('button', { name: 'Copy', exact: true }).click();
      const [count, first, last] = await page.evaluate(
        () => (globalThis as unknown as { copied: [number, string, string] }).copied,
      );
      return [count, JSON.parse(first), JSON.parse(last)];
    };
    expect(await copied()).toEqual([EVENTS, event(16), event(EVENTS + 15)]);
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'JSONL' }).click();
    const saved = await download;
    expect(saved.suggestedFilename()).toBe('events.jsonl');
    const lines = (await readFile(await saved.path(), 'utf8')).trimEnd().split('\n');
    expect([lines.length, JSON.parse(lines[0] ?? ''), JSON.parse(lines.at(-1) ?? '')]).toEqual([
      EVENTS,
      event(16),
      event(EVENTS + 15),
    ]);

    await page.keyboard.press('/');
    await page.keyboard.type('WORKSTATION-4242:');
    await expect.poll(() => footer().textContent()).toBe('1 of 100,000 events');
    expect(await visible()).toEqual([4242]);
    expect(await copied()).toEqual([1, event(4242), event(4242)]);
    await page.keyboard.press('/');
    await page.keyboard.press('Escape');
    await page.getByText('Errors', { exact: true }).click();
    await expect.poll(() => footer().textContent()).toBe('2,000 of 100,000 events');
  });
});
