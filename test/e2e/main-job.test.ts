import { createHash } from 'node:crypto';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type LlamaServer, startLlama } from '../engines/llama.ts';
import { chatModel, encoderModel, rerankerModel } from '../engines/models.ts';
import { type RecordingProxy, startProxy } from '../engines/proxy.ts';
import { uniform } from '../engines/seeded.ts';
import { describeWithLlama } from '../engines/suite.ts';
import {
  type Agent,
  admin,
  type ControlPlane,
  removeTemporaryFolders,
  startAgent,
  startControlPlane,
} from '../support/processes.ts';

interface Engine {
  readonly server: LlamaServer;
  readonly proxy: RecordingProxy;
}

async function engine(model: string, ...args: string[]): Promise<Engine> {
  const server = await startLlama({ model, args });
  return { server, proxy: await startProxy(server.url) };
}

/** Texts of random words and lengths; the seed makes them the same on every run. */
function randomTexts(count: number): string[] {
  const next = uniform(42);
  const word = () =>
    Array.from({ length: 2 + Math.floor(next() * 7) }, () => String.fromCharCode(97 + Math.floor(next() * 26))).join(
      '',
    );
  return Array.from({ length: count }, () => Array.from({ length: 1 + Math.floor(next() * 20) }, word).join(' '));
}

function cosine(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let [dot, aa, bb] = [0, 0, 0];
  for (let at = 0; at < a.length; at += 1) {
    dot += (a[at] ?? 0) * (b[at] ?? 0);
    aa += (a[at] ?? 0) ** 2;
    bb += (b[at] ?? 0) ** 2;
  }
  return dot / Math.sqrt(aa * bb);
}

const post = (url: string, body: unknown) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

await describeWithLlama('real engines behind an agent in its own process, paired by code', () => {
  let encoder: Engine;
  let reranker: Engine;
  let chat: Engine;
  let agent: Agent;
  let plane: ControlPlane;
  let client: OpenAI;

  beforeAll(async () => {
    [encoder, reranker, chat] = await Promise.all([
      engine(encoderModel(), '--embeddings', '--metrics'),
      engine(rerankerModel(), '--reranking'),
      engine(chatModel(), '--metrics', '-np', '2'),
    ]);
    agent = await startAgent({ engines: [encoder.proxy.url, reranker.proxy.url, chat.proxy.url], name: 'gpu-box' });
    plane = await startControlPlane();
    client = new OpenAI({ baseURL: `${plane.endpoint}/v1`, apiKey: plane.apiKey, maxRetries: 0 });
    await admin(plane, plane.adminToken).post('nodes', { address: agent.listen, joinCode: agent.joinCode });
    await vi.waitUntil(
      async () => {
        const { roles } = await admin(plane, plane.adminToken).get<{ roles: { id: string; localReady: number }[] }>(
          'roles',
        );
        return ['embedding', 'reranker', 'code-assistant'].every(
          (id) => (roles.find((role) => role.id === id)?.localReady ?? 0) > 0,
        );
      },
      { timeout: 60_000, interval: 100 },
    );
  });

  afterAll(async () => {
    await plane?.stop();
    await agent?.stop();
    for (const each of [encoder, reranker, chat]) {
      await each?.proxy.stop();
      await each?.server.stop();
    }
    removeTemporaryFolders();
  });

  it('runs control plane and agent as two processes', () => {
    expect(new Set([process.pid, plane.pid, agent.pid]).size).toBe(3);
  });

  it("gives the engine's own vectors for 200 random texts, normalised", async () => {
    const texts = randomTexts(200);
    const answer = await client.embeddings.create({ model: 'embedding', input: texts, encoding_format: 'float' });
    expect(answer.data.map(({ index }) => index)).toEqual(texts.map((_, at) => at));
    let worst = 1;
    for (let from = 0; from < texts.length; from += 20) {
      const own = (await (
        await post(`${encoder.server.url}/v1/embeddings`, { input: texts.slice(from, from + 20) })
      ).json()) as {
        data: { embedding: number[] }[];
      };
      own.data.forEach(({ embedding }, at) => {
        worst = Math.min(worst, cosine(embedding, answer.data[from + at]?.embedding ?? []));
      });
    }
    expect(worst).toBeGreaterThan(0.9999);
    for (const { embedding } of answer.data) {
      expect(Math.sqrt(embedding.reduce((sum, x) => sum + x * x, 0))).toBeCloseTo(1, 4);
    }
  });

  it('gives base64 and floats that are the same numbers', async () => {
    const body = { model: 'embedding', input: ['one text'] };
    const ask = async (encoding_format: string) => {
      const response = await fetch(`${plane.endpoint}/v1/embeddings`, {
        method: 'POST',
        headers: { authorization: `Bearer ${plane.apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...body, encoding_format }),
      });
      expect(response.headers.get('x-switchyard-space')).toMatch(/^embedding-[0-9a-f]{8}$/);
      return (await response.json()) as { data: { embedding: unknown }[] };
    };
    const floats = (await ask('float')).data[0]?.embedding as number[];
    const bytes = Buffer.from((await ask('base64')).data[0]?.embedding as string, 'base64');
    const decoded = Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4));
    expect(decoded.map(Math.fround)).toEqual(floats.map(Math.fround));
  });

  it('orders documents as the engine does', async () => {
    const documents = ['a cat on a mat', 'the price of oil', 'cats and dogs', 'a railway yard', 'mat weaving'];
    const query = 'cat on mat';
    const own = (await (await post(`${reranker.server.url}/v1/rerank`, { query, documents })).json()) as {
      results: { index: number }[];
    };
    const response = await fetch(`${plane.endpoint}/v1/rerank`, {
      method: 'POST',
      headers: { authorization: `Bearer ${plane.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'reranker', query, documents }),
    });
    const ours = (await response.json()) as { results: { index: number; relevance_score: number }[] };
    // An engine may list results in any order; what counts is the order by score.
    const byScore = (results: { index: number; relevance_score?: number }[]) =>
      [...results].sort((a, b) => (b.relevance_score ?? 0) - (a.relevance_score ?? 0)).map(({ index }) => index);
    expect(byScore(ours.results)).toEqual(byScore(own.results));
    for (const { relevance_score } of ours.results) {
      expect(relevance_score).toBeGreaterThanOrEqual(0);
      expect(relevance_score).toBeLessThanOrEqual(1);
    }
  });

  it("streams a chat whose bytes are the engine's own, by SHA-256", async () => {
    chat.proxy.forget();
    const response = await fetch(`${plane.endpoint}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${plane.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'code-assistant',
        messages: [{ role: 'user', content: 'recite' }],
        stream: true,
        stream_options: { include_usage: true },
        max_tokens: 64,
      }),
    });
    const ours = Buffer.from(await response.arrayBuffer());
    const sent = chat.proxy.requests.find(({ path }) => path === '/v1/chat/completions');
    const own = Buffer.concat(sent?.answer ?? []);
    expect(own.length).toBeGreaterThan(500);
    const sha = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
    expect(sha(ours)).toBe(sha(own));
    expect(response.headers.get('x-switchyard-route')).toBe('local');
  });

  it('serves the official openai client: chat, stream and embeddings', async () => {
    const messages = [{ role: 'user' as const, content: 'recite' }];
    const whole = await client.chat.completions.create({ model: 'code-assistant', messages, max_tokens: 32 });
    const words = whole.choices[0]?.message.content ?? '';
    expect(words.length).toBeGreaterThan(10);
    let streamed = '';
    let usageChunks = 0;
    const stream = await client.chat.completions.create({
      model: 'code-assistant',
      messages,
      max_tokens: 32,
      stream: true,
    });
    for await (const chunk of stream) {
      streamed += chunk.choices[0]?.delta.content ?? '';
      if (chunk.usage) usageChunks += 1;
    }
    expect(streamed).toBe(words);
    expect(usageChunks).toBe(0); // it did not ask for one
    const { data } = await client.embeddings.create({ model: 'embedding', input: 'one text' });
    expect(data[0]?.embedding).toHaveLength(384);
  });

  it('shows in the trace that the encoder had passed before it was sent a text', async () => {
    const { response } = await client.embeddings.create({ model: 'embedding', input: 'traced' }).withResponse();
    const id = response.headers.get('x-request-id') ?? '';
    const trace = await admin(plane, plane.adminToken).get<{
      steps: { step: string; notes?: { code: string; sentence: string }[]; offsetMs: number }[];
      request: { atMs: number };
    }>(`requests/${id}`);
    const note = trace.steps.find(({ step }) => step === 'arrived')?.notes?.[0];
    expect(note?.code).toBe('noted_pass');
    const checkedAt = Date.parse(/checked (\S+),/.exec(note?.sentence ?? '')?.[1] ?? '');
    const attempt = trace.steps.find(({ step }) => step === 'attempt');
    expect(checkedAt).toBeLessThan(trace.request.atMs + (attempt?.offsetMs ?? 0));
  });

  it('stops the engine within 300 ms when a client leaves: queued, mid-stream and not streamed, each 100 times', async () => {
    const busy = async () => {
      const slots = (await (await fetch(`${chat.server.url}/slots`)).json()) as { is_processing: boolean }[];
      return slots.filter(({ is_processing }) => is_processing).length;
    };
    const begin = (stream: boolean) => {
      const leave = new AbortController();
      const answer = fetch(`${plane.endpoint}/v1/chat/completions`, {
        method: 'POST',
        signal: leave.signal,
        headers: { authorization: `Bearer ${plane.apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'code-assistant',
          messages: [{ role: 'user', content: 'recite' }],
          stream,
          max_tokens: 2000,
          ignore_eos: true,
        }),
      });
      answer.then((response) => response.arrayBuffer()).catch(() => {});
      return {
        leave: () => leave.abort(),
        head: answer.then(
          () => {},
          () => {},
        ),
      };
    };
    const idleWithin = async (ms: number) => {
      const from = performance.now();
      while ((await busy()) > 0) {
        if (performance.now() - from > ms) return performance.now() - from;
      }
      return performance.now() - from;
    };
    let slowest = 0;
    for (let round = 0; round < 100; round += 1) {
      const streams = [begin(true), begin(true)];
      const queued = begin(true);
      await Promise.all(streams.map(({ head }) => head));
      queued.leave();
      for (const { leave } of streams) leave();
      slowest = Math.max(slowest, await idleWithin(1000));
      const whole = begin(false);
      await vi.waitUntil(async () => (await busy()) > 0, { timeout: 5000, interval: 5 });
      whole.leave();
      slowest = Math.max(slowest, await idleWithin(1000));
    }
    expect(slowest).toBeLessThan(300);
  });
});
