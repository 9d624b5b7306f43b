import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SwitchyardError } from '../../main/domain/errors.ts';
import {
  dataFiles,
  ensurePrivateFile,
  ensurePrivateFolder,
  removeLeftovers,
  temporaryBeside,
  writeWhole,
} from '../../main/store/files.ts';
import { lockDataFolder } from '../../main/store/owner-lock.ts';
import { scratchFolder } from './support.ts';

const modeOf = (file: string): string => (statSync(file).mode & 0o777).toString(8);

describe('files of the data folder', () => {
  it('makes a folder for its owner alone, and closes one that was open to others', () => {
    const made = path.join(scratchFolder(), 'a', 'b');
    ensurePrivateFolder(made);
    expect(modeOf(made)).toBe('700');
    const open = path.join(scratchFolder(), 'open');
    mkdirSync(open, { mode: 0o755 });
    ensurePrivateFolder(open);
    expect(modeOf(open)).toBe('700');
  });

  it.runIf(existsSync('/proc'))('gives up where no folder can be made, instead of trying for ever', () => {
    expect(() => ensurePrivateFolder('/proc/switchyard/data')).toThrow();
  });

  it('cuts the access list of a new folder down to the user on Windows', () => {
    const calls: (readonly string[])[] = [];
    const folder = path.join(scratchFolder(), 'win');
    const options = { platform: 'win32' as const, run: (_: string, args: readonly string[]) => void calls.push(args) };
    ensurePrivateFolder(folder, options);
    ensurePrivateFolder(folder, options);
    expect(calls).toHaveLength(1);
    expect(calls[0]?.slice(0, 3)).toEqual([folder, '/inheritance:r', '/grant:r']);
    expect(calls[0]?.[3]).toMatch(/:\(OI\)\(CI\)F$/);
  });

  it('writes files for their owner alone, whatever the umask and the file before', () => {
    const file = path.join(scratchFolder(), 'vault.key');
    writeFileSync(file, 'old', { mode: 0o644 });
    writeWhole(file, 'new');
    expect(readFileSync(file, 'utf8')).toBe('new');
    expect(modeOf(file)).toBe('600');
    const open = path.join(scratchFolder(), 'open');
    writeFileSync(open, '', { mode: 0o666 });
    ensurePrivateFile(open);
    expect(modeOf(open)).toBe('600');
  });

  it('leaves no temporary file behind, and clears those of writers that were killed', () => {
    const folder = scratchFolder();
    const file = path.join(folder, 'x');
    writeWhole(file, 'content');
    expect(readdirSync(folder)).toEqual(['x']);
    writeFileSync(temporaryBeside(file), 'half');
    writeFileSync(path.join(folder, '.mine'), 'not a leftover');
    removeLeftovers(folder);
    expect(readdirSync(folder).sort()).toEqual(['.mine', 'x']);
  });
});

describe('the owner of a data folder', () => {
  it('is one: the second is refused and told the pid, until the first lets go', () => {
    const folder = scratchFolder();
    const lock = lockDataFolder(folder, 4711);
    const second = (): unknown => lockDataFolder(folder);
    expect(second).toThrow(SwitchyardError);
    expect(second).toThrow('process 4711');
    lock.release();
    lock.release();
    lockDataFolder(folder).release();
    expect(modeOf(dataFiles(folder).lock)).toBe('600');
    expect(modeOf(dataFiles(folder).owner)).toBe('600');
  });

  it('loses the folder when it is killed, however it is killed', async () => {
    const folder = scratchFolder();
    const script = fileURLToPath(new URL('./lock-child.ts', import.meta.url));
    const child = spawn(process.execPath, [script, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    await new Promise((resolve) => child.stdout.once('data', resolve));
    expect(() => lockDataFolder(folder)).toThrow(`process ${child.pid}`);
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
    expect(existsSync(dataFiles(folder).owner)).toBe(true);
    lockDataFolder(folder).release();
  });
});
