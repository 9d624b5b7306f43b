import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkResources } from '../../scripts/after-pack.cjs';
import { notices } from '../../scripts/notices.mjs';
import { dependenciesOf, desktopEntry, readPackaging, root, takesPackageFile, validate } from './package-rules.ts';

const packaging = readPackaging();
const withoutEncoder =
  !existsSync(path.join(root, 'node_modules/@energetic-ai/core')) && process.env.SWITCHYARD_NO_SKIP !== '1';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'switchyard-packages-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function put(file: string, content = ''): void {
  mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
  writeFileSync(path.join(folder, file), content);
}

describe('the packaging configuration', () => {
  it('is accepted by electron-builder', async () => {
    await validate(packaging);
  });

  it.each([
    ['a misspelt name', { appID: 'x' }],
    ['a misspelt option of a system', { linux: { ...packaging.linux, categori: 'x' } }],
    ['a value of another kind', { electronFuses: 'off' }],
    ['a resource from nowhere', { extraResources: [{ form: 'out/agent' }] }],
    ['a fuse that does not exist', { electronFuses: { ...packaging.electronFuses, runAsNodes: false } }],
  ])('with %s is refused there, so the check above can fail', async (_, change) => {
    await expect(validate({ ...packaging, ...change })).rejects.toThrow();
  });

  it('leaves no door open in the runtime: every fuse is set, and set so', () => {
    expect(packaging.electronFuses).toEqual({
      runAsNode: false,
      enableCookieEncryption: true,
      enableNodeOptionsEnvironmentVariable: false,
      enableNodeCliInspectArguments: false,
      enableEmbeddedAsarIntegrityValidation: true,
      onlyLoadAppFromAsar: true,
      loadBrowserProcessSpecificV8Snapshot: false,
      grantFileProtocolExtraPrivileges: false,
    });
  });

  it('never starts the app without its sandbox, nor overrides the check of an update', () => {
    expect(JSON.stringify(packaging)).not.toMatch(/no-sandbox|disable-/);
    expect(packaging.linux.executableArgs).toEqual([]);
    expect(packaging.win.verifyUpdateCodeSignature).toBe(true);
    expect(packaging.npmRebuild).toBe(false);
  });

  it('brings inside the archive what a machine that joins is sent', () => {
    expect(packaging.files).toContain('out/enrol/**');
  });

  it('every file that it names exists', () => {
    const { linux, mac, win, deb, nsis } = packaging as Record<string, Record<string, unknown>>;
    const named = [
      ...[linux?.icon, mac?.icon, win?.icon].map((file) => `assets/package/${file}`),
      ...[deb?.afterInstall, deb?.afterRemove, deb?.appArmorProfile, mac?.entitlements, nsis?.license].map(String),
      String(packaging.afterPack),
    ];
    expect(named.filter((file) => !existsSync(path.join(root, file)))).toEqual([]);
  });
});

describe('what a target takes of the installed packages', () => {
  const binaries = readdirSync(path.join(root, 'node_modules/better-sqlite3/prebuilds'));

  it.each([
    ['linux', 'x64', 'linux-x64.node'],
    ['linux', 'arm64', 'linux-arm64.node'],
    ['mac', 'x64', 'darwin-x64.node'],
    ['mac', 'arm64', 'darwin-arm64.node'],
    ['win', 'x64', 'win32-x64.node'],
    ['win', 'arm64', 'win32-arm64.node'],
  ] as const)('%s %s: the one binary made for it', (system, arch, binary) => {
    const takes = (file: string) => takesPackageFile(packaging, system, arch, file);
    expect(binaries.filter((name) => takes(`node_modules/better-sqlite3/prebuilds/${name}`))).toEqual([binary]);
  });

  it('of the database its code and licence, without sources; of bundled packages nothing', () => {
    const takes = (file: string) => takesPackageFile(packaging, 'linux', 'x64', `node_modules/${file}`);
    expect(takes('better-sqlite3/lib/index.js')).toBe(true);
    expect(takes('better-sqlite3/LICENSE')).toBe(true);
    expect(takes('better-sqlite3/src/better_sqlite3.cpp')).toBe(false);
    expect(takes('better-sqlite3/deps/sqlite3/sqlite3.c')).toBe(false);
    for (const file of ['ws/index.js', '@peculiar/x509/package.json', 'node-addon-api/index.js']) {
      expect(takes(file)).toBe(false);
    }
  });

  it.skipIf(withoutEncoder)(
    'for the agent: the encoder and exactly what it depends on (skipped without its packages)',
    () => {
      const encoder = ['core', 'embeddings', 'model-embeddings-en'].map((name) => `@energetic-ai/${name}`);
      const needed = new Set(encoder.flatMap((name) => [...dependenciesOf(name)]));
      for (const name of encoder) needed.delete(name);
      const { filter = [] } = packaging.extraResources.find(({ to }) => to === 'agent/node_modules') ?? {};
      expect(filter).toContain('@energetic-ai/{core,embeddings,model-embeddings-en}/**');
      expect(filter).toContain(`{${[...needed].sort().join(',')}}/**`);
    },
  );
});

describe('the check after packing', () => {
  const whole = () => {
    put('app.asar.unpacked/node_modules/better-sqlite3/prebuilds/linux-x64.node');
    for (const file of ['index.js', 'builtin-worker.js', 'package.json']) put(`agent/${file}`);
  };
  const check = () => checkResources(folder, 'linux', 'x64');

  it('passes a package with the one binary and the agent', () => {
    whole();
    expect(check).not.toThrow();
  });

  it('refuses a package without a binary, with that of another target, or with two', () => {
    expect(check).toThrow('found: none');
    whole();
    expect(() => checkResources(folder, 'darwin', 'arm64')).toThrow('prebuilds/darwin-arm64.node');
    put('app.asar.unpacked/node_modules/better-sqlite3/prebuilds/linux-arm64.node');
    expect(check).toThrow('linux-arm64.node, node_modules/better-sqlite3/prebuilds/linux-x64.node');
  });

  it('refuses an agent that is incomplete, or bound to one kind of machine', () => {
    whole();
    rmSync(path.join(folder, 'agent/builtin-worker.js'));
    expect(check).toThrow('no builtin-worker.js');
    whole();
    put('agent/node_modules/some/binding.node');
    expect(check).toThrow('some/binding.node');
  });
});

describe('the menu entry', () => {
  it('opens the app by its path, under the name that its windows carry', async () => {
    const lines = (await desktopEntry(packaging)).split('\n');
    expect(lines).toContain('Exec=/opt/Switchyard/switchyard %U');
    expect(lines).toContain('StartupWMClass=switchyard');
    expect(lines).toContain('Icon=switchyard');
    expect(lines).toContain('Categories=Development;');
    expect(lines.filter((line) => line.startsWith('MimeType'))).toEqual([]); // nothing may open it by a link
  });
});

describe('npm run dist', () => {
  it.each(['http://downloads.example/', 'nonsense', ''])('takes only an https address for updates, not %j', (feed) => {
    const started = spawnSync(process.execPath, [path.join(root, 'scripts/dist.mjs')], {
      env: { ...process.env, SWITCHYARD_UPDATE_URL: feed },
      encoding: 'utf8',
    });
    expect(started).toMatchObject({ status: 1, stdout: '', stderr: 'SWITCHYARD_UPDATE_URL takes an https address.\n' });
  });
});

describe('licences of what is bundled', () => {
  it('are collected once a package, with its text', () => {
    put('node_modules/b/package.json', '{"name":"b","version":"2.0.0","license":"ISC"}');
    put('node_modules/b/LICENSE', 'text of b\n');
    put('node_modules/@s/a/package.json', '{"name":"@s/a","version":"1.0.0","license":"MIT"}');
    const files = ['node_modules/b/x.js', 'node_modules/b/lib/y.js', 'node_modules/@s/a/z.js', 'main/own.ts'];
    const rule = '-'.repeat(80);
    expect(notices(files.map((file) => path.join(folder, file)))).toBe(
      `${rule}\n@s/a 1.0.0 (MIT)\n\n${rule}\nb 2.0.0 (ISC)\n\ntext of b`,
    );
  });

  it('a package that states none stops the build', () => {
    put('node_modules/c/package.json', '{"name":"c","version":"1.0.0"}');
    expect(() => notices([path.join(folder, 'node_modules/c/i.js')])).toThrow('c states no licence');
  });

  it('our own is there', () => {
    expect(readFileSync(path.join(root, 'LICENSE'), 'utf8')).toMatch(
      /^MIT License\n\nCopyright \(c\) \d{4} The Switchyard team\n/,
    );
  });
});
