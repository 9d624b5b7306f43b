import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { loadIdentity, prepareNextKey, takeNextKey } from '../../agent/session/identity.ts';
import { KeyRotation } from '../../agent/session/key-rotation.ts';
import { AgentSession } from '../../main/fleet/session.ts';
import { heartbeat, type TestAgent, TestAgents } from './bench-agent.ts';

const agents = new TestAgents();
const links: AgentSession[] = [];
afterEach(async () => {
  for (const link of links.splice(0)) link.close();
  await agents.stop();
});

const KEY = new Uint8Array(32).fill(7);

describe('the file of the identity', () => {
  it('keeps the present key while the next one is on its way, and only the next one afterwards', async () => {
    const folder = await agents.folder();
    const first = await loadIdentity(folder);
    expect(first.next).toBeNull();
    const prepared = await prepareNextKey(folder);
    expect(prepared).toMatchObject({ node: first.node, fingerprint: first.fingerprint });
    expect(prepared.next?.fingerprint).toMatch(/^[0-9a-f]{64}$/);
    expect(await prepareNextKey(folder)).toEqual(prepared); // once is enough
    expect(await loadIdentity(folder)).toEqual(prepared);
    const taken = await takeNextKey(folder);
    expect(taken).toMatchObject({ node: first.node, fingerprint: prepared.next?.fingerprint, next: null });
    expect(await loadIdentity(folder)).toEqual(taken);
    expect(await readFile(join(folder, 'identity.json'), 'utf8')).not.toContain(JSON.stringify(first.keyPem));
  });

  it('has another key at once where none was on its way', async () => {
    const folder = await agents.folder();
    const first = await loadIdentity(folder);
    const taken = await takeNextKey(folder);
    expect(taken.node).toBe(first.node);
    expect(taken.fingerprint).not.toBe(first.fingerprint);
  });
});

describe('the change of keys', () => {
  async function rotation(controllers: string[]) {
    const folder = await agents.folder();
    await prepareNextKey(folder);
    const identity = await loadIdentity(folder);
    const told: string[] = [];
    let full = false;
    const keys = new KeyRotation({
      identity,
      controllers: () => controllers,
      read: () => loadIdentity(folder),
      take: async () => {
        told.push('takes it');
        if (full) throw new Error('the disk is full');
        return await takeNextKey(folder);
      },
      onAnnounced: () => void told.push('announced'),
      onTaken: ({ fingerprint }) => void told.push(fingerprint),
      onFault: () => void told.push('fault'),
    });
    const next = identity.next?.fingerprint ?? '';
    return { keys, identity, next, told, folder, fill: (state: boolean) => (full = state) };
  }

  it('waits for every paired control plane, and takes no word about another key', async () => {
    const { keys, next, told, identity } = await rotation(['a', 'b']);
    expect(keys.announced).toBe(next);
    keys.look();
    keys.acknowledged('a', next);
    keys.acknowledged('b', identity.fingerprint);
    expect(told).toEqual([]);
    keys.acknowledged('b', next);
    await expect.poll(() => told).toEqual(['takes it', next]);
    expect(keys.announced).toBe(next); // as before: whoever heard it heard the truth
  });

  it('waits no longer for one that was removed', async () => {
    const controllers = ['a', 'gone'];
    const { keys, next, told } = await rotation(controllers);
    keys.acknowledged('a', next);
    expect(told).toEqual([]);
    controllers.pop();
    keys.look();
    await expect.poll(() => told).toEqual(['takes it', next]);
  });

  it('is put off by a full disk: the key that is on the disk is the one that is shown', async () => {
    const { keys, next, told, fill } = await rotation(['a']);
    fill(true);
    keys.acknowledged('a', next);
    await expect.poll(() => told).toEqual(['takes it', 'fault']);
    fill(false);
    keys.look();
    await expect.poll(() => told).toEqual(['takes it', 'fault', 'takes it', next]);
  });

  it('follows a command in another process: one that prepares, and one that takes at once', async () => {
    const { keys, told, folder, next } = await rotation(['a']);
    const now = await takeNextKey(folder);
    await keys.reload();
    expect(told).toEqual([next]);
    const prepared = await prepareNextKey(folder);
    await keys.reload();
    expect(told).toEqual([now.fingerprint, 'announced']);
    expect(keys.announced).toBe(prepared.next?.fingerprint);
  });
});

describe('an agent that shows its next key', () => {
  function dial(agent: TestAgent, fingerprint: string, nextFingerprint: string | null = null) {
    const used: string[] = [];
    const lost: string[] = [];
    const link = new AgentSession({
      address: `127.0.0.1:${agent.port}`,
      controller: 'desk',
      key: KEY,
      fingerprint,
      nextFingerprint,
      clock: agent.clock,
      handlers: {
        onWelcome: () => undefined,
        onHeartbeat: () => undefined,
        onNextUsed: () => void used.push('next'),
        onLost: (reason) => void lost.push(reason),
      },
    });
    links.push(link);
    return { link, used, lost };
  }

  async function agentWithNext() {
    const folder = await agents.folder();
    await prepareNextKey(folder);
    const identity = await loadIdentity(folder);
    const known: string[] = [];
    const agent = await agents.start({ folder, onKnown: (who, what) => void known.push(`${who} ${what}`) });
    await agent.controllers.admit('desk', KEY);
    const { next, fingerprint } = identity;
    if (next === null) throw new Error('no next key');
    return { agent, known, next, fingerprint };
  }

  it('is known to whoever was told, by both until the first use and then by the next one alone', async () => {
    const { agent, known, next, fingerprint } = await agentWithNext();
    const first = dial(agent, fingerprint, next.fingerprint);
    await first.link.start();
    first.link.acknowledge(next.fingerprint);
    await expect.poll(() => known).toEqual([`desk ${next.fingerprint}`]);
    expect(first.used).toEqual([]);
    agent.server.showKey(next);
    agent.server.broadcast(heartbeat(1)); // the session that stands is left alone
    await expect.poll(() => first.link.pulls).toBe(true);
    expect(first.lost).toEqual([]);
    const second = dial(agent, fingerprint, next.fingerprint);
    await second.link.start();
    expect(second.used).toEqual(['next']);
    await expect(dial(agent, fingerprint).link.start()).rejects.toMatchObject({ code: 'identity_changed' });
    const third = dial(agent, next.fingerprint);
    await third.link.start();
    expect(third.used).toEqual([]);
  });

  it('and goes back to the one before is another machine to whoever has seen the next one', async () => {
    const { agent, next, fingerprint } = await agentWithNext();
    await expect(dial(agent, next.fingerprint).link.start()).rejects.toMatchObject({ code: 'identity_changed' });
    // While nothing was used, the one before still holds.
    await dial(agent, fingerprint, next.fingerprint).link.start();
  });
});
