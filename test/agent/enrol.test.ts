import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { agentPlist } from '../../agent/enrol/launchd.ts';
import { isTooOld, LEAST_OLLAMA } from '../../agent/enrol/ollama.ts';
import { Origin } from '../../agent/enrol/origin.ts';
import { parsePin } from '../../agent/enrol/pin.ts';
import { pull } from '../../agent/enrol/pull.ts';
import type { ServicePlan } from '../../agent/enrol/service.ts';
import { StepFailed, Steps } from '../../agent/enrol/steps.ts';
import { agentUnit, ollamaUnit } from '../../agent/enrol/systemd.ts';
import { createArguments, quoted } from '../../agent/enrol/windows-service.ts';
import { parseAgentArguments } from '../../agent/options.ts';
import type { StepReport } from '../../agent/wire/enrolment.ts';
import pins from '../../assets/enrol/pins.json' with { type: 'json' };
import { archive, constants, fill } from '../../scripts/enrol-archive.mjs';
import { StandInControlPlane } from '../enrol/control-plane.ts';
import { removeTemporaryFolders, temporaryFolder } from '../support/processes.ts';

const root = path.resolve(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');
const PIN = `sha256//${Buffer.alloc(32, 5).toString('base64')}`;
const FROM = 'https://192.0.2.1:4433/e/AAAAAAAAAAAAAAAAAAAAAA';

const plan: ServicePlan = {
  root: '',
  command: [
    '/opt/switchyard-agent/1.0.0/node/node',
    '/opt/switchyard-agent/1.0.0/agent/index.js',
    '--name',
    'GPU 100%',
  ],
  account: 'switchyard-agent',
  dataDir: '/var/lib/switchyard-agent',
  port: 7412,
  mark: 'ab12',
};

describe('what a release is fixed to', () => {
  it('is the runtime that everything here is tested with, and an Ollama without the known holes', () => {
    expect(pins.node.version).toBe(JSON.parse(read('package.json')).devDependencies.node);
    expect(isTooOld(pins.ollama.version)).toBe(false);
  });

  it('is fetched by https, with a checksum for each file, whose name says the version', () => {
    const files = [pins.node, pins.ollama].flatMap(({ version, files: all }) =>
      Object.values(all).map((file) => ({ ...file, version })),
    );
    expect(files).toHaveLength(7);
    for (const { url, sha256, version } of files) {
      expect(url).toMatch(/^https:\/\//);
      expect(url).toContain(version);
      expect(sha256).toMatch(/^[0-9a-f]{64}$/);
    }
    expect(new Set(files.map(({ sha256 }) => sha256)).size).toBe(7);
  });

  it('stands in both scripts, with nothing left open', () => {
    const known = constants(pins, '1.2.3', Buffer.from('agent'));
    for (const name of ['install.sh', 'install.ps1']) {
      const script = fill(read(`assets/enrol/${name}`), known);
      expect(script).not.toMatch(/@[A-Z0-9_]+@/);
      expect(script).toContain('1.2.3');
      // SHA-256 of `agent`
      expect(script).toContain('d4f0bc5a29de06b510f9aa428f1eedba926012b591fef7a518e776a7c9bd1824');
    }
  });

  it('takes no constant that could end its quotes, and none that is missing', () => {
    expect(() => fill("X='@A@'", new Map([['A', "b'; rm"]]))).toThrow('@A@');
    expect(() => fill("X='@A@'", new Map())).toThrow('@A@');
  });
});

describe('the scripts', () => {
  it('of POSIX define everything before the last line, stop at errors, and evaluate nothing', () => {
    const script = read('assets/enrol/install.sh');
    expect(script.endsWith('\nmain "$@"\n')).toBe(true);
    expect(script).toContain('\nset -eu\n');
    expect(script).not.toMatch(/\beval\b|\bsh -c\b|\|\s*sh\b|`/);
  });

  it('never call curl without a check of key or chain', () => {
    for (const name of ['install.sh', 'install.ps1']) {
      const calls = read(`assets/enrol/${name}`)
        .split('\n')
        .filter((line) => /^\s*(curl|& \$Curl) /.test(line));
      expect(calls).toHaveLength(2);
      expect(calls.filter((line) => line.includes(' -k '))).toEqual([expect.stringContaining('-k --pinnedpubkey ')]);
      for (const line of calls) expect(line).toContain('--proto ');
    }
  });
});

describe('the archive of the agent', () => {
  it('is the same bytes for the same files, in whatever order and at whatever time', () => {
    const one = new Map([
      ['b.js', Buffer.from('b')],
      ['a.js', Buffer.from('a'.repeat(600))],
    ]);
    const other = new Map([...one].reverse());
    expect(archive(one).equals(archive(other))).toBe(true);
  });
});

describe('a step', () => {
  const steps = (dryRun = false) => {
    const sent: StepReport[] = [];
    const clock = { ms: 0 };
    const send = async (report: StepReport) => void sent.push(report);
    return { sent, clock, steps: new Steps({ dryRun, send, say: () => undefined, nowMs: () => clock.ms }) };
  };
  const told = (sent: StepReport[]) => sent.map(({ code, state, percent, detail }) => [code, state, percent, detail]);

  it('tells its percents at most once a second, a sign of life once a minute, and its end', async () => {
    const { sent, clock, steps: all } = steps();
    await all.run('model', '', async ({ percent }) => {
      percent(0.9);
      clock.ms = 999;
      percent(10);
      clock.ms = 1000;
      percent(33.9);
      clock.ms = 3000;
      percent(33.2);
      clock.ms = 61_000;
      percent(33.3);
      percent(150);
      clock.ms = 62_000;
      percent(150);
      return 'already';
    });
    expect(told(sent)).toEqual([
      ['model', 'running', null, null],
      ['model', 'running', 0, null],
      ['model', 'running', 33, null],
      ['model', 'running', 33, null],
      ['model', 'running', 100, null],
      ['model', 'done', null, 'already'],
    ]);
  });

  it('that fails says why, by a word of the list; what nobody foresaw is unexpected', async () => {
    for (const [error, detail] of [
      [new StepFailed('disk_full', 'full'), 'disk_full'],
      [new Error('of somebody else'), 'unexpected'],
    ] as const) {
      const { sent, steps: all } = steps();
      await expect(all.run('engine', '', () => Promise.reject(error))).rejects.toBe(error);
      expect(told(sent).at(-1)).toEqual(['engine', 'failed', null, detail]);
    }
  });

  it('of a dry run tells the control plane nothing', async () => {
    const { sent, steps: all } = steps(true);
    await all.run('engine', '', async () => null);
    await all.fail('interrupted');
    expect(sent).toEqual([]);
  });
});

describe('the way to the control plane', () => {
  let plane: StandInControlPlane | null = null;
  afterEach(async () => {
    await plane?.stop();
    removeTemporaryFolders();
  });

  it('sends nothing to the holder of another key', async () => {
    plane = await StandInControlPlane.start(temporaryFolder('origin'), Buffer.from('agent'));
    const good = new Origin(new URL(plane.url), parsePin(plane.pin) ?? Buffer.alloc(32));
    expect(await good.options()).toMatchObject({ v: 1, controlPlane: 'desk' });
    plane.asked.length = 0;
    const other = new Origin(new URL(plane.url), Buffer.alloc(32));
    await expect(other.options()).rejects.toMatchObject({ fault: 'other-key' });
    await expect(
      other.join({ v: 1, port: 7412, joinCode: 'AAAA-BBBB-CCCC-DDDD', fingerprint: '0'.repeat(64) }),
    ).rejects.toMatchObject({ fault: 'other-key' });
    expect(plane.asked).toEqual([]);
  });

  it('tells an address that is not there, one that refuses, and one that speaks otherwise', async () => {
    plane = await StandInControlPlane.start(temporaryFolder('origin'), Buffer.from('agent'));
    const pin = parsePin(plane.pin) ?? Buffer.alloc(32);
    await expect(new Origin(new URL(`${plane.url}/x`), pin).options()).rejects.toMatchObject({ fault: 'refused' });
    plane.wish = { model: 'a model; with more', engine: null };
    await expect(new Origin(new URL(plane.url), pin).options()).rejects.toMatchObject({ fault: 'malformed' });
    await plane.stop();
    await expect(new Origin(new URL(plane.url), pin).options()).rejects.toMatchObject({ fault: 'unreachable' });
    plane = null;
  });

  it.each(['', 'sha256//', 'sha256//AAAA', `sha1//${'A'.repeat(43)}=`, `sha256//${'A'.repeat(42)}B=`])(
    'takes %j for no pin',
    (text) => expect(parsePin(text)).toBe(null),
  );
});

describe('the service', () => {
  it('of systemd has its command word by word: what systemd would read into it is escaped', () => {
    const unit = agentUnit(plan).split('\n');
    expect(unit).toContain(
      'ExecStart=/opt/switchyard-agent/1.0.0/node/node /opt/switchyard-agent/1.0.0/agent/index.js --name "GPU 100%%"',
    );
    expect(unit).toContain('ReadWritePaths=/var/lib/switchyard-agent');
    // A new agent under the path of the old one must be a new unit, or nobody would restart it.
    expect(agentUnit({ ...plan, mark: 'cd34' })).not.toBe(agentUnit(plan));
  });

  it('of Ollama listens on loopback alone', () => {
    const ollama = { origin: 'http://127.0.0.1:11434' };
    const unit = ollamaUnit({ program: '/usr/local/bin/ollama', home: '/usr/share/ollama', account: 'ollama', ollama });
    expect(unit.split('\n')).toContain('Environment=OLLAMA_HOST=127.0.0.1:11434');
  });

  it('of launchd runs as the account, with files for it alone and no core dumps', () => {
    const plist = agentPlist({ ...plan, command: ['/a & b', '<c>'] });
    expect(plist).toContain('<string>/a &amp; b</string>\n    <string>&lt;c&gt;</string>');
    expect(plist).toContain('<key>UserName</key><string>switchyard-agent</string>');
    expect(plist).toContain(`<key>Umask</key><integer>${0o077}</integer>`);
    expect(plist).toContain('<key>HardResourceLimits</key><dict><key>Core</key><integer>0</integer></dict>');
  });

  it('of Windows is started through its host, as its own account', () => {
    const command = ['C:\\Program Files\\Switchyard Agent\\1\\node\\node.exe', 'index.js'];
    const create = createArguments({ ...plan, command }, false);
    expect(create.slice(0, 4)).toEqual([
      'create',
      'SwitchyardAgent',
      'binPath=',
      '"C:\\Program Files\\Switchyard Agent\\1\\node\\service-host.exe" "C:\\Program Files\\Switchyard Agent\\1\\node\\node.exe" index.js',
    ]);
    expect(create).toContain('NT SERVICE\\SwitchyardAgent');
    expect(createArguments({ ...plan, command }, true)[0]).toBe('config');
    expect(quoted('a "b" \\')).toBe('"a \\"b\\" \\\\"');
  });
});

describe('a pull', () => {
  /** What Ollama answers to a pull, line by line, and whether it has the model afterwards. */
  async function pulled(lines: readonly string[], has: boolean): Promise<readonly number[]> {
    const server = createServer((request, response) => {
      if (request.url === '/api/show') response.writeHead(has ? 200 : 404).end('{"capabilities":["completion"]}');
      else response.end(lines.join('\n'));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const percents: number[] = [];
    const percent = (value: number) => void percents.push(value);
    try {
      const { port } = server.address() as AddressInfo;
      const ollama = { origin: `http://127.0.0.1:${port}` };
      await pull(ollama, 'qwen3', { dryRun: false, say: () => undefined, percent });
      return percents;
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }
  const part = (digest: string, total: number, completed: number) =>
    JSON.stringify({ status: 'pulling', digest, total, completed });
  const success = '{"status":"success"}';

  it('counts over all parts that it knows', async () => {
    // 50 of 100; then 100 of 100 and 0 of 300; then all of both.
    const lines = [part('a', 100, 50), part('a', 100, 100), part('b', 300, 0), part('b', 300, 300), success];
    expect(await pulled(lines, true)).toEqual([50, 100, 25, 100]);
  });

  it.each([
    ['the disk is full', ['{"error":"write /models/x: no space left on device"}'], false, 'disk_full'],
    ['nobody knows the model', ['{"error":"pull model manifest: file does not exist"}'], false, 'model_unknown'],
    ['the way is lost', ['{"error":"dial tcp: lookup registry: no such host"}'], false, 'model_failed'],
    ['it ends without a word', [part('a', 100, 50)], false, 'model_failed'],
    ['it ends well, but without the model', [success], false, 'model_failed'],
    ['it is no JSON', ['<html>'], true, 'model_failed'],
  ])('fails by a word of the list where %s', async (_, lines, has, detail) => {
    await expect(pulled(lines, has)).rejects.toMatchObject({ name: 'StepFailed', detail });
  });
});

describe('Ollama', () => {
  it.each([
    ['0.17.0', true],
    ['0.17.1', false],
    ['0.17.1-rc1', false],
    ['0.9.6', true],
    ['0.32.7', false],
    ['1.0.0', false],
    ['0.0.0', false],
    ['of my own', false],
  ])('%s is too old: %s', (version, old) => expect(isTooOld(version)).toBe(old));

  it('the least version is the one that the documentation names', () => {
    expect(read('docs/joining.md')).toContain(`Ollama ${LEAST_OLLAMA.join('.')}`);
  });
});

describe('agent enrol', () => {
  const parse = (...args: string[]) => parseAgentArguments(['enrol', '--from', FROM, '--pin', PIN, ...args], {});

  it('has what the script gives it', () => {
    expect(parse('--port', '7000', '--data-dir', '/d', '--mirror', 'http://192.0.2.9/m/', '--dry-run')).toEqual({
      command: 'enrol',
      from: new URL(FROM),
      pin: Buffer.alloc(32, 5),
      port: 7000,
      ollama: { id: '127.0.0.1:11434', origin: 'http://127.0.0.1:11434', host: '127.0.0.1', port: 11434 },
      mirror: 'http://192.0.2.9/m',
      account: 'switchyard-agent',
      dataDir: '/d',
      name: null,
      dryRun: true,
    });
  });

  it.each([
    ['an Ollama on another machine', ['--ollama', 'http://192.0.2.7:11434']],
    ['an account that is none', ['--account', '../root']],
    ['a mirror that is none', ['--mirror', 'ftp://192.0.2.7']],
    ['a port that is none', ['--port', '70000']],
    ['plain http', ['--from', FROM.replace('https', 'http')]],
    ['a pin that is none', ['--pin', 'sha256//abc']],
  ])('refuses %s', (_, args) => expect(() => parse(...args)).toThrow(/take/));
});
