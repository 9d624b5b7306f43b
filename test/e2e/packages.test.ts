import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WorkAnswer } from '../../agent/builtin/messages.ts';
import { readUpdateFacts } from '../../main/desktop/update-facts.ts';
import { updateMode } from '../../main/desktop/updates.ts';
import { readPackaging, rendered, root } from '../house/package-rules.ts';
import { CHROMIUM } from '../support/runtime.ts';

/**
 * A real run of `npm run dist` for the deb, with two stand-ins because neither can be fetched everywhere: the Electron runtime is
 * a shell script that carries a fuse wire, and the maker of the archive notes what it was told to put in.
 */
const require = createRequire(import.meta.url);
const builder = createRequire(require.resolve('electron-builder/package.json'));
const ofBuilder = createRequire(builder.resolve('app-builder-lib/package.json'));
const asar = ofBuilder('@electron/asar') as {
  listPackage(archive: string, options: { isPack: boolean }): string[];
  extractAll(archive: string, folder: string): void;
};
const fuses = ofBuilder('@electron/fuses') as {
  getCurrentFuseWire(file: string): Promise<Record<string, number | string>>;
};

const FEED = 'https://downloads.example/switchyard';
/** How Electron marks the place of its fuses: this text, version 1, their number, then '1' or '0' each. */
const SENTINEL = 'dL7pKGdnNz796PbbjQWNKmHXBZaB9tsX';
/** By place in the wire; the stand-in starts with the opposite of each, so that every single one has to be flipped. */
const FUSES = [
  ['runAsNode', false],
  ['enableCookieEncryption', true],
  ['enableNodeOptionsEnvironmentVariable', false],
  ['enableNodeCliInspectArguments', false],
  ['enableEmbeddedAsarIntegrityValidation', true],
  ['onlyLoadAppFromAsar', true],
  ['loadBrowserProcessSpecificV8Snapshot', false],
  ['grantFileProtocolExtraPrivileges', false],
] as const;

const withoutEncoder =
  !existsSync(path.join(root, 'node_modules/@energetic-ai/core')) && process.env.SWITCHYARD_NO_SKIP !== '1';

let folder = '';
let app = '';
let resources = '';
let listing: string[] = [];
const at = (...parts: string[]) => path.join(folder, ...parts);

function makeRuntime(): void {
  for (const name of ['resources', 'locales']) mkdirSync(at('runtime', name), { recursive: true });
  for (const name of ['en-US', 'fr', 'de', 'zh-CN']) writeFileSync(at('runtime/locales', `${name}.pak`), '');
  writeFileSync(at('runtime/version'), '45.5.0');
  writeFileSync(at('runtime/LICENSE'), '');
  const wire = FUSES.map(([, value]) => (value ? '0' : '1')).join('');
  writeFileSync(at('runtime/electron'), `#!/bin/sh\nexit 0\n${SENTINEL}\x01\x08${wire}\n`, { mode: 0o755 });
}

function makeArchiver(): void {
  mkdirSync(at('fpm'));
  const script = `#!/bin/sh
for arg in "$@"; do
  printf '%s\\0' "$arg" >> '${at('fpm/arguments')}'
  case "$last" in
    --after-install | --after-remove) cp "$arg" '${at('fpm')}'/"\${last#--}" ;;
    --package) echo deb > "$arg" ;;
  esac
  case "$arg" in *.desktop=*) cp "\${arg%%=*}" '${at('fpm/desktop')}' ;; esac
  last=$arg
done
`;
  writeFileSync(at('fpm/fpm'), script, { mode: 0o755 });
}

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'switchyard-pack-'));
  const build = spawnSync(process.execPath, [path.join(root, 'scripts/build.mjs'), '--if-stale'], { encoding: 'utf8' });
  expect(build.status, build.stderr).toBe(0);
  makeRuntime();
  makeArchiver();
  const options = [`-c.electronDist=${at('runtime')}`, `-c.directories.output=${at('dist')}`];
  const packed = spawnSync(
    process.execPath,
    [path.join(root, 'scripts/dist.mjs'), '--prebuilt', '--linux', 'deb', '--x64', ...options],
    { encoding: 'utf8', env: { ...process.env, SWITCHYARD_UPDATE_URL: FEED, CUSTOM_FPM_PATH: at('fpm/fpm') } },
  );
  expect(packed.status, `${packed.stdout}${packed.stderr}`).toBe(0);
  app = at('dist/linux-unpacked');
  resources = path.join(app, 'resources');
  listing = asar
    .listPackage(path.join(resources, 'app.asar'), { isPack: false })
    .map((file) => file.replace(/^\//, ''));
}, 300_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A port that nobody used a moment ago. */
const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });

const filesBelow = (parent: string): string[] =>
  readdirSync(parent, { recursive: true, encoding: 'utf8' }).filter((file) =>
    statSync(path.join(parent, file)).isFile(),
  );

describe("the packed app's archive", () => {
  it('holds main, preload, renderer, what a machine that joins is sent, and the marks of the tray', () => {
    for (const file of [
      'package.json',
      'out/main/index.js',
      'out/main/store-worker.js',
      'out/preload/index.cjs',
      'out/renderer/index.html',
      'out/enrol/sh',
      'out/enrol/ps1',
      'out/enrol/agent.tar.gz',
      'assets/marks/tray.png',
      'assets/marks/trayTemplate.png',
      'assets/marks/window.png',
    ]) {
      expect(listing).toContain(file);
    }
    expect(listing.some((file) => /^out\/renderer\/assets\/.*\.js$/.test(file))).toBe(true);
  });

  it('holds nothing else of ours: no sources, tests, maps, documents or scripts', () => {
    const places =
      /^(package\.json|out(\/(main|preload|renderer)(\/.*)?|\/enrol(\/(sh|ps1|agent\.tar\.gz))?)?|assets(\/marks(\/.*)?)?|node_modules(\/.*)?)$/;
    expect(listing.filter((file) => !places.test(file))).toEqual([]);
    expect(listing.filter((file) => /\.(map|tsx?|mts|cts|md)$/.test(file))).toEqual([]);
    expect(listing.filter((file) => /(^|\/)(tests?|__tests__|coverage)(\/|$)/.test(file))).toEqual([]);
  });

  it('of all packages holds the native one alone, with one binary, outside the archive', () => {
    const packages = listing.flatMap((file) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? []);
    expect([...new Set(packages)]).toEqual(['better-sqlite3']);
    const binary = 'node_modules/better-sqlite3/prebuilds/linux-x64.node';
    expect(listing.filter((file) => file.endsWith('.node'))).toEqual([binary]);
    expect(filesBelow(path.join(resources, 'app.asar.unpacked'))).toEqual([binary]);
  });

  it('describes itself without development packages and scripts', () => {
    asar.extractAll(path.join(resources, 'app.asar'), at('app'));
    const own = JSON.parse(readFileSync(at('app/package.json'), 'utf8')) as Record<string, unknown>;
    expect(own).toMatchObject({ name: 'switchyard', main: 'out/main/index.js', desktopName: 'switchyard.desktop' });
    expect(own).not.toHaveProperty('devDependencies');
    expect(own).not.toHaveProperty('scripts');
  });

  it.skipIf(process.platform !== 'linux' || process.arch !== 'x64')(
    'opens a database with it (skipped but on Linux x64)',
    () => {
      if (!existsSync(at('app'))) asar.extractAll(path.join(resources, 'app.asar'), at('app'));
      const Database = createRequire(at('app/out/main/store-worker.js'))('better-sqlite3') as new (
        file: string,
      ) => { pragma(text: string, options: object): unknown; close(): void };
      const database = new Database(at('proof.db'));
      expect(database.pragma('journal_mode = WAL', { simple: true })).toBe('wal');
      database.close();
    },
  );

  it('its main and its agent need no package that is not there', () => {
    // Whatever is not bundled is named in an import or require of its own; the encoder's packages lie with the agent.
    const imports = (file: string) =>
      [...readFileSync(file, 'utf8').matchAll(/^import\s[^'"]*['"]([^'"./][^'"]*)['"];?$/gm)].map(
        (match) => match[1] ?? '',
      );
    const unknown = (file: string) =>
      imports(file).filter((name) => !name.startsWith('node:') && !builtinNames.has(name));
    const builtinNames = new Set<string>([...(require('node:module') as { builtinModules: string[] }).builtinModules]);
    if (!existsSync(at('app'))) asar.extractAll(path.join(resources, 'app.asar'), at('app'));
    const allowed = new Set(['electron', 'better-sqlite3']);
    for (const name of readdirSync(at('app/out/main'))) {
      expect(unknown(at('app/out/main', name)).filter((imported) => !allowed.has(imported))).toEqual([]);
    }
    for (const name of readdirSync(path.join(resources, 'agent')).filter((file) => file.endsWith('.js'))) {
      expect(unknown(path.join(resources, 'agent', name))).toEqual([]);
    }
  });
});

describe('the packed agent', () => {
  const started: ChildProcess[] = [];
  afterAll(() => {
    for (const child of started) child.kill('SIGKILL');
  });

  it('stands alone in its folder, as a module, without maps', () => {
    const files = filesBelow(path.join(resources, 'agent'));
    expect(files).toEqual(expect.arrayContaining(['index.js', 'builtin-worker.js', 'package.json']));
    expect(files.filter((file) => /\.(map|ts|node)$/.test(file))).toEqual([]);
    const own = JSON.parse(readFileSync(path.join(resources, 'agent/package.json'), 'utf8')) as Record<string, unknown>;
    expect(own.type).toBe('module');
  });

  it('starts from there, says where it listens, and ends when told', async () => {
    const place = at('agent-data');
    const args = ['--listen', '127.0.0.1:0', '--no-advertise', '--no-detect', '--json', '--data-dir', place];
    const child = spawn(process.execPath, [path.join(resources, 'agent/index.js'), ...args], {
      cwd: folder,
      env: { PATH: process.env.PATH ?? '' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    started.push(child);
    let errors = '';
    child.stderr.on('data', (chunk: Buffer) => {
      errors += chunk.toString();
    });
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    const line = await Promise.race([
      new Promise<string>((resolve) => createInterface({ input: child.stdout }).once('line', resolve)),
      ended.then((code) => `ended with ${code}: ${errors}`),
    ]);
    expect(JSON.parse(line)).toMatchObject({
      ready: true,
      listen: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      joinCode: expect.stringMatching(/^[0-9A-Z]{4}(-[0-9A-Z]{4}){3}$/),
    });
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
    expect(errors).toBe('');
  });

  it.skipIf(withoutEncoder)('encodes with what lies beside it (skipped without the encoder)', async () => {
    const worker = new Worker(path.join(resources, 'agent/builtin-worker.js'), { env: {} });
    try {
      const answer = await new Promise<WorkAnswer>((resolve, reject) => {
        worker.once('message', resolve);
        worker.once('error', reject);
        worker.postMessage({ id: 1, op: 'embed', texts: ['a switchyard sorts wagons'] });
      });
      expect(answer).toMatchObject({ id: 1, kind: 'vectors' });
      if (answer.kind !== 'vectors') return;
      const norm = Math.sqrt(answer.values.reduce((sum, value) => sum + value * value, 0));
      expect([answer.values.length, Number(norm.toFixed(3))]).toEqual([512, 1]);
    } finally {
      await worker.terminate();
    }
  });
});

const noChromium = !CHROMIUM && process.env.SWITCHYARD_NO_SKIP !== '1';

describe.skipIf(noChromium)('the packed app under the stand-in of Electron (skipped without Chromium)', () => {
  const started: ChildProcess[] = [];
  afterAll(() => {
    for (const child of started) child.kill('SIGKILL');
  });

  /** Plain Node reads no archives, so the archive's content stands beside it; everything else is as in a package. */
  function start(...args: string[]): { readonly child: ChildProcess; readonly ended: Promise<number | null> } {
    if (!existsSync(at('app'))) asar.extractAll(path.join(resources, 'app.asar'), at('app'));
    const asPackage = `const { app } = require('electron');
app.isPackaged = true;
process.resourcesPath = ${JSON.stringify(resources)};
process.argv.splice(1, 3);
`;
    writeFileSync(at('as-package.cjs'), asPackage);
    const child = spawn(
      path.join(root, 'test/standin/bin/electron'),
      ['-r', at('as-package.cjs'), at('app'), ...args],
      {
        cwd: folder,
        env: { ...process.env, XDG_CONFIG_HOME: at('config'), STANDIN_NODE: process.execPath },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    started.push(child);
    return { child, ended: new Promise((resolve) => child.once('exit', resolve)) };
  }

  it('is an agent with --agent: it opens no window, says where it listens, and ends when told', async () => {
    const place = at('agent-of-app');
    const flags = ['--listen', '127.0.0.1:0', '--no-advertise', '--no-detect', '--json', '--data-dir', place];
    const { child, ended } = start('--agent', ...flags);
    const line = await Promise.race([
      new Promise<string>((resolve) =>
        createInterface({ input: child.stdout ?? Readable.from([]) }).once('line', resolve),
      ),
      ended.then((code) => `ended with ${code}`),
    ]);
    expect(JSON.parse(line)).toMatchObject({ ready: true, listen: expect.stringMatching(/^127\.0\.0\.1:\d+$/) });
    expect(existsSync(path.join(place, 'switchyard.db'))).toBe(false);
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  });

  it('serves as a desktop: its store, its agent and its encoder come out of the package and found the trial space', async () => {
    const port = await freePort();
    const data = at('data');
    const { child, ended } = start(
      `--user-data-dir=${at('electron')}`,
      `--data-dir=${data}`,
      `--port=${port}`,
      '--no-discovery',
    );
    const isReady = async () => (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null))?.status;
    await expect.poll(isReady, { timeout: 120_000 }).toBe(200);
    if (!withoutEncoder) {
      const Database = require('better-sqlite3') as new (
        file: string,
        options: object,
      ) => { prepare(text: string): { get(): { readonly n: number } }; close(): void };
      const spaces = () => {
        const database = new Database(path.join(data, 'switchyard.db'), { readonly: true });
        try {
          return database.prepare('SELECT count(*) AS n FROM spaces').get().n;
        } finally {
          database.close();
        }
      };
      await expect.poll(spaces, { timeout: 150_000, interval: 500 }).toBe(1);
    }
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  }, 300_000);

  it.each([
    '--inspect=0',
    '--remote-debugging-port=0',
    '--no-sandbox',
    '--disable-web-security',
    '--proxy-server=http://127.0.0.1:9',
  ])('refuses to start with %s', async (flag) => {
    const { ended } = start(flag, `--user-data-dir=${at('refused')}`, `--data-dir=${at('refused/data')}`);
    expect(await ended).not.toBe(0);
    expect(existsSync(at('refused/data'))).toBe(false);
  });
});

describe('the runtime', () => {
  it('has every fuse as the configuration says, each flipped from its opposite', async () => {
    const { version, ...wire } = await fuses.getCurrentFuseWire(path.join(app, 'switchyard'));
    expect(version).toBe('1');
    const states = FUSES.map(([name], place) => [name, String.fromCharCode(Number(wire[place])) === '1']);
    expect(Object.fromEntries(states)).toEqual(Object.fromEntries(FUSES));
    expect(Object.fromEntries(FUSES)).toEqual(readPackaging().electronFuses);
  });

  it('keeps the languages that the app speaks', () => {
    expect(readdirSync(path.join(app, 'locales')).sort()).toEqual(['en-US.pak', 'fr.pak']);
  });

  it('travels with our licence and those of everything bundled', () => {
    expect(readFileSync(path.join(resources, 'LICENSE.txt'), 'utf8')).toMatch(/^MIT License/);
    const notices = readFileSync(path.join(resources, 'third-party-notices.txt'), 'utf8');
    const named = [...notices.matchAll(/^-{80}\n((\S+) \d+\.\d+\.\d+\S*) \(/gm)];
    const names = named.map((match) => match[2]);
    expect(names).toEqual(expect.arrayContaining(['ws', 'undici', 'zod', 'react', 'react-dom', 'recharts']));
    expect(new Set(named.map((match) => match[1])).size).toBe(named.length);
  });
});

describe('the deb', () => {
  const names = { executable: 'switchyard', sanitizedProductName: 'Switchyard' };
  const given = () => readFileSync(at('fpm/arguments'), 'utf8').split('\0');

  it('goes to /opt, with the profile of AppArmor that its script installs', () => {
    expect(given()).toContain(`${app}/=/opt/Switchyard`);
    expect(readFileSync(path.join(resources, 'apparmor-profile'), 'utf8')).toBe(rendered('apparmor-profile', names));
    expect(readFileSync(at('fpm/after-install'), 'utf8')).toBe(rendered('postinst.sh', names));
    expect(readFileSync(at('fpm/after-remove'), 'utf8')).toBe(rendered('postrm.sh', names));
  });

  it('brings the icon in nine sizes, and a menu entry', () => {
    const icons = given().flatMap((arg) => /\/icons\/hicolor\/(\d+)x\d+\/apps\/switchyard\.png$/.exec(arg)?.[1] ?? []);
    expect(icons.map(Number).sort((a, b) => a - b)).toEqual([16, 24, 32, 48, 64, 128, 256, 512, 1024]);
    expect(readFileSync(at('fpm/desktop'), 'utf8')).toMatch(/^Exec=\/opt\/Switchyard\/switchyard %U$/m);
  });

  it('knows where to ask for updates, and only tells of them: nothing in it could be verified', async () => {
    const facts = await readUpdateFacts({
      version: '0.1.0',
      packaged: true,
      platform: 'linux',
      resources,
      executable: path.join(app, 'switchyard'),
    });
    expect(facts).toMatchObject({ feedUrl: FEED, signed: false });
    expect(updateMode(facts)).toBe('notify');
    expect(readFileSync(path.join(resources, 'package-type'), 'utf8')).toBe('deb');
  });
});
