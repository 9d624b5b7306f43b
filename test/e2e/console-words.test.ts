import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { NOW, ROLES } from '../support/console-data.ts';
import { type ConsolePage, type ConsoleRig, openConsole, startConsoleRig } from '../support/console-page.ts';
import { emptyTopics, fullScript, fullTopics } from '../support/console-script.ts';
import { describeWithChromium } from '../support/runtime.ts';

describeWithChromium('words that were wrong where nothing was', () => {
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
  const show = async (hash: string, options: Partial<Parameters<typeof openConsole>[1]> = {}) => {
    const topics = fullTopics();
    shown = await openConsole(rig, { script: fullScript(), topics, nowMs: NOW, hash, ...options });
    return shown.page;
  };

  it.each([
    ['without a key', emptyTopics().cloud, 'The models of OpenRouter are listed here once a machine holds a key.'],
    ['with a key', fullTopics().cloud, 'The catalogue of OpenRouter could not be read.'],
  ])('no catalogue of OpenRouter, %s', async (_, cloud, words) => {
    const page = await show('#/roles/code-assistant', {
      topics: { ...fullTopics(), ...(cloud ? { cloud } : {}) },
      script: fullScript({ 'roles.models': () => ({ local: [], cloud: null }) }),
    });
    await page.locator('aside.side').getByText(words).waitFor();
  });

  it.each([true, false])(
    'a founder was never compared only where there is a space to compare with: %s',
    async (has) => {
      const founder = {
        providerId: 'p1',
        title: 'qwen3-embedding on attic',
        kind: 'local' as const,
        model: 'qwen3-embedding',
        upstream: null,
        width: 1024,
        minCosine: null,
        ready: true,
        reason: null,
      };
      const roles = ROLES.map((role) => (role.id === 'code-embedding' && !has ? { ...role, space: null } : role));
      const page = await show('#/roles', {
        topics: { ...fullTopics(), roles: { topic: 'roles', type: 'snapshot', rows: roles } },
        script: fullScript({
          'roles.preview': () => ({ effect: 'new-space', reasons: [], notes: [], founders: [founder], leaves: null }),
        }),
      });
      await page
        .locator('[data-role=code-embedding]')
        .getByRole('radio', { name: 'Cloud', exact: true })
        .click({ force: true });
      const sheet = page.getByRole('dialog');
      await sheet.getByText('1,024 wide').waitFor();
      expect(await sheet.getByText('never compared').count()).toBe(has ? 1 : 0);
    },
  );

  it('Settings, Data has the backup that the documents promise, and says where it is', async () => {
    const file = 'switchyard-20261130T100000Z-v3.db';
    const page = await show('#/settings', { script: fullScript({ 'store.backup': () => ({ file }) }) });
    await page.getByRole('button', { name: 'Back up now' }).click();
    await page.getByText(`backups/${file}`).waitFor();
  });
});
