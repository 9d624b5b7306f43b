import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { ProcessMarks } from '../../../agent/engines/process-mark.ts';
import { SENTINELS } from '../../../agent/engines/sentinel.ts';
import { startProxy } from '../../engines/proxy.ts';
import { startRelay } from '../../engines/relay.ts';
import { OllamaStandIn } from '../../engines/stand-ins/ollama.ts';
import { OpenaiStandIn } from '../../engines/stand-ins/openai.ts';
import type { StandIn } from '../../engines/stand-ins/stand-in.ts';
import { TeiStandIn } from '../../engines/stand-ins/tei.ts';
import { HashVectors } from '../../engines/stand-ins/vectors.ts';
import { embedCall } from '../recorded-call.ts';
import { type Served, serve } from './served.ts';

/** As for an engine on another machine: nobody tells which process listens. */
const unreadable: ProcessMarks = { read: async () => null, ancestors: async () => [] };

const ending: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

async function behind<E extends StandIn>(engine: E, url?: string, marks?: ProcessMarks): Promise<Served> {
  if (engine.url === '') await engine.start();
  ending.push(() => engine.stop());
  const served = await serve(url ?? engine.url, { marks: marks ?? unreadable });
  ending.push(() => served.fleet.stop());
  return served;
}

/** Texts that an engine was shown. */
const shown = (engine: StandIn) => JSON.stringify(engine.requests.map(({ body }) => body));
const embedder = (seed = '') => new OpenaiStandIn({ task: 'embed', vectors: new HashVectors(64, seed) });

async function vectorsOf(text: string, seed = ''): Promise<readonly number[]> {
  return [...(await new HashVectors(64, seed).encode(text))].map((value) => Math.fround(value));
}

describe('an engine of which neither process nor sign is to be had', () => {
  it.each([
    ['a generic server', () => embedder()],
    ['TEI', () => new TeiStandIn()],
    ['Ollama', () => new OllamaStandIn()],
  ] as const)('%s: one chain of connections marks all calls, in a row and at once', async (_, make) => {
    const { report, place, run } = await behind(make());
    const mark = report().processMark;
    expect(mark).toMatch(/^connection:[0-9a-f]{12}-1$/);
    const embeds = () => run(embedCall(place(), ['a', 'b'], { processMark: mark }));
    for (const call of [await embeds(), ...(await Promise.all([embeds(), embeds(), embeds()]))]) {
      // A slot may be taken; the mark is never another.
      if (call.failure !== null) expect(call.failure.code).toBe('engine_busy');
      else expect(call.trailers?.fingerprint.processMark).toBe(mark);
    }
    expect(report().processMark).toBe(mark);
  });

  it('gives the vectors of the texts alone, whole and cut, and counts the tokens of these alone', async () => {
    const { place, run, model } = await behind(embedder());
    expect(model().maxBatch).toBe(63); // one place of its 64 is the known text's
    const call = await run(embedCall(place(), ['one text', 'two'], { normalise: false }));
    expect(call.vectors.map((row) => [...row])).toEqual([await vectorsOf('one text'), await vectorsOf('two')]);
    expect(call.trailers?.usage).toMatchObject({ promptTokens: 4 + 3 }); // words and two special tokens each
    const cut = await run(embedCall(place(), ['one text'], { normalise: false, cut: 16 }));
    expect(cut.vectors.map((row) => [...row])).toEqual([(await vectorsOf('one text')).slice(0, 16)]);
  });

  it('started again is another one before it sees a text, whatever its vectors are', async () => {
    const engine = embedder();
    const { report, place, run } = await behind(engine);
    const mark = report().processMark;
    expect((await run(embedCall(place(), ['a'], { processMark: mark }))).failure).toBeNull();
    const { port } = engine;
    await engine.stop();
    await engine.start(port);
    await expect
      .poll(async () => (await run(embedCall(place(), ['unseen'], { processMark: mark }))).failure?.code)
      .toBe('fingerprint_changed');
    expect(shown(engine)).not.toContain('unseen');
    await expect.poll(() => report().processMark).toMatch(/-2$/);
    expect((await run(embedCall(place(), ['b'], { processMark: report().processMark }))).failure).toBeNull();
  });

  it('that freezes is not stormed, and is the same one when it thaws', async () => {
    const engine = embedder();
    const { report, place, run } = await behind(engine);
    const mark = report().processMark;
    await run(embedCall(place(), ['a'], { processMark: mark }));
    const before = engine.requests.length;
    engine.freeze();
    await expect.poll(() => report().state).toBe('unreachable');
    // Three looks one after the other, and one question that a witness has not answered yet.
    expect(engine.requests.length - before).toBeLessThanOrEqual(4);
    engine.thaw();
    await expect.poll(() => report().state).toBe('ready');
    expect((await run(embedCall(place(), ['b'], { processMark: mark }))).failure).toBeNull();
    expect(report().processMark).toBe(mark);
  });

  it('that keeps no connection is never trusted with a text', async () => {
    const engine = new (class extends OpenaiStandIn {
      override readonly headers = { connection: 'close' };
    })({ task: 'embed' });
    const { report, place, run } = await behind(engine);
    expect(report().processMark).toBeNull();
    const call = await run(embedCall(place(), ['unseen']));
    expect(call.failure).toMatchObject({ blame: 'fingerprint', code: 'fingerprint_changed' });
    expect(shown(engine)).not.toContain('unseen');
  });
});

describe('an engine behind a proxy', () => {
  it('that keeps our connections is found out by the known text in the batch, and its vectors go nowhere', async () => {
    const one = embedder();
    const other = embedder('pooled otherwise');
    await other.start();
    ending.push(() => other.stop());
    await one.start();
    const proxy = await startProxy(one.url);
    ending.push(() => proxy.stop());
    const { report, place, run } = await behind(one, proxy.url);
    const mark = report().processMark;
    expect((await run(embedCall(place(), ['a'], { processMark: mark }))).failure).toBeNull();
    const connections = proxy.connections();
    proxy.retarget(other.url);
    const call = await run(embedCall(place(), ['b'], { processMark: mark }));
    expect(call.failure).toMatchObject({ blame: 'fingerprint', code: 'fingerprint_changed' });
    expect(call.vectors).toEqual([]);
    expect(proxy.connections()).toBe(connections); // no connection gave it away
    await expect.poll(() => report().processMark).not.toBe(mark);
  });

  it('that passes bytes on, and leads new connections to another engine while the old ones stay, is found out', async () => {
    const [one, other] = [embedder(), embedder('another model')];
    for (const engine of [one, other]) {
      await engine.start();
      ending.push(() => engine.stop());
    }
    const portOf = (engine: StandIn) => Number(new URL(engine.url).port);
    let target = portOf(one);
    const sockets = new Set<Socket>();
    const forwarder = createServer((near) => {
      const far = connect(target, '127.0.0.1');
      for (const side of [near, far]) sockets.add(side.on('error', () => undefined));
      near.pipe(far).pipe(near);
    });
    await new Promise<void>((resolve) => forwarder.listen(0, '127.0.0.1', resolve));
    ending.push(() => {
      for (const socket of sockets) socket.destroy();
      forwarder.close();
    });
    const seen: ProcessMarks = { read: async () => '77@1', ancestors: async () => [] };
    const url = `http://127.0.0.1:${(forwarder.address() as AddressInfo).port}`;
    const { place, run, report } = await behind(one, url, seen);
    const mark = report().processMark;
    expect((await run(embedCall(place(), ['a'], { processMark: mark }))).failure).toBeNull();
    target = portOf(other);
    const right = await vectorsOf('a text');
    const calls = await Promise.all(
      [1, 2, 3, 4].map(() => run(embedCall(place(), ['a text'], { processMark: mark, normalise: false }))),
    );
    for (const { failure, vectors } of calls) if (failure === null) expect([...(vectors[0] ?? [])]).toEqual(right);
    expect(shown(other)).not.toContain('a text');
    await expect.poll(() => report().processMark).not.toBe(mark);
  });

  it('that hides a new process behind its own pid is found out by its connections', async () => {
    const engine = embedder();
    await engine.start();
    const { port } = engine;
    const relay = await startRelay(port);
    ending.push(() => relay.stop());
    const process: ProcessMarks = { read: async () => '77@1', ancestors: async () => [] };
    const { report, place, run, model } = await behind(engine, relay.url, process);
    const mark = report().processMark;
    expect(mark).toMatch(/^77@1 connection:[0-9a-f]{12}-1$/);
    expect(model().maxBatch).toBe(64);
    await run(embedCall(place(), ['a'], { processMark: mark }));
    // A listener is seen: known texts on a new connection, none of ours in its batches.
    const batches = engine.requests
      .map(({ body }) => JSON.stringify(body) ?? '')
      .filter((body) => body.includes('"a"'));
    expect(batches.join()).not.toContain(SENTINELS[0]);
    await engine.stop();
    await engine.start(port);
    await expect
      .poll(async () => (await run(embedCall(place(), ['unseen'], { processMark: mark }))).failure?.code)
      .toBe('fingerprint_changed');
    expect(shown(engine)).not.toContain('unseen');
    await expect.poll(() => report().processMark).toMatch(/^77@1 connection:[0-9a-f]{12}-2$/);
  });
});
