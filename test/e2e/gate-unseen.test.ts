import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { reachOf } from '../../agent/engines/address.ts';
import { Yard } from '../chaos/fleet.ts';
import { type Relay, startRelay } from '../engines/relay.ts';
import { type Mute, startMute } from '../engines/stand-ins/mute.ts';
import { TeiStandIn } from '../engines/stand-ins/tei.ts';
import { HashVectors } from '../engines/stand-ins/vectors.ts';
import { removeTemporaryFolders } from '../support/processes.ts';

const MARK = 'text that is asked for';
const TEXTS = Array.from({ length: 48 }, (_, at) => `${MARK}, number ${at} of many`);

/** An address of this machine that is not loopback: what listens there is, to an agent, another machine's. */
function otherAddress(): string | null {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return all.find(({ address, scopeid }) => reachOf(address) === 'private' && !scopeid)?.address ?? null;
}

/** Measured, and found to be another encoder. */
const REFUSED = /^(vector-incompatible|collapsed|unstable)$/;

interface VerdictRow {
  readonly providerId: string;
  readonly verdict: string;
}

/** An engine that tells nothing of itself, started again and again behind one address. */
interface Unseen {
  readonly name: string;
  readonly relay: Relay;
  engine: Mute;
}

function cosine(a: ArrayLike<number>, b: ArrayLike<number>): number {
  const dot = (x: ArrayLike<number>, y: ArrayLike<number>) =>
    Array.from(x).reduce((sum, v, at) => sum + v * (y[at] ?? 0), 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

describe('engines whose process nobody can see, started again with another pooling under load', () => {
  const founder = new TeiStandIn({ vectors: new HashVectors() });
  let yard: Yard;
  const unseen: Unseen[] = [];
  const expected: Float32Array[] = [];

  async function add(name: string, host: string): Promise<void> {
    const engine = await startMute({ port: 0, pooling: 'mean', model: name });
    unseen.push({ name, relay: await startRelay(engine.port, host), engine });
  }

  async function verdictOf({ relay }: Unseen): Promise<string> {
    const { verdicts } = await yard.operator.get<{ verdicts: VerdictRow[] }>('gate');
    const own = verdicts.find(
      ({ providerId }) =>
        providerId.startsWith('embedding~') && decodeURIComponent(providerId).includes(`:${relay.port}`),
    );
    return own?.verdict ?? 'none';
  }

  const becomes = (one: Unseen, verdict: RegExp) =>
    vi.waitUntil(async () => verdict.test(await verdictOf(one)), { timeout: 30_000, interval: 100 });

  /** Killed, and another one in its place at once: the address never stays empty for long. */
  async function restart(one: Unseen, pooling: 'mean' | 'last'): Promise<void> {
    const { port } = one.engine;
    await one.engine.kill();
    one.engine = await startMute({ port, pooling, model: one.name });
  }

  beforeAll(async () => {
    await founder.start();
    for (const text of TEXTS) expected.push(await founder.vectors.encode(text));
    await add('behind-a-mapped-port', '127.0.0.1');
    const far = otherAddress();
    if (far !== null) await add('on-another-machine', far);
    yard = await Yard.start();
    await yard.add('founder', [founder.url]);
    await vi.waitUntil(async () => (await yard.providers('embedding')).some(({ state }) => state === 'ready'), {
      timeout: 60_000,
      interval: 100,
    });
    await yard.add(
      'unseen',
      unseen.map(({ relay }) => relay.url),
    );
    for (const one of unseen) await becomes(one, /^pass$/);
  });

  afterAll(async () => {
    await yard?.stop();
    for (const { relay, engine } of unseen) {
      await relay.stop();
      await engine.kill();
    }
    await founder.stop();
    removeTemporaryFolders();
  });

  it('give no wrong vector away and see no text, though each of them served before and after', async () => {
    let wrong = 0;
    let answered = 0;
    let over = false;
    const traffic = async (first: number) => {
      for (let round = first; !over; round++) {
        const at = Array.from({ length: 12 }, (_, i) => (round * 5 + i) % TEXTS.length);
        const response = await yard.post('/v1/embeddings', {
          model: 'embedding',
          input: at.map((i) => TEXTS[i]),
          encoding_format: 'float',
        });
        expect(response.status).toBe(200);
        const { data } = (await response.json()) as { data: { embedding: number[] }[] };
        data.forEach(({ embedding }, i) => {
          if (!(cosine(embedding, expected[at[i] ?? 0] ?? []) > 0.99)) wrong += 1;
        });
        answered += data.length;
      }
    };
    const running = [traffic(0), traffic(7)];
    const seenBy = async (one: Unseen) =>
      vi.waitUntil(async () => (await one.engine.seen(MARK)) > 0, { timeout: 60_000, interval: 50 });
    let restarts = 0;
    const rounds = async (one: Unseen) => {
      for (let round = 0; round < 2; round++) {
        await seenBy(one);
        await restart(one, 'last');
        await becomes(one, REFUSED);
        expect(await one.engine.seen(MARK)).toBe(0); // nor did it see a text
        await restart(one, 'mean');
        await becomes(one, /^pass$/);
        restarts += 2;
      }
      await seenBy(one);
    };
    // All have ended before anything is judged: what still started engines would outlive the suite.
    const ended = await Promise.allSettled(unseen.map(rounds));
    over = true;
    await Promise.all(running);
    expect(ended.filter(({ status }) => status === 'rejected')).toEqual([]);
    if (process.env.SWITCHYARD_FIGURES === '1')
      console.log(`${restarts} restarts of ${unseen.length} engines, ${answered} vectors, ${wrong} wrong`);
    expect(answered).toBeGreaterThan(0);
    expect(wrong).toBe(0);
  });
});
