import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { Trailers } from '../../agent/wire/calls.ts';
import type { Heartbeat, Welcome } from '../../agent/wire/control.ts';
import type { LinkHandlers, LostReason } from '../../main/fleet/link.ts';
import { pairAgent } from '../../main/fleet/pair.ts';
import { AgentSession } from '../../main/fleet/session.ts';
import { createSystemClock } from '../../main/platform/clock.ts';
import { type Agent, removeTemporaryFolders, startAgent, temporaryFolder } from '../support/processes.ts';

const clock = createSystemClock();
const entry = path.join(import.meta.dirname, '../../agent/index.ts');
const run = promisify(execFile);
const cli = (...args: string[]) => run(process.execPath, [entry, ...args]);

const ending: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});
afterAll(removeTemporaryFolders);

async function agent(): Promise<Agent> {
  const started = await startAgent({ name: 'bench' });
  ending.push(() => started.stop());
  return started;
}

async function pair(to: Agent, controller: string, joinCode = to.joinCode) {
  return pairAgent({ address: to.listen, controller, joinCode, clock, storePending: async () => undefined });
}

/** A session with what it heard. */
async function session(target: { address: string; key: Uint8Array; fingerprint: string }, controller: string) {
  const heard = { welcome: null as Welcome | null, heartbeats: [] as Heartbeat[], lost: null as LostReason | null };
  const handlers: LinkHandlers = {
    onWelcome: (welcome) => {
      heard.welcome = welcome;
    },
    onHeartbeat: (heartbeat) => void heard.heartbeats.push(heartbeat),
    onLost: (reason) => {
      heard.lost = reason;
    },
  };
  const link = new AgentSession({ ...target, controller, clock, handlers });
  ending.push(() => link.close());
  await link.start();
  return { link, heard };
}

function embed(link: AgentSession, engine: string, model: string, texts: readonly string[]) {
  const head = { op: 'embed' as const, engine, model, count: texts.length, width: 512, cut: null, normalise: true };
  return new Promise<{ bytes: Buffer; trailers: Trailers }>((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    link.opener.open({ ...head, processMark: null, timeoutMs: 20_000 }, Buffer.from(JSON.stringify(texts)), {
      onHead: () => undefined,
      onData: (chunk) => chunks.push(chunk) > 0,
      onEnd: (trailers) => resolve({ bytes: Buffer.concat(chunks), trailers }),
      onFailure: (failure) => reject(new Error(failure.code)),
    });
  });
}

describe('the agent as a process', () => {
  it('pairs by its code, says what it is, and encodes in a third process', async () => {
    const running = await agent();
    const paired = await pair(running, 'alpha');
    expect(paired.fingerprint).toBe(running.fingerprint);
    const { link, heard } = await session(paired, 'alpha');
    expect(heard.welcome).toMatchObject({
      name: 'bench',
      pid: running.pid,
      node: paired.node,
      platform: process.platform,
    });
    await expect.poll(() => heard.heartbeats.length).toBeGreaterThan(0);
    const builtin = heard.heartbeats[0]?.engines.find(({ kind }) => kind === 'builtin');
    expect(builtin).toMatchObject({ models: [{ width: 512, trial: true, loaded: false }] });
    const { bytes, trailers } = await embed(link, 'builtin', builtin?.models[0]?.model ?? '', ['hello', 'world']);
    expect(bytes).toHaveLength(2 * 512 * 4);
    expect(trailers.fingerprint.processMark).toBe(builtin?.processMark);
    // That its child runs now is told at once, not with the next regular heartbeat.
    await expect.poll(() => heard.heartbeats.at(-1)?.engines[0]?.models[0]?.loaded, { timeout: 3000 }).toBe(true);
    expect(heard.heartbeats.at(-1)?.controllers).toBe(1);
  });

  it('beats on, with the load of the machine', async () => {
    const running = await agent();
    const { heard } = await session(await pair(running, 'alpha'), 'alpha');
    await expect.poll(() => heard.heartbeats.length, { timeout: 12_000 }).toBeGreaterThan(1);
    const numbers = heard.heartbeats.map(({ seq }) => seq);
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    const { host } = heard.heartbeats.at(-1) as Heartbeat;
    expect(host.cpuPercent).toBeGreaterThanOrEqual(0);
    expect(host.cpuPercent).toBeLessThanOrEqual(100);
    expect(host.memoryUsedBytes).toBeLessThan(host.memoryTotalBytes ?? 0);
  });

  it('takes a new code and a removal from the command line while it runs', async () => {
    const running = await agent();
    const folder = ['--data-dir', running.dataDir];
    expect((await cli('code', ...folder)).stdout.trim()).toBe(running.joinCode);
    const { heard } = await session(await pair(running, 'alpha'), 'alpha');
    const fresh = (JSON.parse((await cli('code', '--new', '--json', ...folder)).stdout) as { joinCode: string })
      .joinCode;
    await expect
      .poll(() =>
        pair(running, 'beta', fresh).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    await expect
      .poll(async () => (await cli('controllers', ...folder)).stdout)
      .toMatch(/^alpha {2}paired \d{4}-\d\d-\d\d \d\d:\d\d UTC {2}last seen .* UTC\nbeta {2}paired .* UTC\n$/);
    expect(JSON.parse((await cli('controllers', '--json', ...folder)).stdout)).toMatchObject({
      controllers: ['alpha', 'beta'],
      details: [
        { id: 'alpha', lastSeenAtMs: expect.any(Number) },
        { id: 'beta', lastSeenAtMs: null },
      ],
    });
    await cli('controllers', 'rm', 'alpha', ...folder);
    await expect.poll(() => heard.lost).toBe('revoked');
    await expect(cli('controllers', 'rm', 'nobody', ...folder)).rejects.toMatchObject({ code: 1 });
    const told = running
      .output()
      .split('\n')
      .filter((line) => line.includes('"event"'))
      .map((line) => JSON.parse(line) as unknown);
    expect(told).toEqual([
      { event: 'paired', controller: 'alpha' },
      { event: 'paired', controller: 'beta' },
      { event: 'removed', controller: 'alpha' },
    ]);
  });

  it('is alone in its data folder, and says who is there already', async () => {
    const running = await agent();
    const folder = ['--data-dir', running.dataDir];
    const second = await cli('--listen', '127.0.0.1:0', '--no-detect', '--no-advertise', ...folder).then(
      () => null,
      (error: { code: number; stderr: string }) => error,
    );
    expect(second?.code).toBe(1);
    expect(second?.stderr.trim()).toBe(
      `Another agent (process ${running.pid}) runs with the data folder ${running.dataDir}. ` +
        'Stop that one first, or choose another folder with --data-dir DIR.',
    );
    expect((await cli('code', ...folder)).stdout.trim()).toBe(running.joinCode);
    await running.stop();
    expect(existsSync(path.join(running.dataDir, 'agent.lock'))).toBe(false);
    const next = await startAgent({ dataDir: running.dataDir });
    ending.push(() => next.stop());
    expect(next.fingerprint).toBe(running.fingerprint);
  });

  it('prints at its start what to type in the console, until it is paired', async () => {
    const dataDir = temporaryFolder('agent');
    const args = ['--listen', '127.0.0.1:0', '--no-detect', '--no-advertise', '--no-encoder', '--data-dir', dataDir];
    const printed = async (lines: number) => {
      const child = spawn(process.execPath, [entry, ...args], { stdio: ['ignore', 'pipe', 'ignore'] });
      const heard: string[] = [];
      for await (const line of createInterface({ input: child.stdout })) if (heard.push(line) === lines) break;
      child.kill('SIGTERM');
      await once(child, 'close');
      return heard;
    };
    const [listens, code, next] = await printed(3);
    const address = /^The agent listens on (127\.0\.0\.1:\d+)\.$/.exec(listens ?? '')?.[1];
    expect(code).toMatch(/^Join code: ([0-9A-Z]{4}-){3}[0-9A-Z]{4}$/);
    expect(next).toBe(`To pair it: in the console Fleet > Add machine, type ${address} and the join code.`);
    const running = await startAgent({ dataDir });
    ending.push(() => running.stop());
    expect(JSON.parse(running.output().split('\n')[0] ?? '')).toMatchObject({
      joinCode: code?.slice('Join code: '.length),
      addresses: [running.listen],
      nextStep: expect.stringContaining(`type ${running.listen} and the join code`),
    });
    await pair(running, 'alpha');
    await running.stop();
    expect((await printed(2))[1]).toBe('It is paired. Another control plane: npm run agent -- code --new');
  });

  it('shows no code of a folder that no agent was started with, and makes none there', async () => {
    const nowhere = path.join(temporaryFolder('agent'), 'nowhere');
    for (const words of [['code'], ['code', '--json'], ['controllers'], ['identity'], ['identity', 'rotate']]) {
      const failure = await cli(...words, '--data-dir', nowhere).then(
        () => null,
        (error: { code: number; stderr: string; stdout: string }) => error,
      );
      expect([failure?.code, failure?.stdout]).toEqual([1, '']);
      expect(failure?.stderr.trim()).toBe(
        `No agent was ever started with the data folder ${nowhere}. Start it first (npm run agent), or give the folder ` +
          'that it was started with: --data-dir DIR',
      );
    }
    expect(existsSync(nowhere)).toBe(false);
  });

  it('says with its code whether an agent is there to take it', async () => {
    const running = await agent();
    const folder = ['--data-dir', running.dataDir];
    const there = await cli('code', '--json', ...folder);
    expect(JSON.parse(there.stdout)).toEqual({
      joinCode: running.joinCode,
      dataDir: running.dataDir,
      agentRuns: true,
    });
    expect(there.stderr).toBe('');
    await running.stop();
    const gone = await cli('code', ...folder);
    expect(gone.stdout.trim()).toBe(running.joinCode);
    expect(gone.stderr).toContain(`No agent runs with the data folder ${running.dataDir} now`);
  });

  it('says when it cannot have its data folder, and what to do', async () => {
    const file = path.join(temporaryFolder('file'), 'a-file');
    writeFileSync(file, '');
    for (const folder of [file, path.join(file, 'below')]) {
      const failure = await cli('--listen', '127.0.0.1:0', '--data-dir', folder).then(
        () => null,
        (error: { code: number; stderr: string }) => error,
      );
      expect(failure?.code).toBe(1);
      expect(failure?.stderr).toMatch(/^The data folder .* cannot be made or written \(ENOTDIR\)\. Choose another one/);
    }
  });

  it('says its version', async () => {
    expect((await cli('--version')).stdout).toBe('0.1.0\n');
  });

  it('keeps its identity and its pairings over SIGKILL', async () => {
    const running = await agent();
    const paired = await pair(running, 'alpha');
    running.kill('SIGKILL');
    await running.gone;
    const again = await startAgent({ dataDir: running.dataDir });
    ending.push(() => again.stop());
    expect(again.fingerprint).toBe(running.fingerprint);
    expect(again.joinCode).toBe('');
    await session({ ...paired, address: again.listen }, 'alpha');
  });

  it('writes files for its user alone, and no core dumps', async () => {
    const running = await agent();
    if (process.platform !== 'linux') return;
    for (const file of ['identity.json', 'controllers.json']) {
      expect(statSync(path.join(running.dataDir, file)).mode & 0o777).toBe(0o600);
    }
    const limits = () => readFileSync(`/proc/${running.pid}/limits`, 'utf8');
    await expect.poll(() => /Max core file size\s+0\s+0/.test(limits())).toBe(true);
  });

  it('opens no debugger when it is signalled', async () => {
    const running = await agent();
    running.kill('SIGUSR1');
    await pair(running, 'alpha'); // it lives on
    await running.stop();
    expect(running.output()).not.toContain('Debugger');
  });

  it.each([['--listen', 'nowhere:99999'], ['--engine', 'http://user:pw@x'], ['--nonsense'], ['dance']])(
    'refuses %s %s in a sentence, without repeating a value',
    async (...args) => {
      const failure = await cli(...args).then(
        () => null,
        (error: { code: number; stderr: string }) => error,
      );
      expect(failure?.code).toBe(2);
      expect(failure?.stderr).not.toContain('pw@');
      expect(failure?.stderr).not.toContain('    at ');
    },
  );
});

describe('the agent as a child of its control plane', () => {
  function embedded(dataDir = temporaryFolder('embedded')): {
    child: ChildProcess;
    line: Promise<Record<string, unknown>>;
  } {
    const child = spawn(process.execPath, [entry, '--embedded', '--no-detect', '--data-dir', dataDir], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    ending.push(() => child.kill('SIGKILL'));
    const line = once(createInterface({ input: child.stdout as NodeJS.ReadableStream }), 'line');
    return { child, line: line.then(([text]) => JSON.parse(String(text)) as Record<string, unknown>) };
  }

  it('gets its key over the pipe, listens on loopback, and ends when the pipe ends', async () => {
    const { child, line } = embedded();
    const key = Buffer.alloc(32, 7);
    child.stdin?.write(`${JSON.stringify({ controller: 'parent', nodeKey: key.toString('base64') })}\n`);
    const ready = await line;
    expect(ready).toMatchObject({ ready: true, listen: expect.stringMatching(/^127\.0\.0\.1:\d+$/) });
    const target = { address: String(ready.listen), key, fingerprint: String(ready.fingerprint) };
    const { heard } = await session(target, 'parent');
    expect(heard.welcome?.pid).toBe(child.pid);
    if (process.platform === 'linux') {
      const shown =
        readFileSync(`/proc/${child.pid}/cmdline`, 'utf8') + readFileSync(`/proc/${child.pid}/environ`, 'utf8');
      expect(shown).not.toContain(key.toString('base64'));
    }
    child.stdin?.end();
    const [code] = await once(child, 'exit');
    expect(code).toBe(0);
  });

  it('waits for the one before it, whose control plane was killed', async () => {
    const dataDir = temporaryFolder('embedded');
    const introduction = `${JSON.stringify({ controller: 'parent', nodeKey: Buffer.alloc(32, 7).toString('base64') })}\n`;
    const first = embedded(dataDir);
    first.child.stdin?.write(introduction);
    await first.line;
    const second = embedded(dataDir);
    second.child.stdin?.write(introduction);
    first.child.stdin?.end();
    expect(await second.line).toMatchObject({ ready: true });
    second.child.stdin?.end();
    expect(await once(second.child, 'exit')).toEqual([0, null]);
  });

  it.each(['', 'garbage\n', '{"controller":"x","nodeKey":"c2hvcnQ="}\n'])(
    'ends when it is told %j instead',
    async (text) => {
      const { child, line } = embedded();
      line.catch(() => undefined);
      let said = '';
      child.stderr?.on('data', (chunk) => {
        said += chunk;
      });
      child.stdin?.end(text);
      const [code] = await once(child, 'exit');
      expect(code).toBe(1);
      expect(said).not.toContain('c2hvcnQ');
    },
  );
});
