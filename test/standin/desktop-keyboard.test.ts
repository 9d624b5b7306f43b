import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { ElectronApplication, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Output } from '../../preload/contract.ts';
import { TeiStandIn } from '../engines/stand-ins/tei.ts';
import { HashVectors } from '../engines/stand-ins/vectors.ts';
import { builtApp } from '../support/built.ts';
import { until } from '../support/cloud.ts';
import { type Agent, admin, removeTemporaryFolders, startAgent } from '../support/processes.ts';
import { describeWithRuntime } from '../support/runtime.ts';
import { call, stored } from './driver.ts';
import { launch, NO_DESKTOP } from './launch.ts';

/** Without the pointer: the tests are one story, in this order, and press keys alone. */
describeWithRuntime(NO_DESKTOP, 'the desktop by keyboard', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'switchyard-desktop-keyboard-'));
  const encoder = new TeiStandIn({ model: 'org/encoder', vectors: new HashVectors(64) });
  let agent: Agent;
  let app: ElectronApplication;
  let page: Page;
  let operator: ReturnType<typeof admin>;

  beforeAll(async () => {
    await builtApp();
    await encoder.start();
    agent = await startAgent({ name: 'alpha', engines: [encoder.url] });
    ({ app } = await launch({ folder, args: ['--no-embedded-agent', '--new-admin-token'] }));
    let said = '';
    for (const stream of [app.process().stdout, app.process().stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        said += chunk.toString();
      });
    }
    page = await app.firstWindow();
    await page.getByRole('heading', { name: 'Welcome' }).waitFor();
    await until(() => /shown this once: \S+/.test(said));
    const token = /shown this once: (\S+)/.exec(said)?.[1] ?? '';
    const info = await call(page, 'app.info');
    const endpoint = info.ok ? ((info.value as Output<'app.info'>).endpoint ?? '') : '';
    operator = admin({ endpoint }, token);
  });
  afterAll(async () => {
    await app?.close().catch(() => undefined);
    await agent?.stop();
    await encoder.stop();
    removeTemporaryFolders();
    rmSync(folder, { recursive: true, force: true });
  });

  /** What has the focus, as a screen reader would name it: its label, the label around it, or its words. */
  const focused = () =>
    page.evaluate(() => {
      const one = document.activeElement;
      return (one?.getAttribute('aria-label') ?? one?.closest('label')?.textContent ?? one?.textContent ?? '').trim();
    });
  const tabTo = async (name: string, inside?: string) => {
    for (let presses = 0; presses < 100; presses += 1) {
      await page.keyboard.press('Tab');
      const within = await page.evaluate(
        (selector) => !selector || document.activeElement?.closest(selector) !== null,
        inside ?? null,
      );
      if (within && (await focused()) === name) return;
    }
    throw new Error(`Tab never reached "${name}"`);
  };

  it('finishes the first run: a machine, a test, and on to the overview', async () => {
    await tabTo('Add one by its address');
    await page.keyboard.press('Enter');
    await expect.poll(focused).toBe('Address');
    await page.keyboard.type(agent.listen);
    await tabTo('Join code');
    await page.keyboard.type(agent.joinCode);
    await page.keyboard.press('Enter');
    await page.locator('.holders li', { hasText: 'alpha' }).locator('.status.ok').waitFor();
    const { nodes } = await operator.get<Output<'nodes.list'>>('nodes');
    expect(nodes.map(({ name }) => name)).toEqual(['alpha']);
    // The first encoder founds the space by itself.
    await until(async () => {
      const { roles } = await operator.get<Output<'roles.list'>>('roles');
      return roles.some(({ id, localReady }) => id === 'embedding' && localReady > 0);
    });
    await tabTo('Send a test request');
    await page.keyboard.press('Enter');
    await page.getByText(/org\/encoder on alpha answered in/).waitFor();
    await page.getByText('64 wide').waitFor();
    expect(encoder.requests.length).toBeGreaterThan(0);
    await tabTo('Go to the overview');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview', level: 2 }).waitFor();
    await expect
      .poll(async () => (await operator.get<Output<'settings.get'>>('settings')).console.firstRunDone)
      .toBe(true);
  });

  it('changes a policy: shown, in /admin and in SQLite', async () => {
    const policy = async () =>
      (await operator.get<Output<'roles.list'>>('roles')).roles.find(({ id }) => id === 'reranker')?.policy;
    expect(await policy()).toBe('aggregate');
    await page.keyboard.press('g');
    await page.keyboard.press('r');
    await page.getByRole('heading', { name: 'Roles', level: 2 }).waitFor();
    // A group of radio buttons is one stop, at the one that is chosen; arrows move, Space chooses.
    await tabTo('Aggregate', '[data-role=reranker]');
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Space');
    const backup = page.locator('[data-role=reranker]').getByRole('radio', { name: 'Backup', exact: true });
    await expect.poll(() => backup.isChecked()).toBe(true);
    await expect.poll(policy).toBe('backup');
    expect(stored(folder, "SELECT json_extract(body, '$.policy') FROM documents WHERE name LIKE '%reranker'")).toBe(
      'backup',
    );
  });
});
