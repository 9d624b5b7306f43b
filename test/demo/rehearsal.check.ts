import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ROLE_IDS } from '../../main/domain/roles.ts';
import type { Figures } from '../demo/figures.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Rehearsal {
  readonly pid: number;
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly code: Promise<number | null>;
  end(): void;
}

function rehearse(...args: readonly string[]): Rehearsal {
  const child = spawn(process.execPath, ['scripts/demo.mjs', ...args], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (text: Buffer) => {
    stdout += text;
  });
  child.stderr.on('data', (text: Buffer) => {
    stderr += text;
  });
  return {
    pid: child.pid ?? 0,
    stdout: () => stdout,
    stderr: () => stderr,
    code: new Promise((resolve) => child.once('close', resolve)),
    end: () => void child.kill('SIGINT'),
  };
}

/** Processes of rehearsals, by the data folders and programs that only they use. */
function leftOver(): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
        return /switchyard-demo-|demo\/engines-child/.test(command) ? [command] : [];
      } catch {
        return []; // ended while we looked
      }
    });
}
const folders = () => readdirSync(tmpdir()).filter((name) => name.startsWith('switchyard-demo-'));

describe.skipIf(process.platform !== 'linux')('npm run demo', () => {
  it('prints figures of all roles, over both routes, and leaves nothing behind', { timeout: 240_000 }, async () => {
    const before = { processes: leftOver().length, folders: folders().length };
    const run = rehearse('--once', '--json', '--seconds', '25');
    expect(await run.code, run.stderr()).toBe(0);
    const figures = JSON.parse(run.stdout()) as Figures;
    for (const role of ROLE_IDS) expect(figures.roles[role]?.requests, role).toBeGreaterThan(0);
    expect(figures.local).toBeGreaterThan(0);
    expect(figures.cloud).toBeGreaterThan(0);
    expect(figures.account.tooMany).toBeGreaterThanOrEqual(1);
    expect(figures.account.cuts).toBeGreaterThanOrEqual(1);
    expect(figures.p50Ms).toBeGreaterThan(0);
    expect(figures.p95Ms ?? 0).toBeGreaterThanOrEqual(figures.p50Ms ?? 0);
    // The 4-bit encoder, and the upstream of other numerics through each of three agents.
    expect(figures.gate.refused).toHaveLength(4);
    expect(figures.gate.textsToRefused).toBe(0);
    expect({ processes: leftOver().length, folders: folders().length }).toEqual(before);
  });

  it('ends all it started when it is interrupted, also while it starts', { timeout: 120_000 }, async () => {
    const before = { processes: leftOver().length, folders: folders().length };
    const run = rehearse();
    await expect.poll(() => run.stdout(), { timeout: 60_000 }).toContain('Pairing');
    expect(leftOver().length).toBeGreaterThan(before.processes);
    run.end();
    expect(await run.code, run.stderr()).toBe(0);
    expect({ processes: leftOver().length, folders: folders().length }).toEqual(before);
  });
});
