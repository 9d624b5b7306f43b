import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { BROWSER } from '../../preload/contract/browser-names.ts';
import { CHROMIUM } from '../support/console-page.ts';
import type { ControlPlane } from '../support/processes.ts';
import { smaller } from './png.ts';

export const WIDE = { width: 1280, height: 800 } as const;
export const SMALL = { width: 900, height: 600 } as const;
/** The rehearsal itself keeps the machine busy. */
const PATIENCE_MS = 120_000;
type Size = typeof WIDE | typeof SMALL;
export type Theme = 'light' | 'dark';

/** A Chromium that looks at consoles of running control planes and keeps what it sees. */
export class Camera {
  readonly #folder: string;
  readonly #browser: Browser;
  /** Complaints of any page: errors, violations of its content policy. */
  readonly complaints: string[] = [];
  readonly taken: { readonly name: string; readonly bytes: number }[] = [];

  private constructor(folder: string, browser: Browser) {
    this.#folder = folder;
    this.#browser = browser;
  }

  static async open(folder: string): Promise<Camera> {
    if (!CHROMIUM) throw new Error('No Chromium was found; install one to take pictures.');
    mkdirSync(folder, { recursive: true });
    const browser = await chromium.launch({
      executablePath: CHROMIUM,
      args: ['--no-sandbox', '--force-color-profile=srgb'],
    });
    return new Camera(folder, browser);
  }

  /** The console of a control plane, signed in as its operator; `place` as in the address, '' lets the console choose. */
  async console(plane: Pick<ControlPlane, 'endpoint'>, adminToken: string, place = ''): Promise<Page> {
    const signedIn = await fetch(plane.endpoint + BROWSER.signIn, {
      method: 'POST',
      headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
      body: '{}',
    });
    const { token } = (await signedIn.json()) as { token: string };
    const context = await this.#browser.newContext({ locale: 'en-US', viewport: WIDE, reducedMotion: 'reduce' });
    await context.addInitScript((session) => sessionStorage.setItem('switchyard.session', session), token);
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    page.on('pageerror', (error) => this.complaints.push(error.message));
    page.on('console', (message) => {
      if (message.text().includes('Content Security Policy')) this.complaints.push(message.text());
    });
    await page.goto(`${plane.endpoint}/console/${place === '' ? '' : `#/${place}`}`);
    return page;
  }

  /** @param colours `exact` for pictures with soft shadows, which few colours would show as rings */
  async shot(
    page: Page,
    name: string,
    theme: Theme,
    size: Size = WIDE,
    colours: 'few' | 'exact' = 'few',
  ): Promise<void> {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme: theme });
    // Away from rows, which would show that something points at them.
    await page.mouse.move(1, 1);
    // Two frames: the charts measure themselves, then draw.
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const whole = await page.screenshot({ animations: 'disabled', caret: 'hide' });
    const png = colours === 'few' ? smaller(whole) : whole;
    const file = `${name}-${theme}${size === SMALL ? '-900x600' : ''}.png`;
    writeFileSync(path.join(this.#folder, file), png);
    this.taken.push({ name: file, bytes: png.length });
  }

  /** Both themes at 1280 x 800. */
  async themes(page: Page, name: string): Promise<void> {
    await this.shot(page, name, 'light');
    await this.shot(page, name, 'dark');
  }

  /** Both themes in both sizes. */
  async shots(page: Page, name: string): Promise<void> {
    await this.themes(page, name);
    await this.shot(page, name, 'dark', SMALL);
    await this.shot(page, name, 'light', SMALL);
    await page.setViewportSize(WIDE);
  }

  async close(): Promise<void> {
    await this.#browser.close();
  }
}

export async function go(page: Page, place: string): Promise<void> {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, `#/${place}`);
  await page.locator('main').waitFor();
  await settled(page);
}

/** Nothing loads any more. */
export async function settled(page: Page): Promise<void> {
  await page.waitForFunction(() => document.querySelectorAll('.skeleton').length === 0);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** @throws when one of the charts has nothing drawn in it; `marks` names what each must have, in order */
export async function assertMarks(
  page: Page,
  charts: readonly (readonly [title: string, marks: string])[],
): Promise<void> {
  for (const [title, marks] of charts) {
    const drawn = await page
      .locator('.panel', { has: page.getByRole('heading', { name: title, exact: true }) })
      .locator(marks)
      .evaluateAll((all) => all.filter((one) => (one.getAttribute('d') ?? '').length > 20).length);
    if (drawn === 0) throw new Error(`The chart "${title}" holds no marks.`);
  }
}
