import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { referenceVector } from '../engines/openrouter/numerics.ts';
import { type PacedEngine, startPaced } from '../engines/paced.ts';
import { OllamaStandIn } from '../engines/stand-ins/ollama.ts';
import { TeiStandIn } from '../engines/stand-ins/tei.ts';
import { HashVectors } from '../engines/stand-ins/vectors.ts';
import { type Answer, CloudHouse, until } from '../support/cloud.ts';
import { removeTemporaryFolders } from '../support/processes.ts';

const LONG = process.env.SWITCHYARD_LONG === '1';
const PAID = 'poolside/laguna-s-2.1';
const ROLES = ['embedding', 'reranker', 'code-assistant', 'rlm'] as const;
const POLICIES = ['local', 'backup', 'aggregate', 'cloud'] as const;

class ReferenceVectors extends HashVectors {
  constructor() {
    super(256);
  }

  override async encode(text: string): Promise<Float32Array> {
    return Float32Array.from(referenceVector(text, 256));
  }
}

const routeOf = ({ status, headers }: Answer) => (status === 200 ? headers.get('x-switchyard-route') : status);

/** The suites run beside each other, their own tests one after the other. */
const IN_TURN = { concurrent: false } as const;
afterAll(removeTemporaryFolders);

describe.concurrent('four policies over machines and the cloud', () => {
  let house: CloudHouse;
  let encoder: TeiStandIn;
  let reranker: TeiStandIn;
  let chat: PacedEngine;
  let widening: Record<string, string>;

  const ask = (role: (typeof ROLES)[number], body: object = {}, headers: Record<string, string> = {}) => {
    const model = role;
    if (role === 'embedding') return house.embed('some text', { model, ...body }, headers);
    if (role === 'reranker') return house.rerank({ model, ...body }, headers);
    return house.chat(role, { max_tokens: 2, ...body }, headers);
  };

  beforeAll(async () => {
    encoder = await new TeiStandIn({ vectors: new ReferenceVectors(), model: 'org/encoder', window: 512 }).start();
    reranker = await new TeiStandIn({ task: 'rerank', model: 'org/reranker' }).start();
    chat = await startPaced({ task: 'chat', slots: 1, rate: 20 });
    house = await CloudHouse.start({
      agents: [{ engines: [encoder.url, reranker.url, chat.url] }],
      roles: {
        embedding: {
          policy: 'aggregate',
          localModels: ['org/encoder'],
          cloud: { model: 'qwen/qwen3-embedding-8b', upstreams: ['deepinfra/turbo'] },
        },
        reranker: { cloud: { model: 'cohere/rerank-4-fast' } },
        'code-assistant': { cloud: { model: PAID } },
        rlm: { policy: 'aggregate', cloud: { model: 'deepseek/deepseek-v4-flash' } },
      },
    });
    for (const role of ROLES) {
      await house.ready(role, 'local');
      await house.ready(role, 'cloud');
    }
    const created = await house.operator.post<{ secret: string }>('keys', {
      name: 'wide',
      project: 'wide',
      allowWiden: true,
    });
    widening = { authorization: `Bearer ${created.secret}` };
  });
  afterAll(async () => {
    await house?.stop();
    await chat?.stop();
    await encoder?.stop();
    await reranker?.stop();
  });

  const set = async (role: (typeof ROLES)[number], policy: (typeof POLICIES)[number]) => {
    await house.role(role, { policy });
    // A changed policy has encoders checked again.
    await house.ready(role, policy === 'cloud' ? 'cloud' : 'local');
    if (policy === 'aggregate' || policy === 'backup') await house.ready(role, 'cloud');
  };

  it.each(ROLES)('%s: each policy goes its way while both sides are idle', IN_TURN, async (role) => {
    for (const policy of POLICIES) {
      await set(role, policy);
      await house.standIn.order({ forget: true });
      expect([policy, routeOf(await ask(role))]).toEqual([policy, policy === 'cloud' ? 'cloud' : 'local']);
      const served = (await house.standIn.calls()).filter(({ inputs }) => inputs > 0);
      expect(served.length).toBe(policy === 'cloud' ? 1 : 0);
    }
    await set(role, 'aggregate');
  });

  it(
    'a request may always narrow; to widen needs the right; the header goes before field and suffix, and says so',
    IN_TURN,
    async () => {
      await set('code-assistant', 'backup');
      const narrowed = [
        await house.chat('code-assistant', { max_tokens: 2 }, { 'x-switchyard-policy': 'local' }),
        await house.chat('code-assistant', { max_tokens: 2, switchyard: { policy: 'local' } }),
        await house.chat('code-assistant:local', { max_tokens: 2 }),
      ];
      expect(narrowed.map(routeOf)).toEqual(['local', 'local', 'local']);
      const wishes = (headers: Record<string, string>) => [
        house.chat('code-assistant', { max_tokens: 2 }, { ...headers, 'x-switchyard-policy': 'cloud' }),
        house.chat('code-assistant', { max_tokens: 2, switchyard: { policy: 'cloud' } }, headers),
        house.chat('code-assistant:cloud', { max_tokens: 2 }, headers),
      ];
      const impatient = house.chat('code-assistant', { max_tokens: 2, switchyard: { maxWaitMs: 10 } });
      const refused = await Promise.all([...wishes({}), impatient]);
      expect(refused.map(({ status, json }) => [status, json.error?.code])).toEqual(
        Array(4).fill([403, 'policy_not_allowed']),
      );
      const widened = await Promise.all(wishes(widening));
      expect(widened.map(routeOf)).toEqual(['cloud', 'cloud', 'cloud']);
      const contradicting = await house.chat(
        'code-assistant:cloud',
        { max_tokens: 2 },
        { ...widening, 'x-switchyard-policy': 'local' },
      );
      expect(routeOf(contradicting)).toBe('local');
      expect(contradicting.headers.get('x-switchyard-overruled')).toContain('suffix=cloud');
      const body = (await house.standIn.calls()).at(-1)?.body ?? {};
      expect(body).not.toHaveProperty('switchyard');
      await set('code-assistant', 'local');
      const raised = await Promise.all(wishes(widening));
      expect(raised.map(({ status }) => status)).toEqual([403, 403, 403]);
    },
  );

  it('aggregate spills as soon as no local slot is free, and local ones come first', IN_TURN, async () => {
    await set('code-assistant', 'aggregate');
    await house.standIn.order({ forget: true });
    const running = house.chat('code-assistant', { max_tokens: 20 });
    await until(() => chat.counts().chats.begun > chat.counts().chats.completed + chat.counts().chats.left);
    expect(routeOf(await house.chat('code-assistant', { max_tokens: 2 }))).toBe('cloud');
    expect(routeOf(await running)).toBe('local');
    expect(routeOf(await house.chat('code-assistant', { max_tokens: 2 }))).toBe('local');
  });

  it('pausing the cloud stops every start, and says so; local work goes on', {
    ...IN_TURN,
    timeout: 120_000,
  }, async () => {
    await set('code-assistant', 'aggregate');
    await house.operator.post('cloud/pause');
    await house.standIn.order({ forget: true });
    const [one, two] = await Promise.all([
      house.chat('code-assistant', { max_tokens: 10 }),
      house.chat('code-assistant', { max_tokens: 10 }),
    ]);
    expect([routeOf(one), routeOf(two)]).toEqual(['local', 'local']);
    await house.role('reranker', { policy: 'cloud' });
    const refused = await house.rerank();
    expect([refused.status, refused.text.includes('cloud_paused')]).toEqual([503, true]);
    expect(await house.standIn.calls()).toEqual([]);
    expect((await house.cloud()).state).toBe('paused');
    await house.operator.post('cloud/resume');
    expect(routeOf(await house.rerank())).toBe('cloud');
    await set('reranker', 'aggregate');
  });

  it('with the machine gone backup and aggregate go to the cloud, local goes nowhere', {
    ...IN_TURN,
    timeout: 180_000,
  }, async () => {
    for (const role of ROLES) await set(role, 'aggregate');
    await Promise.all([encoder.stop(), reranker.stop(), chat.stop()]);
    for (const policy of ['aggregate', 'backup'] as const) {
      for (const role of ROLES) {
        await house.role(role, { policy });
        expect([role, policy, routeOf(await ask(role))]).toEqual([role, policy, 'cloud']);
      }
    }
    for (const role of ROLES) await house.role(role, { policy: 'local' });
    await house.standIn.order({ forget: true });
    const statuses = await Promise.all(ROLES.map(async (role) => (await ask(role)).status));
    expect(statuses).toEqual([503, 503, 503, 503]);
    expect(await house.standIn.calls()).toEqual([]);
  });
});

describe.concurrent('roles that are local, a key that is held, machines that are down', () => {
  let house: CloudHouse;
  let ollama: OllamaStandIn;
  let widening: Record<string, string>;

  beforeAll(async () => {
    ollama = await new OllamaStandIn({
      models: [
        { name: 'far:latest', kind: 'chat', trained: 8192, remoteHost: 'https://ollama.com' },
        { name: 'far-encoder:latest', kind: 'embed', trained: 512, remoteHost: 'https://ollama.com' },
      ],
    }).start();
    const local = (model: string, upstreams: string[] = []) => ({ policy: 'local', cloud: { model, upstreams } });
    house = await CloudHouse.start({
      agents: [{ engines: [ollama.url] }],
      roles: {
        embedding: { ...local('baai/bge-m3', ['novita']), localModels: ['far-encoder:latest'] },
        'code-embedding': local('qwen/qwen3-embedding-8b', ['nebius']),
        reranker: local('cohere/rerank-4-fast'),
        'code-assistant': local(PAID),
        rlm: local('deepseek/deepseek-v4-flash'),
      },
      key: null,
    });
    await house.push('sk-or-v1-held-and-never-used-0123456789');
    await until(async () => (await house.cloud()).holders.every(({ state }) => state === 'accepted'));
    const created = await house.operator.post<{ secret: string }>('keys', {
      name: 'wide',
      project: 'wide',
      allowWiden: true,
    });
    widening = { authorization: `Bearer ${created.secret}` };
  });
  afterAll(async () => {
    await house?.stop();
    await ollama?.stop();
  });

  it(
    'answers 503 and not one connection reaches OpenRouter, whatever header, field or suffix asks',
    IN_TURN,
    async () => {
      for (const headers of [{}, widening]) {
        const plain = await Promise.all([
          house.chat('code-assistant', {}, headers),
          house.chat('rlm', {}, headers),
          house.rerank({}, headers),
          house.embed('text', {}, headers),
          house.embed('text', { model: 'code-embedding' }, headers),
        ]);
        expect(plain.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503]);
        const raised = await Promise.all([
          house.chat('code-assistant', {}, { ...headers, 'x-switchyard-policy': 'cloud' }),
          house.chat('rlm', { switchyard: { policy: 'backup' } }, headers),
          house.chat('code-assistant:aggregate', {}, headers),
          house.rerank({}, { ...headers, 'x-switchyard-policy': 'aggregate' }),
          house.embed('text', { switchyard: { policy: 'cloud' } }, headers),
        ]);
        expect(raised.map(({ status }) => status)).toEqual([403, 403, 403, 403, 403]);
        // By its own name: unknown here, or refused.
        expect([403, 404, 503]).toContain((await house.chat(PAID, {}, headers)).status);
      }
      await house.operator.post('gate/verify');
      await house.operator.get('roles/code-assistant/models').catch(() => undefined);
      await wait(LONG ? 30_000 : 3000);
      const { connections, requests, ledger } = await house.standIn.books();
      expect({ connections, requests, ledger }).toEqual({ connections: 0, requests: 0, ledger: [] });
    },
  );

  it('does not take an Ollama model that runs elsewhere for a local one', IN_TURN, async () => {
    await until(async () => {
      const { providers } = await house.operator.get<{ providers: { model: string }[] }>('providers');
      return providers.some(({ model }) => model === 'far:latest');
    });
    const { providers } = await house.operator.get<{
      providers: { role: string; model: string; kind: string; reasons: { code: string }[] }[];
    }>('providers');
    const far = providers.filter(({ model }) => model.startsWith('far'));
    expect(far.length).toBeGreaterThanOrEqual(2);
    for (const { kind, reasons } of far) {
      expect(kind).toBe('cloud');
      expect(reasons.map(({ code }) => code)).toContain('policy_local');
    }
    const before = ollama.requests.filter(
      ({ path }) => path === '/v1/chat/completions' || path === '/api/embed',
    ).length;
    const named = await house.chat('far:latest');
    expect([named.status, named.json.error?.code]).toEqual([400, 'ambiguous_model']);
    expect((await house.chat('code-assistant')).status).toBe(503);
    const after = ollama.requests.filter(({ path }) => path === '/v1/chat/completions' || path === '/api/embed').length;
    expect(after).toBe(before);
  });
});

// By itself: it measures waits of seconds.
describe('a backup role whose only machine is busy', () => {
  let house: CloudHouse;
  let chat: PacedEngine;

  beforeAll(async () => {
    chat = await startPaced({ task: 'chat', slots: 1, rate: 20, answerTokens: 100 });
    house = await CloudHouse.start({
      agents: [{ engines: [chat.url] }],
      roles: { 'code-assistant': { policy: 'backup', maxLocalWaitMs: 3000 } },
    });
    await house.ready('code-assistant', 'local');
    await house.ready('code-assistant', 'cloud');
  });
  afterAll(async () => {
    await house?.stop();
    await chat?.stop();
  });

  it('backup with a threshold of 3 s decides before waiting, also after idling', {
    timeout: 180_000,
  }, async () => {
    // 40 tokens at 20 tokens/s: 2 s each, one at a time.
    const send = () => house.chat('code-assistant', { max_tokens: 40 });
    expect(routeOf(await send())).toBe('local'); // S is known: 2 s
    for (const idleMs of [0, LONG ? 60_000 : 1500]) {
      await wait(idleMs);
      await house.standIn.order({ forget: true });
      const running = send();
      await until(() => chat.counts().chats.begun > chat.counts().chats.completed + chat.counts().chats.left);
      const second = send(); // W = (0 + 1) x 2 s: stays
      await wait(200);
      const startedMs = performance.now();
      const third = await send(); // W = (1 + 1) x 2 s: leaves at once
      expect(routeOf(third)).toBe('cloud');
      expect(Number(third.headers.get('x-switchyard-queue-ms'))).toBeLessThan(300);
      expect(performance.now() - startedMs).toBeLessThan(1500);
      expect([routeOf(await running), routeOf(await second)]).toEqual(['local', 'local']);
      expect((await house.standIn.calls()).map(({ model }) => model)).toEqual([PAID]);
      const id = third.headers.get('x-request-id') ?? '';
      const { steps } = await house.operator.get<{ steps: Record<string, unknown>[] }>(`requests/${id}`);
      const estimate = steps.find(({ step }) => step === 'estimated') ?? {};
      expect(estimate).toMatchObject({ thresholdMs: 3000, slots: 1, busy: 1, ahead: 1, overflows: true });
      expect(estimate.waitMs).toBeGreaterThan(3600);
      expect(estimate.waitMs).toBeLessThan(5200);
      const [part] = estimate.parts as { slots: number; serviceMs: number }[];
      expect(part?.slots).toBe(1);
      expect(part?.serviceMs).toBeGreaterThan(1800);
      expect(part?.serviceMs).toBeLessThan(2600);
    }
  });
});
