import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { CLOUD, KEYS, NOW, ROLES, SETTINGS } from '../support/console-data.ts';
import { type ConsolePage, type ConsoleRig, openConsole, Refusal, startConsoleRig } from '../support/console-page.ts';
import { fullScript, fullTopics } from '../support/console-script.ts';
import { describeWithChromium } from '../support/runtime.ts';

describeWithChromium('keys and the palette', () => {
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
  const show = async (place: string, options: Partial<Parameters<typeof openConsole>[1]> = {}) => {
    shown = await openConsole(rig, {
      script: fullScript(),
      topics: fullTopics(),
      nowMs: NOW,
      hash: `#/${place}`,
      context: { reducedMotion: 'reduce' },
      ...options,
    });
    await shown.page.getByRole('navigation').waitFor();
    return shown.page;
  };
  const called = (name: string) => shown.calls.filter((call) => call.name === name).map((call) => call.input);
  const focused = () =>
    shown.page.evaluate(() => document.activeElement?.getAttribute('name') ?? document.activeElement?.tagName);
  const pick = async (typed: string) => {
    await shown.page.keyboard.press('Control+k');
    await shown.page.locator('.palette input').fill(typed);
    await shown.page.keyboard.press('Enter');
    await shown.page.locator('.palette input').waitFor({ state: 'detached' });
  };

  it('a refused join code leaves the keyboard at the field that it speaks of', async () => {
    let code = 'join_refused';
    const page = await show('fleet', {
      script: fullScript({
        'nodes.add': () => {
          throw new Refusal(code);
        },
      }),
    });
    await page.getByRole('button', { name: 'Add machine' }).click();
    await page.getByText('By address').click();
    await page.locator('input[name=address]').fill('192.168.1.9:7412');
    await page.locator('input[name=code]').fill('7K3M-7K3M-7K3M-7K3M');
    await page.getByRole('button', { name: 'Pair', exact: true }).click();
    await page.getByText('join_refused').waitFor();
    await expect.poll(focused).toBe('code');
    code = 'node_unreachable';
    await page.getByRole('button', { name: 'Pair', exact: true }).click();
    await page.getByText('node_unreachable').waitFor();
    await expect.poll(focused).toBe('address');
  });

  it.each(['j', 'k', 'ArrowDown', 'ArrowUp'])('%s takes the first row when nothing has the keyboard', async (key) => {
    const page = await show('overview');
    await page.keyboard.press('g');
    await page.keyboard.press('f');
    const first = page.locator('tbody tr').first();
    await first.waitFor();
    await page.keyboard.press(key);
    expect(await page.evaluate(() => document.activeElement?.getAttribute('data-row'))).toBe(
      await first.getAttribute('data-row'),
    );
  });

  it('a key that is shown this once stays until its button is pressed', async () => {
    const page = await show('keys', {
      script: fullScript({ 'keys.create': () => ({ key: KEYS[0] as (typeof KEYS)[number], secret: 'sy_seen-once' }) }),
    });
    await page.getByRole('button', { name: 'New key' }).click();
    await page.locator('input[name=name]').fill('laptop');
    await page.keyboard.press('Enter');
    await page.getByText('sy_seen-once', { exact: true }).waitFor();
    for (let presses = 0; presses < 3; presses += 1) await page.keyboard.press('Escape');
    await page.getByText('this key is gone for good').waitFor();
    await page.getByText('sy_seen-once', { exact: true }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByText('sy_seen-once', { exact: true }).waitFor({ state: 'detached' });
  });

  it('the palette changes theme and language, in words of either language', async () => {
    const page = await show('fleet', {
      script: fullScript({ 'settings.set': () => ({ settings: SETTINGS, restartNeeded: false }) }),
    });
    await pick('theme dark');
    await pick('thème clair');
    await pick('language fran');
    await pick('langue english');
    await expect
      .poll(() => called('settings.set'))
      .toEqual([
        { console: { theme: 'dark' } },
        { console: { theme: 'light' } },
        { console: { language: 'fr' } },
        { console: { language: 'en' } },
      ]);
    expect(await page.getByRole('navigation').count()).toBe(1);
  });

  it('the palette asks before the cloud is paused, as its chip does', async () => {
    const page = await show('fleet', { script: fullScript({ 'cloud.pause': () => ({ ...CLOUD, paused: true }) }) });
    await pick('suspendre');
    expect(called('cloud.pause')).toEqual([]);
    await page.getByRole('dialog').getByRole('button', { name: 'Pause cloud' }).click();
    await expect.poll(() => called('cloud.pause')).toEqual([{}]);
  });

  it('the palette opens the forms of a machine and of a key, verifies, copies, and opens a role', async () => {
    const page = await show('overview');
    await pick('add machine');
    await page.getByRole('dialog', { name: 'Add a machine' }).waitFor();
    expect(new URL(page.url()).hash).toBe('#/fleet');
    await page.keyboard.press('Escape');
    await pick('nouvelle clé');
    await page.locator('dialog input[name=name]').waitFor();
    expect(new URL(page.url()).hash).toBe('#/keys');
    await page.keyboard.press('Escape');
    await pick('verify all');
    await expect.poll(() => called('gate.verify')).toEqual([{}]);
    expect(new URL(page.url()).hash).toBe('#/gate');
    await pick('copy address');
    await page.getByRole('status').getByText('Copied').waitFor({ state: 'attached' });
    await pick('rôle reranker');
    expect(new URL(page.url()).hash).toBe('#/roles/reranker');
  });

  it('the palette founds a space where the gate could, and tells what was refused', async () => {
    const topics = fullTopics();
    const roles = ROLES.map((role) => (role.id === 'code-embedding' ? { ...role, space: null } : role));
    const page = await show('overview', {
      topics: { ...topics, roles: { topic: 'roles', type: 'snapshot', rows: roles } },
      script: fullScript({
        'spaces.candidates': () => ({ founders: [] }),
        'gate.verify': () => {
          throw new Refusal('store_unavailable');
        },
      }),
    });
    await pick('fonder code-embedding');
    await expect.poll(() => called('spaces.candidates')).toEqual([{ role: 'code-embedding' }]);
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await pick('verify all');
    await page.getByRole('dialog', { name: 'It was not done' }).getByText('store_unavailable').waitFor();
  });
});
