import { afterAll, beforeAll, expect, it } from 'vitest';
import { type LlamaServer, startLlama } from '../engines/llama.ts';
import { chatModel, encoderModel, quantised, rerankerModel } from '../engines/models.ts';
import { type RecordingProxy, startProxy } from '../engines/proxy.ts';
import { describeWithLlama } from '../engines/suite.ts';

async function embed(url: string, input: readonly string[]): Promise<number[][]> {
  const response = await fetch(`${url}/v1/embeddings`, { method: 'POST', body: JSON.stringify({ input }) });
  const answer = (await response.json()) as { data: { embedding: number[] }[] };
  return answer.data.map((item) => item.embedding);
}

function cosine(a: readonly number[] = [], b: readonly number[] = []): number {
  const dot = (x: readonly number[], y: readonly number[]) => x.reduce((sum, value, i) => sum + value * (y[i] ?? 0), 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

await describeWithLlama('the engines that the other suites run against', () => {
  const started: { stop(): Promise<void> }[] = [];
  const start = async (model: string, ...args: string[]): Promise<LlamaServer> => {
    const server = await startLlama({ model, args });
    started.push(server);
    return server;
  };
  let encoder: LlamaServer;
  let proxy: RecordingProxy;

  beforeAll(async () => {
    encoder = await start(encoderModel(), '--embeddings');
    proxy = await startProxy(encoder.url);
    started.push(proxy);
  });
  afterAll(async () => {
    for (const server of started) await server.stop();
  });

  it('encodes: alike texts closer than unlike ones, two seeds two encoders, Q8_0 near and Q4_0 far', async () => {
    const texts = [
      'the quick brown fox',
      'the quick brown foxes',
      'zygote 42 jukebox',
      'A',
      '{}',
      '()',
      'x = 1;',
      '9',
      'q',
    ];
    const [a, b, c] = await embed(encoder.url, texts);
    expect(a).toHaveLength(384);
    expect(cosine(a, b)).toBeGreaterThan(cosine(a, c));
    const own = await embed(encoder.url, texts);
    const lowest = (vectors: readonly number[][]) => Math.min(...vectors.map((vector, i) => cosine(own[i], vector)));
    const other = await start(encoderModel({ seed: 2 }), '--embeddings');
    expect(lowest(await embed(other.url, texts))).toBeLessThan(0.5);
    const near = await start(await quantised(encoderModel(), 'Q8_0'), '--embeddings');
    expect(lowest(await embed(near.url, texts))).toBeGreaterThan(0.999);
    const far = await start(await quantised(encoderModel(), 'Q4_0'), '--embeddings');
    expect(lowest(await embed(far.url, texts))).toBeLessThan(0.99);
  });

  it('ranks and recites', async () => {
    const reranker = await start(rerankerModel(), '--reranking');
    const body = JSON.stringify({ query: 'fox', documents: ['the fox', 'a jar', 'foxes'] });
    const ranked = await fetch(`${reranker.url}/v1/rerank`, { method: 'POST', body });
    expect(((await ranked.json()) as { results: unknown[] }).results).toHaveLength(3);
    const chat = await start(chatModel({ text: 'one two three .' }));
    const said = await fetch(`${chat.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ messages: [{ role: 'user', content: 'go' }] }),
    });
    const { choices } = (await said.json()) as { choices: { message: { content: string }; finish_reason: string }[] };
    expect(choices[0]?.message.content.trim()).toBe('one two three .');
    expect(choices[0]?.finish_reason).toBe('stop');
  });

  it('records what the engine was shown, and spoils it on demand', async () => {
    const clean = await embed(proxy.url, ['a', 'b']);
    expect(proxy.texts()).toEqual(['a', 'b']);
    expect(clean).toEqual(await embed(encoder.url, ['a', 'b']));
    const clear = proxy.inject({ kind: 'vectors', spoil: 'width' });
    expect((await embed(proxy.url, ['a']))[0]).toHaveLength(383);
    clear();
    proxy.inject({ kind: 'reset' }, { times: 1 });
    await expect(embed(proxy.url, ['a'])).rejects.toThrow();
    expect(await embed(proxy.url, ['a', 'b'])).toEqual(clean);
    const leaving = new AbortController();
    proxy.inject({ kind: 'hang' }, { times: 1 });
    const hung = fetch(`${proxy.url}/v1/embeddings`, { method: 'POST', body: '{}', signal: leaving.signal });
    await expect.poll(() => proxy.requests.at(-1)?.body).toBe('{}');
    leaving.abort();
    await expect(hung).rejects.toThrow();
    await expect.poll(() => proxy.requests.at(-1)?.abortedAtMs).not.toBeNull();
  });
});
