import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import type { SessionChange } from '../../agent/session/ports.ts';
import { type CloudFromAgent, decodePush, encodePush } from '../../agent/wire/cloud.ts';
import type { AgentEvent, Heartbeat } from '../../agent/wire/control.ts';
import { joinDataAsController, resumeAsController } from '../../agent/wire/handshake.ts';
import type { IncomingCall } from '../../agent/wire/stream.ts';
import type { LinkOptions, LostReason } from '../../main/fleet/link.ts';
import { AgentSession } from '../../main/fleet/session.ts';
import { chatHead, Heard, okHead, pattern, trailers } from '../wire/simulated-link.ts';
import { heartbeat, rawClient, type TestAgent, TestAgents, welcome } from './bench-agent.ts';
import { ManualClock } from './manual-clock.ts';
import { NetworkProxy } from './proxy.ts';

const MIB = 1024 * 1024;
const agents = new TestAgents();
const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  await Promise.all(cleanUps.splice(0).map((cleanUp) => cleanUp()));
  await agents.stop();
});

/** What a link told. */
class Told {
  readonly heartbeats: Heartbeat[] = [];
  readonly events: AgentEvent[] = [];
  readonly cloud: CloudFromAgent[] = [];
  readonly pulls: boolean[] = [];
  readonly lost: LostReason[] = [];
  readonly handlers = {
    onWelcome: (): void => undefined,
    onHeartbeat: (beat: Heartbeat): void => void this.heartbeats.push(beat),
    onEvent: (event: AgentEvent): void => void this.events.push(event),
    onCloud: (message: CloudFromAgent): void => void this.cloud.push(message),
    onPulls: (pulls: boolean): void => void this.pulls.push(pulls),
    onLost: (reason: LostReason): void => void this.lost.push(reason),
  };
}

/** A paired, not yet started link; its time is its own. */
async function linkTo(agent: TestAgent, options: Partial<LinkOptions> = {}) {
  const key = randomBytes(32);
  await agent.controllers.admit(options.controller ?? 'desk', key);
  const told = new Told();
  const clock = new ManualClock();
  const make = () =>
    new AgentSession({
      address: `127.0.0.1:${agent.port}`,
      controller: 'desk',
      key,
      fingerprint: agent.identity.fingerprint,
      clock,
      handlers: told.handlers,
      ...options,
    });
  const link = make();
  cleanUps.push(() => link.close());
  return { link, told, clock, key, make };
}

function call(link: AgentSession, body: Uint8Array = Buffer.from('{}')) {
  const heard = new Heard();
  return { heard, call: link.opener.open(chatHead, body, heard.handlers) };
}

describe('a session', () => {
  it('carries calls, heartbeats, events and wishes; a new one hears the last heartbeat at once', async () => {
    const detected: string[] = [];
    const agent = await agents.start({ onDetect: (controller) => void detected.push(controller) });
    agent.server.broadcast(heartbeat(6));
    const { link, told } = await linkTo(agent);
    expect(await link.start()).toEqual(welcome);
    await expect.poll(() => told.heartbeats.map(({ seq }) => seq)).toEqual([6]);
    agent.server.broadcast(heartbeat(7));
    agent.server.event({ t: 'event', code: 'x', severity: 'warn', sentence: 'Something.' });
    link.detect();
    const { heard } = call(link, Buffer.from('{"a":1}'));
    await expect.poll(() => heard.ends).toEqual([trailers]);
    expect(heard.content().toString()).toBe('{"a":1}');
    await expect.poll(() => told.heartbeats.map(({ seq }) => seq)).toEqual([6, 7]);
    await expect.poll(() => told.events.length).toBe(1);
    await expect.poll(() => detected).toEqual(['desk']);
    await expect.poll(() => link.rttMs).toBe(0);
    expect(agent.server.counters()).toMatchObject({ sessions: 1, unproved: 0, calls: 0, callsTotal: 1, refused: 0 });
  });

  it('carries 32 MiB up and down again to a reader that stops at every chunk, and a small call passes it', async () => {
    const agent = await agents.start();
    const { link } = await linkTo(agent);
    await link.start();
    const body = pattern(9, 32 * MIB);
    const large = call(link, body);
    large.heard.accept = () => {
      setImmediate(() => large.call.resume());
      return false;
    };
    const small = call(link);
    await expect.poll(() => small.heard.ends.length).toBe(1);
    expect(large.heard.ends).toEqual([]);
    await expect.poll(() => large.heard.ends).toEqual([trailers]);
    expect(large.heard.content().equals(body)).toBe(true);
  });

  it('carries a push as bytes, zeroes what it sent, and carries asks and answers', async () => {
    const pushes: string[] = [];
    const asked: unknown[] = [];
    const ack: CloudFromAgent = { t: 'cloud-ack', push: 7, result: 'applied', reason: null };
    const agent = await agents.start({
      onPush: (controller, frame) => {
        const push = decodePush(frame);
        pushes.push(`${controller} ${push.number} ${Buffer.from(push.key ?? []).toString()}`);
        frame.fill(0);
        agent.server.send(controller, ack);
      },
      onAsk: (controller, ask) => void asked.push([controller, ask.what]),
    });
    const { link, told } = await linkTo(agent);
    const early = encodePush(6, { keyPush: 6 }, Buffer.from('sk-or-v1-early'));
    expect(await link.push(early)).toBe(false);
    expect(early.every((byte) => byte === 0)).toBe(true);
    expect(link.ask({ t: 'cloud-ask', id: 1, what: 'account' })).toBe(false);
    await link.start();
    const frame = encodePush(7, { keyPush: 7 }, Buffer.from('sk-or-v1-canary'));
    expect(await link.push(frame)).toBe(true);
    expect(frame.every((byte) => byte === 0)).toBe(true);
    await expect.poll(() => pushes).toEqual(['desk 7 sk-or-v1-canary']);
    await expect.poll(() => told.cloud).toEqual([ack]);
    expect(link.ask({ t: 'cloud-ask', id: 1, what: 'account' })).toBe(true);
    await expect.poll(() => asked).toEqual([['desk', 'account']]);
    expect(agent.server.send('nobody', ack)).toBe(false);
  });

  it('outlives the time limit of its handshake', async () => {
    const agent = await agents.start();
    const { link, told } = await linkTo(agent);
    await link.start();
    agent.clock.advance(6000);
    const { heard } = call(link);
    await expect.poll(() => heard.ends).toEqual([trailers]);
    expect(told.lost).toEqual([]);
    expect(agent.server.counters().sessions).toBe(1);
  });

  it('cancels at the agent', async () => {
    const calls: IncomingCall[] = [];
    const agent = await agents.start({ serve: (incoming) => void calls.push(incoming) });
    const { link } = await linkTo(agent);
    await link.start();
    const { call: running } = call(link);
    await expect.poll(() => calls.length).toBe(1);
    expect(calls[0]?.signal.aborted).toBe(false);
    running.cancel();
    await expect.poll(() => calls[0]?.signal.aborted).toBe(true);
    await expect.poll(() => agent.server.counters().calls).toBe(0);
  });

  it('ends quietly by close: calls fail, the agent aborts them, onLost is silent', async () => {
    const calls: IncomingCall[] = [];
    const changes: SessionChange[] = [];
    const agent = await agents.start({
      serve: (incoming) => void calls.push(incoming),
      onSession: (_controller, change) => void changes.push(change),
    });
    const { link, told } = await linkTo(agent);
    await link.start();
    const { heard } = call(link);
    await expect.poll(() => calls.length).toBe(1);
    link.close();
    link.close();
    expect(heard.ends).toMatchObject([{ blame: 'transport', code: 'stream_interrupted' }]);
    await expect.poll(() => calls[0]?.signal.aborted).toBe(true);
    await expect.poll(() => changes).toEqual(['began', 'ended']);
    expect(told.lost).toEqual([]);
    const late = call(link);
    await expect.poll(() => late.heard.ends).toMatchObject([{ blame: 'transport' }]);
    await expect(link.start()).rejects.toMatchObject({ code: 'node_unreachable' });
  });

  it('tells apart a stopping agent, a removed pairing and a newer session', async () => {
    const revoked: string[] = [];
    const agent = await agents.start({ onRevoked: (controller) => void revoked.push(controller) });
    const stays = await linkTo(agent);
    await stays.link.start();
    const newer = stays.make();
    cleanUps.push(() => newer.close());
    await newer.start();
    await expect.poll(() => stays.told.lost).toEqual(['superseded']);
    const removed = await linkTo(agent, { controller: 'other' });
    await removed.link.start();
    expect(agent.server.counters().sessions).toBe(2);
    await agent.server.revoke('other');
    expect(revoked).toEqual(['other']);
    await expect.poll(() => removed.told.lost).toEqual(['revoked']);
    await agent.server.stop();
    await expect.poll(() => stays.told.lost).toEqual(['superseded', 'bye']);
  });

  it('is forgotten at the agent on request', async () => {
    const agent = await agents.start();
    const { link, told, make } = await linkTo(agent);
    await link.start();
    expect(await link.forget()).toBe(true);
    expect(agent.controllers.count).toBe(0);
    expect(told.lost).toEqual([]);
    await expect(make().start()).rejects.toMatchObject({ code: 'join_refused' });
    await expect(make().forget()).resolves.toBe(false);
  });

  it('hears of a removal by another process when the agent reads its file again', async () => {
    const folder = await agents.folder();
    const agent = await agents.start({ folder });
    const { link, told } = await linkTo(agent);
    await link.start();
    const { Controllers } = await import('../../agent/session/controllers.ts');
    const outside = await Controllers.load(folder);
    await outside.revoke('desk');
    const code = await outside.newCode();
    await agent.server.reload();
    await expect.poll(() => told.lost).toEqual(['revoked']);
    expect(agent.server.joinCode()).toBe(code);
  });

  it('closed while it starts does not start', async () => {
    const agent = await agents.start();
    const { link } = await linkTo(agent);
    const started = link.start();
    link.close();
    await expect(started).rejects.toMatchObject({ code: 'node_unreachable' });
    await expect.poll(() => agent.server.counters().sessions).toBe(0);
  });
});

describe('silence', () => {
  async function held() {
    const calls: IncomingCall[] = [];
    const changes: SessionChange[] = [];
    const agent = await agents.start({
      serve: (incoming) => {
        calls.push(incoming);
        incoming.respond(okHead);
      },
      onSession: (_controller, change) => void changes.push(change),
    });
    const proxy = new NetworkProxy(agent.port);
    const port = await proxy.start();
    cleanUps.push(() => proxy.stop());
    const made = await linkTo(agent, { address: `127.0.0.1:${port}` });
    await made.link.start();
    await expect.poll(() => made.link.rttMs).not.toBeNull();
    return { agent, proxy, calls, changes, ...made };
  }

  it('of 3 s stops pulling; a pong starts it again', async () => {
    const { proxy, link, told, clock } = await held();
    proxy.hold();
    clock.advance(2999);
    expect([link.pulls, told.pulls]).toEqual([true, []]);
    clock.advance(1);
    expect([link.pulls, told.pulls]).toEqual([false, [false]]);
    clock.advance(11_000);
    expect(told.lost).toEqual([]);
    proxy.release();
    await expect.poll(() => told.pulls).toEqual([false, true]);
    expect(link.pulls).toBe(true);
    clock.advance(2000);
    expect(told.lost).toEqual([]);
  });

  it('of 15 s loses the session and fails its calls', async () => {
    const { proxy, link, told, clock, calls } = await held();
    const { heard } = call(link);
    await expect.poll(() => calls.length).toBe(1);
    await expect.poll(() => heard.head).not.toBeNull();
    proxy.hold();
    clock.advance(14_999);
    expect(told.lost).toEqual([]);
    clock.advance(1);
    expect(told.lost).toEqual(['silent']);
    expect(heard.ends).toMatchObject([{ blame: 'transport', code: 'stream_interrupted' }]);
    clock.advance(60_000);
    expect([told.lost, told.pulls, heard.ends.length]).toEqual([['silent'], [false], 1]);
  });

  it('of our own making, as after sleep, is not held against the agent', async () => {
    const { told, clock, link } = await held();
    // One timer, very late: the clock jumps without the looks in between.
    clock.jump(60_000);
    expect([link.pulls, told.lost]).toEqual([true, []]);
  });

  it('of the control plane is told to the agent after 5 s and ends the session after 15 s', async () => {
    const { agent, proxy, link, calls, changes } = await held();
    call(link);
    await expect.poll(() => calls.length).toBe(1);
    proxy.hold();
    agent.clock.advance(5000);
    expect(changes).toEqual(['began', 'silent']);
    expect(calls[0]?.signal.aborted).toBe(false);
    agent.clock.advance(10_000);
    expect(changes).toEqual(['began', 'silent', 'ended']);
    expect(calls[0]?.signal.aborted).toBe(true);
  });

  it('that ends in a cut network is lost at once on both sides', async () => {
    const { agent, proxy, told, link, calls } = await held();
    const { heard } = call(link);
    await expect.poll(() => calls.length).toBe(1);
    proxy.cut();
    await expect.poll(() => told.lost).toEqual(['closed']);
    expect(heard.ends).toHaveLength(1);
    await expect.poll(() => calls[0]?.signal.aborted).toBe(true);
    await expect.poll(() => agent.server.counters()).toMatchObject({ sessions: 0, calls: 0 });
  });
});

describe('a peer that breaks the protocol after its proof', () => {
  async function rawSession(agent: TestAgent) {
    const key = randomBytes(32);
    await agent.controllers.admit('desk', key);
    const control = await rawClient(agent.port);
    const { sid } = await resumeAsController(control.socket, {
      controller: 'desk',
      binding: control.binding,
      secret: key,
    });
    const data = await rawClient(agent.port);
    await joinDataAsController(data.socket, { controller: 'desk', binding: data.binding, secret: key }, sid);
    return { control, data };
  }

  it('on the data socket loses that socket with a reason; the control session lives', async () => {
    const agent = await agents.start();
    const { control, data } = await rawSession(agent);
    const reason = new Promise<string>((resolve) => data.ws.once('close', (_code, text) => resolve(text.toString())));
    data.ws.send(Buffer.from([9, 0, 0, 0, 0, 0, 0, 0, 0, 1]));
    expect([await data.closed, await reason]).toEqual([4008, 'unknown frame']);
    expect(control.ws.readyState).toBe(control.ws.OPEN);
    expect(agent.server.counters()).toMatchObject({ sessions: 1, violations: 1 });
  });

  it.each([
    ['text on the data socket', 'data', 'hello'],
    ['an unknown message on the control socket', 'control', '{"t":"what"}'],
    ['no JSON on the control socket', 'control', '{'],
    ['bytes on the control socket', 'control', Buffer.from([1])],
    ['a large message on the control socket', 'control', `{"t":"bye","reason":"${'x'.repeat(70_000)}"}`],
  ] as const)('loses the socket: %s', async (_what, which, message) => {
    const agent = await agents.start();
    const sockets = await rawSession(agent);
    sockets[which].ws.send(message);
    expect(await sockets[which].closed).toBe(4008);
    expect(agent.server.counters().violations).toBe(1);
  });
});
