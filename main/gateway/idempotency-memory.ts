import type { Clock } from '../domain/time.ts';
import type { IdempotencyClaim, IdempotencyScope, IdempotencyStore, StoredAnswer } from './ports.ts';

const KEPT_MS = 24 * 3_600_000;

interface Entry {
  readonly bodySha256: string;
  readonly atMs: number;
  answer: StoredAnswer | null;
}

/** Claims and answers in memory: for one process without a database. Entries older than a day go as new ones come. */
export class MemoryIdempotencyStore implements IdempotencyStore {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async claim(scope: IdempotencyScope, bodySha256: string): Promise<IdempotencyClaim> {
    const nowMs = this.#clock.nowMs();
    for (const [name, entry] of this.#entries) {
      if (nowMs - entry.atMs < KEPT_MS) break;
      this.#entries.delete(name);
    }
    const name = nameOf(scope);
    const entry = this.#entries.get(name);
    if (entry === undefined) {
      this.#entries.set(name, { bodySha256, atMs: nowMs, answer: null });
      return { state: 'claimed' };
    }
    if (entry.bodySha256 !== bodySha256) return { state: 'other-body' };
    return entry.answer === null ? { state: 'running' } : { state: 'stored', answer: entry.answer };
  }

  async complete(scope: IdempotencyScope, answer: StoredAnswer): Promise<void> {
    const entry = this.#entries.get(nameOf(scope));
    if (entry !== undefined) entry.answer = answer;
  }

  async forget(scope: IdempotencyScope): Promise<void> {
    this.#entries.delete(nameOf(scope));
  }
}

function nameOf(scope: IdempotencyScope): string {
  return JSON.stringify([scope.project, scope.route, scope.key]);
}
