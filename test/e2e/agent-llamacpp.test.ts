import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { parseEngineAddress } from '../../agent/engines/address.ts';
import { engineDefinitions } from '../../agent/engines/definitions.ts';
import { EngineFleet } from '../../agent/engines/fleet.ts';
import { createProcessMarks } from '../../agent/engines/process-mark.ts';
import type { EngineReport, ModelReport } from '../../agent/wire/control.ts';
import { EngineReport as EngineReportSchema } from '../../agent/wire/control.ts';
import { createSystemClock } from '../../main/platform/clock.ts';
import { chatCall, embedCall, type RecordedCall, rerankCall, tokenizeCall } from '../agent/recorded-call.ts';
import { type LlamaServer, startLlama } from '../engines/llama.ts';
import { chatModel, encoderModel, rerankerModel } from '../engines/models.ts';
import { type Fault, type RecordingProxy, startProxy } from '../engines/proxy.ts';
import { describeWithLlama } from '../engines/suite.ts';

const clock = createSystemClock();

interface Served {
  readonly server: LlamaServer;
  readonly proxy: RecordingProxy;
  readonly fleet: EngineFleet;
  place(): { readonly engine: string; readonly model: string };
  report(): EngineReport;
  run<C extends RecordedCall>(call: C): Promise<C>;
}

const started: { stop(): unknown }[] = [];

async function serve(model: string, ...args: string[]): Promise<Served> {
  const server = await startLlama({ model, args });
  const proxy = await startProxy(server.url);
  const fleet = new EngineFleet({
    clock,
    marks: createProcessMarks(),
    definitions: engineDefinitions(clock),
    named: [parseEngineAddress(proxy.url)],
    builtIn: [],
    ports: [],
    onChange: () => undefined,
  });
  started.push(fleet, proxy, server);
  fleet.start();
  const report = () => fleet.reports()[0] as EngineReport;
  await vi.waitUntil(() => report().state === 'ready', { timeout: 15_000 });
  const place = () => ({ engine: report().engine, model: report().models[0]?.model ?? '' });
  const run = async <C extends RecordedCall>(call: C): Promise<C> => {
    fleet.serve(call);
    await call.over;
    return call;
  };
  return { server, proxy, fleet, place, report, run };
}

async function ask(url: string, path: string, body: unknown): Promise<unknown> {
  const response = await fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body) });
  return response.json();
}

async function busySlots(url: string): Promise<number> {
  const slots = (await (await fetch(`${url}/slots`)).json()) as { is_processing: boolean }[];
  return slots.filter((slot) => slot.is_processing).length;
}

const squares = (row: Float32Array | number[] | undefined) => [...(row ?? [])].reduce((sum, x) => sum + x * x, 0);

afterAll(async () => {
  for (const thing of started) await thing.stop();
});

await describeWithLlama('a llama.cpp encoder behind the agent', () => {
  let served: Served;
  beforeAll(async () => {
    served = await serve(encoderModel(), '--embeddings', '--metrics');
  });
  beforeEach(() => served.proxy.forget());

  const embed = (texts: readonly string[], more = {}) => served.run(embedCall(served.place(), texts, more));

  it('is reported as what it is, with its real window, width, slots and limit', () => {
    const report = EngineReportSchema.parse(served.report());
    expect(report).toMatchObject({ kind: 'llama.cpp', reach: 'loopback', slots: 4, state: 'ready', reason: null });
    expect(report.version).toMatch(/^b\d+/);
    expect(report.processMark).toMatch(/^\d+@\d+ <__media_/);
    const [model] = report.models as [ModelReport];
    expect(model).toMatchObject({ tasks: ['embed'], width: 384, contextTokens: 512, maxInputTokens: 512 });
    expect(model).toMatchObject({ tokenCounting: 'exact', trial: false, remoteHost: null });
  });

  it("gives the engine's own vectors, raw and normalised, in order", async () => {
    const texts = ['alpha', 'beta', 'gamma delta'];
    const own = (await ask(served.server.url, '/v1/embeddings', { input: texts })) as {
      data: { embedding: number[] }[];
    };
    const call = await embed(texts, { width: 384, normalise: false });
    expect(call.response).toEqual({ status: 200, contentType: 'application/octet-stream', count: 3, width: 384 });
    call.vectors.forEach((row, i) => {
      own.data[i]?.embedding.forEach((value, d) => {
        expect(row[d]).toBeCloseTo(value, 6);
      });
    });
    expect(call.trailers?.usage).toMatchObject({ promptTokens: expect.any(Number), exact: true });
    expect(call.trailers?.fingerprint.processMark).toBe(served.report().processMark);
    expect(served.proxy.texts()).toEqual(texts);
    for (const row of (await embed(texts)).vectors) expect(squares(row)).toBeCloseTo(1, 5);
  });

  it('cuts first and normalises then', async () => {
    const full = (await embed(['alpha'], { normalise: false })).vectors[0] as Float32Array;
    const cut = (await embed(['alpha'], { cut: 64 })).vectors[0] as Float32Array;
    expect(cut).toHaveLength(64);
    const norm = Math.sqrt(squares(full.subarray(0, 64)));
    cut.forEach((value, d) => {
      expect(value).toBeCloseTo((full[d] ?? 0) / norm, 5);
    });
  });

  it('shows no text to a process with another mark', async () => {
    const call = await embed(['secret'], { processMark: '1@2' });
    expect(call.failure).toMatchObject({ blame: 'fingerprint', code: 'fingerprint_changed' });
    expect(served.proxy.texts()).toEqual([]);
    expect((await embed(['fine'], { processMark: served.report().processMark })).failure).toBeNull();
  });

  it('counts tokens, special ones included, and takes exactly as many as it says', async () => {
    const call = await served.run(tokenizeCall(served.place(), ['', 'ab', 'ab '.repeat(510), 'ab '.repeat(511)]));
    expect(call.json).toEqual({ tokens: [2, 3, 512, 513] });
    expect((await embed(['ab '.repeat(510)])).failure).toBeNull();
  });

  it("turns the engine's 500 for an over-long text into the caller's own fault, with index and counts", async () => {
    const call = await embed(['short', 'ab '.repeat(511), 'short', 'ab '.repeat(600)]);
    expect(call.failure).toMatchObject({
      blame: 'caller',
      code: 'input_too_long',
      engineStatus: 500,
      limitTokens: 512,
    });
    expect(call.failure?.failing).toEqual([
      { index: 1, tokens: 513 },
      { index: 3, tokens: 602 },
    ]);
    expect(served.report().errorsTotal).toBe(0);
  });

  it.each<[string, Fault, object]>([
    ['200 with an error object', { kind: 'error-in-200' }, { blame: 'engine', code: 'engine_error' }],
    ['not a number', { kind: 'vectors', spoil: 'nan' }, { blame: 'engine', code: 'engine_invalid_response' }],
    ['all zeros', { kind: 'vectors', spoil: 'zero' }, { blame: 'engine', code: 'engine_invalid_response' }],
    ['another width', { kind: 'vectors', spoil: 'width' }, { blame: 'engine', code: 'engine_invalid_response' }],
    ['too few vectors', { kind: 'vectors', spoil: 'count' }, { blame: 'engine', code: 'engine_invalid_response' }],
    ['silence', { kind: 'hang' }, { blame: 'engine', code: 'engine_timeout' }],
    ['half an answer', { kind: 'die-after', bytes: 100 }, { blame: 'engine', code: 'stream_interrupted' }],
    ['no answer', { kind: 'reset' }, { blame: 'engine', code: 'engine_error' }],
    [
      'busy',
      { kind: 'answer', status: 503, body: '{}', headers: { 'retry-after': '7' } },
      { blame: 'busy', retryAfterMs: 7000 },
    ],
    ['an unknown 500', { kind: 'answer', status: 500, body: 'boom' }, { blame: 'engine', code: 'engine_error' }],
    [
      'a 400',
      { kind: 'answer', status: 400, body: '{"error":{"message":"no"}}' },
      { blame: 'caller', code: 'engine_refused' },
    ],
  ])('embeddings that come as %s fail rightly and pass no vector', async (_, fault, failure) => {
    const clear = served.proxy.inject(fault, { path: '/v1/embeddings' });
    const call = await embed(['a', 'b'], { width: 384, timeoutMs: fault.kind === 'hang' ? 100 : 20_000 });
    clear();
    expect(call.failure).toMatchObject({ ...failure, afterFirstByte: false });
    expect(call.chunks).toEqual([]);
    expect(JSON.stringify(call.failure)).not.toContain('something in the engine');
    expect((await embed(['a'])).failure).toBeNull();
  });

  it('probes on kept connections, however long it watches', async () => {
    const before = served.proxy.connections();
    served.proxy.forget();
    await expect.poll(() => served.proxy.requests.filter(({ path }) => path === '/props').length).toBeGreaterThan(2);
    expect(served.proxy.connections() - before).toBeLessThanOrEqual(1);
  });

  it('notices another process at the same address before it shows a text to it', async () => {
    const mark = served.report().processMark;
    const clear = served.proxy.inject({ kind: 'slow', headMs: 400, chunkMs: 0 }, { path: '/v1/embeddings', times: 1 });
    const call = embedCall(served.place(), ['in flight'], { processMark: mark });
    served.fleet.serve(call);
    await expect.poll(() => served.proxy.texts()).toEqual(['in flight']);
    const { port } = served.server;
    await served.server.stop();
    const second = await startLlama({ model: encoderModel(), args: ['--embeddings', '--pooling', 'cls'], port });
    started.push(second);
    await call.over;
    clear();
    expect(call.failure).not.toBeNull();
    expect(call.chunks).toEqual([]);
    served.proxy.forget();
    const next = await embed(['never seen'], { processMark: mark });
    expect(['fingerprint', 'busy', 'engine']).toContain(next.failure?.blame);
    expect(served.proxy.texts()).not.toContain('never seen');
    await expect.poll(() => served.report().state === 'ready' && served.report().processMark !== mark).toBe(true);
  });
});

await describeWithLlama('a llama.cpp chat model behind the agent', () => {
  let served: Served;
  let slow: Served;
  const words = Array.from({ length: 40 }, (_, i) => `word${i}`).join(' ');
  const body = (more = {}) => ({ model: 'code-assistant', messages: [{ role: 'user', content: 'go' }], ...more });
  beforeAll(async () => {
    served = await serve(chatModel(), '--metrics');
    slow = await serve(chatModel({ text: words, layers: 12, dim: 512 }), '-np', '2');
  });
  beforeEach(() => {
    served.proxy.forget();
    slow.proxy.forget();
  });
  const chat = (more = {}, head = {}) => served.run(chatCall(served.place(), body(more), head));

  it('is found to chat and nothing else', () => {
    expect(served.report().models[0]).toMatchObject({ tasks: ['chat'], contextTokens: 2048, width: null });
  });

  it('passes a stream byte for byte as the engine sent it, and knows the tokens all the same', async () => {
    const call = await chat({ stream: true, seed: 1 });
    const request = served.proxy.requests.find(({ path }) => path === '/v1/chat/completions');
    const sent = JSON.parse(request?.body ?? '') as Record<string, unknown>;
    expect(sent).toEqual({ ...body({ stream: true, seed: 1 }), model: served.place().model });
    const own = await (
      await fetch(`${served.server.url}/v1/chat/completions`, { method: 'POST', body: request?.body ?? '' })
    ).text();
    // Ids, seconds and timings differ from one run to the next; everything else must not.
    const plain = (text: string) =>
      text.replace(/"(id|created)":("[^"]*"|\d+)/g, '"$1":0').replace(/"timings":\{[^}]*\}/g, '"timings":0');
    const hash = (text: string) => createHash('sha256').update(text).digest('hex');
    expect(hash(plain(call.text))).toBe(hash(plain(own)));
    expect(call.text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(call.trailers).toMatchObject({ finished: true, usage: { completionTokens: 21, exact: true } });
    expect(call.trailers?.firstByteMs).toBeGreaterThan(0);
  });

  it('passes the usage chunk only to who asked for it', async () => {
    const asked = await chat({ stream: true, stream_options: { include_usage: true } }, { wantsUsage: true });
    expect(asked.text).toContain('"usage"');
    const not = await chat({ stream: true, stream_options: { include_usage: true } }, { wantsUsage: false });
    expect(not.text).not.toContain('"usage"');
    expect(not.trailers?.usage).toEqual(asked.trailers?.usage);
  });

  it('answers without a stream', async () => {
    const call = await chat({ max_tokens: 3 });
    const own = (await ask(served.server.url, '/v1/chat/completions', body({ max_tokens: 3 }))) as Record<
      string,
      unknown
    >;
    const constant = { id: 0, created: 0, timings: 0, usage: 0 };
    expect({ ...(call.json as object), ...constant }).toEqual({ ...own, ...constant });
    expect(call.json).toMatchObject({ choices: [{ finish_reason: 'length' }], usage: { completion_tokens: 3 } });
    expect(call.response?.contentType).toContain('application/json');
    expect(call.trailers?.usage).toMatchObject({ completionTokens: 3, exact: true });
  });

  it.each([
    ['tools', { tools: 5 }],
    ['a tool', { tools: [{ type: 'x', function: { name: 'a' } }] }],
    ['messages', { messages: [{ content: 'nobody said this' }] }],
    ['an image', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:,' } }] }] }],
    ['a reasoning format', { reasoning_format: 'weird' }],
  ])("turns its failure to parse %s into the caller's own fault, which says nothing of the engine", async (_, more) => {
    const { run, place, report } = served;
    const messages = [{ role: 'user', content: 'hi' }];
    const call = await run(chatCall(place(), { messages, max_tokens: 1, stream: true, ...more }));
    expect(call.failure).toMatchObject({ blame: 'caller', code: 'engine_refused' });
    expect(call.failure?.sentence).toBe('The engine refused the request as malformed.');
    expect(report().errorsTotal).toBe(0);
  });

  it("says that a prompt does not fit, as the caller's fault", async () => {
    const call = await chat({ messages: [{ role: 'user', content: 'ab '.repeat(2500) }], stream: true });
    expect(call.failure).toMatchObject({
      blame: 'caller',
      code: 'context_too_long',
      engineStatus: 400,
      limitTokens: 2048,
    });
  });

  it.each<[string, Fault, object]>([
    [
      'an error after some tokens',
      { kind: 'error-after', events: 3, done: false },
      { code: 'stream_interrupted', afterFirstByte: true },
    ],
    [
      'an error and then [DONE]',
      { kind: 'error-after', events: 3, done: true },
      { code: 'stream_interrupted', afterFirstByte: true },
    ],
    [
      'an error before a token',
      { kind: 'error-after', events: 0, done: true },
      { code: 'engine_error', afterFirstByte: false },
    ],
    [
      'an end without a finish reason',
      { kind: 'end-after', events: 3 },
      { code: 'stream_interrupted', afterFirstByte: true },
    ],
    ['a death in the middle', { kind: 'die-after', bytes: 700 }, { code: 'stream_interrupted', afterFirstByte: true }],
    ['comments alone', { kind: 'comments', everyMs: 20 }, { code: 'engine_timeout' }],
    ['silence', { kind: 'hang' }, { code: 'engine_timeout', afterFirstByte: false }],
    ['silence after the head', { kind: 'hang-after-head' }, { code: 'engine_timeout', afterFirstByte: false }],
    ['200 with an error object', { kind: 'error-in-200' }, { code: 'engine_error', afterFirstByte: false }],
  ])('a stream that brings %s fails without a success marker', async (_, fault, failure) => {
    const clear = served.proxy.inject(fault, { path: '/v1/chat' });
    const silent = ['comments', 'hang', 'hang-after-head'].includes(fault.kind);
    const call = await chat({ stream: true }, silent ? { firstByteMs: 100, betweenTokensMs: 100 } : {});
    clear();
    expect(call.failure).toMatchObject({ blame: 'engine', ...failure });
    expect(call.text).not.toContain('[DONE]');
    expect(call.text).not.toContain('error');
    expect((await chat({ stream: true })).failure).toBeNull();
  });

  it.each([true, false])('stops the engine within moments when the caller leaves (streamed: %s)', async (stream) => {
    for (let round = 0; round < 5; round++) {
      const call = chatCall(slow.place(), body({ stream, ignore_eos: true, max_tokens: 1500 }));
      slow.fleet.serve(call);
      await expect.poll(() => busySlots(slow.server.url)).toBe(1);
      if (stream) await expect.poll(() => call.chunks.length).toBeGreaterThan(0);
      const leftMs = performance.now();
      call.controls.abort();
      await expect
        .poll(() => slow.proxy.requests.findLast(({ path }) => path.startsWith('/v1/chat'))?.abortedAtMs)
        .toBeTypeOf('number');
      const aborted = slow.proxy.requests.findLast(({ path }) => path.startsWith('/v1/chat'))?.abortedAtMs ?? 0;
      expect(aborted - leftMs).toBeLessThan(100);
      await expect.poll(() => busySlots(slow.server.url)).toBe(0);
      expect(call.failure).toBeNull();
    }
  });

  it('refuses calls beyond its slots as busy, and reports work of others as foreign', async () => {
    const long = body({ stream: true, ignore_eos: true, max_tokens: 1500 });
    const two = [chatCall(slow.place(), long), chatCall(slow.place(), long)];
    for (const call of two) slow.fleet.serve(call);
    expect(slow.report().running).toBe(2);
    const third = await slow.run(chatCall(slow.place(), long));
    expect(third.failure).toMatchObject({ blame: 'busy', code: 'engine_busy' });
    for (const call of two) call.controls.abort();
    await expect.poll(() => slow.report().running).toBe(0);
    const other = new AbortController();
    const direct = fetch(`${slow.server.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify(long),
      signal: other.signal,
    });
    await expect.poll(() => slow.report().foreign).toBe(1);
    other.abort();
    await direct.then((response) => response.body?.cancel()).catch(() => undefined);
    await expect.poll(() => slow.report().foreign).toBe(0);
  });

  it('holds the engine back for a slow reader, without a time-out', async () => {
    const call = chatCall(slow.place(), body({ stream: true }), { betweenTokensMs: 200 });
    call.wide = false;
    slow.fleet.serve(call);
    await expect.poll(() => call.chunks.length).toBeGreaterThan(0);
    const paused = call.chunks.length;
    await expect.poll(() => busySlots(slow.server.url), { timeout: 60_000 }).toBe(0);
    expect(call.chunks.length).toBe(paused);
    expect(call.failure).toBeNull();
    call.open();
    await call.over;
    expect(call.trailers?.finished).toBe(true);
    expect(call.trailers?.usage?.completionTokens).toBe(41);
  });

  it('lets go of its calls when the engine freezes, and takes it back when it thaws', async () => {
    const call = chatCall(slow.place(), body({ stream: true, ignore_eos: true, max_tokens: 1500 }));
    slow.fleet.serve(call);
    await expect.poll(() => call.chunks.length).toBeGreaterThan(0);
    slow.server.kill('SIGSTOP');
    await call.over;
    expect(call.failure).toMatchObject({ blame: 'engine', code: 'stream_interrupted', afterFirstByte: true });
    await expect.poll(() => slow.report()).toMatchObject({ state: 'unreachable', running: 0 });
    slow.server.kill('SIGCONT');
    await expect.poll(() => slow.report().state).toBe('ready');
    expect((await slow.run(chatCall(slow.place(), body({ max_tokens: 2 })))).failure).toBeNull();
  });
});

await describeWithLlama('a llama.cpp reranker behind the agent', () => {
  let served: Served;
  beforeAll(async () => {
    served = await serve(rerankerModel(), '--reranking');
  });

  it('ranks as the engine ranks, in the order of the documents', async () => {
    const documents = ['the red fox', 'a jar of nails', 'foxes', 'red'];
    const own = (await ask(served.server.url, '/v1/rerank', { query: 'red fox', documents })) as {
      results: { index: number; relevance_score: number }[];
    };
    expect(served.report().models[0]?.tasks).toEqual(['rerank']);
    const call = await served.run(rerankCall(served.place(), 'red fox', documents));
    const { scores } = call.json as { scores: number[] };
    for (const { index, relevance_score } of own.results) expect(scores[index]).toBeCloseTo(relevance_score, 5);
  });

  it('names the documents that are too long', async () => {
    const call = await served.run(rerankCall(served.place(), 'fox', ['ok', 'ab '.repeat(600)]));
    expect(call.failure).toMatchObject({ blame: 'caller', code: 'input_too_long', limitTokens: 512 });
    expect(call.failure?.failing.map(({ index }) => index)).toEqual([1]);
  });

  it('does neither embed nor chat', async () => {
    const call = await served.run(embedCall(served.place(), ['a']));
    expect(call.failure).toMatchObject({ blame: 'engine' });
  });
});

describe('process marks', () => {
  it('name this very process for a port of its own, and nothing for a closed one', async () => {
    const proxy = await startProxy('http://127.0.0.1:9');
    const marks = createProcessMarks();
    expect(await marks.read(proxy.port)).toMatch(new RegExp(`^${process.pid}@\\S+$`));
    expect(await marks.read(proxy.port)).toBe(await createProcessMarks().read(proxy.port));
    await proxy.stop();
    expect(await marks.read(proxy.port)).toBeNull();
  });
});
