import { OpenRouter } from '@openrouter/sdk';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ERROR_ROWS, type ErrorName, OpenRouterStandIn } from '../engines/openrouter.ts';

/** The stand-in is right when the official SDK, which checks every field of every answer, accepts it. */
describe('OpenRouter stand-in against the official SDK', () => {
  const standIn = new OpenRouterStandIn({ seed: 'fixed' });
  let sdk: OpenRouter;

  beforeAll(async () => {
    const serverURL = await standIn.start();
    sdk = new OpenRouter({ apiKey: 'sk-or-v1-test', serverURL, retryConfig: { strategy: 'none' } });
  });
  afterAll(() => standIn.stop());
  beforeEach(() => standIn.heal());

  const messages = [{ role: 'user' as const, content: 'say 5 words' }];
  const model = 'poolside/laguna-s-2.1';

  it('answers chat', async () => {
    const result = await sdk.chat.send({ chatRequest: { model, messages, maxTokens: 50 } });
    if (!('choices' in result)) throw new Error('a stream nobody asked for');
    expect(result.choices[0]?.message.content).toBe('The quick brown fox jumps');
    expect(result.choices[0]?.finishReason).toBe('stop');
    expect(result.usage?.completionTokens).toBe(5);
  });

  it('streams chat with comments, a usage chunk and the end mark', async () => {
    const stream = await sdk.chat.send({ chatRequest: { model, messages, stream: true, maxTokens: 3 } });
    if ('choices' in stream) throw new Error('no stream');
    let text = '';
    let reason: string | null = null;
    let cost: number | null | undefined = null;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      reason = chunk.choices[0]?.finishReason ?? reason;
      cost = chunk.usage?.cost ?? cost;
    }
    expect(text).toBe('The quick brown');
    expect(reason).toBe('length');
    expect(cost).toBeGreaterThan(0);
  });

  it('reports an error inside a stream', async () => {
    standIn.fail({ error: 'upstream-pool', as: 'stream', afterTokens: 2 });
    const stream = await sdk.chat.send({ chatRequest: { model, messages, stream: true } });
    if ('choices' in stream) throw new Error('no stream');
    const reasons: unknown[] = [];
    const errors: unknown[] = [];
    for await (const chunk of stream) {
      reasons.push(chunk.choices[0]?.finishReason);
      if (chunk.error) errors.push(chunk.error.code);
    }
    expect(errors).toEqual([429]);
    expect(reasons.at(-1)).toBe('error');
  });

  it('embeds, from the pinned upstream alone', async () => {
    const embed = (only: string, encodingFormat: 'float' | 'base64' = 'float') =>
      sdk.embeddings.generate({
        requestBody: {
          model: 'qwen/qwen3-embedding-8b',
          input: ['one text', 'another text'],
          encodingFormat,
          provider: { only: [only], allowFallbacks: false },
        },
      });
    const vectors = async (only: string) => {
      const result = await embed(only);
      if (typeof result === 'string') throw new Error('no vectors');
      return result.data.map(({ embedding }) => (typeof embedding === 'string' ? [] : embedding));
    };
    const [first, second] = [await vectors('deepinfra'), await vectors('nebius')];
    const cosine = (a: readonly number[] = [], b: readonly number[] = []) =>
      a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
    expect(cosine(first[0], second[0])).toBeCloseTo(0.976, 4);
    expect(cosine(first[1], second[1])).toBeCloseTo(0.976, 4);
    expect(cosine(first[0], first[1])).toBeLessThan(0.95);
    await expect(embed('someone-else')).rejects.toMatchObject({ statusCode: 404 });
  });

  it('drifts on command', async () => {
    const embed = async () => {
      const result = await sdk.embeddings.generate({ requestBody: { model: 'baai/bge-m3', input: 'text' } });
      const embedding = typeof result === 'string' ? [] : result.data[0]?.embedding;
      return Array.isArray(embedding) ? embedding : [];
    };
    const before = await embed();
    expect(await embed()).toEqual(before);
    standIn.setDrift('novita', 0.95);
    const after = await embed();
    standIn.setDrift('novita', null);
    expect(before.reduce((sum, value, at) => sum + value * (after[at] ?? 0), 0)).toBeCloseTo(0.95, 4);
  });

  it('reranks', async () => {
    const documents = ['bread and butter', 'a red fox', 'fox fox red'];
    const result = await sdk.rerank.rerank({
      requestBody: { model: 'cohere/rerank-4-fast', query: 'red fox', documents },
    });
    if (typeof result === 'string') throw new Error('no results');
    expect(result.results).toHaveLength(3);
    expect(result.results[2]?.index).toBe(0);
  });

  it('lists models, embedding models and endpoints', async () => {
    const chat = await sdk.models.list();
    expect(JSON.stringify(chat)).toContain(model);
    expect(JSON.stringify(chat)).not.toContain('bge-m3');
    expect(JSON.stringify(await sdk.embeddings.listModels())).toContain('bge-m3');
    const { data } = await sdk.endpoints.list({ author: 'qwen', slug: 'qwen3-embedding-8b' });
    expect(data.endpoints.map((endpoint) => endpoint.tag)).toEqual(['deepinfra/turbo', 'nebius']);
  });

  it('reports the key', async () => {
    const { data } = await sdk.apiKeys.getCurrentKeyMetadata();
    expect(data.limitRemaining).toBeGreaterThan(0);
    expect(data.rateLimit.requests).toBe(-1);
  });

  it.each(Object.keys(ERROR_ROWS) as ErrorName[])('fails as %s', async (error) => {
    standIn.fail({ error });
    const row = ERROR_ROWS[error]({ provider: 'Poolside', model, nowMs: Date.now() });
    const failure: unknown = await sdk.chat
      .send({ chatRequest: { model, messages } })
      .catch((caught: unknown) => caught);
    expect(failure).toMatchObject({ statusCode: row.status });
  });

  it('refuses what its SDK cannot express: 200 with an error', async () => {
    standIn.fail({ error: 'bad-gateway', as: 'ok' });
    await expect(sdk.embeddings.generate({ requestBody: { model: 'baai/bge-m3', input: 'x' } })).rejects.toThrow();
    expect(standIn.ledger.at(-1)).toMatchObject({ status: 200, upstream: 'Novita' });
  });

  it('hides a limit on calls in flight and releases an aborted stream, unless its upstream goes on', async () => {
    standIn.account.settings.concurrency = 1;
    standIn.latencyMs = 400;
    const call = (id: string, signal?: AbortSignal) =>
      fetch(`${standIn.url}/chat/completions`, {
        method: 'POST',
        headers: { authorization: 'Bearer k' },
        body: JSON.stringify({ model: id, messages, stream: true }),
        ...(signal === undefined ? {} : { signal }),
      });
    for (const [id, released] of [
      [model, true],
      ['deepseek/deepseek-v4-flash', false],
    ] as const) {
      const abort = new AbortController();
      expect((await call(id, abort.signal)).status).toBe(200);
      expect((await call(id)).status).toBe(429);
      const entry = standIn.ledger.at(-2);
      abort.abort();
      await expect.poll(() => entry?.aborted).toBe(true);
      expect(entry?.endMs === null).toBe(!released);
      await expect.poll(() => standIn.account.running).toBe(0);
    }
    standIn.account.settings.concurrency = null;
    standIn.latencyMs = 20;
  });
});
