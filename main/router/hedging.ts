import type { ProviderState } from './fleet.ts';
import type { Chunk } from './job.ts';
import type { Lane } from './lane.ts';

/** A provider this late with its work promises nothing. */
const PUNCTUAL_MS = 100;

export function mayCopy(chunk: Chunk, provider: ProviderState): boolean {
  return (
    chunk.local &&
    provider.local &&
    !chunk.copied &&
    chunk.live.length === 1 &&
    chunk.owner !== provider.id &&
    !chunk.failedBy.includes(provider.id) &&
    chunk.count <= provider.routed.maxBatch
  );
}

/**
 * Would a busy but punctual provider, its own work done first, finish a copy before the idle one? A chunk is copied once: a
 * slow machine that took it now would hold up the end.
 */
export function soonerElsewhere(lane: Lane, idle: ProviderState, chunk: Chunk, nowMs: number): boolean {
  const idleAtMs = nowMs + (1000 * chunk.count) / (idle.rate.perSecond ?? 1);
  return lane.eligible.some((other) => {
    const rate = other.rate.perSecond;
    if (rate === null || other.running === 0 || other.throughAtMs < nowMs - PUNCTUAL_MS) return false;
    if (!mayCopy(chunk, other)) return false;
    return Math.max(nowMs, other.throughAtMs) + (1000 * chunk.count) / rate < idleAtMs;
  });
}
