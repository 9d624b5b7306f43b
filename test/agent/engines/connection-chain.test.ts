import { afterEach, beforeEach, expect, it } from 'vitest';
import { createAgentClock } from '../../../agent/clock.ts';
import { ConnectionChain } from '../../../agent/engines/connection-chain.ts';
import { EngineHttp } from '../../../agent/engines/engine-http.ts';
import { EngineFailure } from '../../../agent/engines/failure.ts';
import { type Relay, startRelay } from '../../engines/relay.ts';
import { OpenaiStandIn } from '../../engines/stand-ins/openai.ts';

let engine: OpenaiStandIn;
let relay: Relay;
let http: EngineHttp;
let chain: ConnectionChain;

beforeEach(async () => {
  engine = await new OpenaiStandIn({ task: 'embed' }).start();
  relay = await startRelay(engine.port);
  http = new EngineHttp(relay.url, createAgentClock(), { readMark: async () => null, admits: () => true });
  chain = new ConnectionChain(
    http,
    async (connection) => void (await http.fetchOn(connection, '/v1/models', { timeoutMs: 5000, maxBytes: 1e6 })),
    'r',
  );
});
afterEach(async () => {
  http.close();
  await relay.stop();
  await engine.stop();
});

const joined = () => chain.join(http.take());
/** Leaves no connection behind. */
async function joinedOnce(): Promise<string> {
  const connection = http.take();
  const mark = await chain.join(connection);
  http.drop(connection);
  await expect.poll(() => relay.sockets.size).toBe(3);
  return mark;
}

/** Closes connections by their age, oldest 0, and waits until this end knows. */
async function cut(...ages: readonly number[]): Promise<void> {
  const sockets = [...relay.sockets];
  const left = sockets.length - ages.length;
  for (const age of ages) sockets[age]?.destroy();
  await expect.poll(() => relay.sockets.size).toBe(left);
  await new Promise(setImmediate);
}

it('takes every connection in that is opened while a witness stays', async () => {
  expect(await joined()).toBe('connection:r-1');
  expect(await Promise.all([joined(), joined(), joined()])).toEqual(Array(3).fill('connection:r-1'));
  expect(relay.sockets.size).toBe(5); // four, and the witness that came after the first
});

it('goes on under the same number when its witnesses end one after the other', async () => {
  await joined(); // opened first; the witness second
  const beaten = () => {
    chain.beat();
    return relay.sockets.size;
  };
  for (let round = 0; round < 3; round++) {
    await expect.poll(beaten).toBe(3); // a second witness, the youngest
    expect(await joinedOnce()).toBe('connection:r-1'); // and it counts
    await cut(1); // the elder witness
  }
  expect(await joined()).toBe('connection:r-1');
});

it('ends when no witness is left, and connections of before do not count', async () => {
  const old = http.take();
  expect(await chain.join(old)).toBe('connection:r-1');
  await cut(1); // the only witness; `old` still stands
  expect(await joined()).toBe('connection:r-2');
  expect(chain.mark).toBe('connection:r-2');
  // It has to show anew where it leads, and does: it answers beside the new witness.
  expect(await chain.join(old)).toBe('connection:r-2');
});

it('ends with a restart of the engine, under one new number for all who ask at once', async () => {
  await joined();
  const { port } = engine;
  await engine.stop();
  await engine.start(port);
  await expect.poll(() => relay.sockets.size).toBe(0);
  expect(new Set(await Promise.all([joined(), joined(), joined()]))).toEqual(new Set(['connection:r-2']));
});

it('opens nothing more when its engine is no longer used', async () => {
  await joined();
  http.close();
  await expect.poll(() => relay.sockets.size).toBe(0);
  const asked = engine.requests.length;
  chain.beat();
  // As late as a beat under way could be: the call that asks for a witness itself finds none, and opens only its own connection.
  const own = http.take();
  await expect(chain.join(own)).rejects.toBeInstanceOf(EngineFailure);
  http.drop(own);
  await expect.poll(() => relay.sockets.size).toBe(0);
  expect(engine.requests.length - asked).toBe(1);
});

it('does not end while an engine that is deep in work is late', async () => {
  await joined();
  engine.freeze();
  const late = joined();
  await expect.poll(() => engine.requests.length).toBeGreaterThanOrEqual(3);
  engine.thaw();
  expect(await late).toBe('connection:r-1');
});

it('ends by order, when another process was seen behind connections that stand', async () => {
  const connection = http.take();
  await chain.join(connection);
  chain.end();
  expect(chain.mark).toBe('connection:r-2');
  expect(await chain.join(connection)).toBe('connection:r-3');
});

it('takes nobody in where the server ends each connection after its answer', async () => {
  await engine.stop();
  const closing = new (class extends OpenaiStandIn {
    override readonly headers = { connection: 'close' };
  })({ task: 'embed' });
  await closing.start(engine.port);
  const failure = await joined().catch((error: unknown) => error);
  await closing.stop();
  expect(failure).toBeInstanceOf(EngineFailure);
  expect((failure as EngineFailure).failure.code).toBe('fingerprint_changed');
});
