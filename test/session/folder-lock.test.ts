import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FolderLocked, lockFolder, type ProcessTable } from '../../agent/session/folder-lock.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'switchyard-lock-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Living processes by number and start. */
const machine = (pid: number, alive: Readonly<Record<number, string | null>>): ProcessTable => ({
  pid,
  startOf: (of) => alive[of] ?? null,
  isAlive: (of) => of in alive,
});
const lock = () => JSON.parse(readFileSync(join(folder, 'agent.lock'), 'utf8')) as unknown;

function refusal(processes: ProcessTable): FolderLocked {
  try {
    lockFolder(folder, processes);
  } catch (error) {
    if (error instanceof FolderLocked) return error;
  }
  throw new Error('it was given');
}

describe('the lock of a data folder', () => {
  it('is held by one process, which others are told of, and is given back', () => {
    const alive = { 10: 'boot 100', 11: 'boot 200' };
    const release = lockFolder(folder, machine(10, alive));
    expect(lock()).toEqual({ pid: 10, start: 'boot 100' });
    expect(refusal(machine(11, alive))).toMatchObject({ pid: 10, message: expect.stringContaining('(process 10)') });
    release();
    release();
    lockFolder(folder, machine(11, alive));
    release(); // not the other's
    expect(lock()).toMatchObject({ pid: 11 });
    expect(readdirSync(folder)).toEqual(['agent.lock']);
  });

  it.each<[string, Readonly<Record<number, string | null>>]>([
    ['has ended', { 11: 'boot 200' }],
    ['has ended, and a later one has its number', { 10: 'boot 150', 11: 'boot 200' }],
    ['ran before the machine was started anew', { 10: 'later-boot 100', 11: 'later-boot 200' }],
  ])('is taken over when its process %s', (_, alive) => {
    lockFolder(folder, machine(10, { 10: 'boot 100' }));
    lockFolder(folder, machine(11, alive));
    expect(lock()).toMatchObject({ pid: 11 });
    expect(readdirSync(folder)).toEqual(['agent.lock']);
  });

  it('is taken over from an earlier life of the same number, as programs in containers have', () => {
    lockFolder(folder, machine(1, { 1: null }));
    lockFolder(folder, machine(1, { 1: null }));
    expect(lock()).toEqual({ pid: 1, start: null });
  });

  it('goes by the number alone where the system tells no starts', () => {
    const alive = { 10: null, 11: null };
    lockFolder(folder, machine(10, alive));
    expect(refusal(machine(11, alive)).pid).toBe(10);
  });

  it.each(['', 'garbage', '{"pid":"10"}', 'null', '{"pid":-1}'])('that holds %j is nobody’s', (content) => {
    writeFileSync(join(folder, 'agent.lock'), content);
    lockFolder(folder, machine(11, { 11: 'boot 200' }));
    expect(lock()).toMatchObject({ pid: 11 });
  });

  it('is that of this very process on a real machine', () => {
    const release = lockFolder(folder);
    expect(lock()).toMatchObject({ pid: process.pid });
    release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('is not given for a folder that is none', () => {
    expect(() => lockFolder(join(folder, 'absent'))).toThrow(/ENOENT/);
  });
});
