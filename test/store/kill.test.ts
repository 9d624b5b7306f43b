import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { dataFiles } from '../../main/store/files.ts';
import { key32, ManualClock, scratchFolder, startedStore } from './support.ts';

const script = fileURLToPath(new URL('./kill-child.ts', import.meta.url));

/** Runs the writer until it acknowledged `count` changes, then kills it. @returns the last number it acknowledged. */
async function writeAndKill(folder: string, round: number, count: number): Promise<number> {
  const child = spawn(process.execPath, [script, folder, String(round)], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let last = -1;
  let acknowledged = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === 'started') continue;
    last = Number(line);
    acknowledged += 1;
    if (acknowledged === count) child.kill('SIGKILL');
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return last;
}

describe('a process killed while it writes', () => {
  it('leaves no torn row and loses nothing it acknowledged, each of 8 times', async () => {
    const folder = scratchFolder();
    for (let round = 0; round < 8; round += 1) {
      const last = await writeAndKill(folder, round, 5 + round * 7);
      expect(last).toBeGreaterThanOrEqual(round * 1_000_000);

      const db = new Database(dataFiles(folder).database);
      expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
      db.close();

      const store = await startedStore(folder, { clock: new ManualClock() });
      expect(store.health().state).toBe('ok');
      const value = store.settings.get('counter')?.value as { number: number; left: string; right: string };
      expect(value.number).toBeGreaterThanOrEqual(last);
      expect(value.left).toBe(String(value.number).repeat(400));
      expect(value.right).toBe(value.left);
      const newest = store.nodes.list().map(({ name }) => Number(name));
      expect(Math.max(...newest)).toBeGreaterThanOrEqual(last);
      // Row and sealed key belong together: each key is the one of its row's number.
      for (const { id, name } of store.nodes.list()) expect(store.nodes.key(id)).toEqual(key32(Number(name) % 251));
      await store.stop();
    }
  });
});
