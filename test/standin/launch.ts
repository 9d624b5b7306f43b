import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { _electron, type ElectronApplication } from 'playwright-core';
import { CHROMIUM } from '../support/runtime.ts';

const root = path.resolve(import.meta.dirname, '../..');
const installed = existsSync(path.join(root, 'node_modules/electron/path.txt'));
/** Real Electron where its binary is installed, unless a test run asks for the stand-in. */
export const REAL = installed && process.env.SWITCHYARD_STANDIN !== '1';
/** Why no desktop can be started here; null when one can. */
export const NO_DESKTOP = REAL || CHROMIUM ? null : 'neither Electron nor Chromium is installed';

export interface Launched {
  readonly app: ElectronApplication;
  /** Everything of this desktop lies below it; start again on the same folder to see what survives. */
  readonly folder: string;
}

/** Starts the built app with data of its own, on any free port, away from the network. */
export async function launch(
  options: { readonly folder?: string; readonly args?: readonly string[]; readonly env?: Record<string, string> } = {},
): Promise<Launched> {
  const folder = options.folder ?? mkdtempSync(path.join(tmpdir(), 'switchyard-desktop-'));
  if (!REAL) process.env.ELECTRON_OVERRIDE_DIST_PATH = path.join(root, 'test/standin/bin');
  const app = await _electron.launch({
    cwd: root,
    args: [
      root,
      `--user-data-dir=${path.join(folder, 'electron')}`,
      `--data-dir=${path.join(folder, 'data')}`,
      '--port=0',
      '--no-discovery',
      ...(options.args ?? []),
    ],
    env: { ...(process.env as Record<string, string>), XDG_CONFIG_HOME: path.join(folder, 'config'), ...options.env },
  });
  return { app, folder };
}
