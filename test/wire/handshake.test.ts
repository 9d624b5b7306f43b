import { createHmac, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  type ChannelBinding,
  deriveKey,
  type HandshakeMessage,
  type HandshakePort,
  handshakeAsAgent,
  pairAsController,
  prove,
  resumeAsController,
} from '../../agent/wire/handshake.ts';

const binding: ChannelBinding = { fingerprint: Buffer.alloc(32, 1), exporter: Buffer.alloc(32, 2) };
const code = Buffer.alloc(10, 3);

/** One end of a connection in memory. */
class End implements HandshakePort {
  peer: End | null = null;
  readonly sent: HandshakeMessage[] = [];
  trusted = 0;
  readonly #inbox: HandshakeMessage[] = [];
  #waiter: ((message: HandshakeMessage) => void) | null = null;

  send(bytes: Buffer, binary: boolean): void {
    this.sent.push({ bytes, binary });
    this.peer?.receive({ bytes, binary });
  }

  receive(message: HandshakeMessage): void {
    if (this.#waiter === null) this.#inbox.push(message);
    else this.#waiter(message);
    this.#waiter = null;
  }

  next(): Promise<HandshakeMessage> {
    const message = this.#inbox.shift();
    if (message !== undefined) return Promise.resolve(message);
    return new Promise((resolve) => {
      this.#waiter = resolve;
    });
  }

  trust(): void {
    this.trusted += 1;
  }
}

function connected(): { controller: End; agent: End } {
  const [controller, agent] = [new End(), new End()];
  controller.peer = agent;
  agent.peer = controller;
  return { controller, agent };
}

function agentSide(port: End, options: Partial<Parameters<typeof handshakeAsAgent>[1]> = {}) {
  const proved: boolean[] = [];
  const outcome = handshakeAsAgent(port, {
    node: 'n1',
    binding,
    secret: () => code,
    proved: (_hello, right) => void proved.push(right),
    store: async () => undefined,
    openSession: () => 'sid',
    ...options,
  });
  outcome.catch(() => undefined);
  return { outcome, proved };
}

const refused = (reason: string) => expect.objectContaining({ name: 'HandshakeRefused', code: reason });

/** The formula of the protocol, written a second time: every part after its length as four bytes, big-endian. */
function mac(key: Buffer, ...parts: (string | Uint8Array)[]): string {
  const framed = parts.map((part) => {
    const bytes = Buffer.from(part);
    return Buffer.concat([Buffer.from([0, 0, bytes.length >> 8, bytes.length & 255]), bytes]);
  });
  return createHmac('sha256', key).update(Buffer.concat(framed)).digest('hex');
}

describe('the proofs', () => {
  it('are the HMACs that the protocol names', () => {
    const key = deriveKey(code, 'pair');
    expect(key.toString('hex')).toBe(mac(code, 'switchyard/1', 'pair'));
    const [hello, challenge] = [Buffer.from('{"v":1}'), Buffer.from('{"v":1,"node":"n"}')];
    expect(prove(key, 'controller', hello, challenge, binding).toString('hex')).toBe(
      mac(key, 'controller', hello, challenge, binding.fingerprint, binding.exporter),
    );
    expect(prove(key, 'agent', hello, challenge, binding)).not.toEqual(
      prove(key, 'controller', hello, challenge, binding),
    );
  });

  it('cover the messages as they were on the wire', async () => {
    const { controller, agent } = connected();
    const { outcome } = agentSide(agent);
    await pairAsController(controller, { controller: 'cp', binding, secret: code }, async () => Buffer.alloc(32, 9));
    await outcome;
    const [hello, proof, issue] = controller.sent;
    const [challenge, answer, stored] = agent.sent;
    if (hello === undefined || challenge === undefined) throw new Error('not sent');
    const key = deriveKey(code, 'pair');
    const covered = [hello.bytes, challenge.bytes, binding.fingerprint, binding.exporter] as const;
    expect(proof?.bytes.toString('hex')).toBe(mac(key, 'controller', ...covered));
    expect(answer?.bytes.toString('hex')).toBe(mac(key, 'agent', ...covered));
    expect(JSON.parse(hello.bytes.toString())).toEqual({ v: 1, mode: 'pair', cp: 'cp', cn: expect.any(String) });
    expect(JSON.parse(issue?.bytes.toString() ?? '')).toEqual({ key: Buffer.alloc(32, 9).toString('base64url') });
    expect(JSON.parse(stored?.bytes.toString() ?? '')).toEqual({ t: 'stored' });
    expect([controller.trusted, agent.trusted]).toEqual([1, 1]);
  });
});

describe('the agent', () => {
  it.each([
    ['another secret', { secret: randomBytes(10), binding }],
    ['another fingerprint', { secret: code, binding: { ...binding, fingerprint: Buffer.alloc(32, 7) } }],
    ['another connection', { secret: code, binding: { ...binding, exporter: Buffer.alloc(32, 7) } }],
  ])('sends no proof to %s', async (_what, options) => {
    const { controller, agent } = connected();
    const { outcome, proved } = agentSide(agent);
    void resumeAsController(controller, { controller: 'cp', ...options });
    await expect(outcome).rejects.toEqual(refused('proof'));
    expect(agent.sent).toHaveLength(1);
    expect([proved, agent.trusted]).toEqual([[false], 0]);
  });

  it('goes the same way when it has no secret at all', async () => {
    const { controller, agent } = connected();
    const { outcome, proved } = agentSide(agent, { secret: () => null });
    void resumeAsController(controller, { controller: 'cp', binding, secret: code });
    await expect(outcome).rejects.toEqual(refused('proof'));
    expect([agent.sent.length, proved]).toEqual([1, [false]]);
  });

  it('takes the secret of the moment of the proof', async () => {
    const { controller, agent } = connected();
    let current: Buffer | null = code;
    const { outcome } = agentSide(agent, { secret: () => current });
    const cn = Buffer.alloc(32).toString('base64url');
    controller.send(Buffer.from(JSON.stringify({ v: 1, mode: 'resume', cp: 'cp', cn })), false);
    const challenge = await controller.next();
    current = null;
    const hello = controller.sent[0]?.bytes ?? Buffer.alloc(0);
    controller.send(prove(deriveKey(code, 'resume'), 'controller', hello, challenge.bytes, binding), true);
    await expect(outcome).rejects.toEqual(refused('proof'));
  });

  it.each([
    ['another version', { v: 2, mode: 'pair', cp: 'cp', cn: 'A'.repeat(43) }, 'version'],
    ['an unknown mode', { v: 1, mode: 'admin', cp: 'cp', cn: 'A'.repeat(43) }, 'malformed'],
    ['a short nonce', { v: 1, mode: 'pair', cp: 'cp', cn: 'A' }, 'malformed'],
    ['data without a session', { v: 1, mode: 'data', cp: 'cp', cn: 'A'.repeat(43) }, 'malformed'],
    ['a name that is none', { v: 1, mode: 'pair', cp: '../x', cn: 'A'.repeat(43) }, 'malformed'],
    ['no object', null, 'malformed'],
  ])('refuses %s before it says anything', async (_what, hello, reason) => {
    const { controller, agent } = connected();
    const { outcome } = agentSide(agent);
    controller.send(Buffer.from(JSON.stringify(hello)), false);
    await expect(outcome).rejects.toEqual(refused(reason));
    expect(agent.sent).toEqual([]);
  });
});

describe('the controller', () => {
  it('sends no node key to an agent that only echoes', async () => {
    const { controller, agent } = connected();
    const paired = pairAsController(controller, { controller: 'cp', binding, secret: code }, async () => {
      throw new Error('must not be asked for a key');
    });
    await agent.next();
    agent.send(Buffer.from(JSON.stringify({ v: 1, node: 'n1', an: 'A'.repeat(43) })), false);
    agent.send((await agent.next()).bytes, true);
    await expect(paired).rejects.toEqual(refused('proof'));
    expect(controller.trusted).toBe(0);
  });

  it('refuses a proof sent as text, however right', async () => {
    const { controller, agent } = connected();
    const resumed = resumeAsController(controller, { controller: 'cp', binding, secret: code });
    const hello = await agent.next();
    agent.send(Buffer.from(JSON.stringify({ v: 1, node: 'n1', an: 'A'.repeat(43) })), false);
    await agent.next();
    const challenge = agent.sent[0]?.bytes ?? Buffer.alloc(0);
    agent.send(prove(deriveKey(code, 'resume'), 'agent', hello.bytes, challenge, binding), false);
    await expect(resumed).rejects.toEqual(refused('proof'));
  });
});
