import { execFile } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, expect, it } from 'vitest';
import {
  type Agent,
  admin,
  type ControlPlane,
  removeTemporaryFolders,
  startAgent,
  startControlPlane,
} from '../support/processes.ts';

const entry = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../agent/index.ts');

interface Identity {
  readonly fingerprint: string;
  readonly next: string | null;
}

/** `npm run agent -- identity …`, in a process of its own beside the running agent. */
async function identity(dataDir: string, ...words: string[]): Promise<Identity> {
  const args = [entry, 'identity', ...words, '--json', '--data-dir', dataDir];
  return JSON.parse((await promisify(execFile)(process.execPath, args)).stdout) as Identity;
}

const ending: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of ending.splice(0).reverse()) await one.stop();
  removeTemporaryFolders();
});

async function pair(): Promise<{ plane: ControlPlane; agent: Agent; operator: ReturnType<typeof admin> }> {
  const agent = await startAgent({ name: 'workshop' });
  const plane = await startControlPlane();
  ending.push(agent, plane);
  const operator = admin(plane, plane.adminToken);
  await operator.post('nodes', { address: agent.listen, joinCode: agent.joinCode });
  await expect.poll(() => nodeOf(operator)).toMatchObject({ state: 'ready' });
  return { plane, agent, operator };
}

async function restarted(plane: ControlPlane): Promise<ReturnType<typeof admin>> {
  const again = await startControlPlane({ dataDir: plane.dataDir });
  ending.push(again);
  return admin(again, plane.adminToken);
}

const nodeOf = async (operator: ReturnType<typeof admin>) =>
  (await operator.get<{ nodes: { name: string; state: string }[] }>('nodes')).nodes[0];
const codesOf = async (operator: ReturnType<typeof admin>) =>
  (await operator.get<{ events: { code: string }[] }>('events')).events.map(({ code }) => code);

it('an agent changes its key while it serves; its control plane follows, and holds to the new one', async () => {
  const { plane, agent, operator } = await pair();
  const before = await identity(agent.dataDir);
  const { next } = await identity(agent.dataDir, 'rotate');
  expect(next).not.toBeNull();
  // Announced, kept, acknowledged, taken: without a word from anybody, and without the session noticing.
  await expect.poll(() => identity(agent.dataDir)).toMatchObject({ fingerprint: next, next: null });
  expect(next).not.toBe(before.fingerprint);
  expect(await nodeOf(operator)).toMatchObject({ state: 'ready' });
  expect(await codesOf(operator)).not.toContain('node_key_changed');

  agent.kill('SIGKILL');
  await agent.gone;
  const again = await startAgent({ dataDir: agent.dataDir, name: 'workshop', args: ['--listen', agent.listen] });
  ending.push(again);
  expect(again.fingerprint).toBe(next);
  await expect.poll(() => codesOf(operator)).toContain('node_key_changed');
  await expect.poll(() => nodeOf(operator)).toMatchObject({ state: 'ready' });

  plane.kill('SIGKILL');
  await plane.gone;
  const later = await restarted(plane);
  await expect.poll(() => nodeOf(later)).toMatchObject({ state: 'ready' });
  expect(await codesOf(later)).not.toContain('identity_changed');
});

it('an agent that changes its key behind the back of its control plane is another machine, known by its name', async () => {
  const { plane, agent } = await pair();
  plane.kill('SIGKILL');
  await plane.gone;
  const { fingerprint } = await identity(agent.dataDir);
  const now = await identity(agent.dataDir, 'rotate', '--now');
  expect(now.fingerprint).not.toBe(fingerprint);
  await agent.stop();
  const again = await startAgent({ dataDir: agent.dataDir, name: 'workshop', args: ['--listen', agent.listen] });
  ending.push(again);
  const later = await restarted(plane);
  await expect.poll(() => nodeOf(later)).toMatchObject({ state: 'error', name: 'workshop' });
  expect(await codesOf(later)).toContain('identity_changed');
});
