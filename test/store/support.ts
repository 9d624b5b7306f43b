import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import type { NodeId, ProjectId, ProviderId, RequestId } from '../../main/domain/ids.ts';
import type { RequestSummary } from '../../main/domain/observation.ts';
import type { Clock } from '../../main/domain/time.ts';
import { SqliteStore, type StoreOptions } from '../../main/store/client.ts';
import type { ApiKeyRecord, NodeRecord, UsageEntry } from '../../main/store/ports.ts';

/** 2026-07-15 12:00:00 UTC. */
export const NOON = Date.UTC(2026, 6, 15, 12);
export const DAY_MS = 86_400_000;

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

export const key32 = (fill: number): Uint8Array => new Uint8Array(32).fill(fill);

export function nodeRecord(id: string, change: Partial<NodeRecord> = {}): NodeRecord {
  return {
    id: id as NodeId,
    name: `machine ${id}`,
    address: '192.168.1.20:7412',
    manual: true,
    embedded: false,
    fingerprint: 'ab'.repeat(32),
    nextFingerprint: null,
    wish: 'serve',
    addedAtMs: NOON,
    ...change,
  };
}

export function apiKey(id: string, project: string): Omit<ApiKeyRecord, 'lastUsedAtMs' | 'revokedAtMs'> {
  return {
    id,
    project: project as ProjectId,
    name: `key ${id}`,
    hint: 'wxyz',
    allowWiden: false,
    anyProject: false,
    classCap: 'normal',
    roles: null,
    limits: { requestsPerMinute: 60, tokensPerMinute: null, usdPerDay: 2.5 },
    createdAtMs: NOON,
  };
}

export const hash = (digit: string): string => digit.repeat(64);

export function summary(id: string, change: Partial<RequestSummary> = {}): RequestSummary {
  return {
    id: id as RequestId,
    project: 'house' as ProjectId,
    role: 'code-assistant',
    class: 'normal',
    model: 'qwen3:8b',
    route: 'local',
    provider: 'p1' as ProviderId,
    node: 'n1' as NodeId,
    arrivedAtMs: NOON,
    queueMs: 1,
    firstByteMs: 20,
    totalMs: 100,
    usage: { promptTokens: 10, completionTokens: 5, exact: true, costUsd: null },
    attempts: 1,
    outcome: 'success',
    code: null,
    acrossGap: false,
    ...change,
  };
}

export function usageEntry(change: Partial<UsageEntry> = {}): UsageEntry {
  return {
    key: 'k1',
    project: 'house' as ProjectId,
    role: 'code-assistant',
    model: 'qwen3:8b',
    route: 'local',
    atMs: NOON,
    success: true,
    promptTokens: 10,
    completionTokens: 5,
    exact: true,
    costUsd: null,
    ...change,
  };
}
