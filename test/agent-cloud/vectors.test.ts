import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CloudAnswer } from '../../agent/wire/cloud.ts';
import { upstream } from '../engines/openrouter/models.ts';
import { referenceVector } from '../engines/openrouter/numerics.ts';
import { Bench, ROLES, type TestCall } from './driver.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await Bench.start();
  await bench.ready();
});
afterEach(() => bench.stop());

const rows = (call: TestCall): Float32Array[] => {
  const bytes = Buffer.concat(call.chunks);
  const width = call.response?.width ?? 0;
  const all = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  return Array.from({ length: all.length / width }, (_, row) => all.subarray(row * width, (row + 1) * width));
};
const cosine = (a: ArrayLike<number> = [], b: ArrayLike<number> = []) => {
  let [dot, left, right] = [0, 0, 0];
  for (let at = 0; at < a.length; at++) {
    dot += (a[at] ?? 0) * (b[at] ?? 0);
    left += (a[at] ?? 0) ** 2;
    right += (b[at] ?? 0) ** 2;
  }
  return dot / Math.sqrt(left * right);
};

describe('embeddings', () => {
  it('come from the pinned upstream, finite, normalised, in order', async () => {
    const texts = ['first text', 'zweiter Text', '三番目'];
    const [a, b] = [bench.embed(texts, 'deepinfra/turbo'), bench.embed(texts, 'nebius')];
    await Promise.all([a.over, b.over]);
    expect(a.response).toMatchObject({ count: 3, width: 256 });
    texts.forEach((text, index) => {
      expect(cosine(rows(a)[index], referenceVector(text, 256))).toBeGreaterThan(0.99999);
      expect(cosine(rows(b)[index], rows(a)[index])).toBeCloseTo(0.976, 4);
    });
    expect(a.trailers?.fingerprint).toMatchObject({
      upstream: 'deepinfra/turbo',
      pin: 'only=deepinfra/turbo;quantizations=',
    });
    const bodies = bench.standIn.ledger.filter((entry) => entry.route === 'embeddings').map((entry) => entry.body);
    expect(bodies).toContainEqual({
      model: 'qwen/qwen3-embedding-8b',
      input: texts,
      encoding_format: 'base64',
      provider: { only: ['nebius'], allow_fallbacks: false },
    });
  });

  it('are cut here, not there', async () => {
    const call = bench.embed(['one'], 'deepinfra/turbo', { cut: 64 });
    await call.over;
    expect(call.response?.width).toBe(64);
    expect(bench.standIn.ledger.at(-1)?.body).not.toHaveProperty('dimensions');
    expect(cosine(rows(call)[0], referenceVector('one', 256).subarray(0, 64))).toBeGreaterThan(0.99999);
  });

  it('another upstream than the pin is thrown away', async () => {
    bench.standIn.claimUpstream = 'SomebodyElse';
    const call = bench.embed(['one'], 'nebius');
    await call.over;
    expect(call.response).toBeNull();
    expect(call.failure).toMatchObject({
      blame: 'fingerprint',
      code: 'fingerprint_changed',
      cloud: { wrongUpstream: true },
    });
    bench.standIn.claimUpstream = 'hidden';
    const silent = bench.embed(['one'], 'nebius');
    await silent.over;
    expect(silent.trailers?.fingerprint.upstream).toBe('nebius');
  });

  it('never leave without a pin, nor with one that is not in force', async () => {
    const before = bench.standIn.ledger.length;
    const unpinned = bench.embed(['one'], 'nebius', {
      model: 'qwen/qwen3-embedding-8b',
      cloud: bench.cloud('embedding'),
    });
    const foreign = bench.embed(['one'], 'novita');
    const stale = bench.embed(['one'], 'nebius', {
      cloud: bench.cloud('embedding', { pin: 'only=nebius;quantizations=fp8' }),
    });
    await Promise.all([unpinned.over, foreign.over, stale.over]);
    for (const call of [unpinned, foreign, stale]) expect(call.failure?.blame).toBe('fingerprint');
    expect(bench.standIn.ledger.length).toBe(before);
  });

  it('honour quantizations in the pin', async () => {
    bench.push({ roles: { embedding: { quantizations: ['int4'] } } }, null);
    const pin = 'only=nebius;quantizations=int4';
    const call = bench.embed(['one'], 'nebius', { cloud: bench.cloud('embedding', { pin }) });
    await call.over;
    expect(call.failure).toMatchObject({
      code: 'model_missing',
      cloud: { status: 404, availability: 'constraint_filtered' },
    });
  });

  it('a pinned upstream that is down is not replaced by another', async () => {
    bench.standIn.setDown('deepinfra/turbo', true);
    const call = bench.embed(['one'], 'deepinfra/turbo');
    await call.over;
    expect(call.failure).toMatchObject({ cloud: { status: 503 } });
    expect(bench.standIn.ledger.at(-1)).toMatchObject({ upstream: null });
  });

  it.each(['bad-gateway', 'upstream-pool'] as const)(
    'a 200 that holds the error %s is that error, and no vector',
    async (error) => {
      bench.standIn.fail({ error, as: 'ok' });
      const call = bench.embed(['one'], 'nebius');
      await call.over;
      expect(call.response).toBeNull();
      expect(call.failure?.cloud).toMatchObject({ status: error === 'bad-gateway' ? 502 : 429, fromProvider: true });
    },
  );

  it('of a cancelled call are read to the end and thrown away', async () => {
    bench.standIn.latencyMs = 200;
    const call = bench.embed(['one'], 'nebius');
    await bench.until(() => bench.standIn.account.running === 1);
    call.abort.abort();
    await bench.until(() => bench.sent.some(({ message }) => message.t === 'cloud-ended'));
    expect(bench.sent.at(-1)?.message).toMatchObject({
      t: 'cloud-ended',
      aborted: false,
      costUsd: bench.standIn.ledger.at(-1)?.costUsd,
    });
    expect(bench.standIn.ledger.at(-1)).toMatchObject({ aborted: false });
    expect(call.chunks).toEqual([]);
  });

  it('over the window of the model are the caller’s fault', async () => {
    bench.push({ roles: { embedding: { model: 'baai/bge-m3', upstreams: ['novita'] } } }, null);
    await bench.until(() => bench.status()?.offers.some((offer) => offer.model === 'baai/bge-m3') === true);
    const call = bench.embed(['word '.repeat(8000)], 'novita', { model: 'baai/bge-m3@novita' });
    await call.over;
    expect(call.failure).toMatchObject({ blame: 'caller', code: 'input_too_long' });
  });
});

describe('reranking', () => {
  it('gives one score per document, in the order of the documents', async () => {
    const call = bench.rerank('red fox', ['bread', 'a red fox', 'a fox']);
    await call.over;
    const { scores } = JSON.parse(call.text);
    expect(scores).toHaveLength(3);
    expect(scores[1]).toBeGreaterThan(scores[2]);
    expect(scores[2]).toBeGreaterThan(scores[0]);
    expect(call.trailers?.usage?.costUsd).toBe(0.002);
  });
});

describe('catalogue', () => {
  it('offers what is configured, one embedding provider per pinned upstream, with prices', () => {
    const offers = bench.status()?.offers ?? [];
    expect(offers.map(({ role, model, upstream }) => [role, model, upstream])).toEqual([
      ['code-assistant', ROLES['code-assistant']?.model, null],
      ['rlm', ROLES.rlm?.model, null],
      ['embedding', ROLES.embedding?.model, 'deepinfra/turbo'],
      ['embedding', ROLES.embedding?.model, 'nebius'],
      ['reranker', ROLES.reranker?.model, null],
    ]);
    expect(offers[0]).toMatchObject({ promptUsd: 2e-7, completionUsd: 8e-7, contextTokens: 131_072, free: false });
    expect(offers[4]?.free).toBe(false);
  });

  it('takes a chat for as dear as the dearest upstream that may serve it', async () => {
    const chat = () => bench.status()?.offers.find(({ role }) => role === 'rlm');
    const model = ROLES.rlm?.model ?? '';
    const { models } = bench.standIn;
    const at = models.findIndex(({ id }) => id === model);
    const offered = models[at];
    if (!offered) throw new Error('the stand-in does not offer it');
    models[at] = { ...offered, upstreams: [...offered.upstreams, upstream('Dear', { price: [0.5, 0.25] })] };
    bench.engine.poke();
    await bench.until(() => chat()?.promptUsd === 0.5);
    expect(chat()?.completionUsd).toBe(0.25);
  });

  it('of any size comes in an answer that the control plane takes', async () => {
    const [chat] = bench.standIn.models;
    if (!chat) throw new Error('the stand-in offers nothing');
    const upstreams = Array.from({ length: 300 }, (_, at) => upstream(`U${at}`));
    bench.standIn.models.splice(0, 1, { ...chat, upstreams });
    for (let at = 0; at < 5600; at++) bench.standIn.models.push({ ...chat, id: `x/m${at}` });
    const answers = () => bench.sent.flatMap(({ message }) => (message.t === 'cloud-answer' ? [message] : []));
    await bench.engine.ask('cp1', { t: 'cloud-ask', id: 1, what: 'catalogue' });
    await bench.engine.ask('cp1', { t: 'cloud-ask', id: 2, what: 'endpoints', model: chat.id });
    expect(answers().map((answer) => CloudAnswer.safeParse(answer).success)).toEqual([true, true]);
    expect([answers()[0]?.models?.length, answers()[1]?.endpoints?.length]).toEqual([5000, 256]);
  });

  it('names what is not offered, with the nearest ids, and never calls it', async () => {
    bench.push({ roles: { reranker: { model: 'cohere/rerank-v3.5' }, rlm: { model: 'deepseek/deepseek-v4' } } }, null);
    await bench.until(() => bench.status()?.notOffered.length === 2);
    expect(bench.status()?.notOffered).toEqual([
      {
        role: 'rlm',
        model: 'deepseek/deepseek-v4',
        upstream: null,
        nearest: expect.arrayContaining(['deepseek/deepseek-v4-flash']),
      },
      { role: 'reranker', model: 'cohere/rerank-v3.5', upstream: null, nearest: ['cohere/rerank-4-fast'] },
    ]);
    const before = bench.standIn.ledger.length;
    const call = bench.chat({ messages: [] }, { model: 'deepseek/deepseek-v4', cloud: bench.cloud('rlm') });
    await call.over;
    expect(call.failure?.code).toBe('model_missing');
    expect(bench.standIn.ledger.length).toBe(before);
  });

  it('names an upstream that is not offered, with those that are', async () => {
    bench.push({ roles: { embedding: { upstreams: ['together'] } } }, null);
    await bench.until(() => (bench.status()?.notOffered.length ?? 0) > 0);
    expect(bench.status()?.notOffered[0]).toMatchObject({
      upstream: 'together',
      nearest: ['deepinfra/turbo', 'nebius'],
    });
  });

  it('answers a person who searches', async () => {
    await bench.engine.ask('cp1', { t: 'cloud-ask', id: 7, what: 'catalogue' });
    await bench.engine.ask('cp1', { t: 'cloud-ask', id: 8, what: 'endpoints', model: 'qwen/qwen3-embedding-8b' });
    const [models, endpoints] = bench.sent.slice(-2).map(({ message }) => message);
    expect(models).toMatchObject({ id: 7, ok: true });
    expect(JSON.stringify(models)).toContain('baai/bge-m3');
    expect(endpoints).toMatchObject({
      id: 8,
      endpoints: [
        { tag: 'deepinfra/turbo', upstream: 'DeepInfra' },
        { tag: 'nebius', quantization: 'fp8' },
      ],
    });
  });
});

describe('a role that stays local', () => {
  it('opens no connection at all, probes included', async () => {
    const other = await Bench.start();
    const roles = Object.fromEntries(
      Object.entries(ROLES).map(([role, route]) => [role, { ...route, policy: 'local' as const }]),
    );
    other.push({ roles }, 'sk-or-v1-another-key');
    other.engine.greet('cp1');
    const call = other.chat({ messages: [] });
    await call.over;
    expect(call.failure?.code).toBe('unsupported_task');
    // Each question that would be put to OpenRouter is answered without it.
    other.engine.poke();
    for (const what of ['catalogue', 'endpoints', 'account'] as const)
      await other.engine.ask('cp1', { t: 'cloud-ask', id: 1, what, model: 'qwen/qwen3-embedding-8b' });
    expect([other.standIn.requests, other.standIn.connections]).toEqual([0, 0]);
    await other.stop();
  });
});
