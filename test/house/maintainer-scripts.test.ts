import { spawnSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { rendered } from './package-rules.ts';

/**
 * The scripts that dpkg runs as root, here on a made-up system: every absolute path lies below a temporary folder, and the
 * parser of AppArmor is a script that notes what it was asked.
 */
const NAMES = { executable: 'switchyard', sanitizedProductName: 'Switchyard' };
const APP = '/opt/Switchyard';
const PROFILE = '/etc/apparmor.d/switchyard';

interface Machine {
  /** What `apparmor_parser` answers to "do you understand this profile?"; null: not installed. */
  readonly parser: boolean | null;
  /** Files below /proc with their content. */
  readonly kernel: Readonly<Record<string, string>>;
}

const UBUNTU_24: Machine = {
  parser: true,
  kernel: {
    'self/ns/user': '',
    'sys/user/max_user_namespaces': '63000',
    'sys/kernel/apparmor_restrict_unprivileged_userns': '1',
  },
};
const UBUNTU_22: Machine = { parser: false, kernel: { 'self/ns/user': '', 'sys/user/max_user_namespaces': '63000' } };
const FEDORA: Machine = { parser: null, kernel: { 'self/ns/user': '', 'sys/user/max_user_namespaces': '63000' } };

describe.skipIf(process.platform === 'win32')('the scripts of the deb (skipped on Windows)', () => {
  let system = '';
  beforeEach(() => {
    system = mkdtempSync(path.join(tmpdir(), 'switchyard-deb-'));
  });
  afterEach(() => rmSync(system, { recursive: true }));
  const at = (file: string) => path.join(system, file);
  const write = (file: string, content: string, mode = 0o644) => {
    mkdirSync(path.dirname(at(file)), { recursive: true });
    writeFileSync(at(file), content, { mode });
  };

  function unpackOn({ parser, kernel }: Machine): void {
    for (const folder of ['usr/bin', 'etc/apparmor.d', 'programs']) mkdirSync(at(folder), { recursive: true });
    write(`${APP}/switchyard`, '', 0o755);
    write(`${APP}/chrome-sandbox`, '', 0o755);
    write(`${APP}/resources/apparmor-profile`, rendered('apparmor-profile', NAMES));
    for (const [file, content] of Object.entries(kernel)) write(`proc/${file}`, `${content}\n`);
    if (parser !== null) {
      const answer = `#!/bin/sh\necho "$@" >> ${at('asked')}\ncase "$1" in --skip-kernel-load) exit ${parser ? 0 : 1} ;; esac\n`;
      write('programs/apparmor_parser', answer, 0o755);
    }
  }

  /** Runs a script as dpkg would; files may not change owner here, since the test is not always root. */
  function run(script: string, ...args: string[]) {
    const text = rendered(script, NAMES).replaceAll(/(?<![\w.])\/(opt|etc|usr|proc)\//g, `${system}/$1/`);
    const withoutOwner = text.replace('set -eu', 'set -eu\nchown() { :; }');
    const result = spawnSync('/bin/sh', ['-c', withoutOwner, script, ...args], {
      env: { PATH: `${at('programs')}:/usr/bin:/bin` },
      encoding: 'utf8',
    });
    expect(result).toMatchObject({ status: 0, stderr: '' });
  }

  const asked = () => (existsSync(at('asked')) ? readFileSync(at('asked'), 'utf8').trim().split('\n') : []);
  const helperMode = () => (statSync(at(`${APP}/chrome-sandbox`)).mode & 0o7777).toString(8);
  const isThere = (file: string) => lstatSync(at(file), { throwIfNoEntry: false }) !== undefined;

  it('on Ubuntu 24.04: the profile is put in place and loaded, so the sandbox needs no set-user-id helper', () => {
    unpackOn(UBUNTU_24);
    run('postinst.sh', 'configure', '');
    expect(readFileSync(at(PROFILE), 'utf8')).toContain(
      'profile switchyard "/opt/Switchyard/switchyard" flags=(unconfined) {',
    );
    expect(statSync(at(PROFILE)).mode & 0o777).toBe(0o644);
    expect(asked().at(-1)).toBe(`--replace --write-cache --skip-read-cache ${at(PROFILE)}`);
    expect(helperMode()).toBe('755');
    expect(readlinkSync(at('usr/bin/switchyard'))).toBe(at(`${APP}/switchyard`));
  });

  it('on Ubuntu 22.04, whose parser does not know the profile and whose kernel needs none: it is left out', () => {
    unpackOn(UBUNTU_22);
    run('postinst.sh', 'configure', '');
    expect(isThere(PROFILE)).toBe(false);
    expect(asked()).toHaveLength(1);
    expect(helperMode()).toBe('755');
  });

  it('without AppArmor: nothing of it', () => {
    unpackOn(FEDORA);
    run('postinst.sh', 'configure', '');
    expect(isThere(PROFILE)).toBe(false);
    expect(helperMode()).toBe('755');
  });

  it.each([
    ['the kernel has no user namespaces', { ...FEDORA, kernel: {} }],
    [
      'only root may make them',
      { ...FEDORA, kernel: { ...FEDORA.kernel, 'sys/kernel/unprivileged_userns_clone': '0' } },
    ],
    ['none may be made', { ...FEDORA, kernel: { ...FEDORA.kernel, 'sys/user/max_user_namespaces': '0' } }],
    ['they are restricted and the profile cannot be read', { ...UBUNTU_24, parser: false }],
  ])('where %s the helper gets its set-user-id bit: the app never runs without a sandbox', (_, machine) => {
    unpackOn(machine);
    run('postinst.sh', 'configure', '');
    expect(helperMode()).toBe('4755');
  });

  it('twice does the same as once, and an upgrade from 0.1.0 too', () => {
    unpackOn(UBUNTU_24);
    run('postinst.sh', 'configure', '');
    run('postrm.sh', 'upgrade', '0.2.0');
    run('postinst.sh', 'configure', '0.1.0');
    expect(isThere(PROFILE)).toBe(true);
    expect(isThere('usr/bin/switchyard')).toBe(true);
    expect(asked().filter((line) => line.startsWith('--remove'))).toEqual([]);
  });

  it('removal unloads the profile before it deletes it, and takes the link; a purge after that finds nothing to do', () => {
    unpackOn(UBUNTU_24);
    run('postinst.sh', 'configure', '');
    run('postrm.sh', 'remove');
    expect(asked().at(-1)).toBe(`--remove ${at(PROFILE)}`);
    expect([PROFILE, 'usr/bin/switchyard'].filter(isThere)).toEqual([]);
    run('postrm.sh', 'purge');
  });

  it('removal leaves a program of that name that is not ours', () => {
    unpackOn(UBUNTU_24);
    symlinkSync('/somewhere/else', at('usr/bin/switchyard'));
    run('postrm.sh', 'remove');
    expect(readlinkSync(at('usr/bin/switchyard'))).toBe('/somewhere/else');
  });

  it('fills in only what electron-builder gives, and grants the profile user namespaces alone', () => {
    const profile = rendered('apparmor-profile', NAMES);
    const rules = profile.split('\n').filter((line) => /^ {2}\S/.test(line));
    expect(rules).toEqual(['  userns,', '  include if exists <local/switchyard>']);
  });
});
