import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttps } from 'node:https';
import { connect, type Socket } from 'node:net';
import { createServer as createTls } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { writeSecretFile } from '../../agent/session/files.ts';
import { loadIdentity } from '../../agent/session/identity.ts';
import { CLOSE } from '../../agent/wire/close.ts';
import {
  HandshakeRefused,
  joinDataAsController,
  pairAsController,
  resumeAsController,
} from '../../agent/wire/handshake.ts';
import { parseJoinCode } from '../../agent/wire/joincode.ts';
import type { PendingPairing } from '../../main/fleet/link.ts';
import { pairAgent } from '../../main/fleet/pair.ts';
import { AgentSession } from '../../main/fleet/session.ts';
import { codeOf, rawClient, rawTls, type TestAgent, TestAgents } from './bench-agent.ts';
import { ManualClock } from './manual-clock.ts';
import { NetworkProxy } from './proxy.ts';

const agents = new TestAgents();
const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  await Promise.all(cleanUps.splice(0).map((cleanUp) => cleanUp()));
  await agents.stop();
});

const clock = new ManualClock();

/** Pairs; keeps what was stored as pending in `pending`, as the vault would. */
function pair(agent: TestAgent, options: Partial<Parameters<typeof pairAgent>[0]> = {}) {
  const pending: PendingPairing[] = [];
  const result = pairAgent({
    address: `127.0.0.1:${agent.port}`,
    controller: 'desk',
    joinCode: agent.server.joinCode() ?? '0000-0000-0000-0000',
    clock,
    storePending: async (stored) => void pending.push(stored),
    ...options,
  });
  return { result, pending };
}

function session(agent: TestAgent, key: Uint8Array, options: { controller?: string; fingerprint?: string } = {}) {
  const link = new AgentSession({
    address: `127.0.0.1:${agent.port}`,
    controller: 'desk',
    key,
    fingerprint: agent.identity.fingerprint,
    clock,
    handlers: { onWelcome: () => undefined, onHeartbeat: () => undefined },
    ...options,
  });
  cleanUps.push(() => link.close());
  return link;
}

/** Dials raw and pairs with a code; gives what the handshake rejects with. */
async function tryCode(port: number, code: Uint8Array, localAddress?: string): Promise<unknown> {
  const client = await rawClient(port, localAddress);
  try {
    return await pairAsController(
      client.socket,
      { controller: 'evil', binding: client.binding, secret: code },
      async () => new Uint8Array(32),
    );
  } catch (error) {
    return error;
  } finally {
    client.ws.terminate();
    if (!client.tls.closed) await once(client.tls, 'close');
  }
}

const refusal = (code: string) => expect.objectContaining({ name: 'HandshakeRefused', code });

describe('pairing', () => {
  it('learns node and fingerprint, stores the key before it is issued, burns the code, and the key opens sessions', async () => {
    const agent = await agents.start();
    const { result, pending } = pair(agent, { joinCode: codeOf(agent).toLowerCase().replaceAll('-', ' ') });
    const paired = await result;
    expect(paired.node).toBe(agent.identity.node);
    expect(paired.fingerprint).toBe(agent.identity.fingerprint);
    expect(pending).toHaveLength(1);
    expect(paired.key).toEqual(pending[0]?.key);
    expect(Buffer.from(agent.controllers.key('desk') ?? []).equals(paired.key)).toBe(true);
    expect(agent.server.joinCode()).toBeNull();
    await expect(session(agent, paired.key).start()).resolves.toMatchObject({ t: 'welcome' });
  });

  it('refuses a wrong code, a used code and a code that is none', async () => {
    const agent = await agents.start();
    const code = codeOf(agent);
    await expect(pair(agent, { joinCode: '0000-0000-0000-0000' }).result).rejects.toMatchObject({
      code: 'join_refused',
    });
    await expect(pair(agent, { joinCode: 'not a code' }).result).rejects.toMatchObject({ code: 'invalid_join_code' });
    await pair(agent).result;
    await expect(pair(agent, { joinCode: code, controller: 'other' }).result).rejects.toMatchObject({
      code: 'join_refused',
    });
    expect(agent.controllers.ids()).toEqual(['desk']);
  });

  it('with the key of one agent alone sends no other its code, nor takes up what was begun with another', async () => {
    const [agent, other] = [await agents.start(), await agents.start()];
    const code = codeOf(agent);
    const { fingerprint } = other.identity;
    await expect(pair(agent, { fingerprint }).result).rejects.toMatchObject({ code: 'identity_changed' });
    expect([agent.server.joinCode(), agent.controllers.ids()]).toEqual([code, []]);
    const { result, pending } = pair(agent, { fingerprint: agent.identity.fingerprint });
    await expect(result).resolves.toMatchObject({ fingerprint: agent.identity.fingerprint });
    const begun = pending[0] as PendingPairing;
    // The key of the attempt before holds there, which would be enough without the other key that was named.
    await expect(pair(agent, { pending: begun }).result).resolves.toMatchObject({ node: agent.identity.node });
    await expect(pair(agent, { pending: begun, fingerprint }).result).rejects.toMatchObject({
      code: 'identity_changed',
    });
  });

  it('refuses a node key in the place of a code, and a code in the place of a node key', async () => {
    const agent = await agents.start();
    const code = parseJoinCode(codeOf(agent));
    if (code === null) throw new Error('no code');
    const { key } = await pair(agent).result;
    await agent.server.newJoinCode();
    expect(await tryCode(agent.port, key)).toEqual(refusal('proof'));
    const client = await rawClient(agent.port);
    const live = parseJoinCode(codeOf(agent)) ?? new Uint8Array(10);
    await expect(
      resumeAsController(client.socket, { controller: 'desk', binding: client.binding, secret: live }),
    ).rejects.toEqual(refusal('proof'));
  });

  it('serves eight control planes and tells the ninth, whose code still holds', async () => {
    const agent = await agents.start();
    for (let index = 0; index < 8; index += 1) await agent.controllers.admit(`cp${index}`, randomBytes(32));
    const code = codeOf(agent);
    await expect(pair(agent).result).rejects.toMatchObject({ code: 'too_many_controllers' });
    expect(agent.server.joinCode()).toBe(code);
    await agent.server.revoke('cp3');
    await expect(pair(agent).result).resolves.toMatchObject({ node: agent.identity.node });
  });

  it('pairs a control plane again in the place it has, with a new key', async () => {
    const agent = await agents.start();
    const first = await pair(agent).result;
    const before = session(agent, first.key);
    await before.start();
    await agent.server.newJoinCode();
    const second = await pair(agent).result;
    expect(agent.controllers.count).toBe(1);
    await expect.poll(() => before.pulls).toBe(false);
    await expect(session(agent, first.key).start()).rejects.toMatchObject({ code: 'join_refused' });
    await expect(session(agent, second.key).start()).resolves.toBeDefined();
  });

  it('says when nothing, or something else, answers', async () => {
    const agent = await agents.start();
    await agent.server.stop();
    await expect(pair(agent, { joinCode: '0000-0000-0000-0000' }).result).rejects.toMatchObject({
      code: 'node_unreachable',
    });
    await expect(pair(agent, { address: 'a b:1', joinCode: '0000-0000-0000-0000' }).result).rejects.toMatchObject({
      code: 'invalid_address',
    });
  });
});

describe('an attacker', () => {
  it('cannot use a recorded proof on another connection', async () => {
    const agent = await agents.start();
    const { key } = await pair(agent).result;
    const first = await rawClient(agent.port);
    const sent: { bytes: Buffer; binary: boolean }[] = [];
    const port = {
      send: (bytes: Buffer, binary: boolean) => {
        sent.push({ bytes, binary });
        first.socket.send(bytes, binary);
      },
      next: () => first.socket.next(),
      trust: () => first.socket.trust(),
    };
    await resumeAsController(port, { controller: 'desk', binding: first.binding, secret: key });
    const second = await rawClient(agent.port);
    for (const { bytes, binary } of sent) second.socket.send(bytes, binary);
    expect(await second.closed).toBe(CLOSE.refused);
  });

  it('gets no data socket with a foreign, an unknown or an ended session', async () => {
    const agent = await agents.start();
    const { key } = await pair(agent).result;
    await agent.controllers.admit('other', key);
    const control = await rawClient(agent.port);
    const { sid } = await resumeAsController(control.socket, {
      controller: 'other',
      binding: control.binding,
      secret: key,
    });
    const data = async (controller: string, named: string): Promise<unknown> => {
      const client = await rawClient(agent.port);
      const joined = joinDataAsController(client.socket, { controller, binding: client.binding, secret: key }, named);
      return await joined.catch((error: unknown) => error);
    };
    expect(await data('other', sid)).toBe(agent.identity.node);
    expect(await data('desk', sid)).toEqual(refusal('proof'));
    expect(await data('desk', 'x')).toEqual(refusal('proof'));
    control.ws.terminate();
    await expect.poll(() => agent.server.counters().sessions).toBe(0);
    expect(await data('other', sid)).toEqual(refusal('proof'));
  });

  it('who echoes our own proof is no agent', async () => {
    const other = await loadIdentity(await agents.folder());
    const fake = createHttps({ cert: other.certificatePem, key: other.keyPem });
    new WebSocketServer({ server: fake }).on('connection', (ws) => {
      let messages = 0;
      ws.on('message', (message: Buffer) => {
        messages += 1;
        if (messages === 1) ws.send(JSON.stringify({ v: 1, node: 'n', an: randomBytes(32).toString('base64url') }));
        else ws.send(message, { binary: true });
      });
    });
    await new Promise<void>((resolve) => fake.listen(0, '127.0.0.1', resolve));
    cleanUps.push(
      () => fake.closeAllConnections(),
      () => fake.close(),
    );
    const address = fake.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    let stored = false;
    const paired = pairAgent({
      address: `127.0.0.1:${port}`,
      controller: 'desk',
      joinCode: '0000-0000-0000-0000',
      clock,
      storePending: async () => {
        stored = true;
      },
    });
    await expect(paired).rejects.toMatchObject({ code: 'join_refused' });
    expect(stored).toBe(false);
  });

  it('at a known address with another certificate is sent not one byte', async () => {
    const agent = await agents.start();
    const { key } = await pair(agent).result;
    const other = await loadIdentity(await agents.folder());
    let received = 0;
    const fake = createTls({ cert: other.certificatePem, key: other.keyPem, minVersion: 'TLSv1.3' }, (tls) => {
      tls.on('error', () => tls.destroy());
      tls.on('data', (bytes: Buffer) => {
        received += bytes.length;
      });
    });
    await new Promise<void>((resolve) => fake.listen(0, '127.0.0.1', resolve));
    const address = fake.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const ended = once(fake, 'connection').then(([socket]) => once(socket as Socket, 'close'));
    const link = session({ ...agent, port }, key);
    await expect(link.start()).rejects.toMatchObject({ code: 'identity_changed' });
    await ended;
    expect(received).toBe(0);
    fake.close();
  });

  it('gets the version refused in both directions', async () => {
    const agent = await agents.start();
    const client = await rawClient(agent.port);
    client.ws.send(JSON.stringify({ v: 2, mode: 'pair', cp: 'desk', cn: 'x' }));
    expect(await client.closed).toBe(CLOSE.version);
    const other = await loadIdentity(await agents.folder());
    const fake = createHttps({ cert: other.certificatePem, key: other.keyPem });
    new WebSocketServer({ server: fake }).on('connection', (ws) => {
      ws.on('message', () => ws.send(JSON.stringify({ v: 2, something: 'else' })));
    });
    await new Promise<void>((resolve) => fake.listen(0, '127.0.0.1', resolve));
    cleanUps.push(
      () => fake.closeAllConnections(),
      () => fake.close(),
    );
    const address = fake.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    await expect(pair({ ...agent, port }).result).rejects.toMatchObject({ code: 'wire_version' });
  });

  it('with an Origin is turned away before any handshake, and so is plain HTTPS', async () => {
    const agent = await agents.start();
    const answers: string[] = [];
    for (const header of ['Origin: https://evil.example\r\n', 'Origin: null\r\n', '']) {
      const tls = await rawTls(agent.port);
      const upgrade =
        header === ''
          ? ''
          : 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
      tls.write(`GET /v1 HTTP/1.1\r\nHost: agent\r\n${upgrade}${header}\r\n`);
      const [answer] = (await once(tls, 'data')) as [Buffer];
      answers.push(answer.toString('latin1').slice(9, 12));
      tls.destroy();
    }
    expect(answers).toEqual(['403', '403', '426']);
  });

  it('who sends garbage or more than 4 KiB before the proof is cut', async () => {
    const agent = await agents.start();
    for (const message of ['not json', '{"v":1}', 'x'.repeat(5000), randomBytes(64)]) {
      const client = await rawClient(agent.port);
      client.ws.send(message);
      expect([CLOSE.violation, CLOSE.refused]).toContain(await client.closed);
    }
    const flood = await rawClient(agent.port);
    flood.ws.on('error', () => undefined);
    flood.tls.write(
      Buffer.concat([Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 1, 2, 3, 4]), randomBytes(127_000)]),
    );
    expect(await flood.closed).toBe(1006);
    await expect.poll(() => agent.server.counters().unproved).toBe(0);
  });

  it('who says nothing is cut after 5 s, at whatever step, and holds four places at most', async () => {
    const agent = await agents.start();
    const silent = [connect(agent.port, '127.0.0.1'), await rawTls(agent.port)];
    for (const socket of silent) socket.on('error', () => undefined);
    const upgraded = await rawClient(agent.port);
    const greeted = await rawClient(agent.port);
    greeted.ws.send(JSON.stringify({ v: 1, mode: 'pair', cp: 'desk', cn: randomBytes(32).toString('base64url') }));
    await greeted.socket.next();
    await expect.poll(() => agent.server.counters().unproved).toBe(4);
    await expect(rawTls(agent.port)).rejects.toThrow();
    await expect(pair(agent).result).rejects.toMatchObject({ code: 'node_unreachable' });
    // Another address has places of its own.
    (await rawTls(agent.port, '127.0.0.2')).destroy();
    agent.clock.advance(4999);
    expect(silent.map(({ destroyed }) => destroyed)).toEqual([false, false]);
    agent.clock.advance(1);
    expect(await greeted.closed).toBe(1006);
    expect(await upgraded.closed).toBe(1006);
    await expect.poll(() => agent.server.counters().unproved).toBe(0);
    await expect(pair(agent).result).resolves.toBeDefined();
  });

  it('holds 16 places at most from everywhere', async () => {
    const agent = await agents.start();
    const held = [];
    for (let index = 0; index < 16; index += 1) held.push(await rawTls(agent.port, `127.0.0.${10 + (index >> 2)}`));
    await expect(rawTls(agent.port, '127.0.0.20')).rejects.toThrow();
    held[0]?.destroy();
    await expect.poll(() => agent.server.counters().unproved).toBe(15);
    (await rawTls(agent.port, '127.0.0.20')).destroy();
    for (const tls of held) tls.destroy();
  });

  it('who guesses is shut out after five codes for 30 minutes; others and paired ones are not', async () => {
    const agent = await agents.start();
    const code = parseJoinCode(codeOf(agent));
    if (code === null) throw new Error('no code');
    const key = randomBytes(32);
    await agent.controllers.admit('known', key);
    for (let guess = 0; guess < 5; guess += 1)
      expect(await tryCode(agent.port, randomBytes(10))).toEqual(refusal('proof'));
    expect(agent.server.counters().wrongCodes).toBe(5);
    expect(await tryCode(agent.port, code)).toEqual(refusal('proof'));
    await expect(session(agent, key, { controller: 'known' }).start()).resolves.toBeDefined();
    agent.clock.advance(30 * 60_000 - 1);
    expect(await tryCode(agent.port, code)).toEqual(refusal('proof'));
    agent.clock.advance(1);
    expect(await tryCode(agent.port, code)).toBe(agent.identity.node);
    expect(agent.server.counters().wrongCodes).toBe(5);
  });

  it('who guesses from everywhere closes the code with the hundredth', async () => {
    const agent = await agents.start();
    const code = codeOf(agent);
    for (let guess = 0; guess < 100; guess += 1) {
      expect(agent.server.joinCode()).toBe(code);
      await tryCode(agent.port, randomBytes(10), `127.0.1.${1 + Math.floor(guess / 5)}`);
    }
    expect(agent.server.joinCode()).toBeNull();
    await expect(pair(agent, { joinCode: code }).result).rejects.toMatchObject({ code: 'join_refused' });
    await agent.server.newJoinCode();
    await expect(pair(agent).result).resolves.toBeDefined();
  });
});

describe('a pairing that is cut', () => {
  /** Starts the agent again from what is on its disk. */
  async function restarted(folder: string): Promise<TestAgent> {
    return await agents.start({ folder });
  }

  it('before the key is issued leaves the code as it was', async () => {
    const folder = await agents.folder();
    const agent = await agents.start({ folder });
    const joinCode = codeOf(agent);
    const crash = new Error('the control plane was killed');
    const cut = pair(agent, {
      storePending: async () => {
        throw crash;
      },
    });
    await expect(cut.result).rejects.toBe(crash);
    await agent.server.stop();
    const again = await restarted(folder);
    await expect(pair(again, { joinCode }).result).resolves.toBeDefined();
  });

  it('with the key on its way is finished by the code', async () => {
    const folder = await agents.folder();
    const agent = await agents.start({ folder });
    const joinCode = codeOf(agent);
    const proxy = new NetworkProxy(agent.port);
    const port = await proxy.start();
    cleanUps.push(() => proxy.stop());
    const pending: PendingPairing[] = [];
    const cut = pair(
      { ...agent, port },
      {
        storePending: async (stored) => {
          pending.push(stored);
          if (pending.length === 1) proxy.cut();
        },
      },
    );
    // Within one call: resume is refused, the code works.
    const paired = await cut.result;
    expect(pending).toHaveLength(2);
    expect(paired.key).toEqual(pending[1]?.key);
    await expect(pair(agent, { joinCode }).result).rejects.toMatchObject({ code: 'join_refused' });
  });

  it.each([
    ['before the agent has stored it', false],
    ['after the agent has stored it', true],
  ])('%s is finished after a restart of both', async (_when, written) => {
    const folder = await agents.folder();
    const box: { agent?: TestAgent } = {};
    const agent = await agents.start({
      folder,
      write: async (path, content) => {
        const storing = box.agent !== undefined;
        if (!storing || written) await writeSecretFile(path, content);
        if (storing) {
          // The agent is killed here: nothing it would still do may reach the disk or the control plane.
          void box.agent?.server.stop();
          await new Promise(() => undefined);
        }
      },
    });
    const joinCode = codeOf(agent);
    box.agent = agent;
    const { result, pending } = pair(agent);
    await expect(result).rejects.toMatchObject({ code: 'node_unreachable' });
    const [left] = pending;
    if (left === undefined) throw new Error('nothing pending');
    const again = await restarted(folder);
    expect(again.server.joinCode()).toBe(written ? null : joinCode);
    const second = pair(again, { joinCode, pending: left });
    const paired = await second.result;
    expect(paired.key.length).toBe(32);
    // Stored before: the pending key is the key. Not stored: a new one was issued for the same code.
    expect(second.pending).toHaveLength(written ? 0 : 1);
    await expect(session(again, paired.key).start()).resolves.toBeDefined();
  });

  it('by a full disk of the agent says so, and the code still holds', async () => {
    let full = false;
    const agent = await agents.start({
      write: async (path, content) => {
        if (full) throw new Error('ENOSPC');
        await writeSecretFile(path, content);
      },
    });
    full = true;
    await expect(pair(agent).result).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(agent.controllers.count).toBe(0);
    full = false;
    await expect(pair(agent).result).resolves.toBeDefined();
  });
});

describe('revocation', () => {
  it('acts at once even when the disk is full', async () => {
    let full = false;
    const agent = await agents.start({
      write: async (path, content) => {
        if (full) throw new Error('ENOSPC');
        await writeSecretFile(path, content);
      },
    });
    const { key } = await pair(agent).result;
    const link = session(agent, key);
    await link.start();
    full = true;
    await expect(agent.server.revoke('desk')).rejects.toThrow('ENOSPC');
    await expect(session(agent, key).start()).rejects.toMatchObject({ code: 'join_refused' });
    await expect.poll(() => link.pulls).toBe(false);
    expect(await agent.server.revoke('desk')).toBe(false);
  });
});

it('a refusal carries nothing of the peer', () => {
  expect(new HandshakeRefused('malformed').message).toBe('handshake refused: malformed');
});
