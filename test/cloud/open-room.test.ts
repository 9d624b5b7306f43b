import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CallFailure, CallHead, Trailers } from '../../agent/wire/calls.ts';
import type { CallHandlers, CallOpener } from '../../agent/wire/stream.ts';
import { type OpenCloud, openCloud } from '../../main/cloud/open-room.ts';
import { permitOf } from '../../main/cloud/permits.ts';
import type { NodeId, ProjectId } from '../../main/domain/ids.ts';
import { defaultRoleSettings, ROLE_IDS, type RoleId, type RoleSettings } from '../../main/domain/roles.ts';
import type { RoutedProvider, RouterItem } from '../../main/router/types.ts';
import type { Store } from '../../main/store/ports.ts';
import { Bench, KEY, realClock, TestCall } from '../agent-cloud/driver.ts';

const NODE = 'n1' as NodeId;

/** The control plane's cloud in front of one agent's, message by message, over a stand-in behind real sockets. */
let bench: Bench;
let cloud: OpenCloud;
let roles: Record<RoleId, RoleSettings>;
let delivered = 0;
let session = true;

let refused: string[] = [];

beforeEach(async () => {
  refused = [];
  bench = await Bench.start();
  delivered = 0;
  session = true;
  roles = Object.fromEntries(ROLE_IDS.map((role) => [role, defaultRoleSettings(role)])) as Record<RoleId, RoleSettings>;
  roles.embedding = {
    ...roles.embedding,
    cloud: { model: 'qwen/qwen3-embedding-8b', upstreams: ['deepinfra/turbo', 'nebius'], quantizations: [] },
  };
  const store = {
    budget: { load: () => null, save: () => undefined },
    settings: { get: () => null, put: async () => 1 },
    access: { projects: () => [] },
  } as unknown as Pick<Store, 'access' | 'budget' | 'settings'>;
  cloud = openCloud({
    clock: realClock,
    random: () => 0.5,
    store,
    events: { record: () => undefined },
    agents: {
      ready: () => (session ? [{ node: NODE, name: 'alpha' }] : []),
      name: () => 'alpha',
      sendBinary: (_, frame, sent) => {
        bench.engine.push('cp1', Buffer.from(frame));
        sent();
        return true;
      },
      send: (_, ask) => {
        void bench.engine.ask('cp1', ask);
        return true;
      },
    },
    roles: () => roles,
    baseUrl: () => null,
    projectName: (id) => id,
    remember: () => ({ can: false, note: null }),
    sizeOf: () => ({ promptBytes: 100, maxOutputTokens: 100, documents: 0 }),
    onProviders: () => undefined,
    onPermits: () => undefined,
    onRefused: (status, whose) => refused.push(`${status} ${whose}`),
  });
  cloud.start();
  cloud.sessionBegan(NODE);
  await cloud.desk.pushKey(Buffer.from(KEY), {});
  await until(() => cloud.catalogue.routes().length > 0 && cloud.service.snapshot().facts !== null);
});
afterEach(async () => {
  cloud.stop();
  await bench.stop();
});

function deliver(): void {
  for (const { message } of bench.sent.slice(delivered)) {
    delivered++;
    cloud.onMessage(NODE, message);
  }
}

async function until(condition: () => boolean): Promise<void> {
  await bench.until(() => {
    deliver();
    return condition();
  });
}

/** Calls go straight into the agent's engine; a broken session fails them as the wire does. */
const broken = new Set<() => void>();
const opener: CallOpener = {
  open(head, body, handlers) {
    const call = new BridgedCall(head, body, handlers);
    bench.engine.serve(call);
    const lose = () => {
      call.abort.abort();
      call.lost();
    };
    broken.add(lose);
    return { cancel: () => call.abort.abort(), resume: () => undefined };
  },
};

class BridgedCall extends TestCall {
  readonly #handlers: CallHandlers;
  #lost = false;

  constructor(head: CallHead, body: Uint8Array, handlers: CallHandlers) {
    super(head, JSON.parse(Buffer.from(body).toString()));
    this.#handlers = handlers;
  }

  override write(chunk: Uint8Array): boolean {
    super.write(chunk);
    return this.signal.aborted || this.#handlers.onData(chunk);
  }

  override end(trailers: Trailers): void {
    super.end(trailers);
    if (!this.signal.aborted) this.#handlers.onEnd(trailers);
  }

  override fail(failure: CallFailure): void {
    super.fail(failure);
    if (!this.signal.aborted && !this.#lost) this.#handlers.onFailure(failure);
  }

  lost(): void {
    this.#lost = true;
    this.#handlers.onFailure({ ...LOST });
  }
}

const LOST: CallFailure = {
  blame: 'transport',
  code: 'stream_interrupted',
  sentence: 'The session was lost.',
  engineStatus: null,
  retryAfterMs: null,
  failing: [],
  limitTokens: null,
  afterFirstByte: false,
};

const item = {
  context: { id: 'r1', project: 'A' as ProjectId, role: 'code-assistant', class: 'normal', arrivedAtMs: 0 },
} as unknown as RouterItem;
const provider = {
  node: NODE,
  engine: 'openrouter',
  role: 'code-assistant',
  model: 'poolside/laguna-s-2.1',
} as unknown as RoutedProvider;

function granted() {
  const permit = permitOf(cloud.permits.tryAcquire(item, provider, realClock.nowMs()) as object);
  if (permit === null) throw new Error('no permit');
  return permit;
}

const HEAD: CallHead = {
  op: 'chat',
  engine: 'openrouter',
  model: 'poolside/laguna-s-2.1',
  stream: true,
  wantsUsage: false,
  path: '/v1/chat/completions',
  firstByteMs: 5000,
  betweenTokensMs: 5000,
};

function chat(words: number, handlers: Partial<CallHandlers> = {}) {
  const permit = granted();
  const ended: (Trailers | CallFailure)[] = [];
  const call = cloud.lane
    .withPermit(opener, permit, 100)
    .open(HEAD, Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: `say ${words} words` }] })), {
      onHead: () => undefined,
      onData: () => true,
      onEnd: (trailers) => ended.push(trailers),
      onFailure: (failure) => ended.push(failure),
      ...handlers,
    });
  return { permit, call, ended };
}

describe('the open cloud', () => {
  it('learns account and offers from its agent, and makes one provider per pinned upstream', () => {
    expect(cloud.service.snapshot()).toMatchObject({
      ceiling: 32,
      effective: 32,
      facts: { creditUsd: 100, isFreeTier: false },
    });
    const nodes = [
      { id: NODE, name: 'alpha', state: 'ready' as const, pulls: true, models: bench.engine.report()?.models ?? null },
    ];
    const entries = cloud.entries(nodes, () => 2);
    const serving = entries.filter(({ provider: made }) => made.reachable);
    expect(serving.map(({ provider: made }) => [made.role, made.model, made.fingerprint.pin])).toEqual([
      ['embedding', 'qwen/qwen3-embedding-8b@deepinfra/turbo', 'only=deepinfra/turbo;quantizations='],
      ['embedding', 'qwen/qwen3-embedding-8b@nebius', 'only=nebius;quantizations='],
      ['code-assistant', 'poolside/laguna-s-2.1', null],
    ]);
    // What the catalogue does not list is shown, and closed for good.
    expect(entries.filter((entry) => !serving.includes(entry)).map(({ provider: made }) => made)).toMatchObject([
      { role: 'reranker', model: 'qwen/qwen3-reranker-8b', present: false, reachable: false },
    ]);
    for (const { provider: made } of serving) {
      expect(made).toMatchObject({ kind: 'cloud', baseWeight: 2, nodeName: 'alpha' });
      expect(cloud.standing(made)).toEqual({ closed: null, coolingUntilMs: null });
    }
  });

  it('gives the permit back with the answer and books what it cost', async () => {
    const { ended } = chat(5);
    expect(cloud.service.snapshot().inFlight).toBe(1);
    await until(() => ended.length === 1);
    expect(cloud.service.snapshot().inFlight).toBe(0);
    expect(cloud.desk.spentUsd('code-assistant').dayUsd).toBeCloseTo(bench.standIn.ledger.at(-1)?.costUsd ?? -1, 12);
  });

  it('cuts once for a burst of account 429s', async () => {
    bench.standIn.account.settings.concurrency = 2;
    bench.standIn.latencyMs = 100;
    const calls = Array.from({ length: 6 }, () => chat(1));
    await until(() => calls.every(({ ended }) => ended.length === 1));
    expect(cloud.service.snapshot()).toMatchObject({ cuts: 1, effective: 16, inFlight: 0, state: 'cooling' });
    // Two went through; the model that the others asked for is not what was limited.
    expect(refused).toEqual(Array(4).fill('429 account'));
    expect(cloud.permits.tryAcquire(item, provider, realClock.nowMs())).toBe('cooling');
  });

  it('keeps the permit of a cancelled call until 250 ms after the connection closed', async () => {
    bench.standIn.tokenMs = 50;
    let bytes = 0;
    const { call, permit } = chat(90, {
      onData: () => {
        bytes++;
        return true;
      },
    });
    await until(() => bytes > 1);
    call.cancel();
    cloud.permits.release(permit, realClock.nowMs());
    expect(cloud.service.snapshot().inFlight).toBe(1);
    await until(() => bench.standIn.account.running === 0);
    const closedAtMs = realClock.nowMs();
    await until(() => cloud.service.snapshot().inFlight === 0);
    expect(realClock.nowMs() - closedAtMs).toBeGreaterThan(150);
  });

  it('gives the permit back at once when the cancelled call had ended before, and books what it cost', () => {
    const permit = granted();
    let told: CallHandlers['onCancelled'];
    const silent: CallOpener = {
      open: (_head, _body, handlers) => {
        told = handlers.onCancelled;
        return { cancel: () => undefined, resume: () => undefined };
      },
    };
    const call = cloud.lane.withPermit(silent, permit, null).open(HEAD, Buffer.from('{}'), {
      onHead: () => undefined,
      onData: () => true,
      onEnd: () => undefined,
      onFailure: () => undefined,
    });
    call.cancel();
    expect(cloud.service.snapshot().inFlight).toBe(1);
    const usage = { promptTokens: 1, completionTokens: 1, exact: true, costUsd: 0.25 };
    const fingerprint = {
      engine: 'openrouter',
      version: null,
      modelDigest: null,
      upstream: null,
      pin: null,
      processMark: null,
    };
    told?.({ trailers: { usage, fingerprint, engineMs: 5, firstByteMs: null, tokensPerSecond: null, finished: true } });
    expect(cloud.service.snapshot().inFlight).toBe(0);
    expect(cloud.desk.spentUsd('code-assistant').dayUsd).toBe(0.25);
  });

  it('keeps the permits of a lost session for its agent to abort', async () => {
    bench.standIn.latencyMs = 300;
    const { ended } = chat(3);
    await until(() => bench.standIn.account.running === 1);
    session = false;
    for (const lose of broken) lose();
    cloud.sessionLost(NODE);
    expect(ended).toHaveLength(1);
    expect(cloud.service.snapshot().inFlight).toBe(1);
    expect(cloud.desk.status().state).toBe('no-agent');
  });

  it('lets probes of the gate wait for a permit, and gives up in time', async () => {
    const probe = (timeoutMs: number) => {
      const ended: (Trailers | CallFailure)[] = [];
      const head: CallHead = {
        op: 'embed',
        engine: 'openrouter',
        model: 'qwen/qwen3-embedding-8b@nebius',
        count: 1,
        width: null,
        cut: null,
        normalise: true,
        processMark: null,
        timeoutMs,
      };
      cloud.lane.probes(opener, NODE, 'embedding').open(head, Buffer.from('["probe"]'), {
        onHead: () => undefined,
        onData: () => true,
        onEnd: (trailers) => ended.push(trailers),
        onFailure: (failure) => ended.push(failure),
      });
      return ended;
    };
    await cloud.desk.setOverride(1);
    const held = granted();
    const [patient, hasty] = [probe(5000), probe(60)];
    await until(() => hasty.length === 1);
    expect(hasty[0]).toMatchObject({ blame: 'busy' });
    expect(patient).toEqual([]);
    cloud.service.ended(held, { kind: 'ended', costUsd: 0 });
    await until(() => patient.length === 1);
    expect(patient[0]).toMatchObject({
      finished: true,
      fingerprint: { upstream: 'nebius', pin: 'only=nebius;quantizations=' },
    });
    expect(cloud.service.snapshot().inFlight).toBe(0);
  });

  it('takes no permit for counting tokens, which nobody could give back', () => {
    const heads: CallHead[] = [];
    const keeping: CallOpener = {
      open: (head) => {
        heads.push(head);
        return { cancel: () => undefined, resume: () => undefined };
      },
    };
    const head: CallHead = { op: 'tokenize', engine: 'openrouter', model: 'x/y', count: 1, timeoutMs: 100 };
    const ignored = { onHead: () => undefined, onData: () => true, onEnd: () => undefined, onFailure: () => undefined };
    cloud.lane.probes(keeping, NODE, 'embedding').open(head, Buffer.from('[]'), ignored);
    expect(heads).toEqual([head]);
    expect(cloud.service.snapshot().inFlight).toBe(0);
  });

  it('lists what could serve a role, and where one model is served, so that it can be pinned', async () => {
    const ask = async (role: RoleId, chosen: string | null) => {
      const found: Awaited<ReturnType<typeof cloud.desk.modelsFor>>[] = [];
      void cloud.desk.modelsFor(role, chosen).then((models) => found.push(models));
      await until(() => found.length > 0);
      return found[0] ?? [];
    };
    const encoders = await ask('embedding', 'qwen/qwen3-embedding-8b');
    expect(
      encoders.map(({ model, upstreams }) => [model, upstreams?.map((one) => [one.slug, one.quantization])]),
    ).toEqual([
      [
        'qwen/qwen3-embedding-8b',
        [
          ['deepinfra/turbo', 'bf16'],
          ['nebius', 'fp8'],
        ],
      ],
      ['baai/bge-m3', undefined],
    ]);
    expect(encoders[0]?.upstreams?.[1]).toMatchObject({ name: 'Nebius', promptUsdPerMillion: 0.01, healthy: true });
    // Kept: neither the models nor these upstreams are read again.
    const requests = bench.standIn.requests;
    await ask('embedding', 'qwen/qwen3-embedding-8b');
    expect(bench.standIn.requests).toBe(requests);
    const rerankers = await ask('reranker', 'qwen/qwen3-reranker-8b');
    expect(rerankers.map(({ model, upstreams }) => [model, upstreams])).toEqual([['cohere/rerank-4-fast', null]]);
    expect(await ask('rlm', null)).toHaveLength(3);
  });

  it('a role turned local is refused by the agent itself', async () => {
    roles.embedding = { ...roles.embedding, policy: 'local' };
    cloud.rolesChanged();
    await until(() => !cloud.catalogue.routes().some(({ role }) => role === 'embedding'));
    expect(cloud.catalogue.routes().map(({ role }) => role)).toEqual(['code-assistant']);
  });
});
