import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import type { Clock } from '../../main/domain/time.ts';
import { SqliteStore, type StoreOptions } from '../../main/store/client.ts';
import { NOON } from './support-records.ts';

export * from './support-records.ts';

/** Time that moves only when a test says so. */
export class ManualClock implements Clock {
  #nowMs = 0;
  readonly #startMs: number;
  #timers: { readonly atMs: number; readonly run: () => void }[] = [];

  constructor(startMs: number = NOON) {
    this.#startMs = startMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#startMs + this.#nowMs;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { atMs: this.#nowMs + delayMs, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  advance(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      const due = this.#timers.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (!due) break;
      this.#timers = this.#timers.filter((each) => each !== due);
      this.#nowMs = due.atMs;
      due.run();
    }
    this.#nowMs = untilMs;
  }
}

/** A folder that is gone after the test. */
export function scratchFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'switchyard-store-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export const WORKER_URL = new URL('../../main/store/worker.ts', import.meta.url);

/** A store with its real thread, stopped after the test. */
export function storeIn(dataFolder: string, options: Partial<StoreOptions> & { readonly clock: Clock }): SqliteStore {
  const store = new SqliteStore({ dataFolder, workerUrl: WORKER_URL, ...options });
  onTestFinished(() => store.stop());
  return store;
}

export async function startedStore(
  dataFolder: string,
  options: Partial<StoreOptions> & { readonly clock: Clock },
): Promise<SqliteStore> {
  const store = storeIn(dataFolder, options);
  await store.start();
  return store;
}
