import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import {
  BUDGET,
  CLOUD,
  EVENTS,
  KEYS,
  LEAVING,
  NODE_DETAIL,
  NODES,
  NOW,
  OVERVIEW,
  REQUESTS,
  ROLES,
  SETTINGS,
  TRACE,
  VERDICTS,
} from '../support/console-data.ts';
import { type ConsolePage, type ConsoleRig, openConsole, Refusal, startConsoleRig } from '../support/console-page.ts';
import { emptyTopics, fullScript, fullTopics } from '../support/console-script.ts';
import { describeWithChromium } from '../support/runtime.ts';

const firstNode = NODES[0];
const firstKey = KEYS[0];
const chat = ROLES[3];
const [firstRequest] = REQUESTS;
if (!firstNode || !firstKey || !chat || !firstRequest) throw new Error('the test data is incomplete');

describeWithChromium('what an operator does in the console', () => {
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
  const show = async (options: Partial<Parameters<typeof openConsole>[1]> = {}) => {
    shown = await openConsole(rig, { script: fullScript(), topics: fullTopics(), nowMs: NOW, ...options });
    return shown.page;
  };
  const called = (name: string) => shown.calls.filter((call) => call.name === name).map((call) => call.input);

  it('a plain change of policy is asked about, made, and shown when the core says so', async () => {
    const page = await show({ hash: '#/roles' });
    const role = page.locator('[data-role=code-assistant]');
    await role.getByRole('radio', { name: 'Local', exact: true }).click({ force: true });
    await expect.poll(() => called('roles.update')).toEqual([{ id: 'code-assistant', patch: { policy: 'local' } }]);
    expect(called('roles.preview')).toEqual([{ id: 'code-assistant', patch: { policy: 'local' } }]);
    await shown.push({ topic: 'roles', type: 'delta', changed: [{ ...chat, policy: 'local' }], removed: [] });
    expect(await role.getByRole('radio', { name: 'Local', exact: true }).isChecked()).toBe(true);
  });

  it('a role that never leaves the network is let out only after a question that says to whom', async () => {
    const page = await show({ hash: '#/roles', script: fullScript({ 'roles.preview': () => LEAVING }) });
    const role = page.locator('[data-role=rlm]');
    const sheet = page.getByRole('dialog', { name: 'Let texts of rlm leave the network?' });
    const choose = (name: string) => role.getByRole('radio', { name, exact: true });
    await choose('Backup').click({ force: true });
    await sheet.getByText('They go to OpenRouter (openrouter.ai) for deepseek/deepseek-v4-flash').waitFor();
    expect(await sheet.getByRole('button', { name: 'Cancel' }).evaluate((one) => one === document.activeElement)).toBe(
      true,
    );
    await page.keyboard.press('Enter');
    await sheet.waitFor({ state: 'detached' });
    expect(called('roles.update')).toEqual([]);
    await expect.poll(() => choose('Local').isChecked()).toBe(true);
    await choose('Cloud').click({ force: true });
    await sheet.getByRole('button', { name: 'Let them leave' }).click();
    await expect.poll(() => called('roles.update')).toEqual([{ id: 'rlm', patch: { policy: 'cloud' } }]);
    await sheet.waitFor({ state: 'detached' });
  });

  it('a refused change says why and changes nothing', async () => {
    const page = await show({
      hash: '#/roles',
      script: fullScript({
        'roles.preview': () => ({
          effect: 'refused',
          reasons: [{ code: 'no_cloud_model', sentence: 'This role has no cloud model.' }],
          founders: [],
          leaves: null,
        }),
      }),
    });
    const role = page.locator('[data-role=code-assistant]');
    await role.getByRole('radio', { name: 'Cloud', exact: true }).click({ force: true });
    await page.getByRole('alert').getByText('This role has no cloud model.').waitFor();
    expect(called('roles.update')).toEqual([]);
    expect(await role.getByRole('radio', { name: 'Backup', exact: true }).isChecked()).toBe(true);
  });

  it('a change that needs a new space is explained with the measured cosine, and waits for a tick and a button', async () => {
    const page = await show({
      hash: '#/roles',
      script: fullScript({
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
        'spaces.found': () => {
          throw new Refusal('founder_refused');
        },
      }),
    });
    await page
      .locator('[data-role=code-embedding]')
      .getByRole('radio', { name: 'Cloud', exact: true })
      .click({ force: true });
    const sheet = page.getByRole('dialog');
    await sheet.getByText('minimum cosine 0.9761').waitFor();
    await sheet.getByText('Every index must be rebuilt').waitFor();
    const found = sheet.getByRole('button', { name: 'Found the space' });
    expect(await found.isDisabled()).toBe(true);
    expect(called('spaces.found')).toEqual([]);
    await sheet.getByRole('checkbox').check();
    await found.click();
    await sheet.getByText('founder_refused').waitFor();
    expect(called('spaces.found')).toEqual([
      { role: 'code-embedding', founder: 'cloud~1', patch: { policy: 'cloud' }, confirm: true },
    ]);
    expect(called('roles.update')).toEqual([]);
    await page.keyboard.press('Escape');
    await sheet.waitFor({ state: 'detached' });
  });

  it('a new space that nobody could found is said with what to do, and there is no button to press', async () => {
    const page = await show({
      hash: '#/roles',
      script: fullScript({
        'roles.preview': () => ({
          effect: 'new-space',
          reasons: [{ code: 'no_cloud_passed', sentence: 'No cloud encoder has passed in the space of this role.' }],
          founders: [],
          leaves: null,
        }),
      }),
    });
    const policy = page.locator('[data-role=code-embedding]').getByRole('radio', { name: 'Cloud', exact: true });
    await policy.click({ force: true });
    const sheet = page.getByRole('dialog');
    await sheet.getByText('pin one upstream that serves it').waitFor();
    expect(await sheet.getByRole('button').allTextContents()).toEqual(['Close']);
    await sheet.getByRole('button', { name: 'Close' }).click();
    await sheet.waitFor({ state: 'detached' });
    expect([called('spaces.found'), called('roles.update')]).toEqual([[], []]);
  });

  it('a cap or a limit that is no number is said at its field, and nothing is sent', async () => {
    const page = await show({ hash: '#/roles/code-assistant' });
    const side = page.getByRole('complementary', { name: 'code-assistant' });
    const cap = side.getByLabel('Cap per day, USD');
    for (const [typed, words] of [
      ['five', 'no number that can be read'],
      ['-5', 'a number from 0 to 1,000,000'],
    ] as const) {
      await cap.fill(typed);
      await side.getByRole('button', { name: 'Save' }).click();
      await side.getByRole('alert').getByText(words).waitFor();
      expect(await cap.getAttribute('aria-invalid')).toBe('true');
      expect(await cap.evaluate((field) => field === document.activeElement)).toBe(true);
    }
    expect([called('roles.preview'), called('roles.update')]).toEqual([[], []]);
    await cap.fill('$5');
    await side.getByRole('button', { name: 'Save' }).click();
    await expect
      .poll(() => called('roles.update'))
      .toEqual([{ id: 'code-assistant', patch: { spendCaps: { dayUsd: 5 } } }]);
  });

  it('an address, a name or an origin that is none is said at its field, and a refused address too', async () => {
    const page = await show({
      hash: '#/settings',
      script: fullScript({
        'settings.set': () => {
          throw new Refusal('address_unknown');
        },
      }),
    });
    const save = page.getByRole('region', { name: 'Endpoint' }).getByRole('button', { name: 'Save' });
    for (const [label, typed, words] of [
      ['Listen on', 'http://box', 'Enter an IP address of this machine'],
      ['Port', '7411x', 'no number that can be read'],
      ['Names it answers to', 'box.lan:80', 'without a port'],
      ['Origins of pages that may call it', 'tool.example', 'is no origin'],
    ] as const) {
      const field = page.getByLabel(label);
      const before = await field.inputValue();
      await field.fill(typed);
      await save.click();
      await page.getByRole('alert').getByText(words).waitFor();
      expect(await field.getAttribute('aria-invalid')).toBe('true');
      await field.fill(before);
    }
    expect(called('settings.set')).toEqual([]);
    await page.getByLabel('Listen on').fill('banana');
    await save.click();
    await page.getByRole('alert').getByText('No address is found by that name').waitFor();
    expect(await page.getByLabel('Listen on').getAttribute('aria-invalid')).toBe('true');
  });

  it('a file that lets a role out of the network asks first, with where its texts would go', async () => {
    const to = {
      openRouter: { hosts: ['openrouter.ai'], model: 'deepseek/deepseek-v4', upstreams: [] },
      elsewhere: [],
    };
    const page = await show({
      hash: '#/settings',
      script: fullScript({
        'settings.preview': () => ({ changes: ['settings', 'rlm'], skipped: [], leaves: [{ role: 'rlm', to }] }),
        'settings.import': () => ({ changed: ['settings', 'rlm'], skipped: [] }),
      }),
    });
    const choose = async () =>
      page
        .locator('input[type=file]')
        .setInputFiles({ name: 'settings.json', mimeType: 'application/json', buffer: Buffer.from('{}') });
    await page.getByRole('button', { name: 'Import settings' }).waitFor();
    await choose();
    const sheet = page.getByRole('dialog');
    await sheet.getByText('deepseek/deepseek-v4').waitFor();
    await sheet.getByText('openrouter.ai').waitFor();
    await sheet.getByRole('button', { name: 'Cancel' }).click();
    await sheet.waitFor({ state: 'detached' });
    expect(called('settings.import')).toEqual([]);
    await choose();
    await sheet.getByRole('button', { name: 'Let them leave' }).click();
    await sheet.waitFor({ state: 'detached' });
    expect(called('settings.import')).toEqual([{ content: '{}', confirm: true }]);
  });

  it('Gate keeps spaces apart: what is kept beside is folded, and every refusal that speaks of founding offers it', async () => {
    const [row] = VERDICTS.filter(({ id }) => id === 'v1');
    if (!row) throw new Error('no verdict');
    const other = {
      ...row,
      id: 'v90',
      spaceId: 'code-embedding-11c0ffee',
      nodeName: 'lab-box',
      title: 'bge-m3 on lab-box',
      model: 'bge-m3',
    };
    const wide = {
      ...row,
      id: 'v91',
      nodeName: 'gpu-new',
      title: 'wide on gpu-new',
      founder: false,
      verdict: 'dimension-mismatch' as const,
      reason: { code: 'gate_width', sentence: 'It gives 4096 numbers.', params: { width: 4096, expected: 2560 } },
    };
    const page = await show({
      hash: '#/gate',
      topics: { ...fullTopics(), gate: { topic: 'gate', type: 'snapshot', rows: [row, other, wide] } },
      script: fullScript({ 'spaces.candidates': () => ({ founders: [] }) }),
    });
    const matrix = page.getByRole('region', { name: 'Checks of code-embedding' });
    await matrix.getByText('gpu-new').first().waitFor();
    expect(await matrix.getByText('lab-box').count()).toBe(0);
    const kept = page.locator('details.kept-space');
    expect(await kept.getByText('lab-box', { exact: true }).isVisible()).toBe(false);
    await kept.getByText('Kept beside it: space code-embedding-11c0ffee, 1,024 wide').click();
    await kept.getByText('lab-box', { exact: true }).waitFor();
    await page.locator('[data-row=v91]').click();
    await page.getByRole('button', { name: 'Found a space from it…' }).click();
    const sheet = page.getByRole('dialog');
    await sheet.getByText('This encoder cannot found a space for code-embedding').waitFor();
    expect(await sheet.getByRole('button').allTextContents()).toEqual(['Close']);
  });

  it('a model that is named and will not serve is saved with what that means', async () => {
    const page = await show({
      hash: '#/roles/code-assistant',
      script: fullScript({
        'roles.preview': () => ({
          effect: 'plain',
          reasons: [],
          notes: [{ code: 'models_absent', sentence: 'No machine serves qwen9 now.', params: { models: 'qwen9' } }],
          founders: [],
          leaves: null,
        }),
      }),
    });
    const side = page.getByRole('complementary', { name: 'code-assistant' });
    await side.getByRole('checkbox', { name: 'Choose local models by itself' }).uncheck();
    await side.locator('textarea').fill('qwen9');
    await side.getByRole('button', { name: 'Save' }).click();
    await side.getByRole('alert').getByText('No machine serves qwen9').waitFor();
    expect(called('roles.update')).toEqual([{ id: 'code-assistant', patch: { localModels: ['qwen9'] } }]);
  });

  it('nor is a key made without the limit that was meant', async () => {
    const page = await show({ hash: '#/keys' });
    await page.getByRole('button', { name: 'New key' }).first().click();
    const sheet = page.getByRole('dialog');
    await sheet.getByLabel('Name', { exact: true }).fill('tool');
    await sheet.getByLabel('Requests per minute').fill('abc');
    await sheet.getByRole('button', { name: 'Make key' }).click();
    await sheet.getByRole('alert').getByText('no number that can be read').waitFor();
    expect(called('keys.create')).toEqual([]);
  });

  it('the OpenRouter key leaves as bytes, and nothing of it stays in the page', async () => {
    const page = await show({ hash: '#/keys' });
    const field = page.locator('input[type=password]');
    await field.fill('  sk-or-v1-canary-0123456789  ');
    await page.getByRole('button', { name: 'Send' }).click();
    await expect.poll(() => shown.pushedKeys.length).toBe(1);
    expect(new TextDecoder().decode(new Uint8Array(shown.pushedKeys[0] ?? []))).toBe('sk-or-v1-canary-0123456789');
    expect(await field.inputValue()).toBe('');
    await page.getByText('Accepted by 2 agents').waitFor();
    expect(await page.content()).not.toContain('canary');
    expect(JSON.stringify(shown.calls)).not.toContain('canary');
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
    expect(stored).not.toContain('canary');
  });

  it('a house that never had a key is told so without alarm, on Keys and at the machine', async () => {
    const none = { code: 'key_none', sentence: 'No key was given yet.' };
    const [holder] = CLOUD.holders;
    const [engine] = NODE_DETAIL.engines;
    if (!holder || !engine) throw new Error('the test data is incomplete');
    const page = await show({
      hash: '#/keys',
      topics: {
        ...fullTopics(),
        cloud: {
          topic: 'cloud',
          type: 'value',
          value: {
            ...CLOUD,
            state: 'key-missing',
            reason: none,
            lastPush: null,
            holders: [{ ...holder, state: 'key-missing', reason: none, baseUrl: 'https://eu.example/api/v1' }],
          },
        },
      },
      script: fullScript({
        'nodes.detail': () => ({
          ...NODE_DETAIL,
          engines: [
            { ...engine, kind: 'openrouter', address: 'eu.example', reach: 'public', state: 'no-key', reason: none },
          ],
        }),
      }),
    });
    const row = page.locator('.holders li');
    await row.getByText('no key yet').waitFor();
    expect(await row.textContent()).toContain('eu.example');
    expect(await row.textContent()).not.toMatch(/restart|again/);
    expect(await row.locator('.status.warn, .status.bad').count()).toBe(0);
    await page.evaluate(() => {
      location.hash = '#/fleet/n1';
    });
    const side = page.getByRole('complementary', { name: 'workstation' });
    await side.getByText('no key yet').waitFor();
    await side.getByText('eu.example').waitFor();
    await side.getByText('counts as cloud').waitFor();
  });

  it('what cannot be a key is refused before it leaves, and cleared', async () => {
    const page = await show({ hash: '#/keys' });
    const field = page.locator('input[type=password]');
    await field.fill('schlüssel-0123');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('invalid_cloud_key').waitFor();
    expect(await field.inputValue()).toBe('');
    expect(shown.pushedKeys).toEqual([]);
  });

  it('a tool key is shown once, with the lines to paste', async () => {
    const page = await show({
      hash: '#/keys',
      script: fullScript({ 'keys.create': () => ({ key: firstKey, secret: 'sy_once_0123456789' }) }),
    });
    await page.getByRole('button', { name: 'New key' }).click();
    const sheet = page.getByRole('dialog');
    await sheet.getByLabel('Name').fill('editor');
    await sheet.getByLabel('Requests per minute').fill('60');
    await sheet.getByRole('button', { name: 'Make key' }).click();
    await sheet.getByText('sy_once_0123456789', { exact: true }).waitFor();
    expect(await sheet.locator('pre').last().textContent()).toContain('Bearer sy_once_0123456789');
    expect(called('keys.create')).toEqual([
      {
        name: 'editor',
        project: 'default',
        allowWiden: false,
        anyProject: false,
        maxClass: 'interactive',
        requestsPerMinute: 60,
        tokensPerMinute: null,
        usdPerDay: null,
      },
    ]);
    await sheet.getByRole('button', { name: 'I have stored it' }).click();
    await sheet.waitFor({ state: 'detached' });
    expect(await page.content()).not.toContain('sy_once');
  });

  it('a machine is drained and removed, the second only after a question', async () => {
    const page = await show({
      hash: '#/fleet/n1',
      script: fullScript({ 'nodes.drain': () => firstNode, 'nodes.remove': () => ({ done: true }) }),
    });
    const side = page.getByRole('complementary', { name: 'workstation' });
    await side.getByRole('button', { name: 'Drain' }).click();
    await expect.poll(() => called('nodes.drain')).toEqual([{ id: 'n1' }]);
    await side.getByRole('button', { name: 'Remove' }).click();
    expect(called('nodes.remove')).toEqual([]);
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await expect.poll(() => called('nodes.remove')).toEqual([{ id: 'n1' }]);
    await side.waitFor({ state: 'detached' });
  });

  it('a found machine is paired with its code; a wrong one is told and stays in the form', async () => {
    let right = false;
    const page = await show({
      hash: '#/fleet',
      script: fullScript({
        'nodes.add': () => {
          if (!right) throw new Refusal('join_refused');
          return firstNode;
        },
      }),
    });
    await page.getByRole('button', { name: 'Add machine' }).click();
    const sheet = page.getByRole('dialog');
    await sheet.getByRole('button', { name: 'Pair attic-server' }).click();
    await sheet.getByLabel('Join code').fill('7K3M-Q2XH-9PZR-4TVW');
    await sheet.getByRole('button', { name: 'Pair', exact: true }).click();
    await sheet.getByText('join_refused').waitFor();
    right = true;
    await sheet.getByRole('button', { name: 'Pair', exact: true }).click();
    await sheet.waitFor({ state: 'detached' });
    expect(called('nodes.add')[1]).toEqual({ address: '192.168.1.77:7412', joinCode: '7K3M-Q2XH-9PZR-4TVW' });
  });

  it('pausing the cloud says what it does and asks first', async () => {
    const page = await show({
      script: fullScript({ 'cloud.pause': () => ({ ...CLOUD, paused: true, state: 'paused' }) }),
    });
    await page.getByRole('button', { name: /Cloud on/ }).click();
    expect(called('cloud.pause')).toEqual([]);
    await page.getByRole('dialog').getByRole('button', { name: 'Pause cloud' }).click();
    await expect.poll(() => called('cloud.pause')).toEqual([{}]);
  });

  it('a latency that nobody measured is a dash, with what is assumed until then', async () => {
    const page = await show({
      hash: '#/budget',
      topics: {
        ...fullTopics(),
        budget: { topic: 'budget', type: 'value', value: { ...BUDGET, latencyMs: null, assumedLatencyMs: 2000 } },
      },
    });
    const fact = page.locator('dt', { hasText: 'Latency' }).locator('xpath=following-sibling::dd[1]');
    await fact.waitFor();
    expect(await fact.textContent()).toBe('— no call was measured yet; 2 s is assumed');
  });

  it('a client that left is told in the same words in the table as in the story', async () => {
    const left = { ...firstRequest, outcome: 'cancelled' as const, errorCode: 'client_closed' };
    const page = await show({
      hash: `#/requests/${left.id}`,
      topics: { ...fullTopics(), requests: { topic: 'requests', type: 'snapshot', rows: [left] } },
      script: fullScript({
        'requests.list': () => ({ requests: [left], more: false, lookedTo: null }),
        'requests.get': () => ({ ...TRACE, request: left }),
      }),
    });
    await page.locator('aside.side header').getByText('client left').waitFor();
    const row = page.locator('tbody tr');
    await row.getByText('client left').waitFor();
    expect(await row.textContent()).not.toContain('client_closed');
  });

  it('older events are offered only when there are any', async () => {
    const older = () => page.getByRole('button', { name: 'Load older' });
    const ask = { limit: 1, before: EVENTS[0]?.id };
    let page = await show({ hash: '#/events' });
    await expect.poll(() => called('events.list')).toEqual([ask]);
    await page.getByText('400 of 400 events').waitFor();
    expect(await older().count()).toBe(0);
    await shown.close();
    const one = { ...(EVENTS[0] as (typeof EVENTS)[number]), id: 'ev', atMs: NOW - 4_000_000 };
    page = await show({
      hash: '#/events',
      script: fullScript({ 'events.list': () => ({ events: [one], more: false }) }),
    });
    await older().click();
    await page.getByText('401 of 401 events').waitFor();
    await older().waitFor({ state: 'detached' });
    expect(called('events.list')[1]).toEqual({ limit: 1000, before: EVENTS[0]?.id });
  });

  it('what ended without going anywhere is named, so that the rates add up', async () => {
    const page = await show({
      script: fullScript({
        'overview.get': () => ({
          ...OVERVIEW,
          figures: { ...OVERVIEW.figures, requestsPerSecond: 0.7, localPerSecond: 0.6, cloudPerSecond: 0 },
        }),
      }),
    });
    const figure = page.locator('.figures-bar > div').first();
    await figure.getByText('0.6 local, 0.0 cloud, 0.1 nowhere').waitFor();
    expect(await figure.locator('strong').textContent()).toBe('0.7');
  });

  it('requests are filtered by tokens, and one opens as a story', async () => {
    const page = await show({ hash: '#/requests' });
    const filter = page.getByRole('searchbox');
    await filter.waitFor();
    await page.keyboard.press('/');
    expect(await filter.evaluate((one) => one === document.activeElement)).toBe(true);
    await page.keyboard.type('outcome:failed');
    await page.keyboard.press('Enter');
    await page.getByText('outcome:failed', { exact: true }).waitFor();
    const rows = page.locator('tbody tr');
    await expect.poll(() => rows.count()).toBe(4);
    await page.getByRole('button', { name: 'Remove the filter outcome:failed' }).click();
    await rows.nth(3).click();
    const story = page.locator('.story > li');
    await expect.poll(() => story.count()).toBe(8);
    expect(await story.nth(2).textContent()).toContain('W = 4.1 s');
    await page.keyboard.press('Escape');
    await story.first().waitFor({ state: 'detached' });
  });

  it('first run is finished and a policy changed by keyboard alone', async () => {
    const page = await show({
      hash: '',
      topics: { ...emptyTopics(), roles: fullTopics().roles as never },
      script: fullScript({
        'settings.get': () => ({ ...SETTINGS, console: { ...SETTINGS.console, firstRunDone: false } }),
        'test.request': () => ({
          requestId: 'req_1',
          ok: true,
          error: null,
          providerName: 'this machine',
          model: 'use-lite-512',
          totalMs: 41,
          measure: { unit: 'wide', value: 512 },
        }),
      }),
    });
    await page.getByRole('heading', { name: 'Welcome' }).waitFor();
    const tabTo = async (name: string) => {
      for (let presses = 0; presses < 60; presses += 1) {
        await page.keyboard.press('Tab');
        const at = await page.evaluate(() => {
          const one = document.activeElement;
          return one?.getAttribute('aria-label') ?? one?.textContent ?? '';
        });
        if (at === name) return;
      }
      throw new Error(`Tab never reached "${name}"`);
    };
    await tabTo('Send a test request');
    await page.keyboard.press('Enter');
    await page.getByText('this machine answered with use-lite-512 in 41 ms').waitFor();
    await page.getByText('512 wide').waitFor();
    await tabTo('Go to the overview');
    await page.keyboard.press('Enter');
    await expect.poll(() => called('settings.set')).toEqual([{ console: { firstRunDone: true } }]);
    await page.keyboard.press('g');
    await page.keyboard.press('r');
    await page.getByRole('heading', { name: 'Roles' }).waitFor();
    // One radio group is one stop; arrows move inside it.
    for (let presses = 0; presses < 80; presses += 1) {
      await page.keyboard.press('Tab');
      const inside = await page.evaluate(() =>
        document.activeElement?.closest('[data-role]')?.getAttribute('data-role'),
      );
      const radio = await page.evaluate(() => document.activeElement?.getAttribute('type') === 'radio');
      if (inside === 'code-assistant' && radio) break;
    }
    // A policy acts at once: passing over it is no choice.
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowLeft');
    expect(await page.evaluate(() => document.activeElement?.getAttribute('value'))).toBe('aggregate');
    expect([called('roles.preview'), called('roles.update')]).toEqual([[], []]);
    await page.keyboard.press('Enter');
    await expect.poll(() => called('roles.update')).toEqual([{ id: 'code-assistant', patch: { policy: 'aggregate' } }]);
  });

  it('rows are one stop of Tab; j, k and Enter work them; Esc gives focus back', async () => {
    const page = await show({ hash: '#/fleet' });
    await page.locator('[data-row=n4]').focus();
    await page.keyboard.press('j');
    expect(await page.evaluate(() => document.activeElement?.getAttribute('data-row'))).toBe('n3');
    await page.keyboard.press('Enter');
    await page.getByRole('complementary', { name: 'mac-studio' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('complementary', { name: 'mac-studio' }).waitFor({ state: 'detached' });
    expect(await page.evaluate(() => document.activeElement?.getAttribute('data-row'))).toBe('n3');
    expect(await page.locator('tbody tr[tabindex="0"]').count()).toBe(1);
  });

  it('Ctrl K goes anywhere by name', async () => {
    const page = await show();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Page, action, machine or role' }).waitFor();
    await page.keyboard.type('mac-st');
    await page.keyboard.press('Enter');
    await page.getByRole('complementary', { name: 'mac-studio' }).waitFor();
    expect(new URL(page.url()).hash).toBe('#/fleet/n3');
  });
});
