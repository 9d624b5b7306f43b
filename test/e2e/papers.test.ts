import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PacedEngine, startPaced } from '../engines/paced.ts';
import { formsOf, foundIn } from '../support/canary.ts';
import { CloudHouse } from '../support/cloud.ts';
import { removeTemporaryFolders } from '../support/processes.ts';

/** Files that people send to others: a diagnostic bundle for a bug report, an export of settings for another machine. */
describe('papers that leave the house', () => {
  const mark = (name: string) => `${name}-${randomBytes(8).toString('hex')}`;
  const key = `sk-or-v1-${randomBytes(32).toString('hex')}`;
  const said = {
    prompt: mark('prompt'),
    system: mark('system'),
    text: mark('text'),
    query: mark('query'),
    document: mark('document'),
    project: mark('project'),
    keyName: mark('keyname'),
    machine: mark('machine'),
    name: `${mark('name')}.example`,
  };
  const papers: Record<string, string> = {};
  let house: CloudHouse;
  const engines: PacedEngine[] = [];
  let secret = '';

  beforeAll(async () => {
    engines.push(await startPaced({ task: 'embed' }), await startPaced({ task: 'chat' }));
    house = await CloudHouse.start({
      agents: [{ name: said.machine, engines: engines.map(({ url }) => url) }],
      standIn: { keys: [key] },
      roles: {
        reranker: { policy: 'cloud', cloud: { model: 'cohere/rerank-4-fast' } },
        'code-assistant': { policy: 'aggregate' },
      },
      key,
    });
    await house.operator.patch('settings', {
      endpoint: { names: [said.name], allowedOrigins: [`https://${said.name}`] },
    });
    secret = (
      await house.operator.post<{ secret: string }>('keys', {
        name: said.keyName,
        project: said.project,
        allowWiden: true,
      })
    ).secret;
    await house.ready('embedding', 'local');
    await house.ready('code-assistant', 'local');
    await house.ready('reranker', 'cloud');
    const own = { authorization: `Bearer ${secret}` };
    const messages = [
      { role: 'system', content: said.system },
      { role: 'user', content: said.prompt },
    ];
    const answers = [
      await house.chat('code-assistant', { messages }, own),
      await house.chat('code-assistant', { messages }, { ...own, 'x-switchyard-policy': 'cloud' }),
      await house.chat('code-assistant', { messages, max_tokens: said.prompt }, own),
      await house.embed(said.text, {}, own),
      await house.rerank({ query: said.query, documents: [said.document, 'another'] }, own),
      await house.chat(said.prompt, { messages }, own),
    ];
    // Two ways that work, a body that cannot be read, vectors, scores, a model that nobody has.
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 400, 200, 200, 404]);
    // Events about machines, keys and addresses.
    await house.operator.post('nodes', { address: `${said.name}:7412`, joinCode: 'AAAA-AAAA-AAAA' }).catch(() => {});
    for (const name of ['diagnostics', 'settings/export']) {
      papers[name] = (await house.operator.get<{ content: string }>(name)).content;
    }
  });
  afterAll(async () => {
    await house?.stop();
    for (const engine of engines) await engine.stop();
    removeTemporaryFolders();
  });

  const both = ['diagnostics', 'settings/export'];

  it.each(both)('%s holds no key and no token, in no form', (name) => {
    const vault = readFileSync(path.join(house.plane.dataDir, 'vault.key'), 'latin1').trim();
    const secrets = [key, secret, house.plane.apiKey, house.plane.adminToken, vault, house.agents[0]?.joinCode ?? ''];
    for (const one of secrets) {
      expect(one.length).toBeGreaterThan(8);
      expect(foundIn(papers[name] ?? '', formsOf(one))).toEqual([]);
    }
  });

  it.each(both)('%s holds no hash: neither of a key nor of anything else', (name) => {
    for (const one of [key, secret, house.plane.apiKey, house.plane.adminToken]) {
      const digest = createHash('sha256').update(one).digest();
      for (const form of ['hex', 'base64', 'base64url'] as const)
        expect(papers[name]).not.toContain(digest.toString(form));
    }
    expect(papers[name]).not.toContain(house.agents[0]?.fingerprint);
    expect(papers[name]).not.toMatch(/[0-9a-f]{32}/i);
    expect(papers[name]).not.toMatch(/[A-Za-z0-9+/_-]{43}/);
  });

  it.each(both)('%s holds nothing that was said, to or by anybody, and no name that somebody gave', (name) => {
    expect(Object.entries(said).filter(([, one]) => papers[name]?.includes(one))).toEqual([]);
    expect(papers[name]).not.toContain('say something');
  });

  it.each(both)('%s holds no address: of no machine, engine, folder or person', (name) => {
    const { endpoint, dataDir } = house.plane;
    const places = [
      endpoint,
      house.agents[0]?.listen ?? '',
      house.standIn.url,
      dataDir,
      ...engines.map(({ url }) => url),
    ];
    for (const place of [...places, `/${userInfo().username}/`]) {
      expect(place.length).toBeGreaterThan(2);
      expect(papers[name]?.includes(place)).toBe(false);
    }
    expect(papers[name]?.match(/\d{1,3}(?:\.\d{1,3}){3}|https?:|localhost|::1/g) ?? []).toEqual([]);
  });

  it('say what they are for all the same', async () => {
    const bundle = JSON.parse(papers.diagnostics ?? '');
    expect(bundle.nodes).toHaveLength(1);
    expect(bundle.providers.length).toBeGreaterThanOrEqual(3);
    expect(bundle.events.length).toBeGreaterThan(2);
    const settings = JSON.parse(papers['settings/export'] ?? '');
    expect(settings.roles.reranker).toMatchObject({ policy: 'cloud', cloud: { model: 'cohere/rerank-4-fast' } });
    const imported = await house.operator.post<{ skipped: unknown[] }>('settings/import', {
      content: papers['settings/export'],
    });
    expect(imported.skipped).toEqual([]);
  });
});
