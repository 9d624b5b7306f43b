import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { builtApp } from '../support/built.ts';
import { removeTemporaryFolders, temporaryFolder } from '../support/processes.ts';
import { CHROMIUM, describeWithRuntime } from '../support/runtime.ts';

const root = path.resolve(import.meta.dirname, '../..');
const NO_SCREEN = { DISPLAY: undefined, WAYLAND_DISPLAY: undefined };

let child: ChildProcess;
let said = '';

/** `npm start`, as npm runs it, on a folder of its own and a free port. */
function start(env: Record<string, string | undefined>, ...args: string[]): void {
  const folder = temporaryFolder('start');
  said = '';
  child = spawn(
    process.execPath,
    [path.join(root, 'scripts/start.mjs'), '--port=0', `--data-dir=${path.join(folder, 'data')}`, ...args],
    {
      cwd: root,
      env: { ...process.env, XDG_CONFIG_HOME: path.join(folder, 'config'), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // a group of its own, as a terminal gives it
    },
  );
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
  }
}
const ended = () => new Promise<number | null>((resolve) => child.once('exit', resolve));
const LEAN = ['--no-embedded-agent', '--no-discovery'];

beforeAll(builtApp);
afterEach(() => {
  if (child.exitCode === null && child.pid) process.kill(-child.pid, 'SIGKILL');
});
afterAll(removeTemporaryFolders);

describe('a start without the desktop', () => {
  it.each([
    [['--headless'], {}, 'headless was asked for'],
    [[], NO_SCREEN, 'there is no display'],
    [[], { DISPLAY: ':99', ELECTRON_OVERRIDE_DIST_PATH: '/nowhere' }, 'the Electron runtime is not installed'],
  ] as const)('%j %j says why, and prints the address of the console, which opens', async (args, env, why) => {
    start(env, ...LEAN, ...args);
    await expect.poll(() => said, { timeout: 30_000 }).toMatch(/^Console .*: http:\S+$/m);
    expect(said).toContain(`Switchyard starts headless: ${why}`);
    expect(said).toMatch(/^Admin token, shown this once: sya-/m);
    const url = /^Console .*: (http:\S+)$/m.exec(said)?.[1] ?? '';
    expect(url).toMatch(/\/console\/#ticket=[\w-]{43}$/);
    const page = await fetch(url);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('<div id="root">')]);
    const end = ended();
    child.kill('SIGTERM');
    expect(await end).toBe(0);
  });
});

describeWithRuntime(
  CHROMIUM === null ? 'no Chromium on this machine' : null,
  'a start with a display and a runtime',
  () => {
    const withRuntime = {
      DISPLAY: process.env.DISPLAY ?? ':99',
      ELECTRON_OVERRIDE_DIST_PATH: path.join(root, 'test/standin/bin'),
      STANDIN_NODE: process.execPath,
    };

    it('opens the app, and one Ctrl-C in the terminal ends it in order', async () => {
      const folder = temporaryFolder('start-electron');
      start(withRuntime, ...LEAN, '--new-admin-token', `--user-data-dir=${folder}`);
      await expect.poll(() => said, { timeout: 60_000 }).toMatch(/^Admin token, shown this once: sya-\S+$/m);
      expect(said).not.toContain('starts headless');
      const end = ended();
      // The terminal signals the app and the launcher, which passes on what it hears: the app is told twice.
      child.kill('SIGINT');
      child.kill('SIGTERM');
      expect(await end).toBe(0);
    });
  },
);
