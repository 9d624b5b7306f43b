import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';

import { seriousOn } from '../support/axe.ts';
import { builtApp } from '../support/built.ts';

import {
  admin,
  type ControlPlane,
  removeTemporaryFolders,
  startAgent,
  startControlPlane,
} from '../support/processes.ts';
import { CHROMIUM, describeWithChromium } from '../support/runtime.ts';

/** The built console in a browser against a control plane that runs: nothing between them is played. */
describeWithChromium('a console in a browser, on a running control plane', () => {
  let plane: ControlPlane;
  let token: string;
  let browser: Browser;
  let context: BrowserContext;
  const complaints: string[] = [];

  beforeAll(async () => {
    await builtApp();
    plane = await startControlPlane();
    token = plane.adminToken;
    browser = await chromium.launch({ executablePath: CHROMIUM ?? '', args: ['--no-sandbox'] });
  });
  afterEach(async () => {
    await context.close();
    expect(complaints.splice(0)).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    await plane?.stop();
    removeTemporaryFolders();
  });

  const open = async (url: string): Promise<Page> => {
    context = await browser.newContext({ locale: 'en-US' });
    const page = await context.newPage();
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (message) => {
      // A 401 is what a signed-out console is told; the browser writes each into its log.
      if (message.type() === 'error' && !message.text().includes('401')) complaints.push(message.text());
    });
    await page.goto(url);
    return page;
  };
  const live = (page: Page) => page.locator('.chip.ok', { hasText: 'Live' }).waitFor();
  const signInPage = (page: Page) => page.getByRole('heading', { name: 'Sign in' }).waitFor();
  const radio = (page: Page, name: string) =>
    page.locator('[data-role=reranker]').getByRole('radio', { name, exact: true });
  const policyInCore = async () => {
    const { roles } = await admin(plane, token).get<{ roles: { id: string; policy: string }[] }>('roles');
    return roles.find(({ id }) => id === 'reranker')?.policy;
  };
  /** Everything that the tab keeps or shows. */
  const kept = (page: Page) =>
    page.evaluate(() =>
      JSON.stringify([
        { ...localStorage },
        { ...sessionStorage },
        document.cookie,
        location.href,
        document.body.outerHTML,
      ]),
    );
  const freshUrl = async () => {
    // A console's address is printed at a start; this is a start of the same control plane.
    await plane.stop();
    plane = await startControlPlane({ dataDir: plane.dataDir });
    return plane.consoleUrl;
  };

  it('the printed address opens it; topics arrive over one socket; operations change the core and the page', async () => {
    const sockets: string[] = [];
    context = await browser.newContext({ locale: 'en-US' });
    const page = await context.newPage();
    page.on('websocket', (socket) => sockets.push(socket.url()));
    await page.goto(plane.consoleUrl);
    await live(page);
    expect(page.url()).not.toContain('ticket');
    // Nothing is set up yet, so it begins with the first run.
    await page.getByRole('heading', { name: 'Welcome' }).waitFor();
    await page.goto(`${plane.endpoint}/console/#/roles`);
    await radio(page, 'Local').click({ force: true });
    await expect.poll(policyInCore).toBe('local');
    // The other way: what a script does, the page hears and shows. Back at once, so that the page may not even have heard of the
    // first change when the second undoes it.
    await admin(plane, token).patch('roles/reranker', { policy: 'backup' });
    await expect.poll(() => radio(page, 'Backup').isChecked()).toBe(true);
    expect(sockets.every((url) => /^ws:\/\/127\.0\.0\.1:\d+\/console\/socket$/.test(url))).toBe(true);
    // A reload keeps the session of the tab, and nothing but it.
    await page.reload();
    await live(page);
    expect(await radio(page, 'Backup').isChecked()).toBe(true);
    expect(Object.keys(JSON.parse(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))))).toEqual([
      'switchyard.session',
    ]);
    expect(await page.evaluate(() => [document.cookie, localStorage.length])).toEqual(['', 0]);
  });

  it('what needs a person is one list: Overview, the bar above it and /healthz', async () => {
    const page = await open(await freshUrl());
    await live(page);
    await page.goto(`${plane.endpoint}/console/#/overview`);
    const section = (name: string) =>
      page.locator('section', { has: page.getByRole('heading', { name, exact: true }) });
    const healthz = async () =>
      (await (await fetch(`${plane.endpoint}/healthz`)).json()) as {
        status: string;
        items: { code: string; needsPerson: boolean }[];
      };
    // This data folder is kept without a keyring, which is told and can wait.
    await section('Needs you').getByText('Nothing needs you.').waitFor();
    await section('Can wait, or heals by itself').getByText('SWITCHYARD_KEYRING').waitFor();
    expect(await healthz()).toMatchObject({ status: 'ok', items: [{ code: 'store_problem', needsPerson: false }] });
    // A role in the cloud alone, and the one agent has no key.
    const agent = await startAgent({ engines: ['http://127.0.0.1:9'] });
    const { listen: address, joinCode } = agent;
    const { id } = await admin(plane, token).post<{ id: string }>('nodes', { address, joinCode });
    await admin(plane, token).patch('roles/rlm', { policy: 'cloud' });
    await section('Needs you').getByText('A role works in the cloud alone').waitFor();
    await page.locator('.top .chip.warn', { hasText: '1' }).waitFor();
    const { status, items } = await healthz();
    expect([status, items.filter(({ needsPerson }) => needsPerson).map(({ code }) => code)]).toEqual([
      'attention',
      ['cloud_no_key'],
    ]);
    await admin(plane, token).patch('roles/rlm', { policy: 'local' });
    await section('Needs you').getByText('Nothing needs you.').waitFor();
    expect((await healthz()).status).toBe('ok');
    await admin(plane, token).delete(`nodes/${id}`);
    await agent.stop();
  });

  it('events from before a restart are read back with Load older', async () => {
    const page = await open(await freshUrl());
    await live(page);
    await page.goto(`${plane.endpoint}/console/#/events`);
    const started = page.locator('.event', { hasText: 'Serving at' });
    await started.first().waitFor();
    // This process knows of its own start alone; the two or more before it are in the database.
    expect(await started.count()).toBe(1);
    await page.getByRole('button', { name: 'Load older' }).click();
    await expect.poll(() => started.count()).toBeGreaterThan(1);
    await page.getByRole('button', { name: 'Load older' }).waitFor({ state: 'detached' });
  });

  it('a used ticket meets one calm page; the admin token signs in, and stays nowhere', async () => {
    const page = await open(plane.consoleUrl);
    await signInPage(page);
    expect(await page.getByRole('alert').count()).toBe(0);
    expect(await page.getByRole('navigation').count()).toBe(0);
    expect(await seriousOn(page)).toEqual([]);
    const field = page.getByLabel('Admin token');
    await field.fill(`${token}x`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    const told = page.getByRole('alert');
    await told.getByText('This is not the admin token of this Switchyard.').waitFor();
    await told.getByText('start it with --new-admin-token').waitFor();
    expect(await told.locator('small').textContent()).toBe('invalid_admin_token');
    expect(await told.textContent()).not.toContain('Authorization');
    expect(await seriousOn(page)).toEqual([]);
    expect(await field.inputValue()).toBe('');
    await field.fill(token);
    await page.keyboard.press('Enter');
    await live(page);
    await page.getByRole('navigation').waitFor();
    expect(await kept(page)).not.toContain(token.slice(4, 24));
    await page.reload();
    await live(page);
  });

  it('in French a wrong token is told in French', async () => {
    context = await browser.newContext({ locale: 'fr-FR' });
    const page = await context.newPage();
    await page.goto(`${plane.endpoint}/console/`);
    await page.getByLabel('Jeton d’administration').fill('sy-old');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('Ce n’est pas le jeton d’administration de ce Switchyard.').waitFor();
    await page.getByRole('alert').getByText('arrêtez Switchyard').waitFor();
  });

  it('without a ticket it asks as well; a new address pasted into the same tab opens it', async () => {
    const page = await open(`${plane.endpoint}/`);
    await signInPage(page);
    const url = await freshUrl();
    const [, fragment = ''] = url.split('#');
    // The port is another after a restart on port 0; the same tab goes to the new address.
    await page.goto(`${plane.endpoint}/console/`);
    await signInPage(page);
    await page.evaluate((hash) => {
      location.hash = hash;
    }, fragment);
    await live(page);
  });

  it('a session that the core forgot leads to the same page by itself, without an error per panel', async () => {
    const page = await open(await freshUrl());
    await live(page);
    // Sessions live in memory only: what is left of this one is a token that nobody knows.
    await page.evaluate(() => sessionStorage.setItem('switchyard.session', 'forgotten'));
    await page.reload();
    await signInPage(page);
    expect(await page.getByRole('alert').count()).toBe(0);
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
  });
});
