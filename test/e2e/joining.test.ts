import { execFile, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { runningVersion } from '../../agent/enrol/ollama.ts';
import { type OllamaWish, provideOllama } from '../../agent/enrol/ollama-install.ts';
import { until } from '../../agent/enrol/programs.ts';
import type { Progress } from '../../agent/enrol/steps.ts';
import { STEP_CODES } from '../../agent/wire/enrolment.ts';
import { archive, constants, filesOf, fill } from '../../scripts/enrol-archive.mjs';
import { StandInControlPlane, type Wish } from '../enrol/control-plane.ts';
import { startCore } from '../enrol/core.ts';
import { Machine, type Run, type RunningScript, runScript } from '../enrol/machine.ts';
import { Mirror } from '../enrol/mirror.ts';
import { builtApp } from '../support/built.ts';
import { removeTemporaryFolders, temporaryFolder } from '../support/processes.ts';
import { describeWithRuntime } from '../support/runtime.ts';

const root = path.resolve(import.meta.dirname, '../..');
const VERSION = '7.8.9';
const UNIT = 'etc/systemd/system/switchyard-agent.service';
const DATA = 'var/lib/switchyard-agent';
const HERE = `opt/switchyard-agent/${VERSION}`;

const missing =
  process.platform !== 'linux' || process.getuid?.() !== 0
    ? 'installing a service takes root on Linux'
    : ['/usr/bin/dash', '/usr/bin/setpriv', '/usr/bin/curl'].every(existsSync)
      ? existsSync('/opt/switchyard-agent')
        ? 'an agent is installed on this machine'
        : null
      : 'dash, setpriv or curl is missing';

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

describeWithRuntime(missing, 'the script that adds a machine', () => {
  let script = '';
  let agent = Buffer.alloc(0);
  let runtime = Buffer.alloc(0);
  let runtimeUrl = '';
  let machine: Machine;
  let plane: StandInControlPlane;
  let mirror: Mirror;
  let port = 0;
  let running: RunningScript | null = null;

  /** The script of a release whose runtime is the one that runs here, so that no test needs the network. */
  function release(version = VERSION, bundles: Buffer = agent): string {
    const pins = JSON.parse(readFileSync(path.join(root, 'assets/enrol/pins.json'), 'utf8'));
    pins.node.version = process.version.slice(1);
    for (const file of Object.values<Record<string, string>>(pins.node.files)) {
      Object.assign(file, { url: runtimeUrl, sha256: sha256(runtime), folder: 'package' });
    }
    const file = path.join(temporaryFolder('script'), 'sh');
    const template = readFileSync(path.join(root, 'assets/enrol/install.sh'), 'utf8');
    writeFileSync(file, fill(template, constants(pins, version, bundles)));
    return file;
  }

  beforeAll(async () => {
    await builtApp();
    agent = archive(filesOf(path.join(root, 'out/agent'), (name) => !name.endsWith('.map')));
    const folder = temporaryFolder('runtime');
    mkdirSync(path.join(folder, 'package/bin'), { recursive: true });
    copyFileSync(process.execPath, path.join(folder, 'package/bin/node'));
    writeFileSync(path.join(folder, 'package/LICENSE'), 'MIT\n');
    const tar = execFileSync('tar', ['-cf', '-', '-C', folder, 'package'], { maxBuffer: 2 ** 30 });
    runtime = gzipSync(tar, { level: 1 });
    runtimeUrl = 'https://registry.invalid/node.tgz';
    script = release();
  }, 120_000);

  beforeEach(async () => {
    machine = new Machine(temporaryFolder('machine'));
    mirror = await Mirror.start();
    mirror.files.set('node.tgz', runtime);
    plane = await StandInControlPlane.start(temporaryFolder('plane-key'), agent);
    port = await freePort();
  });

  afterEach(async () => {
    await running?.done;
    running = null;
    machine.stop();
    await Promise.all([plane.stop(), mirror.stop()]);
  });

  afterAll(removeTemporaryFolders);

  function begin(...more: string[]): RunningScript {
    const args = [plane.url, plane.pin, '--port', `${port}`, '--mirror', mirror.url, ...more];
    running = runScript(machine, script, args);
    return running;
  }
  const join = (...more: string[]): Promise<Run> => begin(...more).done;

  async function startOllama(version = '0.32.7'): Promise<{ readonly url: string; stop(): void }> {
    const host = `127.0.0.1:${await freePort()}`;
    const child = spawn(process.execPath, [path.join(root, 'test/enrol/ollama-program.mjs')], {
      env: { OLLAMA_HOST: host, STANDIN_VERSION: version },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await new Promise((resolve) => child.stdout.once('data', resolve));
    return { url: `http://${host}`, stop: () => void child.kill('SIGKILL') };
  }

  it('installs runtime, agent, account and service, and the agent that then runs is the one that joins', async () => {
    const { status, output } = await join();
    expect(output).toContain('This machine is part of the fleet.');
    expect(status).toBe(0);
    expect(plane.ends()).toEqual([
      'system done',
      'runtime done',
      'agent done',
      'account done',
      'engine done not_asked',
      'model done not_asked',
      'service done',
    ]);
    // What was told of the agent is true of the agent that runs, as its own user, on that port.
    const joined = plane.joins[0];
    expect(joined?.port).toBe(port);
    const own = z
      .object({ node: z.string(), certificatePem: z.string() })
      .parse(JSON.parse(machine.read(`${DATA}/identity.json`)));
    expect(own.node).toMatch(/^[0-9a-f]{32}$/);
    expect(joined?.joinCode).toMatch(/^[0-9A-Z]{4}(-[0-9A-Z]{4}){3}$/);
    expect(statSync(machine.at(DATA)).mode & 0o7777).toBe(0o700);
    for (const file of [DATA, `${DATA}/identity.json`, `${DATA}/controllers.json`]) {
      expect(statSync(machine.at(file)).uid).toBe(65_534);
    }
    // The program is root's, and nobody else's to write.
    for (const file of [HERE, `${HERE}/node/bin/node`, `${HERE}/agent/index.js`]) {
      const { uid, mode } = statSync(machine.at(file));
      expect([uid, mode & 0o022]).toEqual([0, 0]);
    }
    expect(machine.calls()).toEqual([
      expect.stringMatching(
        /^useradd --system --user-group .*--no-create-home --shell \/usr\/sbin\/nologin switchyard-agent$/,
      ),
      'systemctl daemon-reload',
      'systemctl enable switchyard-agent.service',
      'systemctl restart switchyard-agent.service',
    ]);
    expect(machine.has('var/cache/switchyard-agent')).toBe(false);
  });

  it('by the command of a real control plane, to the letter, it is in the fleet', async () => {
    const core = await startCore({ sh: readFileSync(script), ps1: Buffer.from(''), agent });
    try {
      const made = await core.call('enrolments.create', { model: null, engine: null, baseWeight: 2 });
      // What a person adds behind it: a port that is free here, and where the runtime of this release is.
      const { posix } = made.commands;
      const command = posix.replace(/; rm -f "\$f"$/, ` --port ${port} --mirror ${mirror.url}; rm -f "$f"`);
      expect(command).not.toBe(posix);
      const env = { PATH: process.env.PATH, SWITCHYARD_PREFIX: machine.root };
      const { stdout } = await promisify(execFile)('dash', ['-c', command], { env });
      expect(stdout).toContain('This machine is part of the fleet.');
      const [enrolment] = (await core.call('enrolments.list')).enrolments;
      expect(enrolment?.state).toBe('joined');
      expect(enrolment?.steps.map(({ code, state }) => `${code} ${state}`)).toEqual(
        STEP_CODES.map((code) => `${code} done`),
      );
      await expect
        .poll(async () => (await core.call('nodes.list')).nodes.map(({ id, state }) => [id, state]))
        .toEqual([[enrolment?.nodeId, 'ready']]);
      // The command is used up: the address is gone, and with it everything behind it.
      await expect(
        promisify(execFile)('dash', ['-c', `set -e; ${posix.split(' && sh ')[0]}`], { env }),
      ).rejects.toThrow();
    } finally {
      machine.stop();
      await core.stop();
    }
  });

  it('writes a unit with every line of hardening, that systemd understands', async () => {
    await join();
    const unit = machine.read(UNIT).split('\n');
    for (const line of [
      'NoNewPrivileges=yes',
      'ProtectSystem=strict',
      'ProtectHome=yes',
      'PrivateTmp=yes',
      'LimitCORE=0',
      'MemorySwapMax=0',
      'UMask=0077',
      'User=switchyard-agent',
      'Group=switchyard-agent',
      'CapabilityBoundingSet=',
      `ReadWritePaths=${machine.at(DATA)}`,
    ]) {
      expect(unit).toContain(line);
    }
    expect(
      unit.filter((line) => /^(PrivateDevices|ProtectClock|DevicePolicy|DeviceAllow|MemoryDeny)/.test(line)),
    ).toEqual([]);
    const command = unit.find((line) => line.startsWith('ExecStart='));
    const node = `${machine.at(HERE)}/node/bin/node`;
    expect(command).toMatch(new RegExp(`^ExecStart=${node} --disable-sigusr1 --report-exclude-env `));
    expect(command).toContain(` --listen 0.0.0.0:${port} `);
    if (existsSync('/usr/bin/systemd-analyze')) {
      const verified = execFileSync(
        'sh',
        ['-c', 'systemd-analyze verify --man=no "$1" 2>&1 || :', 'sh', machine.at(UNIT)],
        {
          encoding: 'utf8',
        },
      );
      expect(verified.split('\n').filter((line) => line.includes('switchyard-agent.service'))).toEqual([]);
    }
  });

  it('run again it does nothing twice, and joins again', async () => {
    await join();
    machine.forgetCalls();
    const before = [machine.read('state/switchyard-agent.service.pid'), statSync(machine.at(HERE, 'agent')).mtimeMs];
    const served = mirror.served.length;
    plane.reports.length = 0;
    plane.asked.length = 0;
    const { status } = await join();
    expect(status).toBe(0);
    expect(plane.ends()).toEqual([
      'system done',
      'runtime done already',
      'agent done already',
      'account done already',
      'engine done not_asked',
      'model done not_asked',
      'service done already',
    ]);
    expect(machine.calls()).toEqual([]);
    expect(mirror.served.length).toBe(served);
    expect(plane.asked).not.toContain('agent');
    expect([machine.read('state/switchyard-agent.service.pid'), statSync(machine.at(HERE, 'agent')).mtimeMs]).toEqual(
      before,
    );
    expect(plane.joins[1]?.fingerprint).toBe(plane.joins[0]?.fingerprint);
  });

  it('of a later release it turns the service over to that one, whose pairings are those of the old one', async () => {
    await join();
    const before = machine.read('state/switchyard-agent.service.pid');
    machine.forgetCalls();
    const files = filesOf(path.join(root, 'out/agent'), (name) => !name.endsWith('.map'));
    plane.agent = archive(files.set('news.txt', Buffer.from('of a later release')));
    const later = release('7.9.0', plane.agent);
    const { status } = await runScript(machine, later, [
      plane.url,
      plane.pin,
      '--port',
      `${port}`,
      '--mirror',
      mirror.url,
    ]).done;
    expect(status).toBe(0);
    expect(readdirSync(machine.at('opt/switchyard-agent')).sort()).toEqual(['7.9.0', 'install.sh']);
    expect(machine.calls()).toContain('systemctl restart switchyard-agent.service');
    expect(machine.read('state/switchyard-agent.service.pid')).not.toBe(before);
    expect(machine.read(UNIT)).toContain('/opt/switchyard-agent/7.9.0/agent/index.js');
    expect(plane.joins[1]?.fingerprint).toBe(plane.joins[0]?.fingerprint);
  });

  it('killed in any step, the next run ends what it began', async () => {
    for (const code of ['runtime', 'agent', 'account', 'service'] as const) {
      const killed = begin();
      plane.onReport = (report) => {
        if (report.code === code) killed.kill('SIGKILL');
      };
      expect((await killed.done).status).toBe(null);
      plane.onReport = () => undefined;
    }
    const { status, output } = await join();
    expect(output).toContain('This machine is part of the fleet.');
    expect(status).toBe(0);
    expect(plane.joins).toHaveLength(1);
    // The runtime was done by the second run: the third found it, and it was fetched once.
    expect(mirror.served.filter((name) => name === 'node.tgz 0')).toHaveLength(1);
  });

  it('stopped by its user it says so', async () => {
    const stopped = begin();
    plane.onReport = ({ code }) => {
      if (code === 'agent') stopped.kill('SIGTERM');
    };
    expect((await stopped.done).status).toBe(143);
    expect(plane.ends().at(-1)).toBe('agent failed interrupted');
  });

  it('goes on with a runtime whose download broke off, and checks it whole', async () => {
    mirror.breakAfter = 1_000_000;
    const broken = await join();
    expect(broken.status).toBe(1);
    const kept = statSync(machine.at('var/cache/switchyard-agent', `${sha256(runtime)}.part`)).size;
    expect(kept).toBeGreaterThan(0);
    plane.reports.length = 0;
    expect((await join()).status).toBe(0);
    expect(mirror.served.at(-1)).toBe(`node.tgz ${kept}`);
    expect(plane.ends()).toContain('runtime done');
  });

  it('uses nothing of a runtime or an agent that is not the one of its release', async () => {
    mirror.files.set('node.tgz', Buffer.concat([runtime.subarray(0, -1), Buffer.from([0])]));
    const wrongRuntime = await join();
    expect(wrongRuntime.status).toBe(1);
    expect(plane.ends()).toEqual(['system done', 'runtime failed checksum_wrong']);
    expect(machine.has(`${HERE}/node`)).toBe(false);
    mirror.files.set('node.tgz', runtime);
    plane.agent = Buffer.from('another agent');
    plane.reports.length = 0;
    const wrongAgent = await join();
    expect(wrongAgent.status).toBe(1);
    expect(plane.ends()).toEqual(['system done', 'runtime done', 'agent failed checksum_wrong']);
    expect(machine.has(`${HERE}/agent`)).toBe(false);
    expect(machine.calls()).toEqual([]);
  });

  it('with another key at the address it takes not a byte and changes nothing', async () => {
    const before = machine.tree();
    const other = `sha256//${Buffer.alloc(32, 7).toString('base64')}`;
    const { status, output } = await runScript(machine, script, [plane.url, other]).done;
    expect(status).toBe(1);
    expect(output).toContain('does not have the key of your control plane');
    expect(plane.asked).toEqual([]);
    expect(machine.tree()).toEqual(before);
  });

  it('--dry-run tells every step and changes nothing, before and after the installation', async () => {
    const before = machine.tree();
    const first = await join('--dry-run');
    expect(first.status).toBe(0);
    for (const step of ['System', 'Runtime', 'Agent', 'Account', 'Engine', 'Model', 'Service', 'Join']) {
      expect(first.output).toMatch(new RegExp(`^${step}:`, 'm'));
    }
    expect(machine.tree()).toEqual(before);
    await join();
    machine.forgetCalls();
    plane.reports.length = 0;
    plane.joins.length = 0;
    const installed = machine.tree();
    const second = await join('--dry-run');
    expect(second.status).toBe(0);
    expect(second.output).toContain('would tell it');
    expect(machine.tree()).toEqual(installed);
    expect([machine.calls(), plane.reports, plane.joins]).toEqual([[], [], []]);
  });

  it('--uninstall leaves nothing of its own, needs no network, and is no failure the second time', async () => {
    await join();
    await plane.stop();
    machine.forgetCalls();
    const pid = Number(machine.read('state/switchyard-agent.service.pid'));
    const own = machine.at('opt/switchyard-agent/install.sh');
    const before = machine.tree();
    const dry = await runScript(machine, own, ['--uninstall', '--dry-run']).done;
    expect(dry.status).toBe(0);
    expect(machine.tree()).toEqual(before);
    const { status, output } = await runScript(machine, own, ['--uninstall']).done;
    expect(output).toContain('Ollama and its models stay');
    expect(status).toBe(0);
    await expect.poll(() => existsSync(`/proc/${pid}`)).toBe(false);
    for (const gone of ['opt/switchyard-agent', DATA, 'var/cache/switchyard-agent', UNIT]) {
      expect(machine.has(gone)).toBe(false);
    }
    expect(machine.calls()).toEqual([
      'systemctl disable --now switchyard-agent.service',
      'systemctl daemon-reload',
      'userdel switchyard-agent',
    ]);
    expect((await runScript(machine, script, ['--uninstall']).done).status).toBe(0);
  });

  it('uses an Ollama that runs, and pulls the model with its progress', async () => {
    const ollama = await startOllama();
    try {
      plane.wish = { model: 'qwen3:8b', engine: 'ollama' };
      const first = await join('--ollama', ollama.url);
      expect(first.status).toBe(0);
      expect(plane.ends().slice(4)).toEqual(['engine done adopted', 'model done', 'service done']);
      // A third of three GiB, told at most once a second: the second figure came too soon after the first.
      expect(plane.reports.flatMap(({ code, percent }) => (percent === null ? [] : [[code, percent]]))).toEqual([
        ['model', 33],
      ]);
      expect(machine.read(UNIT)).toContain(` --engine ${ollama.url}`);
      plane.reports.length = 0;
      await join('--ollama', ollama.url);
      expect(plane.ends()).toContain('model done already');
    } finally {
      ollama.stop();
    }
  });

  it.each<[string, Wish, string, string]>([
    ['an Ollama with known holes', { model: null, engine: 'ollama' }, '0.17.0', 'engine failed engine_old'],
    ['a model that nobody knows', { model: 'no-such', engine: 'ollama' }, '0.17.1', 'model failed model_unknown'],
  ])('stops at %s', async (_, wish, version, end) => {
    const ollama = await startOllama(version);
    try {
      plane.wish = wish;
      expect((await join('--ollama', ollama.url)).status).toBe(1);
      expect(plane.ends().at(-1)).toBe(end);
      expect(machine.has(UNIT)).toBe(false);
    } finally {
      ollama.stop();
    }
  });

  it('stops where another program has the port, and when the control plane could not pair', async () => {
    const other = createServer().listen(port, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    expect((await join()).status).toBe(1);
    expect(plane.ends().at(-1)).toBe('service failed port_taken');
    await new Promise((resolve) => other.close(resolve));
    plane.refuseJoin = true;
    const { status, output } = await join();
    expect(status).toBe(1);
    expect(output).toContain('(node_unreachable)');
    expect(plane.ends().at(-1)).toBe('join failed join_failed');
    plane.refuseJoin = false;
    expect((await join()).status).toBe(0);
  });

  it.each([
    ['no arguments', []],
    ['no pin', ['https://192.0.2.1:1/e/AAAAAAAAAAAAAAAAAAAAAA']],
    ['a pin that is none', ['https://192.0.2.1:1/e/AAAAAAAAAAAAAAAAAAAAAA', 'sha256//short']],
    ['an address with a quote', ["https://192.0.2.1:1/e/AAA'AAA", `sha256//${Buffer.alloc(32).toString('base64')}`]],
    ['plain http', ['http://192.0.2.1:1/e/AAAAAAAAAAAAAAAAAAAAAA', `sha256//${Buffer.alloc(32).toString('base64')}`]],
    ['an unknown option', ['--force']],
    ['an Ollama elsewhere', ['--uninstall', '--ollama', 'http://192.0.2.1:11434']],
    ['a port that is none', ['--uninstall', '--port', '70000']],
  ])('refuses %s and does nothing', async (_, args) => {
    const before = machine.tree();
    expect((await runScript(machine, script, args).done).status).toBe(2);
    expect(machine.tree()).toEqual(before);
  });

  it('not run by root it goes on by sudo, with every argument and before it has done anything', async () => {
    const readable = machine.at('state/sh');
    copyFileSync(script, readable);
    writeFileSync(machine.at('tools/sudo'), '#!/bin/sh\nprintf "sudo %s\\n" "$*"\n', { mode: 0o755 });
    const before = machine.tree();
    const nobody = ['--reuid', '65534', '--regid', '65534', '--clear-groups'];
    const { stdout } = await promisify(execFile)(
      'setpriv',
      [...nobody, 'dash', readable, plane.url, plane.pin, '--port', '7000'],
      {
        env: { PATH: process.env.PATH, SWITCHYARD_PREFIX: machine.root },
        cwd: '/',
      },
    );
    expect(stdout).toContain(`\nsudo sh ${readable} ${plane.url} ${plane.pin} --port 7000\n`);
    expect(machine.tree()).toEqual(before);
    expect(plane.asked).toEqual([]);
  });

  it('is not turned aside to another folder by a program that changed its user, nor where an agent is installed', async () => {
    const other = temporaryFolder('other-user');
    writeFileSync(path.join(other, 'id'), '#!/bin/sh\ncase $1 in -u) echo 0 ;; *) echo 1000 ;; esac\n', {
      mode: 0o755,
    });
    const env = { PATH: process.env.PATH, SWITCHYARD_PREFIX: machine.root };
    const refused = async (command: string, args: string[], search = env.PATH) => {
      const run = promisify(execFile)(command, args, { env: { ...env, PATH: search } });
      await expect(run).rejects.toMatchObject({
        code: 2,
        stderr: expect.stringContaining('SWITCHYARD_PREFIX is refused'),
      });
    };
    await refused('dash', [script, '--uninstall'], `${other}:${env.PATH}`);
    // In a view of the file system of its own: an agent in /opt that nobody else sees.
    const view = 'mount -t tmpfs none /opt && mkdir /opt/switchyard-agent && exec dash "$1" --uninstall';
    await refused('unshare', ['-m', 'sh', '-c', view, 'sh', script]);
  });

  it('cut short anywhere it does nothing', async () => {
    const whole = readFileSync(script, 'utf8');
    const before = machine.tree();
    const file = path.join(temporaryFolder('cut'), 'sh');
    for (const part of [0.3, 0.6, 0.9, 0.999]) {
      writeFileSync(file, whole.slice(0, Math.floor(whole.length * part)));
      await runScript(machine, file, [plane.url, plane.pin]).done;
    }
    expect(plane.asked).toEqual([]);
    expect(machine.tree()).toEqual(before);
  });

  it('installs Ollama from its pinned archive, as a service on loopback alone, and starts it when it is there', async () => {
    const folder = temporaryFolder('ollama');
    for (const part of ['bin', 'lib/ollama']) mkdirSync(path.join(folder, part), { recursive: true });
    copyFileSync(process.execPath, path.join(folder, 'lib/ollama/node'));
    copyFileSync(path.join(root, 'test/enrol/ollama-program.mjs'), path.join(folder, 'lib/ollama/program.mjs'));
    const program =
      '#!/bin/sh\nlib=$(dirname "$0")/../lib/ollama\n[ "$1" = serve ] && exec "$lib/node" "$lib/program.mjs"\n';
    writeFileSync(path.join(folder, 'bin/ollama'), program, { mode: 0o755 });
    const packed = zstdCompressSync(
      execFileSync('tar', ['-cf', '-', '-C', folder, 'bin', 'lib'], { maxBuffer: 2 ** 30 }),
    );
    mirror.files.set('ollama.tar.zst', packed);
    const url = `http://127.0.0.1:${await freePort()}`;
    const wish: OllamaWish = {
      ollama: { origin: url },
      mirror: mirror.url,
      root: machine.root,
      cache: machine.at('var/cache/switchyard-agent'),
      pinned: { url: 'https://releases.invalid/ollama.tar.zst', sha256: sha256(packed) },
    };
    const said: string[] = [];
    const percents: number[] = [];
    const progress: Progress = {
      dryRun: false,
      say: (sentence) => said.push(sentence),
      percent: (value) => percents.push(value),
    };
    const searched = process.env.PATH;
    process.env.PATH = `${machine.at('tools')}:${searched}`;
    try {
      mirror.breakAfter = 4_000_000;
      await expect(provideOllama(wish, progress)).rejects.toMatchObject({ detail: 'download_failed' });
      const wrong = { ...wish, pinned: { url: 'https://releases.invalid/ollama.tar.zst', sha256: '0'.repeat(64) } };
      await expect(provideOllama(wrong, progress)).rejects.toMatchObject({ detail: 'checksum_wrong' });
      expect(machine.has('usr/local/bin/ollama')).toBe(false);
      expect(await provideOllama(wish, progress)).toBe(null);
      expect(mirror.served.at(-1)).toMatch(/^ollama\.tar\.zst [1-9]/); // it went on where the first attempt had ended
      expect(percents.at(-1)).toBe(100);
      const unit = machine.read('etc/systemd/system/ollama.service').split('\n');
      expect(unit).toContain(`Environment=OLLAMA_HOST=${new URL(url).host}`);
      for (const line of ['User=ollama', 'ProtectSystem=strict', 'ProtectHome=yes', 'UMask=0077', 'LimitCORE=0']) {
        expect(unit).toContain(line);
      }
      expect(machine.calls()).toContain('systemctl enable --now ollama.service');
      machine.forgetCalls();
      expect(await provideOllama(wish, progress)).toBe('adopted');
      expect(machine.calls()).toEqual([]);
      machine.stop();
      expect(await until(async () => (await runningVersion(wish.ollama)) === null, 5000)).toBe(true);
      const served = mirror.served.length;
      expect(await provideOllama(wish, progress)).toBe(null);
      expect(mirror.served.length).toBe(served);
      expect(machine.calls()).toEqual(['systemctl enable --now ollama.service']);
    } finally {
      process.env.PATH = searched;
    }
  });
});
