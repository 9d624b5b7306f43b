import { afterEach, describe, expect, it } from 'vitest';
import type { ProcessMarks } from '../../../agent/engines/process-mark.ts';
import { LmstudioStandIn } from '../../engines/stand-ins/lmstudio.ts';
import { OllamaStandIn } from '../../engines/stand-ins/ollama.ts';
import { OpenaiStandIn } from '../../engines/stand-ins/openai.ts';
import { PacedEngine } from '../../engines/stand-ins/paced.ts';
import type { StandIn } from '../../engines/stand-ins/stand-in.ts';
import { TeiStandIn } from '../../engines/stand-ins/tei.ts';
import { TgiStandIn } from '../../engines/stand-ins/tgi.ts';
import { VllmStandIn } from '../../engines/stand-ins/vllm.ts';
import { chatCall, embedCall, rerankCall, tokenizeCall } from '../recorded-call.ts';
import { type Served, type ServeOptions, serve } from './served.ts';

const started: { stop(): unknown }[] = [];
afterEach(async () => {
  for (const thing of started.splice(0).reverse()) await thing.stop();
});

async function behind<S extends StandIn>(
  standIn: S,
  options: ServeOptions = {},
): Promise<Served & { readonly engine: S }> {
  started.push(standIn);
  await standIn.start();
  const served = await serve(standIn.url, options);
  started.push(served.fleet);
  return { ...served, engine: standIn };
}

const messages = (content: string) => ({ model: 'code-assistant', messages: [{ role: 'user', content }] });
const stream = (more = {}) => ({ ...messages('go'), stream: true, ...more });
/** So many tokens as the stand-ins count: single letters, less the two special ones. */
const tokens = (count: number) => Array.from({ length: count - 2 }, () => 'a').join(' ');
const squares = (row: Float32Array | undefined) => [...(row ?? [])].reduce((sum, x) => sum + x * x, 0);

/** Texts of each request to a path. */
const lengths = (engine: StandIn, path: string, key: string) =>
  engine.to(path).map(({ body }) => (Array.isArray(body?.[key]) ? body[key].length : 0));

const CHAT: readonly (readonly [string, () => StandIn])[] = [
  ['Ollama', () => new OllamaStandIn({ models: [{ name: 'm', kind: 'chat', trained: 4096 }] })],
  ['vLLM', () => new VllmStandIn({ task: 'chat' })],
  ['TGI', () => new TgiStandIn()],
  ['LM Studio', () => new LmstudioStandIn({ task: 'chat' })],
  ['a generic server', () => new OpenaiStandIn({ task: 'chat' })],
];

describe.each(CHAT)('chat on %s', (name, make) => {
  it('streams to the end, knows the tokens exactly, and shows the usage chunk only to who asked', async () => {
    const { run, place, engine } = await behind(make());
    const not = await run(chatCall(place(), stream()));
    expect(not.failure).toBeNull();
    // "go" is three tokens to the stand-ins: the word and two special ones.
    expect(not.trailers).toMatchObject({
      finished: true,
      usage: { promptTokens: 3, completionTokens: 8, exact: true },
    });
    expect(not.text).not.toContain('"usage"');
    expect(not.text).toMatch(/data: ?\[DONE\]\n\n$/);
    const asked = await run(
      chatCall(place(), stream({ stream_options: { include_usage: true } }), { wantsUsage: true }),
    );
    expect(asked.text.match(/"usage"/g)).toHaveLength(1);
    expect(asked.trailers?.usage).toEqual(not.trailers?.usage);
    // Probes come at any moment: the last chat is meant, not the last request.
    expect(engine.to('/v1/chat/completions').at(-1)?.body).toMatchObject({ model: place().model });
  });

  it('orders a whole answer as a stream and puts it together', async () => {
    const { run, place, engine } = await behind(make());
    const call = await run(chatCall(place(), { ...messages('go'), max_tokens: 3 }));
    expect(call.json).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { role: 'assistant', content: 'the quick brown' }, finish_reason: 'length' }],
      usage: { prompt_tokens: 3, completion_tokens: 3 },
    });
    expect(engine.to('/v1/chat/completions').at(-1)?.body?.stream).toBe(true);
  });

  it('takes no [DONE], no silence and no empty chunk for success when a stream breaks', async () => {
    const { run, place, engine } = await behind(make());
    for (const kind of ['mid-stream', 'cut'] as const) {
      engine.trouble({ kind, afterWords: 3 });
      const call = await run(chatCall(place(), stream()));
      expect(call.failure).toMatchObject({ blame: 'engine', code: 'stream_interrupted', afterFirstByte: true });
      expect(call.text).toContain('brown');
      expect(call.text).not.toMatch(/DONE|error|CUDA|crash/i);
    }
    engine.trouble({ kind: 'error-in-200' });
    expect((await run(chatCall(place(), stream()))).failure).toMatchObject({ blame: 'engine', code: 'engine_error' });
    expect((await run(chatCall(place(), stream()))).failure).toBeNull();
  });

  it('is busy when it says so, which counts against nobody', async () => {
    const { run, place, engine, report } = await behind(make());
    engine.trouble({ kind: 'busy' });
    const call = await run(chatCall(place(), stream()));
    expect(call.failure).toMatchObject({ blame: 'busy', code: 'engine_busy' });
    expect(report().errorsTotal).toBe(0);
  });

  it.each([true, false])('stops when the caller leaves (streamed: %s)', async (streamed) => {
    const { fleet, place, engine } = await behind(make());
    engine.words = 5000;
    const call = chatCall(place(), { ...messages('go'), stream: streamed });
    const sent = engine.to('/v1/chat/completions').length;
    fleet.serve(call);
    await expect.poll(() => engine.to('/v1/chat/completions').length).toBe(sent + 1);
    call.controls.abort();
    await expect.poll(() => engine.to('/v1/chat/completions').at(-1)?.abortedAtMs).toBeTypeOf('number');
    expect(call.failure).toBeNull();
  });

  // Ollama does not say so, it cuts: its window is looked at before it is asked.
  const tellsOfLength =
    name === 'Ollama' ? [] : ['says that a prompt does not fit, streamed or not, as the caller’s fault'];
  it.for(tellsOfLength)('%s', async () => {
    const { run, place } = await behind(make());
    for (const streamed of [true, false]) {
      const call = await run(chatCall(place(), { ...messages(tokens(300)), stream: streamed }));
      expect(call.failure).toMatchObject({ blame: 'caller', code: 'context_too_long', limitTokens: 256 });
      expect(call.chunks).toEqual([]);
    }
  });

  it('is found to chat and nothing else, in a process that is known', async () => {
    const { report, model } = await behind(make());
    expect(model().tasks).toEqual(['chat']);
    expect(report().processMark).toMatch(new RegExp(`^${process.pid}@\\d+`));
  });
});

const EMBED: readonly (readonly [string, () => StandIn, string])[] = [
  ['Ollama', () => new OllamaStandIn(), '/api/embed'],
  ['vLLM', () => new VllmStandIn(), '/v1/embeddings'],
  ['TEI', () => new TeiStandIn(), '/embed'],
  ['LM Studio', () => new LmstudioStandIn({ task: 'embed' }), '/v1/embeddings'],
  ['a generic server', () => new OpenaiStandIn({ task: 'embed' }), '/v1/embeddings'],
  ['llama.cpp', () => new PacedEngine(), '/v1/embeddings'],
];

describe.each(EMBED)('vectors of %s', (name, make, route) => {
  it('are those of the engine, in order, of length 1', async () => {
    const { run, place, engine, model } = await behind(make());
    const texts = ['one text', 'another', 'a third, longer one'];
    const call = await run(embedCall(place(), texts));
    expect(call.failure).toBeNull();
    expect(call.vectors).toHaveLength(3);
    for (const [i, text] of texts.entries()) {
      const own = await engine.vectors.encode(text);
      expect(squares(call.vectors[i])).toBeCloseTo(1, 5);
      call.vectors[i]?.forEach((value, at) => {
        expect(value).toBeCloseTo(own[at] ?? Number.NaN, 5);
      });
    }
    expect(model()).toMatchObject({ tasks: ['embed'], width: 64, maxInputTokens: 256 });
  });

  it('are cut by the agent, never by the engine', async () => {
    const { run, place, engine } = await behind(make());
    const call = await run(embedCall(place(), ['one text'], { cut: 16 }));
    expect(call.response).toMatchObject({ width: 16 });
    expect(squares(call.vectors[0])).toBeCloseTo(1, 5);
    expect(JSON.stringify(engine.requests.map(({ body }) => body))).not.toContain('dimensions');
  });

  it('are refused as busy without a mark against the engine', async () => {
    const { run, place, engine, report } = await behind(make());
    engine.trouble({ kind: 'busy' });
    expect((await run(embedCall(place(), ['a']))).failure).toMatchObject({ blame: 'busy', code: 'engine_busy' });
    expect(report().errorsTotal).toBe(0);
  });

  // LM Studio cuts without a word, and the gate shuts out who does.
  const refusesLength =
    name === 'LM Studio' ? [] : ['of a text that is too long do not exist, and the caller learns which'];
  it.for(refusesLength)('%s', async () => {
    const { run, place, model } = await behind(make());
    const call = await run(embedCall(place(), ['short', tokens(257), tokens(256)]));
    expect(call.failure).toMatchObject({ blame: 'caller', code: 'input_too_long', limitTokens: 256 });
    const counted = model().tokenCounting === 'exact';
    // Where nobody counts, every text with more bytes than tokens allowed is under suspicion.
    expect(call.failure?.failing.map(({ index }) => index)).toEqual(counted ? [1] : [1, 2]);
    if (counted) expect(call.failure?.failing[0]?.tokens).toBeGreaterThan(256);
    expect(call.chunks).toEqual([]);
    expect((await run(embedCall(place(), [tokens(256)]))).failure).toBeNull();
  });

  // What llama.cpp sees of a caller who leaves is shown by a real server (test/e2e/agent-llamacpp).
  const seesLeaving = name === 'llama.cpp' ? [] : ['stop being wanted when the caller leaves: the engine sees it'];
  it.for(seesLeaving)('%s', async () => {
    const { fleet, run, place, engine } = await behind(make());
    await run(embedCall(place(), ['the socket is known now']));
    const sent = engine.to(route).length;
    engine.freeze();
    const call = embedCall(place(), ['never answered']);
    fleet.serve(call);
    await expect.poll(() => engine.to(route).length).toBe(sent + 1);
    call.controls.abort();
    await expect.poll(() => engine.to(route).at(-1)?.abortedAtMs).toBeTypeOf('number');
    engine.thaw();
    expect(call.failure).toBeNull();
  });
});

describe('counting tokens', () => {
  it.each([
    ['Ollama', () => new OllamaStandIn()],
    ['vLLM', () => new VllmStandIn()],
    ['TEI', () => new TeiStandIn()],
    ['llama.cpp', () => new PacedEngine()],
  ] as const)(
    '%s counts as it reads, special tokens included, and above its limit says more than the limit',
    async (_, make) => {
      const { run, place, model } = await behind(make());
      expect(model().tokenCounting).toBe('exact');
      const many = Array.from({ length: 40 }, (_, i) => tokens(3 + i));
      const call = await run(tokenizeCall(place(), [...many, tokens(256), tokens(1000)]));
      const counts = (call.json as { tokens: number[] }).tokens;
      expect(counts.slice(0, 41)).toEqual([...many.map((_, i) => 3 + i), 256]);
      expect(Math.abs((counts[41] ?? 0) - 1000)).toBeLessThan(20);
    },
  );

  it.each([
    ['LM Studio', () => new LmstudioStandIn({ task: 'embed' })],
    ['a generic server', () => new OpenaiStandIn({ task: 'embed' })],
  ] as const)('%s cannot, and says so', async (_, make) => {
    const { run, place, model } = await behind(make());
    expect(model().tokenCounting).toBe('none');
    expect((await run(tokenizeCall(place(), ['a']))).failure).toMatchObject({ code: 'unsupported_task' });
  });
});

describe('Ollama', () => {
  const models = [
    { name: 'chat:8b', kind: 'chat' as const, trained: 40_960 },
    {
      name: 'chat-wide:8b',
      kind: 'chat' as const,
      trained: 40_960,
      parameters: 'num_ctx                        8192\nstop "x"',
    },
    { name: 'encoder:latest', kind: 'embed' as const, trained: 512 },
    { name: 'huge:cloud', kind: 'chat' as const, trained: 131_072, remoteHost: 'https://ollama.com:443' },
  ];

  it('is read without loading a model; windows are those allocated, else configured, else unknown', async () => {
    const { report, engine, run } = await behind(new OllamaStandIn({ models, window: 300 }));
    expect(engine.loads).toBe(0);
    const of = (name: string) => report().models.find(({ model }) => model === name);
    expect(of('chat:8b')).toMatchObject({ tasks: ['chat'], loaded: false, contextTokens: null, remoteHost: null });
    expect(of('chat-wide:8b')).toMatchObject({ contextTokens: 8192 });
    expect(of('encoder:latest')).toMatchObject({ tasks: ['embed'], width: 64, maxInputTokens: 512 });
    expect(of('huge:cloud')).toMatchObject({ remoteHost: 'https://ollama.com:443', contextTokens: 131_072 });
    const place = { engine: report().engine, model: 'chat:8b' };
    await run(chatCall(place, stream()));
    await expect.poll(() => of('chat:8b')).toMatchObject({ loaded: true, contextTokens: 300 });
    expect(report()).toMatchObject({ kind: 'ollama', version: '0.33.1', slots: 1, queued: null, state: 'ready' });
  });

  it('is never given options, whatever the client sends, so that it loads a model once', async () => {
    const { report, engine, run } = await behind(new OllamaStandIn({ models }));
    const place = { engine: report().engine, model: 'chat:8b' };
    await run(chatCall(place, stream({ options: { num_ctx: 1024 }, keep_alive: 0 })));
    await run(chatCall(place, stream({ options: { num_ctx: 2048 } })));
    const encoder = { engine: report().engine, model: 'encoder:latest' };
    await run(embedCall(encoder, ['a']));
    await run(tokenizeCall(encoder, ['a']));
    expect(engine.loads).toBe(2);
    for (const { body } of engine.requests) expect(Object.keys(body ?? {})).not.toContain('options');
  });

  it('gives no vector of a model that was pulled again meanwhile, and is inspected anew', async () => {
    const { engine, run, place, model } = await behind(new OllamaStandIn());
    const { digest } = model();
    engine.beforeVectors = () => engine.pull('encoder:latest');
    const call = await run(embedCall(place(), ['a']));
    expect(call.failure).toMatchObject({ blame: 'fingerprint', code: 'fingerprint_changed' });
    expect(call.chunks).toEqual([]);
    await expect.poll(() => model().digest).not.toBe(digest);
    const next = await run(embedCall(place(), ['a']));
    expect(next.trailers?.fingerprint.modelDigest).toBe(model().digest);
  });

  it('is asked under a name that it takes when it takes no foreign one', async () => {
    const { run, place, engine } = await behind(new OllamaStandIn({ hosts: ['localhost'] }));
    expect((await run(embedCall(place(), ['a']))).failure).toBeNull();
    expect((await run(tokenizeCall(place(), ['a']))).failure).toBeNull();
    expect(engine.to('/api/embed').every(({ headers }) => headers.host === 'localhost')).toBe(true);
  });

  it('has no model that it has lost', async () => {
    const { engine, run, report } = await behind(new OllamaStandIn({ models }));
    engine.models.splice(0, 1);
    const call = await run(chatCall({ engine: report().engine, model: 'chat:8b' }, stream()));
    expect(call.failure).toMatchObject({ blame: 'engine', code: 'model_missing' });
    await expect.poll(() => report().models.map(({ model }) => model)).not.toContain('chat:8b');
  });
});

describe('vLLM', () => {
  it('tells its load over all its engines, and what others run there', async () => {
    const { report, engine } = await behind(new VllmStandIn({ task: 'chat' }));
    engine.running = 5;
    engine.waiting = 7;
    await expect.poll(() => report()).toMatchObject({ queued: 8, foreign: 5 });
    expect(report()).toMatchObject({ version: '0.14.0', slots: 32 });
  });

  it('is marked by pid and by the start that it tells itself; another start shows before a text does', async () => {
    const { report, engine, run, place } = await behind(new VllmStandIn());
    const mark = report().processMark;
    expect(mark).toMatch(/^\d+@\d+ start=1790000000.25$/);
    expect((await run(embedCall(place(), ['a'], { processMark: mark }))).failure).toBeNull();
    const { port } = engine;
    await engine.stop();
    engine.startedAt += 60;
    await engine.start(port);
    await expect
      .poll(async () => (await run(embedCall(place(), ['unseen'], { processMark: mark }))).failure?.code)
      .toBe('fingerprint_changed');
    expect(JSON.stringify(engine.requests.map(({ body }) => body))).not.toContain('unseen');
    await expect.poll(() => report().processMark).toContain('start=1790000060.25');
  });

  it('ranks, in the order of the documents', async () => {
    const { run, place, model } = await behind(new VllmStandIn({ task: 'rerank' }));
    expect(model().tasks).toEqual(['rerank']);
    const call = await run(rerankCall(place(), 'red fox', ['a red fox', 'nails', 'a fox']));
    expect(call.json).toEqual({ scores: [1, 0, 0.5] });
    const long = await run(rerankCall(place(), 'red fox', ['ok', tokens(300)]));
    expect(long.failure).toMatchObject({ blame: 'caller', code: 'input_too_long', failing: [{ index: 1 }] });
  });

  it('whose engine has died counts as unreachable, though its server answers', async () => {
    const { report, engine } = await behind(new VllmStandIn());
    engine.dead = true;
    await expect.poll(() => report().state).toBe('unreachable');
  });
});

describe('TEI', () => {
  it('reports its batch limit, and its queue', async () => {
    const { report, model } = await behind(new TeiStandIn());
    expect(model()).toMatchObject({ maxBatch: 32, contextTokens: 256, tokenCounting: 'exact' });
    await expect.poll(() => report().queued).toBe(5);
  });

  it('ranks more documents than one request takes', async () => {
    const { run, place, engine } = await behind(new TeiStandIn({ task: 'rerank' }));
    const documents = Array.from({ length: 70 }, (_, i) => (i % 2 === 0 ? `red ${i}` : `blue ${i}`));
    const call = await run(rerankCall(place(), 'red', documents));
    expect(call.json).toEqual({ scores: documents.map((_, i) => (i % 2 === 0 ? 1 : 0)) });
    expect(lengths(engine, '/rerank', 'texts')).toEqual([32, 32, 6]);
  });

  it('is sent texts in parts when they pass its two megabytes', async () => {
    const { run, place, engine } = await behind(new TeiStandIn({ window: 500_000 }));
    const texts = Array.from({ length: 3 }, (_, i) => `${i}${'x'.repeat(900_000)}`);
    const call = await run(embedCall(place(), texts));
    expect(call.vectors).toHaveLength(3);
    expect(lengths(engine, '/embed', 'inputs').slice(-2)).toEqual([2, 1]);
    const [last] = call.vectors.slice(-1);
    expect(last?.[0]).toBeCloseTo((await engine.vectors.encode(texts[2] ?? ''))[0] ?? Number.NaN, 5);
  });

  it('with another pooling is another model', async () => {
    const { engine, model } = await behind(new TeiStandIn());
    const { digest } = model();
    engine.pooling = 'cls';
    await expect.poll(() => model().digest).not.toBe(digest);
  });

  it('tells which input is empty as the caller’s fault', async () => {
    const { run, place } = await behind(new TeiStandIn());
    const call = await run(embedCall(place(), []));
    expect(call.failure).toMatchObject({ blame: 'caller', code: 'empty_input' });
  });
});

describe('TGI', () => {
  it('reports window, slots and queue, and is ill when it says so', async () => {
    const { report, model, engine } = await behind(new TgiStandIn());
    expect(model()).toMatchObject({ contextTokens: 256, maxInputTokens: null });
    expect(report()).toMatchObject({ slots: 32, version: '3.3.6' });
    await expect.poll(() => report()).toMatchObject({ queued: 3, foreign: 2 });
    engine.ill = true;
    await expect.poll(() => report().state).toBe('unreachable');
  });
});

describe('LM Studio', () => {
  it.each([true, false])('is not made to load anything by being looked at (before 0.4: %s)', async (older) => {
    const { engine, model, run, place } = await behind(new LmstudioStandIn({ older, loaded: false }));
    expect(model()).toMatchObject({ loaded: false, contextTokens: null });
    expect(engine.loads).toBe(0);
    expect((await run(chatCall(place(), stream()))).failure).toBeNull();
    await expect.poll(() => model()).toMatchObject({ loaded: true, contextTokens: 256 });
  });

  it('has as many slots as a loaded model takes at once', async () => {
    const { report } = await behind(new LmstudioStandIn());
    expect(report().slots).toBe(2);
  });
});

describe('a generic server', () => {
  it('that bears no stream_options is not sent any, and its tokens are estimated', async () => {
    const { run, place, engine } = await behind(new OpenaiStandIn({ strict: true }));
    const call = await run(chatCall(place(), stream()));
    expect(call.failure).toBeNull();
    expect(call.trailers?.usage).toMatchObject({ exact: false });
    expect(engine.to('/v1/chat/completions').at(-1)?.body).not.toHaveProperty('stream_options');
  });

  it('that asks for patience gets it', async () => {
    const { run, place, engine } = await behind(new OpenaiStandIn());
    engine.trouble({ kind: 'busy' });
    expect((await run(chatCall(place(), stream()))).failure).toMatchObject({ blame: 'busy', retryAfterMs: 2000 });
  });
});

describe('marks and names', () => {
  const unreadable: ProcessMarks = { read: async () => null, ancestors: async () => [] };
  it.each([
    ['TEI', () => new TeiStandIn(), expect.stringMatching(/^connection:[0-9a-f]{12}-1$/)],
    ['TGI', () => new TgiStandIn(), null],
    ['vLLM', () => new VllmStandIn(), 'start=1790000000.25'],
    ['llama.cpp', () => new PacedEngine(), '<__media_1__>'],
  ] as const)(
    'where no process can be read, %s is marked by what it tells itself, else by its connections if it embeds',
    async (_, make, mark) => {
      const { report } = await behind(make(), { marks: unreadable });
      expect(report().processMark).toEqual(mark);
    },
  );

  it('given by the operator are added to the model they were given to, and to no other', async () => {
    const aliases = new Map([
      ['org/model-on-vllm', ['qwen3:8b', 'org/model-on-vllm', 'second']],
      ['elsewhere', ['third']],
    ]);
    const { model } = await behind(new VllmStandIn({ task: 'chat' }), { aliases });
    expect(model()).toMatchObject({ model: 'org/model-on-vllm', aliases: ['qwen3:8b', 'second'] });
  });
});

describe('a paced encoder', () => {
  it('does so many texts a second whatever the number of requests, and counts each', async () => {
    const { fleet, place, engine } = await behind(new PacedEngine({ itemsPerSecond: 200, slots: 2 }));
    const before = engine.total();
    const calls = [0, 1].map((half) =>
      embedCall(
        place(),
        Array.from({ length: 20 }, (_, i) => `text ${half} ${i}`),
      ),
    );
    const startedMs = performance.now();
    for (const call of calls) fleet.serve(call);
    await Promise.all(calls.map(({ over }) => over));
    // 40 texts at 200 a second, one after the other: not below 200 ms.
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(190);
    expect(engine.total() - before).toBe(40);
    expect([...engine.encodes].filter(([text]) => text.startsWith('text')).every(([, times]) => times === 1)).toBe(
      true,
    );
  });

  it('begins no text of a caller who has left', async () => {
    const { fleet, place, engine } = await behind(new PacedEngine({ itemsPerSecond: 50 }));
    const call = embedCall(
      place(),
      Array.from({ length: 100 }, (_, i) => `text ${i}`),
    );
    fleet.serve(call);
    await expect.poll(() => engine.encodes.has('text 1')).toBe(true);
    call.controls.abort();
    await expect.poll(() => engine.to('/v1/embeddings').at(-1)?.abortedAtMs).toBeTypeOf('number');
    expect(engine.encodes.has('text 99')).toBe(false);
  });
});
