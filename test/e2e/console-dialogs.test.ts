import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { OperationName } from '../../preload/contract.ts';
import { seriousOn } from '../support/axe.ts';
import { APP, COMMANDS, enrolment, FAILED_STEPS, KEYS, LEAVING, NOW, SETTINGS } from '../support/console-data.ts';
import {
  type ConsolePage,
  type ConsoleRig,
  openConsole,
  Refusal,
  type Script,
  startConsoleRig,
} from '../support/console-page.ts';
import { emptyTopics, fullScript, fullTopics } from '../support/console-script.ts';
import { describeWithChromium } from '../support/runtime.ts';

const [firstKey] = KEYS;
if (!firstKey) throw new Error('the test data is incomplete');

const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).first();
const inDialog = (page: Page, name: string) => page.getByRole('dialog').getByRole('button', { name, exact: true });
/** Remembers, when a dialog opens, what had the keyboard until then. */
const watchOpener = (page: Page) =>
  page.evaluate(() => {
    const seen = { at: document.body as Element };
    Object.assign(globalThis, { opener: null });
    document.addEventListener('focusin', ({ target }) => {
      if (target instanceof Element && target.closest('dialog')) Object.assign(globalThis, { opener: seen.at });
      else if (target instanceof Element) seen.at = target;
    });
  });
/** Whether the keyboard is back where it was before the dialog. */
const isBack = (page: Page) =>
  page.evaluate(() => document.activeElement === (globalThis as unknown as { opener: Element | null }).opener);
const refuse = (code: string) => () => {
  throw new Refusal(code);
};

interface Case {
  readonly hash: string;
  readonly open: (page: Page) => Promise<unknown>;
  readonly script?: Script;
  /** Otherwise by Escape. */
  readonly close?: (page: Page) => Promise<unknown>;
}

/** Every dialog of the console, and what can go wrong inside one. */
const DIALOGS: Readonly<Record<string, Case>> = {
  keys: { hash: '#/overview', open: (page) => page.keyboard.press('?') },
  palette: { hash: '#/overview', open: (page) => page.keyboard.press('Control+k') },
  cloud: { hash: '#/overview', open: (page) => button(page, /Cloud on/).click() },
  'add machine, found': { hash: '#/fleet', open: (page) => button(page, 'Add machine').click() },
  'add machine, a wrong code': {
    hash: '#/fleet',
    script: { 'nodes.add': refuse('join_refused') },
    open: async (page) => {
      await button(page, 'Add machine').click();
      const sheet = page.getByRole('dialog');
      await sheet.getByText('By address').click();
      await sheet.getByLabel('Address', { exact: true }).fill('gpu.lan:7412');
      await sheet.getByLabel('Join code').fill('7K3M-Q2XH-9PZR-4TVW');
      await inDialog(page, 'Pair').click();
      await sheet.getByText('join_refused').waitFor();
    },
  },
  'add machine, by command': {
    hash: '#/fleet',
    open: async (page) => {
      await button(page, 'Add machine').click();
      await page.getByRole('dialog').locator('.segments label').nth(2).click();
    },
  },
  'add machine, by a command that failed': {
    hash: '#/fleet',
    script: {
      'enrolments.create': () => ({ enrolment: enrolment(), commands: COMMANDS }),
      'enrolments.list': () => ({ enrolments: [enrolment({ state: 'failed', steps: FAILED_STEPS })] }),
    },
    open: async (page) => {
      await button(page, 'Add machine').click();
      const sheet = page.getByRole('dialog');
      await sheet.locator('.segments label').nth(2).click();
      await inDialog(page, 'Make the command').click();
      await sheet.getByText(/The model could not be pulled/).waitFor();
    },
  },
  'remove a machine': { hash: '#/fleet/n1', open: (page) => button(page, 'Remove').click() },
  'a new space': {
    hash: '#/roles',
    script: {
      'roles.preview': () => ({
        effect: 'new-space',
        reasons: [{ code: 'new_space', sentence: 'No cloud encoder is in this space.' }],
        founders: [
          {
            providerId: 'cloud~1',
            title: 'openrouter / nebius',
            kind: 'cloud',
            model: 'qwen/qwen3-embedding-4b',
            upstream: 'nebius',
            width: 2560,
            minCosine: 0.97612,
            ready: true,
            reason: null,
          },
        ],
        leaves: null,
      }),
    },
    open: (page) =>
      page
        .locator('[data-role=code-embedding]')
        .getByRole('radio', { name: 'Cloud', exact: true })
        .click({ force: true }),
  },
  'leave the network': {
    hash: '#/roles',
    script: { 'roles.preview': () => LEAVING },
    open: (page) =>
      page.locator('[data-role=rlm]').getByRole('radio', { name: 'Cloud', exact: true }).click({ force: true }),
  },
  'forget the key': { hash: '#/keys', open: (page) => button(page, 'Forget').click() },
  'a new key': { hash: '#/keys', open: (page) => button(page, 'New key').click() },
  'a key that was made': {
    hash: '#/keys',
    script: { 'keys.create': () => ({ key: firstKey, secret: 'sy-once-0123456789' }) },
    open: async (page) => {
      await button(page, 'New key').click();
      await page.getByRole('dialog').getByLabel('Name').fill('editor');
      await inDialog(page, 'Make key').click();
      await page.getByText('sy-once-0123456789', { exact: true }).waitFor();
    },
    close: (page) => inDialog(page, 'I have stored it').click(),
  },
  'revoke a key': { hash: '#/keys', open: (page) => button(page, /Revoke/).click() },
  'retire a space': { hash: '#/gate', open: (page) => button(page, /Retire/).click() },
  update: { hash: '#/settings', open: (page) => button(page, 'Restart and update').click() },
};

describeWithChromium('dialogs and errors of the console', () => {
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
  const show = async (hash: string, script: Script = {}, colorScheme: 'light' | 'dark' = 'light') => {
    const topics = fullTopics();
    shown = await openConsole(rig, {
      script: fullScript(script),
      topics: {
        ...topics,
        app: { topic: 'app', type: 'value', value: { ...APP, updates: { state: 'ready', version: '0.2.0' } } },
      },
      nowMs: NOW,
      hash,
      context: { colorScheme, reducedMotion: 'reduce', viewport: { width: 900, height: 600 } },
    });
    await shown.page.getByRole('navigation').waitFor();
    await shown.page.locator('.skeleton').first().waitFor({ state: 'detached' });
    return shown.page;
  };

  it.each(Object.keys(DIALOGS))(
    '%s: nothing serious for axe, a name, and what closes it gives the keyboard back',
    async (name) => {
      const { hash, script, open, close } = DIALOGS[name] as Case;
      for (const scheme of ['light', 'dark'] as const) {
        const page = await show(hash, script, scheme);
        await watchOpener(page);
        await open(page);
        const dialog = page.getByRole('dialog');
        await dialog.waitFor();
        expect(await dialog.getAttribute('aria-labelledby')).toBeTruthy();
        expect(await seriousOn(page), scheme).toEqual([]);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        expect(wide).toBeLessThanOrEqual(0);
        await (close?.(page) ?? page.keyboard.press('Escape'));
        await dialog.waitFor({ state: 'detached' });
        await expect.poll(() => isBack(page)).toBe(true);
        if (scheme === 'light') await shown.close();
      }
    },
  );

  /** By keyboard alone, as a new user went: by the address, and out again. */
  const focused = (page: Page) =>
    page.evaluate(() => {
      const one = document.activeElement;
      return (one?.getAttribute('aria-label') ?? one?.closest('label')?.textContent ?? one?.textContent ?? '').trim();
    });
  const tabTo = async (page: Page, name: string) => {
    for (let presses = 0; presses < 60; presses += 1) {
      await page.keyboard.press('Tab');
      if ((await focused(page)) === name) return;
    }
    throw new Error(`Tab never reached "${name}"`);
  };

  it('first run: a machine by its address begins in its field, and Esc and Close both lead back to the button', async () => {
    shown = await openConsole(rig, {
      script: fullScript({
        'settings.get': () => ({ ...SETTINGS, console: { ...SETTINGS.console, firstRunDone: false } }),
      }),
      topics: emptyTopics(),
      nowMs: NOW,
      hash: '',
    });
    const { page } = shown;
    await page.getByRole('heading', { name: 'Welcome' }).waitFor();
    const dialog = page.getByRole('dialog');
    await tabTo(page, 'Add one by its address');
    await page.keyboard.press('Enter');
    await dialog.waitFor();
    expect(await focused(page)).toBe('Address');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(await focused(page)).toBe('Add one by its address');
    await page.keyboard.press('Enter');
    await tabTo(page, 'Close');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    expect(await focused(page)).toBe('Add one by its address');
    // One that was found needs its code only.
    await tabTo(page, 'Pair attic-server');
    await page.keyboard.press('Enter');
    expect(await focused(page)).toBe('Join code');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(await focused(page)).toBe('Pair attic-server');
  });

  it('an opener that is gone when its dialog closes leaves the keyboard at the page', async () => {
    const page = await show('#/keys');
    await button(page, /Revoke/).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.evaluate(() => document.querySelector('tbody')?.remove());
    await page.keyboard.press('Escape');
    await expect.poll(() => focused(page)).toBe('Keys');
    await tabTo(page, 'OpenRouter key');
  });

  const READS: readonly (readonly [string, OperationName])[] = [
    ['overview', 'overview.get'],
    ['fleet/n1', 'nodes.detail'],
    ['gate', 'spaces.list'],
    ['budget', 'overview.get'],
    ['requests/req_1', 'requests.get'],
    ['keys', 'keys.list'],
    ['events', 'events.list'],
    ['settings', 'settings.get'],
  ];
  it.each(READS)(
    '%s: %s that fails is told in words with its code, and nothing is serious for axe',
    async (hash, name) => {
      const page = await show(`#/${hash}`, { [name]: refuse('store_unavailable') });
      if (hash === 'events') await button(page, 'Load older').click(); // the newest come by themselves
      await page.clock.runFor(3000); // a read is tried twice
      await page.getByText('store_unavailable').first().waitFor();
      expect(await seriousOn(page)).toEqual([]);
    },
  );
});
