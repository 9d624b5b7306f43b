import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { ElectronApplication, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, OPERATIONS, type Output } from '../../preload/contract.ts';
import { keyHash } from '../engines/openrouter/account.ts';
import { OpenaiStandIn } from '../engines/stand-ins/openai.ts';
import { TeiStandIn } from '../engines/stand-ins/tei.ts';
import { HashVectors } from '../engines/stand-ins/vectors.ts';
import { builtApp } from '../support/built.ts';
import { filesWith, formsOf, foundIn, placesInMemory } from '../support/canary.ts';
import { StandIn, until } from '../support/cloud.ts';
import { type Agent, admin, removeTemporaryFolders, startAgent } from '../support/processes.ts';
import { describeWithRuntime } from '../support/runtime.ts';
import { call, controls, stored } from './driver.ts';
import { launch, NO_DESKTOP, REAL } from './launch.ts';

/**
 * The desktop over a fleet of real agents and OpenRouter's stand-in. What is clicked is looked for in the window, in `/admin`, in
 * SQLite and after a restart. The tests are one story, in this order.
 */
describeWithRuntime(NO_DESKTOP, 'the desktop over a fleet', () => {
  const canary = `sk-or-v1-${randomBytes(32).toString('hex')}`;
  const forms = formsOf(canary);
  const folder = mkdtempSync(path.join(tmpdir(), 'switchyard-desktop-fleet-'));
  const encoder = new TeiStandIn({ model: 'org/encoder', vectors: new HashVectors(64) });
  const stranger = new TeiStandIn({ model: 'org/encoder', vectors: new HashVectors(64, 'another') });
  const chat = new OpenaiStandIn({ task: 'chat', model: 'org/chat', window: 1_000_000 });
  const agents: Agent[] = [];
  let cloud: StandIn;
  let app: ElectronApplication;
  let page: Page;
  let token = '';
  let said = '';

  const open = async (...args: string[]) => {
    ({ app } = await launch({ folder, args: ['--no-embedded-agent', ...args] }));
    for (const stream of [app.process().stdout, app.process().stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        said += chunk.toString();
      });
    }
    page = await app.firstWindow();
    await page.getByRole('navigation').waitFor();
    // The window is there at once; the control plane answers when it has started.
    await call(page, 'app.info');
  };

  beforeAll(async () => {
    await builtApp();
    for (const engine of [encoder, stranger, chat]) await engine.start();
    cloud = await StandIn.start({ keys: [canary] });
    const start = (name: string, engines: readonly string[]) =>
      startAgent({ name, engines, args: ['--openrouter-url', cloud.url] });
    agents.push(await start('alpha', [encoder.url, chat.url]), await start('beta', [stranger.url]));
    await open('--new-admin-token');
    await until(() => /^Admin token, shown this once: sya-\S+$/m.test(said));
    token = /shown this once: (\S+)/.exec(said)?.[1] ?? '';
  });
  afterAll(async () => {
    await app?.close().catch(() => undefined);
    for (const agent of agents) {
      agent.kill('SIGCONT');
      await agent.stop();
    }
    await cloud?.stop();
    for (const engine of [encoder, stranger, chat]) await engine.stop();
    removeTemporaryFolders();
    rmSync(folder, { recursive: true, force: true });
  });

  const go = async (name: string) => {
    await page
      .getByRole('navigation')
      .getByRole('link', { name: new RegExp(name) })
      .click();
    await page.getByRole('heading', { name, level: 2 }).waitFor();
  };
  const endpoint = async (): Promise<string> => {
    const info = await call(page, 'app.info');
    return (info.ok && (info.value as Output<'app.info'>).endpoint) || '';
  };
  const operator = async () => admin({ endpoint: await endpoint() }, token);
  const row = (name: string) => page.locator('tbody tr', { hasText: name });
  const stands = (name: string, word: string) =>
    row(name).first().locator('.status', { hasText: word }).first().waitFor({ timeout: 60_000 });
  const restart = async () => {
    await app.close();
    await open();
  };
  /** A key for tools, made on its page as a person does. */
  const toolKey = async (): Promise<string> => {
    await go('Keys');
    await page.getByRole('button', { name: 'New key' }).click();
    const sheet = page.getByRole('dialog');
    await sheet.getByLabel('Name').fill('test');
    await sheet.getByRole('button', { name: 'Make key' }).click();
    const secret = (await sheet.locator('pre').first().textContent()) ?? '';
    await sheet.getByRole('button', { name: 'I have stored it' }).click();
    return secret;
  };

  const ready = async (model: string) => {
    const { providers } = await (await operator()).get<Output<'providers.list'>>('providers?role=code-assistant');
    return providers.some((one) => one.model === model && one.state === 'ready');
  };
  const talk = async (key: string, content: string, stream: boolean) =>
    fetch(`${await endpoint()}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'code-assistant:local', stream, messages: [{ role: 'user', content }] }),
    });

  it('pairs machines by their codes through the dialog; a wrong code is told and changes nothing', async () => {
    for (const { listen, joinCode } of agents) {
      await go('Fleet');
      await page.getByRole('button', { name: 'Add machine' }).first().click();
      const sheet = page.getByRole('dialog');
      await sheet.getByText('By address').click();
      await sheet.getByLabel('Address', { exact: true }).fill(listen);
      await sheet.getByLabel('Join code').fill('0000-0000-0000-0000');
      await sheet.getByRole('button', { name: 'Pair', exact: true }).click();
      await sheet.getByText('join_refused').waitFor();
      await sheet.getByLabel('Join code').fill(joinCode);
      await sheet.getByRole('button', { name: 'Pair', exact: true }).click();
      await sheet.waitFor({ state: 'detached' });
      // The first encoder founds the space by itself; with two at once a person would be asked which.
      await until(
        async () => stored(folder, "SELECT count(*) FROM spaces WHERE current = 1 AND role = 'embedding'") === 1,
      );
    }
    for (const name of ['alpha', 'beta']) await stands(name, 'ready');
    const { nodes } = await (await operator()).get<{ nodes: { name: string; state: string }[] }>('nodes');
    expect(nodes.map(({ name, state }) => [name, state]).sort()).toEqual([
      ['alpha', 'ready'],
      ['beta', 'ready'],
    ]);
    const addresses = agents.map(({ listen }) => `'${listen}'`).join();
    expect(stored(folder, `SELECT count(*) FROM nodes WHERE address IN (${addresses})`)).toBe(2);
  });

  it('shows the gate’s refusal with its figure, and the refused encoder gets no text', async () => {
    await go('Gate');
    const refused = row('beta').first();
    await stands('beta', 'vector-incompatible');
    const { verdicts } = await (await operator()).get<Output<'gate.list'>>('gate?role=embedding');
    const found = verdicts.find(({ nodeName }) => nodeName === 'beta');
    expect(found?.verdict).toBe('vector-incompatible');
    expect(found?.minCosine).toBeLessThan(0.99);
    // Four digits, cut: what is refused at 0.98999 must not read 0.9900.
    const shown = (Math.floor((found?.minCosine ?? 1) * 10_000) / 10_000).toFixed(4);
    await refused.getByText(shown).waitFor();
    const kept = stored(
      folder,
      `SELECT json_extract(body, '$.minCosine') FROM verdicts WHERE provider = '${found?.providerId}'`,
    );
    expect(kept).toBeCloseTo(found?.minCosine ?? 1, 12);
    const texts = ['marked one', 'marked two'];
    const response = await fetch(`${await endpoint()}/v1/embeddings`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await toolKey()}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'embedding', input: texts }),
    });
    expect(response.status).toBe(200);
    const saw = (engine: TeiStandIn) => engine.requests.some(({ body }) => JSON.stringify(body).includes('marked'));
    expect([saw(encoder), saw(stranger)]).toEqual([true, false]);
  });

  it.skipIf(REAL)('changes a policy in the tray and on the page: seen in both, in /admin and in SQLite', async () => {
    await go('Roles');
    const radio = (name: string) => page.locator('[data-role=reranker]').getByRole('radio', { name, exact: true });
    const everywhere = async (policy: string, label: string) => {
      await expect.poll(() => radio(label).isChecked()).toBe(true);
      const checked = () =>
        controls(app, (standin) => standin.readTray().flatMap((item) => (item.checked ? [item.path] : [])));
      await expect.poll(checked).toContain(`reranker > ${label}`);
      const { roles } = await (await operator()).get<Output<'roles.list'>>('roles');
      expect(roles.find(({ id }) => id === 'reranker')?.policy).toBe(policy);
      expect(stored(folder, "SELECT json_extract(body, '$.policy') FROM documents WHERE name LIKE '%reranker'")).toBe(
        policy,
      );
    };
    await controls(app, (standin) => standin.clickTray('reranker', 'Local'));
    await everywhere('local', 'Local');
    // What lets texts out of the network is asked first, and Cancel keeps them in.
    await radio('Cloud').click({ force: true });
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await everywhere('local', 'Local');
    await radio('Cloud').click({ force: true });
    await page.getByRole('dialog').getByRole('button', { name: 'Let them leave' }).click();
    await everywhere('cloud', 'Cloud');
  });

  it.skipIf(REAL)('follows settings that somebody changes over HTTP: tray, login entry and page', async () => {
    const entry = path.join(folder, 'config/autostart/switchyard.desktop');
    const labels = () => controls(app, (standin) => standin.readTray().map((item) => item.path));
    const set = async (patch: unknown) => (await operator()).patch('settings', patch);
    await set({ console: { language: 'fr' }, desktop: { startAtLogin: true } });
    await page.getByRole('heading', { name: 'Rôles', level: 2 }).waitFor();
    await expect.poll(labels).toContain('Ouvrir Switchyard');
    await expect.poll(() => existsSync(entry)).toBe(true);
    await set({ console: { language: 'system' }, desktop: { startAtLogin: false } });
    await page.getByRole('heading', { name: 'Roles', level: 2 }).waitFor();
    await expect.poll(labels).toContain('Open Switchyard');
    await expect.poll(() => existsSync(entry)).toBe(false);
  });

  it('takes a key through the field: accepted by both agents, and there is no way to see it again', async () => {
    await go('Keys');
    const field = page.getByRole('textbox', { name: 'OpenRouter key' });
    await field.fill(canary);
    await page.getByRole('button', { name: 'Send' }).click();
    expect(await field.inputValue()).toBe('');
    await page.getByText('Accepted by 2 agents: alpha, beta').waitFor();
    const { holders } = await (await operator()).get<Output<'cloud.status'>>('cloud');
    expect(holders.map(({ nodeName, state }) => `${nodeName} ${state}`).sort()).toEqual([
      'alpha accepted',
      'beta accepted',
    ]);
    // It works: the reranker, in the cloud alone, answers by it.
    await (await operator()).patch('roles/reranker', { policy: 'cloud', cloud: { model: 'cohere/rerank-4-fast' } });
    const key = await toolKey();
    const rerank = async (documents: readonly string[]) =>
      fetch(`${await endpoint()}/v1/rerank`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'reranker', query: 'cat', documents }),
      });
    await expect.poll(async () => (await rerank(['a cat', 'a dog'])).status, { timeout: 30_000 }).toBe(200);
    expect((await cloud.calls()).at(-1)?.keyHash).toBe(keyHash(canary));

    await go('Keys');
    await page.reload();
    await page.getByText('Accepted by 2 agents: alpha, beta').waitFor();
    const kept = await page.evaluate(() =>
      JSON.stringify([
        document.documentElement.outerHTML,
        [...document.querySelectorAll('input, textarea')].map((one) => (one as HTMLInputElement).value),
        { ...localStorage },
        { ...sessionStorage },
        document.cookie,
        location.href,
        history.state,
      ]),
    );
    expect(foundIn(kept, forms)).toEqual([]);
    // Every question that the window can ask without knowing an id.
    const answers: Answer[] = [];
    for (const [name, { kind }] of Object.entries(OPERATIONS)) {
      if (kind === 'read') answers.push(await call(page, name, name === 'overview.get' ? { range: '5m' } : {}));
    }
    expect(answers.filter(({ ok }) => ok).length).toBeGreaterThan(15);
    expect(foundIn(JSON.stringify(answers), forms)).toEqual([]);
    expect(foundIn(said, forms)).toEqual([]);

    if (process.platform !== 'linux') return;
    const marker = randomBytes(24).toString('hex');
    await until(() => ready('org/chat'));
    for (let more = 0; more < 4; more += 1) {
      const answer = await talk(key, `${more === 3 ? marker : ''} ${'x'.repeat(200_000)}`, false);
      expect([answer.status, (await answer.text()).length > 0]).toEqual([200, true]);
    }
    const main = await app.evaluate(() => process.pid);
    expect(await placesInMemory(main, forms)).toEqual([]);
    expect(await placesInMemory(main, [marker])).not.toEqual([]); // the scan sees what is there
  });

  it('a computer that slept: machines are unknown, then ready again', async () => {
    await go('Fleet');
    // Held, so that the moment can be seen; else they are back sooner than anybody looks.
    for (const agent of agents) agent.kill('SIGSTOP');
    await app.evaluate(({ powerMonitor }) => {
      powerMonitor.emit('suspend');
      powerMonitor.emit('resume');
    });
    for (const name of ['alpha', 'beta']) await stands(name, 'unknown');
    const { nodes } = await (await operator()).get<{ nodes: { state: string }[] }>('nodes');
    expect(nodes.map(({ state }) => state)).toEqual(['unknown', 'unknown']);
    for (const agent of agents) agent.kill('SIGCONT');
    for (const name of ['alpha', 'beta']) await stands(name, 'ready');
  });

  it('a killed renderer comes back, and no request is lost', async () => {
    const key = await toolKey();
    chat.words = 40;
    chat.wordMs = 100;
    const ask = () => talk(key, 'go on', true);
    await until(() => ready('org/chat'));
    const url = await endpoint();
    const streams = await Promise.all([ask(), ask(), ask()]);
    expect(streams.map(({ status }) => status)).toEqual([200, 200, 200]);
    await app.evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.webContents.forcefullyCrashRenderer());
    for (const text of await Promise.all(streams.map((stream) => stream.text()))) {
      expect(text.match(/"content":/g)).toHaveLength(40);
      expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true);
    }
    const shown = () =>
      app.evaluate(async ({ BrowserWindow }) =>
        BrowserWindow.getAllWindows()[0]?.webContents.executeJavaScript(
          `document.querySelector('nav')?.textContent ?? ''`,
        ),
      );
    await expect.poll(shown, { timeout: 20_000 }).toContain('Fleet2');
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
  });
  it('after a restart all of it is there again: machines, policy, refusal and the agents’ key', async () => {
    await restart();
    await go('Fleet');
    for (const name of ['alpha', 'beta']) await stands(name, 'ready');
    await go('Roles');
    await expect
      .poll(() => page.locator('[data-role=reranker]').getByRole('radio', { name: 'Cloud', exact: true }).isChecked())
      .toBe(true);
    await go('Gate');
    await stands('beta', 'vector-incompatible');
    await go('Keys');
    await page.getByText('Accepted by 2 agents: alpha, beta').waitFor();
  });

  it('leaves the key in no file of the desktop or the agents', async () => {
    await app.close();
    for (const agent of agents) await agent.stop();
    for (const place of [folder, ...agents.map(({ dataDir }) => dataDir)]) {
      expect(await filesWith(place, forms)).toEqual([]);
    }
    expect(foundIn([said, ...agents.map(({ output }) => output())].join('\n'), forms)).toEqual([]);
  });
});
