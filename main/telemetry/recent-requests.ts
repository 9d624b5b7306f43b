import type { RequestId } from '../domain/ids.ts';
import type { RequestSummary } from '../domain/observation.ts';

const KEPT = 1000;

/** The newest finished requests with their traces, in memory: the live table, and traces before they are on disk. */
export class RecentRequests<Trace extends { readonly summary: RequestSummary }> {
  readonly #traces = new Map<RequestId, Trace>();
  readonly #listeners = new Set<(trace: Trace) => void>();

  add(trace: Trace): void {
    this.#traces.set(trace.summary.id, trace);
    if (this.#traces.size > KEPT) {
      const oldest = this.#traces.keys().next().value;
      if (oldest !== undefined) this.#traces.delete(oldest);
    }
    for (const listener of this.#listeners) listener(trace);
  }

  get(id: RequestId): Trace | null {
    return this.#traces.get(id) ?? null;
  }

  /** Newest first. */
  list(): readonly Trace[] {
    return [...this.#traces.values()].reverse();
  }

  /** @returns its own unsubscribe. */
  subscribe(listener: (trace: Trace) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
