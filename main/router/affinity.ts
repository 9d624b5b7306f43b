import type { ProviderId } from '../domain/ids.ts';

const REMEMBERED_MS = 600_000;

/** Which provider served a conversation last: its prefix cache is warm for ten minutes. Bounded; the oldest is forgotten. */
export class Affinity {
  private readonly bound: number;
  private readonly last = new Map<string, { readonly provider: ProviderId; readonly atMs: number }>();

  constructor(bound: number) {
    this.bound = bound;
  }

  providerOf(conversation: string, nowMs: number): ProviderId | null {
    const entry = this.last.get(conversation);
    if (entry === undefined || nowMs - entry.atMs >= REMEMBERED_MS) return null;
    return entry.provider;
  }

  served(conversation: string, provider: ProviderId, nowMs: number): void {
    this.last.delete(conversation);
    this.last.set(conversation, { provider, atMs: nowMs });
    if (this.last.size <= this.bound) return;
    const oldest = this.last.keys().next();
    if (!oldest.done) this.last.delete(oldest.value);
  }
}
