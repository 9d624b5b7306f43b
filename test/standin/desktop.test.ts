import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { ElectronApplication, Page } from 'playwright-core';
import { afterEach, beforeAll, expect, it } from 'vitest';
import type { Answer, RoleView } from '../../preload/contract.ts';
import { builtApp } from '../support/built.ts';
import { describeWithRuntime } from '../support/runtime.ts';
import { bridgeKeys, call, controls } from './driver.ts';
import { launch, NO_DESKTOP, REAL } from './launch.ts';

const policyOf = async (page: Page, id: string): Promise<string | undefined> => {
  const answer = await call(page, 'roles.list');
  const { roles } = (answer.ok ? answer.value : { roles: [] }) as { roles: RoleView[] };
  return roles.find((role) => role.id === id)?.policy;
};

describeWithRuntime(NO_DESKTOP, 'the desktop', () => {
  beforeAll(builtApp);
  let app: ElectronApplication | null = null;
  let folder = '';
  afterEach(async () => {
    await app?.close().catch(() => undefined);
    app = null;
  });
  const open = async (options: Parameters<typeof launch>[0] = {}): Promise<Page> => {
    const launched = await launch(options);
    app = launched.app;
    folder = launched.folder;
    const page = await app.firstWindow();
    await page.getByRole('navigation').waitFor();
    return page;
  };
  const running = (): ElectronApplication => {
    if (!app) throw new Error('no app runs');
    return app;
  };

  it('opens its window, serves behind it, and runs the agent of this machine as a process of its own', async () => {
    const page = await open();
    await page.getByRole('heading', { name: 'Welcome' }).waitFor();
    const info = await call(page, 'app.info');
    expect(info).toMatchObject({ ok: true, value: { shell: 'desktop', store: 'ready' } });
    await expect.poll(() => page.locator('.holders').first().textContent(), { timeout: 20_000 }).toContain('ready');
    if (REAL) return;
    const [agent] = await controls(running(), (standin) => standin.utilities);
    const main = await running().evaluate(() => process.pid);
    expect(agent?.pid).toBeGreaterThan(0);
    expect(agent?.pid).not.toBe(main);
  });

  it('shows nothing but its own files: no request, navigation, window or permission gets out', async () => {
    const page = await open();
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    const outcome = await page.evaluate(async () => {
      const fetched = await fetch('https://example.com/').then(
        () => 'reached',
        () => 'refused',
      );
      const opened = window.open('https://example.com/');
      location.href = 'https://example.com/';
      return { fetched, opened: opened === null, node: typeof (globalThis as { require?: unknown }).require };
    });
    expect(outcome).toEqual({ fetched: 'refused', opened: true, node: 'undefined' });
    await page.getByRole('navigation').waitFor();
    expect(await running().evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows().length)).toBe(1);
    expect(
      await running().evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.webContents.getURL()),
    ).toMatch(/^app:\/\/bundle\/index\.html/);
    if (REAL) return;
    expect(await controls(running(), (standin) => standin.opened)).toEqual([]);
    await page.evaluate(() => window.open('https://openrouter.ai/settings/keys'));
    await expect
      .poll(() => controls(running(), (standin) => standin.opened))
      .toEqual(['https://openrouter.ai/settings/keys']);
  });

  it('has no inline code and no violation of its policy on any page', async () => {
    const page = await open();
    const violations: string[] = [];
    page.on('console', (message) => {
      if (/Content Security Policy|Refused to/.test(message.text())) violations.push(message.text());
    });
    for (const name of ['Overview', 'Fleet', 'Roles', 'Gate', 'Budget', 'Requests', 'Keys', 'Events', 'Settings']) {
      await page
        .getByRole('link', { name: new RegExp(name) })
        .first()
        .click();
      await page.getByRole('heading', { name, level: 2 }).waitFor();
    }
    expect(violations).toEqual([]);
  });

  it('answers codes, never foreign words, and refuses what the contract does not know', async () => {
    const page = await open();
    expect(await call(page, 'no.such.operation')).toMatchObject({ ok: false, code: 'not_found' });
    const refused = await call(page, 'budget.set', { override: 9999 });
    expect(refused).toMatchObject({ ok: false, code: 'invalid_request' });
    expect(JSON.stringify(refused)).not.toContain('9999');
    expect(await bridgeKeys(page)).toEqual(['call', 'onShow', 'onUpdate', 'pushCloudKey', 'want']);
  });

  it.skipIf(REAL)(
    'a policy changed in the tray shows on the page and after a restart; one changed on the page shows in the tray',
    async () => {
      const page = await open();
      await page.getByRole('link', { name: /Roles/ }).click();
      await expect.poll(() => controls(running(), (standin) => standin.readTray().length)).toBeGreaterThan(20);
      await controls(running(), (standin) => standin.clickTray('code-assistant', 'Local'));
      const role = page.locator('[data-role=code-assistant]');
      await expect.poll(() => role.getByRole('radio', { name: 'Local', exact: true }).isChecked()).toBe(true);
      expect(await policyOf(page, 'code-assistant')).toBe('local');
      await role.getByRole('radio', { name: 'Backup', exact: true }).click({ force: true });
      await page.getByRole('dialog').getByRole('button', { name: 'Let them leave' }).click();
      await expect
        .poll(() =>
          controls(running(), (standin) =>
            standin
              .readTray()
              .filter((item) => item.checked)
              .map((item) => item.path),
          ),
        )
        .toContain('code-assistant > Backup');
      await running().close();
      const again = await open({ folder });
      expect(await policyOf(again, 'code-assistant')).toBe('backup');
    },
  );

  it.skipIf(REAL)('a killed renderer comes back by itself, and the control plane has not noticed', async () => {
    const page = await open();
    const before = await call(page, 'app.info');
    await running().evaluate(({ BrowserWindow }) =>
      BrowserWindow.getAllWindows()[0]?.webContents.forcefullyCrashRenderer(),
    );
    const started = (answer: Answer) => (answer.ok ? (answer.value as { startedAtMs: number }).startedAtMs : null);
    const read = () =>
      running().evaluate(async ({ BrowserWindow }) =>
        BrowserWindow.getAllWindows()[0]?.webContents.executeJavaScript(
          `document.querySelector('nav') ? switchyard.call('app.info', {}).then((a) => a.value.startedAtMs) : null`,
        ),
      );
    await expect.poll(read, { timeout: 15_000 }).toBe(started(before));
  });

  it.skipIf(REAL)('closing the window keeps serving where there is a tray, and says so once', async () => {
    const page = await open();
    await expect.poll(() => controls(running(), (standin) => standin.trays.length)).toBe(1);
    expect(await call(page, 'settings.get')).toMatchObject({ ok: true });
    const close = () => running().evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.close());
    const visible = () => running().evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.isVisible());
    await close();
    expect(await visible()).toBe(false);
    await controls(running(), (standin) => standin.clickTray('Open Switchyard'));
    expect(await visible()).toBe(true);
    await close();
    expect(await controls(running(), (standin) => standin.notifications.map((one) => one.title))).toEqual([
      'Switchyard keeps serving',
    ]);
    expect(await controls(running(), (standin) => standin.dialogs.asked.length)).toBe(0);
  });

  it.skipIf(REAL)('closing the window asks where no tray can be seen', async () => {
    await open({ env: { XDG_CURRENT_DESKTOP: 'ubuntu:GNOME' } });
    const visible = () => running().evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.isVisible());
    await expect.poll(visible).toBe(true);
    await running().evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.close());
    await expect.poll(() => controls(running(), (standin) => standin.dialogs.asked.length)).toBe(1);
    expect(await visible()).toBe(true);
  });

  it.skipIf(REAL)('start at login is a file on Linux, written and removed by the setting', async () => {
    const page = await open();
    const entry = () => path.join(folder, 'config/autostart/switchyard.desktop');
    await call(page, 'settings.set', { desktop: { startAtLogin: true } });
    await expect.poll(() => existsSync(entry())).toBe(true);
    expect(readFileSync(entry(), 'utf8')).toMatch(/^Exec=".+" --hidden$/m);
    await call(page, 'settings.set', { desktop: { startAtLogin: false } });
    await expect.poll(() => existsSync(entry())).toBe(false);
  });

  it.skipIf(REAL)('a second start shows the window of the first and ends', async () => {
    await open();
    await running().evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.hide());
    await launch({ folder }).catch(() => undefined);
    await expect
      .poll(() => running().evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.isVisible()))
      .toBe(true);
  });

  it.skipIf(REAL)('a key typed in the page reaches no file', async () => {
    const page = await open();
    await page.getByRole('link', { name: /Keys/ }).click();
    const canary = `sk-or-v1-${'c4n4ry'.repeat(6)}`;
    await page.locator('input[type=password]').fill(canary);
    await page.getByRole('button', { name: 'Send' }).click();
    expect(await page.locator('input[type=password]').inputValue()).toBe('');
    await running().close();
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    expect(files.length).toBeGreaterThan(0);
    const holding = files
      .map((entry) => path.join(entry.parentPath, entry.name))
      .filter((file) => readFileSync(file).includes(canary.slice(0, 20)));
    expect(holding).toEqual([]);
  });
});
