import { describe, expect, it } from 'vitest';
import { type CloudFromAgent, CloudStatus, decodePush, MAX_PUSH, type Push } from '../../agent/wire/cloud.ts';
import { KeyPush, MAX_BELIEVED_PUSH } from '../../main/cloud/key-push.ts';
import type { AgentPort, PushFacts } from '../../main/cloud/ports.ts';
import type { NewEvent } from '../../main/domain/events.ts';
import type { NodeId } from '../../main/domain/ids.ts';
import { defaultRoleSettings, ROLE_IDS, type RoleId, type RoleSettings } from '../../main/domain/roles.ts';
import { Bench, KEY } from '../agent-cloud/driver.ts';
import { SimClock } from '../gate/sim-clock.ts';

const A = 'a' as NodeId;
const B = 'b' as NodeId;

/** A control plane's key push in front of agents that only keep what they were sent. */
class House {
  readonly sent: {
    readonly node: NodeId;
    readonly push: Push;
    readonly key: string | null;
    readonly frame: Buffer;
    readonly done: () => void;
  }[] = [];
  readonly events: NewEvent[] = [];
  readonly applied: NodeId[] = [];
  roles: Record<RoleId, RoleSettings>;
  nodes: NodeId[] = [A, B];
  facts: PushFacts | null;
  hold = false;
  readonly clock = new SimClock();
  readonly push: KeyPush;

  constructor(facts: PushFacts | null = null) {
    this.facts = facts;
    this.roles = Object.fromEntries(ROLE_IDS.map((role) => [role, defaultRoleSettings(role)])) as Record<
      RoleId,
      RoleSettings
    >;
    const agents: AgentPort = {
      ready: () => this.nodes.map((node) => ({ node, name: `machine ${node}` })),
      name: (node) => `machine ${node}`,
      send: () => true,
      sendBinary: (node, frame, done) => {
        if (!this.nodes.includes(node)) return false;
        const push = decodePush(frame);
        this.sent.push({ node, push, key: push.key === null ? null : Buffer.from(push.key).toString(), frame, done });
        if (!this.hold) done();
        return true;
      },
    };
    this.push = new KeyPush({
      clock: this.clock,
      agents,
      store: {
        load: () => this.facts,
        save: (saved) => {
          this.facts = saved;
        },
      },
      events: { record: (event) => this.events.push(event) },
      roles: () => this.roles,
      baseUrl: () => null,
      onChange: () => undefined,
      onKeyApplied: (node) => this.applied.push(node),
    });
    this.push.start();
  }

  /** The agent applies what it was sent last. */
  accept(node: NodeId, status: Partial<CloudStatus> = {}): void {
    const last = this.sent.findLast((sent) => sent.node === node);
    if (last === undefined) throw new Error('nothing was sent there');
    this.push.onAck(node, { t: 'cloud-ack', push: last.push.number, result: 'applied', reason: null });
    const keyPush = this.sent.findLast((sent) => sent.node === node && sent.key !== null)?.push.number ?? null;
    this.push.onStatus(node, {
      ...EMPTY,
      push: last.push.number,
      keyPush,
      key: keyPush === null ? 'missing' : 'held',
      ...status,
    });
  }

  states(): Record<string, string> {
    return Object.fromEntries(this.push.holders().map(({ node, state }) => [node, state]));
  }
}

const NO_FACTS: PushFacts = {
  version: 1,
  number: 0,
  keyPush: 0,
  keyPushedAtWallMs: null,
  narrowedTo: null,
  sentTo: [],
};

const EMPTY: CloudStatus = {
  t: 'cloud-status',
  push: 0,
  keyPush: null,
  key: 'missing',
  keyRefused: false,
  remembered: false,
  canRemember: false,
  baseUrl: 'https://openrouter.ai/api/v1',
  account: null,
  offers: [],
  notOffered: [],
  catalogueAtWallMs: null,
};

describe('pushing a key', () => {
  it('goes to every ready agent, is acknowledged, and leaves no byte behind', async () => {
    const house = new House();
    house.hold = true;
    const key = Buffer.from(`  ${KEY}\n`);
    const done = house.push.push(key);
    expect(house.sent.map(({ node, key: sent }) => [node, sent])).toEqual([
      [A, KEY],
      [B, KEY],
    ]);
    expect(house.states()).toEqual({ a: 'pending', b: 'pending' });
    for (const { done: finish } of house.sent) finish();
    await done;
    expect(key.every((byte) => byte === 0)).toBe(true);
    for (const { frame } of house.sent) expect(frame.every((byte) => byte === 0)).toBe(true);
    house.accept(A);
    expect(house.states()).toEqual({ a: 'accepted', b: 'pending' });
    house.accept(B);
    expect(house.states()).toEqual({ a: 'accepted', b: 'accepted' });
    expect(house.applied).toEqual([A, B]);
    expect(JSON.stringify(house.facts)).not.toContain(KEY.slice(0, 10));
    expect(house.facts).toMatchObject({ number: 1, keyPush: 1, keyPushedAtWallMs: house.clock.wallMs() });
  });

  it.each(['', 'short', 'has space inside', 'x'.repeat(513), 'with-ünicode-letters'])(
    'refuses %j, quotes nothing and zeroes it',
    async (text) => {
      const house = new House();
      const key = Buffer.from(text);
      await expect(house.push.push(key)).rejects.toMatchObject({ code: 'invalid_cloud_key', extra: {} });
      expect(key.every((byte) => byte === 0)).toBe(true);
      expect(house.sent).toEqual([]);
    },
  );

  it('without an agent is refused and zeroed', async () => {
    const house = new House();
    house.nodes = [];
    const key = Buffer.from(KEY);
    await expect(house.push.push(key)).rejects.toMatchObject({ code: 'no_key_agent' });
    expect(key.every((byte) => byte === 0)).toBe(true);
  });

  it('narrowed to one agent makes the key of the other stale', async () => {
    const house = new House();
    await house.push.push(Buffer.from(KEY));
    house.accept(A);
    house.accept(B);
    await house.push.push(Buffer.from(KEY), { nodeIds: [A] });
    expect(house.sent.slice(-2).map(({ node, key, push }) => [node, key !== null, push.meta.keyPush])).toEqual([
      [A, true, 2],
      [B, false, 2],
    ]);
    house.accept(A);
    house.accept(B, { key: 'stale' });
    expect(house.states()).toEqual({ a: 'accepted', b: 'key-stale' });
    expect(house.push.holds(B)).toBe(false);
  });

  it('a change of a role goes out without a key and keeps it', async () => {
    const house = new House();
    await house.push.push(Buffer.from(KEY));
    house.accept(A);
    house.roles = {
      ...house.roles,
      rlm: { ...house.roles.rlm, policy: 'cloud', cloud: { model: 'x/y', upstreams: ['u'], quantizations: [] } },
    };
    house.push.configChanged();
    const last = house.sent.findLast(({ node }) => node === A);
    expect(last).toMatchObject({
      key: null,
      push: { number: 2, meta: { keyPush: 1, roles: { rlm: { model: 'x/y', upstreams: ['u'], policy: 'cloud' } } } },
    });
    house.accept(A);
    expect(house.states().a).toBe('accepted');
  });

  it('a restarted agent says that it misses the key; the last one to hold it, and none, are told to a person once', async () => {
    const house = new House();
    await house.push.push(Buffer.from(KEY));
    house.accept(A);
    house.accept(B);
    house.push.sessionLost(B);
    house.push.sessionBegan(B);
    house.push.onStatus(B, { ...EMPTY, push: 2 });
    house.push.onStatus(B, { ...EMPTY, push: 2 });
    expect(house.states()).toEqual({ a: 'accepted', b: 'key-missing' });
    expect(house.events.map(({ code }) => code)).toEqual(['one_key_agent']);
    house.push.onStatus(A, EMPTY);
    expect(house.events.map(({ code }) => code)).toEqual(['one_key_agent', 'no_key_agent']);
  });

  it('is alarmed about nothing while an agent that has applied the key has not said so yet', async () => {
    const house = new House();
    await house.push.push(Buffer.from(KEY));
    for (const node of [A, B]) house.push.onAck(node, { t: 'cloud-ack', push: 1, result: 'applied', reason: null });
    for (const node of [A, B]) house.push.onStatus(node, { ...EMPTY, push: 1, keyPush: 1, key: 'held' });
    await house.clock.advance(60_000);
    expect(house.events).toEqual([]);
  });

  it('that a person had dropped is missed by nobody, also by who comes later; who was away drops it then', async () => {
    const house = new House();
    await house.push.push(Buffer.from(KEY));
    house.accept(A);
    house.accept(B);
    house.nodes = [A];
    house.push.sessionLost(B);
    house.push.forget(null);
    expect(house.sent.at(-1)).toMatchObject({ node: A, push: { meta: { forget: true } } });
    house.push.onStatus(A, { ...EMPTY, push: 2 });
    house.nodes = [A, B];
    house.push.sessionBegan(B);
    expect(house.sent.at(-1)).toMatchObject({ node: B, push: { meta: { forget: true } } });
    house.push.onStatus(B, { ...EMPTY, push: 3 });
    const again = new House(JSON.parse(JSON.stringify(house.facts)) as PushFacts);
    for (const node of [A, B]) {
      again.push.sessionBegan(node);
      again.push.onStatus(node, { ...EMPTY, push: again.facts?.number ?? 0 });
    }
    await again.clock.advance(60_000);
    expect([...house.events, ...again.events]).toEqual([]);
    expect(again.push.holders().map(({ state, forgotten }) => [state, forgotten])).toEqual([
      ['key-missing', true],
      ['key-missing', true],
    ]);
    await again.push.push(Buffer.from(KEY));
    for (const node of [A, B]) again.accept(node);
    again.push.sessionBegan(B);
    expect(again.sent.at(-1)?.push.meta.forget).toBeUndefined();
    again.push.onStatus(B, { ...EMPTY, push: again.facts?.number ?? 0 });
    expect(again.events.map(({ code }) => code)).toEqual(['one_key_agent']);
  });

  it('dropped on one of two is not missed there, and is on the other', async () => {
    const house = new House();
    await house.push.push(Buffer.from(KEY));
    house.accept(A);
    house.accept(B);
    house.push.forget([A]);
    house.push.onStatus(A, { ...EMPTY, push: 2 });
    expect(house.events).toEqual([]);
    expect(house.push.holders().map(({ forgotten }) => forgotten)).toEqual([true, false]);
    house.push.onStatus(B, { ...EMPTY, push: 2 });
    expect(house.events.map(({ code }) => code)).toEqual(['no_key_agent']);
  });

  it('is as old as its acceptance, however often the agent reports; what else is so, as the first report of it', async () => {
    const house = new House();
    const ages = () => house.push.holders().map(({ atWallMs }) => house.clock.wallMs() - (atWallMs ?? 0));
    await house.push.push(Buffer.from(KEY));
    await house.clock.advance(2000);
    house.accept(A);
    house.push.onStatus(B, EMPTY);
    for (const report of [1, 2]) {
      await house.clock.advance(30_000);
      house.push.onStatus(A, { ...EMPTY, push: 1, keyPush: 1, key: 'held' });
      house.push.onStatus(B, EMPTY);
      expect(ages()).toEqual([30_000 * report, 30_000 * report]);
    }
    house.push.sessionLost(A);
    house.push.onStatus(A, { ...EMPTY, push: 1, keyPush: 1, key: 'held' });
    expect(ages()).toEqual([60_000, 60_000]);
    house.push.onStatus(A, { ...EMPTY, push: 1 });
    expect(ages()).toEqual([0, 60_000]);
  });

  it('goes on from the numbers of the agents when its own memory was lost', () => {
    const house = new House();
    house.push.sessionBegan(A);
    house.push.onAck(A, { t: 'cloud-ack', push: 1, result: 'refused', reason: 'out-of-order' });
    house.push.onStatus(A, { ...EMPTY, push: 41, keyPush: 40, key: 'held' });
    const last = house.sent.at(-1);
    expect(last?.push).toMatchObject({ number: 42, meta: { keyPush: 40 } });
    expect(house.states().a).toBe('accepted');
  });

  it('goes on from the number of a key at rest, which an agent that was started again still knows', async () => {
    const house = new House();
    house.push.sessionBegan(A);
    house.push.onStatus(A, { ...EMPTY, push: 1, keyPush: 40, key: 'held' });
    await house.push.push(Buffer.from(KEY));
    expect(house.sent.at(-1)?.push).toMatchObject({ number: 41, meta: { keyPush: 41 } });
  });

  it('sends anew to an agent that had told its number before it refused', () => {
    const house = new House();
    house.push.sessionBegan(A);
    const status = { ...EMPTY, push: 41, keyPush: 40, key: 'held' } as const;
    house.push.onStatus(A, status);
    house.push.onAck(A, { t: 'cloud-ack', push: 1, result: 'refused', reason: 'out-of-order' });
    house.push.onStatus(A, status);
    expect(house.sent.at(-1)?.push.number).toBe(42);
  });

  describe('beside an agent with numbers that nobody has sent', () => {
    const claims = (house: House, push: number) => {
      const refused = house.sent.findLast(({ node }) => node === B)?.push.number ?? 0;
      house.push.onAck(B, { t: 'cloud-ack', push: refused, result: 'refused', reason: 'out-of-order' });
      house.push.onStatus(B, { ...EMPTY, push, keyPush: push, key: 'held' });
    };

    it.each([MAX_PUSH, MAX_BELIEVED_PUSH + 1])(
      'keeps its own, says it once and gives that agent nothing: %d',
      async (push) => {
        const house = new House();
        await house.push.push(Buffer.from(KEY));
        house.accept(A);
        for (let time = 0; time < 3; time++) claims(house, push);
        expect(house.states()).toEqual({ a: 'accepted', b: 'refused' });
        expect(house.facts).toMatchObject({ number: 1, keyPush: 1 });
        expect(house.events.filter(({ code }) => code === 'cloud_push_beyond')).toMatchObject([{ node: B }]);
      },
    );

    it('never counts beyond what the wire carries, whatever is claimed and how often', async () => {
      const house = new House();
      await house.push.push(Buffer.from(KEY));
      house.accept(A);
      for (let time = 0; time < 50; time++) {
        house.push.sessionBegan(B);
        claims(house, Math.min(MAX_PUSH, (house.facts?.number ?? 0) + 5e7));
      }
      // The key that the other holds is none the older for it.
      expect(house.states().a).toBe('accepted');
      await house.push.push(Buffer.from(KEY));
      house.accept(A);
      const number = house.facts?.number ?? 0;
      expect(number).toBeLessThan(MAX_BELIEVED_PUSH + 200);
      expect(CloudStatus.safeParse({ ...EMPTY, push: number, keyPush: number, key: 'held' }).success).toBe(true);
      expect(house.states().a).toBe('accepted');
    });

    it('is sent its routes anew once in a session, and not for as long as it refuses', async () => {
      const house = new House();
      house.push.sessionBegan(B);
      for (let time = 0; time < 10; time++) claims(house, (house.facts?.number ?? 0) + 1);
      expect(house.sent.filter(({ node }) => node === B)).toHaveLength(2);
    });

    it('begins anew where the numbers kept have come near the end of the wire', async () => {
      const house = new House({ ...NO_FACTS, number: MAX_PUSH, keyPush: MAX_PUSH });
      house.push.sessionBegan(A);
      expect(house.sent.at(-1)?.push).toMatchObject({ number: 1, meta: { keyPush: 0 } });
    });
  });

  it('an agent that is away is shown as such', async () => {
    const house = new House();
    await house.push.push(Buffer.from(KEY));
    house.nodes = [A];
    house.accept(A);
    expect(house.states()).toEqual({ a: 'accepted', b: 'unreachable' });
  });
});

describe('a control plane that starts again', () => {
  const sent = (node: NodeId) => ({ node, push: 7, atWallMs: 5, outcome: 'accepted' as const });
  const facts: PushFacts = {
    version: 1,
    number: 9,
    keyPush: 7,
    keyPushedAtWallMs: 5,
    narrowedTo: null,
    sentTo: [sent(A), sent(B)],
  };
  const come = (house: House, node: NodeId, key: 'held' | 'missing') => {
    if (!house.nodes.includes(node)) house.nodes = [...house.nodes, node];
    house.push.sessionBegan(node);
    house.push.onStatus(node, { ...EMPTY, push: house.facts?.number ?? 0, keyPush: key === 'held' ? 7 : null, key });
  };
  const restarted = () => {
    const house = new House(facts);
    house.nodes = [];
    return house;
  };
  const codes = (house: House) => house.events.map(({ code }) => code);

  it('says nothing while agents that hold the key answer one after the other, or when it stops', async () => {
    const house = restarted();
    await house.clock.advance(14_000);
    come(house, A, 'held');
    await house.clock.advance(900);
    come(house, B, 'held');
    await house.clock.advance(60_000);
    house.nodes = [];
    for (const node of [A, B]) house.push.sessionLost(node);
    house.push.stop();
    await house.clock.advance(60_000);
    expect(codes(house)).toEqual([]);
  });

  it('takes no word from a session that does not run yet for the last one', async () => {
    const house = restarted();
    come(house, A, 'held');
    await house.clock.advance(7000);
    house.push.onStatus(B, { ...EMPTY, push: 9, keyPush: 7, key: 'held' });
    await house.clock.advance(50);
    house.nodes = [A, B];
    house.push.sessionBegan(B);
    await house.clock.advance(60_000);
    expect(codes(house)).toEqual([]);
  });

  it('gives the one that may hold the key 15 s to come, and says then that the others do not', async () => {
    const house = restarted();
    await house.clock.advance(1000);
    come(house, A, 'missing');
    await house.clock.advance(13_999);
    expect(codes(house)).toEqual([]);
    await house.clock.advance(1);
    expect(codes(house)).toEqual(['no_key_agent']);
  });

  it('gives as long to one that is connected and silent', async () => {
    const house = restarted();
    come(house, A, 'held');
    house.nodes = [A, B];
    house.push.sessionBegan(B);
    await house.clock.advance(14_999);
    expect(codes(house)).toEqual([]);
    await house.clock.advance(1);
    expect(codes(house)).toEqual(['one_key_agent']);
  });

  it('says it at once when all have spoken and none holds the key', () => {
    const house = restarted();
    come(house, A, 'missing');
    come(house, B, 'missing');
    expect(codes(house)).toEqual(['no_key_agent']);
  });

  it('says nothing of the key while nobody is there who could take it', async () => {
    const house = restarted();
    await house.clock.advance(60_000);
    expect(codes(house)).toEqual([]);
    come(house, A, 'missing');
    expect(codes(house)).toEqual(['no_key_agent']);
  });

  it('does not tell again what it has told of the key before', async () => {
    const first = restarted();
    come(first, A, 'held');
    come(first, B, 'missing');
    expect(codes(first)).toEqual(['one_key_agent']);
    const again = new House(JSON.parse(JSON.stringify(first.facts)) as PushFacts);
    again.nodes = [];
    come(again, A, 'held');
    come(again, B, 'missing');
    await again.clock.advance(60_000);
    expect(codes(again)).toEqual([]);
    again.push.onStatus(A, { ...EMPTY, push: again.facts?.number ?? 0 });
    expect(codes(again)).toEqual(['no_key_agent']);
  });

  it('gives a session that broke as long to be made anew', async () => {
    const house = restarted();
    come(house, A, 'held');
    come(house, B, 'held');
    house.nodes = [A];
    house.push.sessionLost(B);
    await house.clock.advance(14_000);
    come(house, B, 'held');
    await house.clock.advance(60_000);
    expect(codes(house)).toEqual([]);
    house.nodes = [A];
    house.push.sessionLost(B);
    await house.clock.advance(15_000);
    expect(codes(house)).toEqual(['one_key_agent']);
  });
});

describe('control plane and agent together', () => {
  it('push, use, change a model without the key, go stale, forget', async () => {
    const bench = await Bench.start();
    const house = new House();
    house.nodes = [A];
    const deliver = (from: number) => {
      for (const { message } of bench.sent.slice(from)) take(house, message);
    };
    const exchange = async (act: () => unknown) => {
      const from = bench.sent.length;
      const sentBefore = house.sent.length;
      house.hold = true;
      const acted = act();
      for (const { frame, done } of house.sent.slice(sentBefore)) {
        bench.engine.push('cp1', Buffer.from(frame));
        done();
      }
      await acted;
      deliver(from);
    };
    await exchange(() => house.push.push(Buffer.from(KEY)));
    expect(house.states().a).toBe('accepted');
    await bench.until(() => bench.status()?.catalogueAtWallMs !== null);
    expect(bench.status()?.notOffered).toMatchObject([
      { role: 'reranker', model: 'qwen/qwen3-reranker-8b', nearest: ['cohere/rerank-4-fast'] },
    ]);
    house.roles = {
      ...house.roles,
      reranker: { ...house.roles.reranker, cloud: { model: 'cohere/rerank-4-fast', upstreams: [], quantizations: [] } },
    };
    await exchange(() => house.push.configChanged());
    await bench.until(() => bench.engine.status('cp1').offers.some((offer) => offer.role === 'reranker'));
    expect(bench.engine.status('cp1')).toMatchObject({ key: 'held', push: 2, keyPush: 1 });
    await exchange(() => house.push.forget(null));
    expect(house.states().a).toBe('key-missing');
    await bench.stop();
  });
});

function take(house: House, message: CloudFromAgent): void {
  if (message.t === 'cloud-ack') house.push.onAck(A, message);
  if (message.t === 'cloud-status') house.push.onStatus(A, message);
}
