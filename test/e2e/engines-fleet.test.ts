import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Yard } from '../chaos/fleet.ts';
import { startLlama } from '../engines/llama.ts';
import { encoderModel } from '../engines/models.ts';
import { LmstudioStandIn } from '../engines/stand-ins/lmstudio.ts';
import { OllamaStandIn } from '../engines/stand-ins/ollama.ts';
import { OpenaiStandIn } from '../engines/stand-ins/openai.ts';
import { PacedEngine } from '../engines/stand-ins/paced.ts';
import type { StandIn } from '../engines/stand-ins/stand-in.ts';
import { TeiStandIn } from '../engines/stand-ins/tei.ts';
import { TgiStandIn } from '../engines/stand-ins/tgi.ts';
import { LlamaVectors } from '../engines/stand-ins/vectors.ts';
import { VllmStandIn } from '../engines/stand-ins/vllm.ts';
import { describeWithLlama } from '../engines/suite.ts';
import { removeTemporaryFolders, startAgent } from '../support/processes.ts';

/** So many tokens as the stand-ins count: single letters, less the two special ones. */
const tokens = (count: number) => Array.from({ length: count - 2 }, () => 'a').join(' ');
const squares = (row: readonly number[]) => row.reduce((sum, x) => sum + x * x, 0);

interface EngineRow {
  readonly id: string;
  readonly kind: string;
  readonly state: string;
  readonly version: string | null;
}
interface Refusal {
  readonly error: {
    readonly code: string;
    readonly inputs?: readonly { readonly index: number; readonly tokens: number | null; readonly limit: number }[];
  };
}
interface VerdictRow {
  readonly providerId: string;
  readonly model: string;
  readonly verdict: string;
  readonly running: boolean;
}

async function engines(yard: Yard, node: string): Promise<readonly EngineRow[]> {
  const { id } = await yard.node(node);
  return (await yard.operator.get<{ engines: EngineRow[] }>(`nodes/${id}`)).engines;
}

async function verdicts(yard: Yard): Promise<readonly VerdictRow[]> {
  const { verdicts } = await yard.operator.get<{ verdicts: VerdictRow[] }>('gate');
  return verdicts.filter(({ providerId }) => providerId.startsWith('embedding~'));
}

/** Founds the space of `embedding` with that engine, and waits until every other has its verdict. */
async function found(yard: Yard, port: number, others: number): Promise<void> {
  const founders = async () =>
    (
      await yard.operator
        .get<{ founders: { providerId: string; ready: boolean }[] }>('spaces/candidates?role=embedding')
        .catch(() => ({ founders: [] }))
    ).founders.filter(({ ready }) => ready);
  await vi.waitUntil(async () => (await founders()).length === others + 1, { timeout: 60_000, interval: 100 });
  const founder = (await founders()).find(({ providerId }) => decodeURIComponent(providerId).includes(`:${port}`));
  await yard.operator.post('spaces', { role: 'embedding', founder: founder?.providerId, confirm: true });
  await vi.waitUntil(
    async () => {
      const rows = await verdicts(yard);
      return rows.length === others + 1 && rows.every(({ verdict, running }) => verdict !== 'unverified' && !running);
    },
    { timeout: 200_000, interval: 100 },
  );
}

const embedOn = async (yard: Yard, model: string, input: unknown) => {
  const response = await yard.post('/v1/embeddings', { model, input, encoding_format: 'float' });
  const answer = (await response.json()) as { data?: { embedding: number[] }[] } & Partial<Refusal>;
  return { status: response.status, rows: answer.data?.map(({ embedding }) => embedding) ?? [], error: answer.error };
};

describe('chat on every kind of engine, through an agent and a control plane', () => {
  const CHATS = {
    ollama: new OllamaStandIn({
      models: [
        { name: 'chat-on-ollama:8b', kind: 'chat', trained: 256 },
        { name: 'far-away:cloud', kind: 'chat', trained: 256, remoteHost: 'https://ollama.com:443' },
      ],
    }),
    vllm: new VllmStandIn({ task: 'chat', model: 'org/chat-on-vllm' }),
    tgi: new TgiStandIn({ model: 'org/chat-on-tgi' }),
    lmstudio: new LmstudioStandIn({ task: 'chat', model: 'chat-in-studio' }),
    openai: new OpenaiStandIn({ task: 'chat', model: 'chat-somewhere' }),
  } as const satisfies Readonly<Record<string, StandIn>>;
  const KINDS = Object.keys(CHATS) as (keyof typeof CHATS)[];
  const nameOf = (kind: keyof typeof CHATS) => (kind === 'ollama' ? 'chat-on-ollama:8b' : CHATS[kind].model);
  let yard: Yard;

  const chat = (model: string, more: object = {}, signal?: AbortSignal) =>
    fetch(`${yard.plane.endpoint}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${yard.plane.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'go' }], max_tokens: 50, ...more }),
      ...(signal === undefined ? {} : { signal }),
    });

  beforeAll(async () => {
    for (const engine of Object.values(CHATS)) await engine.start();
    yard = await Yard.start();
    const agent = await startAgent({
      name: 'chats',
      engines: Object.values(CHATS).map(({ url }) => url),
      args: ['--alias', 'assistant=org/chat-on-tgi', '--alias', 'assistant=org/chat-on-vllm'],
    });
    yard.agents.push(agent);
    await yard.pair(agent);
    await yard.operator.patch('roles/rlm', { enabled: false });
    await yard.operator.patch('roles/code-assistant', { localModels: [...KINDS.map(nameOf), 'far-away:cloud'] });
    await vi.waitUntil(
      async () => {
        const rows = await yard.providers('code-assistant');
        return rows.filter(({ nodeName, state }) => nodeName === 'chats' && state === 'ready').length >= KINDS.length;
      },
      { timeout: 60_000, interval: 100 },
    );
  });

  afterAll(async () => {
    await yard?.stop();
    for (const engine of Object.values(CHATS)) await engine.stop();
    removeTemporaryFolders();
  });

  it('takes each engine for what it is', async () => {
    const rows = await engines(yard, 'chats');
    for (const kind of KINDS) {
      const row = rows.find(({ id }) => id === `127.0.0.1:${CHATS[kind].port}`);
      expect(row).toMatchObject({ kind, state: 'ready' });
    }
  });

  describe.each(KINDS)('%s', (kind) => {
    const engine: StandIn = CHATS[kind];
    const model = nameOf(kind);

    it('answers whole and streamed, with exact usage that nobody is shown who did not ask', async () => {
      const whole = (await (await chat(model)).json()) as {
        usage: object;
        choices: { message: { content: string } }[];
      };
      expect(whole.choices[0]?.message.content).toBe('the quick brown fox jumps over the lazy');
      expect(whole.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 8 });
      const streamed = await (await chat(model, { stream: true })).text();
      expect(streamed).toContain('lazy');
      expect(streamed).not.toContain('"usage"');
      expect(streamed.trimEnd()).toMatch(/data: ?\[DONE\]$/);
      const asking = await chat(model, { stream: true, stream_options: { include_usage: true } });
      expect((await asking.text()).match(/"usage":\{/g)).toHaveLength(1);
    });

    it('that breaks off in a stream ends it with an error and without a success marker', async () => {
      engine.trouble({ kind: 'mid-stream', afterWords: 3 });
      const text = await (await chat(model, { stream: true })).text();
      expect(text).toContain('brown');
      expect(text).toContain('stream_interrupted');
      expect(text).not.toContain('[DONE]');
      expect(text).not.toMatch(/CUDA|crashed|EngineCore/);
    });

    it('that breaks off in a whole answer gives an error and no half of it', async () => {
      engine.trouble({ kind: 'mid-stream', afterWords: 3 });
      const response = await chat(model);
      expect(response.status).toBeGreaterThanOrEqual(500);
      expect(await response.text()).not.toContain('brown');
    });

    it('that is busy for a moment is waited for, and not stormed', async () => {
      const before = engine.to('/v1/chat/completions').length;
      engine.trouble({ kind: 'busy' });
      expect((await chat(model)).status).toBe(200);
      expect(engine.to('/v1/chat/completions').length - before).toBe(2);
    });

    it('is left as soon as its client leaves', async () => {
      Object.assign(engine, { words: 5000, wordMs: 50 });
      for (const stream of [true, false]) {
        const before = engine.to('/v1/chat/completions').length;
        const leave = new AbortController();
        const answer = chat(model, { stream, max_tokens: 200 }, leave.signal).then((response) => response.text());
        await expect.poll(() => engine.to('/v1/chat/completions').length).toBe(before + 1);
        leave.abort();
        await expect(answer).rejects.toThrow();
        await expect.poll(() => engine.to('/v1/chat/completions').at(-1)?.abortedAtMs).toBeTypeOf('number');
      }
      Object.assign(engine, { words: 8, wordMs: 2 });
    });

    it('with a prompt that does not fit says so as the caller’s fault', async () => {
      // 300 tokens of two bytes each are 200 by the house's estimate; only the engine knows better. Ollama would cut them.
      const content = kind === 'ollama' ? tokens(900) : tokens(300);
      for (const stream of [true, false]) {
        const response = await chat(model, { stream, messages: [{ role: 'user', content }] });
        expect(response.status).toBe(400);
        expect(((await response.json()) as Refusal).error.code).toBe('context_too_long');
      }
      expect((await chat(model)).status).toBe(200);
    });
  });

  it('a model that Ollama has done elsewhere is a cloud provider, which policy `local` leaves out', async () => {
    const response = await chat('far-away:cloud:local');
    expect(response.status).toBe(503);
    expect(CHATS.ollama.requests.filter(({ body }) => body?.model === 'far-away:cloud' && body.messages)).toEqual([]);
    const { providers } = await yard.operator.get<{ providers: { model: string; kind: string }[] }>(
      'providers?role=code-assistant',
    );
    expect(providers.find((each) => each.model === 'far-away:cloud')?.kind).toBe('cloud');
    expect(providers.find((each) => each.model === 'chat-on-ollama:8b')?.kind).toBe('local');
  });

  it('an alias is served by the models it was given to, under their own names', async () => {
    const from = { tgi: CHATS.tgi.requests.length, vllm: CHATS.vllm.requests.length };
    // One conversation stays where it began; these are twelve.
    const content = (i: number) => [{ role: 'user', content: `conversation ${i}` }];
    const answers = Array.from({ length: 12 }, (_, i) => chat('assistant', { messages: content(i) }));
    for (const answer of await Promise.all(answers)) expect(answer.status).toBe(200);
    const asked = (kind: 'tgi' | 'vllm') =>
      CHATS[kind].requests.slice(from[kind]).flatMap(({ body }) => (body === null ? [] : [body.model]));
    expect(new Set([...asked('tgi'), ...asked('vllm')])).toEqual(new Set(['org/chat-on-tgi', 'org/chat-on-vllm']));
  });

  it('an engine that freezes behind a live agent is unreachable after three probes, and its neighbours work on', async () => {
    const { vllm, tgi } = CHATS;
    const stateOf = async () => (await engines(yard, 'chats')).find(({ id }) => id === `127.0.0.1:${vllm.port}`)?.state;
    vllm.freeze();
    await expect.poll(stateOf).toBe('unreachable');
    expect((await chat(tgi.model)).status).toBe(200);
    expect((await yard.node('chats')).state).toBe('degraded');
    vllm.thaw();
    await expect.poll(stateOf).toBe('ready');
    await expect.poll(async () => (await chat(vllm.model)).status).toBe(200);
  });
});

describe('vectors and scores of every kind of engine, through an agent and a control plane', () => {
  const ENCODERS = {
    llamacpp: new PacedEngine({ model: 'encoder-on-llamacpp', slots: 4 }),
    ollama: new OllamaStandIn({ model: 'encoder-on-ollama:latest' }),
    vllm: new VllmStandIn({ model: 'org/encoder-on-vllm' }),
    tei: new TeiStandIn({ model: 'org/encoder-on-tei' }),
    openai: new OpenaiStandIn({ task: 'embed', model: 'encoder-somewhere' }),
    lmstudio: new LmstudioStandIn({ task: 'embed', model: 'encoder-in-studio' }),
  } as const satisfies Readonly<Record<string, StandIn>>;
  const PASSING = ['llamacpp', 'ollama', 'vllm', 'tei', 'openai'] as const;
  const tei = new TeiStandIn({ task: 'rerank', model: 'org/reranker-on-tei' });
  const all: readonly StandIn[] = [...Object.values(ENCODERS), tei];
  let yard: Yard;

  beforeAll(async () => {
    for (const engine of all) await engine.start();
    yard = await Yard.start();
    await yard.operator.patch('roles/code-embedding', { enabled: false });
    await yard.add(
      'encoders',
      all.map(({ url }) => url),
    );
    await found(yard, ENCODERS.llamacpp.port, 5);
  });

  afterAll(async () => {
    await yard?.stop();
    for (const engine of all) await engine.stop();
    removeTemporaryFolders();
  });

  it('lets pass whoever reads alike and refuses what is too long, and shuts out who cuts silently', async () => {
    const rows = Object.fromEntries((await verdicts(yard)).map(({ model, verdict }) => [model, verdict]));
    for (const name of PASSING) expect([name, rows[ENCODERS[name].model]]).toEqual([name, 'pass']);
    expect(rows[ENCODERS.lmstudio.model]).toBe('silent-truncation');
  });

  it.each(PASSING)('%s gives its own vectors, of length 1, in order', async (name) => {
    const texts = ['one text', 'another text', 'žluťoučký kůň'];
    const { status, rows } = await embedOn(yard, ENCODERS[name].model, texts);
    expect(status).toBe(200);
    for (const [i, text] of texts.entries()) {
      expect(squares(rows[i] ?? [])).toBeCloseTo(1, 5);
      const own = await ENCODERS[name].vectors.encode(text);
      expect(rows[i]?.every((value, at) => Math.abs(value - (own[at] ?? Number.NaN)) < 1e-5)).toBe(true);
    }
  });

  it.each(PASSING)('%s is not shown a text that is too long, and the client learns which it was', async (name) => {
    const engine = ENCODERS[name];
    const { status, error } = await embedOn(yard, engine.model, ['short', tokens(257), tokens(256)]);
    expect([status, error?.code]).toEqual([400, 'input_too_long']);
    expect(error?.inputs?.map(({ index, limit }) => [index, limit])).toEqual([[1, 256]]);
    expect(error?.inputs?.[0]?.tokens).toBeGreaterThan(256);
    expect((await embedOn(yard, engine.model, [tokens(256)])).status).toBe(200);
  });

  it.each(PASSING)('%s is waited for when it is busy', async (name) => {
    ENCODERS[name].trouble({ kind: 'busy' });
    expect((await embedOn(yard, ENCODERS[name].model, ['a'])).status).toBe(200);
  });

  it('sends TEI no more than it takes at once', async () => {
    const texts = Array.from({ length: 100 }, (_, i) => `text ${i}`);
    const { status, rows } = await embedOn(yard, ENCODERS.tei.model, texts);
    expect([status, rows.length]).toEqual([200, 100]);
    const sizes = ENCODERS.tei.to('/embed').map(({ body }) => (Array.isArray(body?.inputs) ? body.inputs.length : 0));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(32);
  });

  it('asks Ollama never to cut and never on the route that does', async () => {
    expect(ENCODERS.ollama.to('/v1/embeddings')).toEqual([]);
    expect(ENCODERS.ollama.to('/api/embed').every(({ body }) => body?.truncate === false)).toBe(true);
    expect(ENCODERS.ollama.loads).toBe(1);
  });

  it('lets no vector through of a model that was pulled again', async () => {
    const { ollama } = ENCODERS;
    ollama.beforeVectors = () => ollama.pull(ollama.model);
    // The chunk is discarded, the verdict void; the new model is checked, and answers when it has passed.
    await embedOn(yard, ollama.model, ['discarded']);
    await expect
      .poll(async () => (await verdicts(yard)).find(({ model }) => model === ollama.model)?.verdict, {
        timeout: 30_000,
      })
      .toBe('pass');
    expect((await embedOn(yard, ollama.model, ['again'])).status).toBe(200);
  });

  it('ranks 70 documents on TEI, which takes 32', async () => {
    const documents = Array.from({ length: 70 }, (_, i) => (i === 50 ? 'red fox' : `blue ${i}`));
    const response = await yard.post('/v1/rerank', { model: tei.model, query: 'red fox', documents, top_n: 1 });
    const answer = (await response.json()) as { results: { index: number; relevance_score: number }[] };
    expect(answer.results).toMatchObject([{ index: 50, relevance_score: 1 }]);
    const long = await yard.post('/v1/rerank', { model: tei.model, query: 'red', documents: ['ok', tokens(300)] });
    expect(long.status).toBe(400);
    expect(((await long.json()) as Refusal).error.code).toBe('input_too_long');
  });
});

await describeWithLlama('real vectors behind other engines', () => {
  let yard: Yard;
  const started: { stop(): Promise<unknown> }[] = [];

  afterAll(async () => {
    await yard?.stop();
    for (const engine of started.reverse()) await engine.stop();
    removeTemporaryFolders();
  });

  it('a llama.cpp server, a TEI and an Ollama with its vectors are one space', { timeout: 240_000 }, async () => {
    const llama = await startLlama({ model: encoderModel(), args: ['--embeddings'] });
    const behind = await startLlama({ model: encoderModel(), args: ['--embeddings'] });
    started.push(llama, behind);
    const options = { vectors: new LlamaVectors(behind.url, 384), window: 512 };
    const others = [new TeiStandIn(options), new OllamaStandIn(options)] as const;
    for (const engine of others) started.push(await engine.start());
    yard = await Yard.start();
    await yard.operator.patch('roles/code-embedding', { enabled: false });
    await yard.add('encoders', [llama.url, ...others.map(({ url }) => url)]);
    await found(yard, llama.port, others.length);
    const kinds = (await engines(yard, 'encoders')).filter(({ id }) => id.startsWith('127.0.0.1:'));
    expect(kinds.map(({ kind }) => kind).sort()).toEqual(['llama.cpp', 'ollama', 'tei']);
    expect((await verdicts(yard)).map(({ verdict }) => verdict)).toEqual(['pass', 'pass', 'pass']);
    const { rows } = await embedOn(yard, others[0].model, ['one text']);
    const own = await new LlamaVectors(llama.url, 384).encode('one text');
    expect(rows[0]?.every((value, at) => Math.abs(value - (own[at] ?? Number.NaN)) < 1e-3)).toBe(true);
  });
});
