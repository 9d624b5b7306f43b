import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keyHash } from '../engines/openrouter/account.ts';
import { filesWith, formsOf, foundIn, placesInMemory } from '../support/canary.ts';
import { CloudHouse, until } from '../support/cloud.ts';
import { removeTemporaryFolders, temporaryFolder } from '../support/processes.ts';

const newKey = () => `sk-or-v1-${randomBytes(32).toString('hex')}`;

/** Sends a request as it stands. @returns what was answered until the end of an error's JSON */
function inOnePiece(endpoint: string, text: string): Promise<string> {
  const { hostname, port } = new URL(endpoint);
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(text));
    socket.on('error', reject);
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1');
      if (!/\r\n\r\n[\s\S]*\}/.test(answer)) return;
      socket.destroy();
      resolve(answer);
    });
  });
}

/** The suites run beside each other, their own tests one after the other. */
const IN_TURN = { concurrent: false } as const;
afterAll(removeTemporaryFolders);

describe.concurrent('a key that went through every door', () => {
  const canary = newKey();
  const forms = formsOf(canary);
  /** Entered where a token belongs. Node makes a string of every header, so that its memory cannot be wiped; all else holds. */
  const misplaced = newKey();
  const allForms = [...forms, ...formsOf(misplaced)];
  const snapshots = temporaryFolder('snapshots');
  /** Every answer of the control plane. */
  const heard: string[] = [];
  let house: CloudHouse;

  beforeAll(async () => {
    house = await CloudHouse.start({
      agents: [{ name: 'alpha' }, { name: 'beta' }],
      standIn: { keys: [canary], echoKey: true },
      roles: {
        'code-assistant': { policy: 'cloud' },
        reranker: { policy: 'cloud', cloud: { model: 'cohere/rerank-4-fast' } },
      },
      key: null,
      planeEnv: { NODE_OPTIONS: `--heapsnapshot-signal=SIGUSR2 --diagnostic-dir=${snapshots}` },
    });
    heard.push((await house.push(canary)).text);
    await house.holding(2);
    await house.ready('code-assistant', 'cloud', 2);
  });
  afterAll(async () => {
    await house?.stop();
  });

  const keep = ({ status, text, headers }: Awaited<ReturnType<CloudHouse['chat']>>) => {
    heard.push(text, JSON.stringify([...headers]));
    return status;
  };

  it('is used, echoed by a careless upstream, and blanked on the way back', IN_TURN, async () => {
    expect(keep(await house.chat('code-assistant'))).toBe(200);
    expect(keep(await house.chat('code-assistant', { stream: true }))).toBe(200);
    expect(keep(await house.rerank())).toBe(200);
    expect((await house.standIn.calls()).map((call) => call.keyHash)).toEqual(Array(3).fill(keyHash(canary)));
    expect(heard.join()).toContain('*'.repeat(20));
  });

  it('is quoted by no refusal', IN_TURN, async () => {
    for (const error of ['bad-request', 'context-length', 'moderation', 'too-large'] as const) {
      await house.standIn.order({ fail: { error } });
      expect(keep(await house.chat('code-assistant'))).toBeGreaterThanOrEqual(400);
    }
    await house.standIn.order({ fail: { error: 'bad-gateway', as: 'stream', afterTokens: 2, retryAfterS: 1 } });
    expect(keep(await house.chat('code-assistant', { stream: true }))).toBe(200);
    expect(heard.at(-2)).toContain('"error"');
    const put = async (headers: Record<string, string>, body: string) => {
      const response = await fetch(`${house.plane.endpoint}/admin/cloud/key`, { method: 'PUT', headers, body });
      heard.push(await response.text());
      return response.status;
    };
    const bytes = { 'content-type': 'application/octet-stream' };
    const rights = { authorization: `Bearer ${house.plane.adminToken}` };
    expect(await put({ ...rights, ...bytes }, `${canary} ${canary}`)).toBe(400);
    expect(await put({ ...rights, ...bytes }, canary.repeat(10))).toBe(400);
    expect(await put({ ...rights, 'content-type': 'application/json' }, JSON.stringify({ key: canary }))).toBe(400);
    expect(await put(bytes, canary)).toBe(401);
    const { host } = new URL(house.plane.endpoint);
    const head = `Host: ${host}\r\nContent-Type: application/octet-stream\r\n`;
    const body = `Content-Length: ${canary.length}\r\n\r\n${canary}`;
    for (const refused of [
      `PUT /admin/cloud/key HTTP/1.1\r\n${head}${body}`,
      `PUT /admin/cloud/key HTTP/1.1\r\n${head}Expect: 100-continue\r\n${body}`,
      `PUT /admin/cloud/key HTTP/1.1\r\n${head}Origin: http://evil.example\r\n${body}`,
      `POST /admin/cloud/key HTTP/1.1\r\n${head}${body}`,
      `PUT /admin/cloud/key HTTP/1.1\r\n${head}Connection: upgrade\r\nUpgrade: websocket\r\n\r\n${canary}`,
      `PUT /admin/cloud/key HTTP/9.9\r\n${head}${body}`,
    ])
      heard.push(await inOnePiece(house.plane.endpoint, refused));
    expect(heard.slice(-6).map((answer) => answer.slice(0, 12))).toEqual(
      [401, 401, 403, 405, 404, 400].map((status) => `HTTP/1.1 ${status}`),
    );
    expect(await put({ authorization: `Bearer ${misplaced}`, ...bytes }, 'anything else')).toBe(401);
  });

  it('survives in no output of an agent that crashes', IN_TURN, async () => {
    house.agents[1]?.kill('SIGABRT');
    await house.agents[1]?.gone;
    await until(async () => (await house.cloud()).holders.some(({ state }) => state === 'unreachable'));
    expect(keep(await house.chat('code-assistant'))).toBe(200);
  });

  it('stands in nothing that the control plane tells', IN_TURN, async () => {
    const rights = { authorization: `Bearer ${house.plane.adminToken}` };
    const routes = [
      ...['nodes', 'providers', 'roles', 'gate', 'spaces', 'cloud', 'budget', 'requests', 'events', 'health'],
      ...['diagnostics', 'settings', 'settings/export', 'usage', 'keys', 'overview?range=5m'],
    ].map((route) => `admin/${route}`);
    const statuses: Record<string, number> = {};
    for (const route of [...routes, 'metrics', 'healthz', 'readyz', 'openapi.json', 'v1/models']) {
      const response = await fetch(`${house.plane.endpoint}/${route}`, { headers: rights });
      statuses[route] = response.status;
      heard.push(await response.text());
    }
    const { requests } = await house.operator.get<{ requests: { id: string }[] }>('requests');
    for (const { id } of requests) heard.push(JSON.stringify(await house.operator.get(`requests/${id}`)));
    expect(requests.length).toBeGreaterThanOrEqual(7);
    // The routes that matter most were really read.
    for (const route of ['admin/cloud', 'admin/events', 'admin/requests', 'admin/diagnostics', 'admin/providers'])
      expect([route, statuses[route]]).toEqual([route, 200]);
    expect(heard.join('\n').length).toBeGreaterThan(20_000);
    expect(foundIn(heard.join('\n'), allForms)).toEqual([]);
  });

  it.skipIf(process.platform !== 'linux')(
    'leaves no copy in the memory of the control plane after four more requests, nor in a heap snapshot',
    { ...IN_TURN, timeout: 240_000 },
    async () => {
      const marker = randomBytes(24).toString('hex');
      // Several pushes just before: a copy that one of them left would hardly be overwritten yet.
      for (let again = 0; again < 3; again++) {
        heard.push((await house.push(canary)).text);
        await house.holding(1);
      }
      for (let more = 0; more < 4; more++) {
        const content = more < 3 ? 'x'.repeat(200_000) : `${marker} ${'x'.repeat(200_000)}`;
        keep(await house.chat('code-assistant', { messages: [{ role: 'user', content }] }));
      }
      expect(await placesInMemory(house.plane.pid, forms)).toEqual([]);
      // The scan sees what is there.
      expect(await placesInMemory(house.plane.pid, [marker])).not.toEqual([]);
      house.plane.kill('SIGUSR2');
      await until(() => existsSync(snapshots) && readdirSync(snapshots).some((name) => name.endsWith('.heapsnapshot')));
      await until(async () => (await fetch(`${house.plane.endpoint}/healthz`)).ok, 120_000);
      expect(await filesWith(snapshots, ['fleet'])).toHaveLength(1);
      expect(await filesWith(snapshots, forms)).toEqual([]);
    },
  );

  it('is in no log, no file and no database', IN_TURN, async () => {
    await house.stop();
    const outputs = [house.plane, ...house.agents].map(({ output }) => output());
    expect(foundIn(outputs.join('\n'), allForms)).toEqual([]);
    for (const { dataDir } of [house.plane, ...house.agents]) {
      expect(readdirSync(dataDir).length).toBeGreaterThan(0);
      expect(await filesWith(dataDir, allForms)).toEqual([]);
    }
    // The database was really looked into: it holds the events of the pushes.
    const database = readdirSync(house.plane.dataDir).find((name) => /\.(db|sqlite)$/.test(name)) ?? '';
    expect(await filesWith(house.plane.dataDir, ['cloud-push'])).toContain(path.join(house.plane.dataDir, database));
  });
});

describe.concurrent('pushes over the life of agents', () => {
  const first = newKey();
  const second = newKey();
  let house: CloudHouse;

  beforeAll(async () => {
    house = await CloudHouse.start({
      agents: [{ name: 'alpha' }, { name: 'beta' }],
      roles: { 'code-assistant': { policy: 'cloud' } },
      key: first,
    });
    await house.ready('code-assistant', 'cloud', 2);
  });
  afterAll(async () => {
    await house?.stop();
  });

  const stateOf = async (name: string) =>
    (await house.cloud()).holders.find(({ nodeName }) => nodeName === name)?.state ?? 'none';
  const nodeOf = async (name: string) =>
    (await house.cloud()).holders.find(({ nodeName }) => nodeName === name)?.nodeId ?? '';

  it('changes a model without a key, and the key stays', IN_TURN, async () => {
    await house.role('code-assistant', { cloud: { model: 'deepseek/deepseek-v4-flash' } });
    await until(async () => (await house.chat('deepseek/deepseek-v4-flash')).status === 200);
    await house.standIn.order({ forget: true });
    expect((await house.chat('code-assistant')).status).toBe(200);
    const [call] = await house.standIn.calls();
    expect([call?.model, call?.keyHash]).toEqual(['deepseek/deepseek-v4-flash', keyHash(first)]);
  });

  it(
    'shows a model that the catalogue does not have as not offered, with the closest, and never calls it',
    IN_TURN,
    async () => {
      await house.role('code-assistant', { cloud: { model: 'poolside/laguna-s-2.2' } });
      const role = async () => {
        const { roles } = await house.operator.get<{
          roles: { id: string; cloudOffered: boolean | null; cloudNearest: string[]; cloudReady: number }[];
        }>('roles');
        return roles.find(({ id }) => id === 'code-assistant');
      };
      await until(async () => (await role())?.cloudOffered === false);
      expect((await role())?.cloudNearest).toContain('poolside/laguna-s-2.1');
      await house.standIn.order({ forget: true });
      expect((await house.chat('code-assistant')).status).toBe(503);
      expect(await house.standIn.calls()).toEqual([]);
      await house.role('code-assistant', { cloud: { model: 'poolside/laguna-s-2.1' } });
      await house.ready('code-assistant', 'cloud', 2);
    },
  );

  it('leaves an agent on an older push stale and idle', IN_TURN, async () => {
    await house.push(second, `?nodes=${await nodeOf('alpha')}`);
    await until(async () => (await stateOf('alpha')) === 'accepted' && (await stateOf('beta')) === 'key-stale');
    await house.ready('code-assistant', 'cloud', 1);
    await house.standIn.order({ forget: true });
    const statuses = await Promise.all(
      Array.from({ length: 10 }, async () => (await house.chat('code-assistant')).status),
    );
    expect(statuses).toEqual(Array(10).fill(200));
    const used = new Set((await house.standIn.calls()).map((call) => call.keyHash));
    expect([...used]).toEqual([keyHash(second)]);
  });

  it('says key-missing after a restart of the agent, and 503 with the reason', IN_TURN, async () => {
    await house.restart(0);
    const holders = async () => (await house.cloud()).holders.map(({ state }) => state).sort();
    await until(async () => JSON.stringify(await holders()) === JSON.stringify(['key-missing', 'key-stale']));
    await house.standIn.order({ forget: true });
    // The agent has said how it stands; that its machine is ready again follows with its heartbeat.
    await until(async () => {
      const { status, json, text } = await house.chat('code-assistant');
      const reasons = text.includes('key_missing') && text.includes('key_stale');
      return status === 503 && json.error?.code === 'no_provider' && reasons;
    });
    // Known still, also under its own name.
    expect((await house.chat('poolside/laguna-s-2.1')).status).toBe(503);
    expect(await house.standIn.calls()).toEqual([]);
    const { events } = await house.operator.get<{ events: { code: string; needsPerson: boolean }[] }>('events');
    expect(events.some(({ code, needsPerson }) => code === 'no_key_agent' && needsPerson)).toBe(true);
    await house.push(second);
    await house.holding(2);
    expect((await house.chat('code-assistant')).status).toBe(200);
  });

  it('survives the restart of an agent that has a keyring, when that was asked for at the push', IN_TURN, async () => {
    const keyring = { SWITCHYARD_KEYRING: `1:${randomBytes(32).toString('base64')}` };
    await house.restart(0, 'stop', keyring);
    await until(async () => (await house.cloud()).holders.some(({ state }) => state === 'key-missing'));
    await house.push(second, '?remember=1');
    await house.holding(2);
    // Only from then on it is on the agent's disk.
    await until(async () => (await house.cloud()).holders.some(({ remembered }) => remembered));
    await house.restart(0, 'kill', keyring);
    await house.holding(2);
    const folder = house.agents[0]?.dataDir ?? '';
    expect(await filesWith(folder, formsOf(second))).toEqual([]);
    expect(readdirSync(folder)).toContain('cloud-keys.json');
  });
});
