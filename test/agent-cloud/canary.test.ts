import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { encodePush } from '../../agent/wire/cloud.ts';
import { OpenRouterStandIn } from '../engines/openrouter.ts';
import { ROLES } from './driver.ts';

let folder: string;
let standIn: OpenRouterStandIn;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'switchyard-canary-'));
  standIn = new OpenRouterStandIn();
  await standIn.start();
});
afterEach(async () => {
  await standIn.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Forms in which a key could slip out: as it is, base64, hex, and either half. */
function formsOf(key: string): readonly string[] {
  const bytes = Buffer.from(key);
  const half = Math.floor(key.length / 2);
  return [key, bytes.toString('base64').replace(/=+$/, ''), bytes.toString('hex'), key.slice(0, half), key.slice(half)];
}

class AgentProcess {
  readonly child: ChildProcess;
  readonly messages: unknown[] = [];
  output = '';

  constructor(keyring: string | null) {
    this.child = fork(fileURLToPath(new URL('agent-process.ts', import.meta.url)), [standIn.url, folder], {
      serialization: 'advanced',
      silent: true,
      execArgv: ['--disable-sigusr1', '--report-exclude-env'],
      env: { PATH: process.env.PATH, ...(keyring === null ? {} : { SWITCHYARD_KEYRING: keyring }) },
    });
    this.child.on('message', (message) => this.messages.push(message));
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on('data', (chunk) => {
        this.output += String(chunk);
      });
    }
  }

  text(): string {
    return this.output + JSON.stringify(this.messages);
  }

  async heard(what: string, count = 1): Promise<void> {
    await expect.poll(() => this.text().split(what).length - 1, { timeout: 15_000 }).toBeGreaterThanOrEqual(count);
  }
}

it('a key that was pushed into an agent comes out nowhere: answers, errors, status, diagnostics, crash, files', {
  timeout: 60_000,
}, async () => {
  const key = `sk-or-v1-${randomBytes(24).toString('hex')}`;
  const keyring = `1:${randomBytes(32).toString('base64')}`;
  standIn.keys.add(key);
  standIn.echoKey = true;
  const agent = new AgentProcess(keyring);
  await agent.heard('"up":true');
  agent.child.send({ push: encodePush(1, { keyPush: 1, remember: true, roles: ROLES }, Buffer.from(key)) });
  await agent.heard('"result":"applied"');
  await agent.heard('"promptUsd"');
  const chat = (stream: boolean, number: number) => ({
    call: {
      op: 'chat',
      engine: 'openrouter',
      model: 'poolside/laguna-s-2.1',
      stream,
      wantsUsage: false,
      path: '/v1/chat/completions',
      firstByteMs: 5000,
      betweenTokensMs: 5000,
      cloud: { permit: `p${number}`, role: 'code-assistant', pin: null, maxTokens: 50 },
    },
    body: { messages: [{ role: 'user', content: 'say 3 words' }] },
  });
  agent.child.send(chat(false, 1));
  agent.child.send(chat(true, 2));
  await agent.heard('"finished":true', 2);
  for (const error of ['bad-request', 'unauthorized', 'upstream-pool'] as const) {
    standIn.fail({ error });
    agent.child.send(chat(false, 3));
  }
  await agent.heard('"blame"', 3);
  // Damaged pushes: refused without a word of what was in them.
  const cut = encodePush(2, { keyPush: 2 }, Buffer.from(key));
  agent.child.send({ push: Uint8Array.from(cut.subarray(0, 20)) });
  agent.child.send({ push: Uint8Array.from(encodePush(3, { keyPush: 3 }, Buffer.from(`${key} ${key}`))) });
  await agent.heard('"malformed"', 2);
  agent.child.send({ report: true });
  await agent.heard('"diagnostic"');
  agent.child.send({ crash: true });
  await once(agent.child, 'exit');

  // It was really used and really echoed, else this proves nothing.
  expect(standIn.ledger.filter((entry) => entry.status === 200)).toHaveLength(2);
  expect(agent.output).toContain('the agent crashes');
  expect(agent.text()).toContain('*'.repeat(key.length));
  let files = '';
  for (const name of await readdir(folder)) files += await readFile(join(folder, name), 'latin1');
  expect(files).toContain('"sealed"');
  for (const form of formsOf(key)) {
    expect(agent.text().includes(form)).toBe(false);
    expect(files.includes(form)).toBe(false);
  }

  // After a restart: without the keyring the key is missing, with it it is there.
  const without = new AgentProcess(null);
  await without.heard('"key":"missing"');
  without.child.kill();
  const again = new AgentProcess(keyring);
  await again.heard('"remembered":true');
  again.child.send({ push: encodePush(1, { keyPush: 1, roles: ROLES }, null) });
  await again.heard('"promptUsd"');
  again.child.send(chat(false, 4));
  await again.heard('"finished":true');
  again.child.kill();
  for (const form of formsOf(key)) expect((again.text() + without.text()).includes(form)).toBe(false);
});
