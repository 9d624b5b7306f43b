import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { _electron } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { builtApp } from '../support/built.ts';
import { call } from './driver.ts';

const root = path.resolve(import.meta.dirname, '../..');
const noRuntime = !existsSync(path.join(root, 'node_modules/electron/path.txt'));
const noDisplay = process.platform === 'linux' && !process.env.DISPLAY && !process.env.WAYLAND_DISPLAY;
const missing = noRuntime ? 'no Electron runtime' : noDisplay ? 'no display' : null;

// The one suite that may be skipped everywhere: its runtime is a download that not every machine is allowed.
describe.skipIf(missing !== null)(`the app on real Electron${missing ? ` (skipped: ${missing})` : ''}`, () => {
  it('opens its walled window and serves behind it', async () => {
    await builtApp();
    const folder = mkdtempSync(path.join(tmpdir(), 'switchyard-electron-'));
    const { ELECTRON_OVERRIDE_DIST_PATH: _, ...env } = process.env as Record<string, string>;
    const app = await _electron.launch({
      cwd: root,
      args: [root, `--user-data-dir=${folder}/electron`, `--data-dir=${folder}/data`, '--port=0', '--no-discovery'],
      env: { ...env, XDG_CONFIG_HOME: path.join(folder, 'config') },
    });
    try {
      const page = await app.firstWindow();
      await page.getByRole('navigation').waitFor();
      expect(await call(page, 'app.info')).toMatchObject({ ok: true, value: { shell: 'desktop', store: 'ready' } });
      expect(await page.evaluate(() => typeof (globalThis as { require?: unknown }).require)).toBe('undefined');
      expect(await page.evaluate(() => location.origin)).toBe('app://bundle');
    } finally {
      await app.close();
    }
  });
});
