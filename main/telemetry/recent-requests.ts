import type { RequestId } from '../domain/ids.ts';
import type { RequestSummary } from '../domain/observation.ts';

const KEPT = 1000;

/** The newest finished requests with their traces, in memory: the live table, and traces before they are on disk. */
export class RecentRequests<Trace extends { readonly summary: RequestSummary }> {
  /** A ring: each takes the place of the oldest. One is looked for seldom, and added with every request. */
  readonly #traces: Trace[] = [];
  #next = 0;
  readonly #listeners = new Set<(trace: Trace) => void>();

  add(trace: Trace): void {
    this.#traces[this.#next] = trace;
    this.#next = (this.#next + 1) % KEPT;
    for (const listener of this.#listeners) listener(trace);
  }

  get(id: RequestId): Trace | null {
    return this.#traces.find(({ summary }) => summary.id === id) ?? null;
  }

  /** Newest first. */
  list(): readonly Trace[] {
    return [...this.#traces.slice(this.#next), ...this.#traces.slice(0, this.#next)].reverse();
  }

  /** @returns its own unsubscribe. */
  subscribe(listener: (trace: Trace) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
