import type { ProviderId } from '../domain/ids.ts';
import { type Choice, TIER_CLOUD, TIER_LOADED, TIER_LOCAL } from './choice.ts';
import type { CandidateTable, ChunkTable } from './explanation.ts';
import type { ProviderState } from './fleet.ts';
import type { Piece, StripedJob } from './job.ts';
import type { Lane } from './lane.ts';
import type { RoleState } from './role.ts';
import { settleSmooth } from './swrr.ts';
import { loadFactor, weightOf } from './weights.ts';

/** Providers of the lane and kind that have room now, in the order of the fleet. */
export function freeOf(role: RoleState, lane: Lane, local: boolean): readonly ProviderState[] {
  const { free, providers } = role;
  const found: ProviderState[] = [];
  if (free.length * 8 < providers.length) {
    for (const provider of free) {
      if (lane.member[provider.index] === 1 && provider.local === local) found.push(provider);
    }
    return found.sort((a, b) => a.index - b.index);
  }
  // Where most are free, walking the fleet in its order is cheaper than sorting the free ones.
  for (const provider of providers) {
    if (provider.freeAt >= 0 && lane.member[provider.index] === 1 && provider.local === local) found.push(provider);
  }
  return found;
}

/** What the choice reads of each candidate, one row each. Weights are of this very moment. */
export function candidateTable(candidates: readonly ProviderState[], embeds: boolean): CandidateTable {
  const count = candidates.length;
  const provider = new Array<ProviderId>(count);
  const columns = Array.from({ length: 7 }, () => new Array<number>(count));
  const [tier = [], base = [], busy = [], slots = [], speed = [], weight = [], current = []] = columns;
  for (let row = 0; row < count; row += 1) {
    const candidate = candidates[row];
    if (candidate === undefined) continue;
    const { routed, pool } = candidate;
    provider[row] = candidate.id;
    tier[row] = tierOf(candidate, embeds);
    base[row] = routed.baseWeight;
    busy[row] = pool.busy;
    slots[row] = pool.slots;
    speed[row] = candidate.speed;
    weight[row] = weightOf(routed.baseWeight, loadFactor(pool.busy, pool.slots), candidate.speed);
    current[row] = candidate.current;
  }
  return { provider, tier, base, busy, slots, speed, weight, current };
}

/** An engine that cannot say whether a model is loaded serves one model, which is. */
function tierOf(candidate: ProviderState, embeds: boolean): number {
  if (!candidate.local) return TIER_CLOUD;
  return embeds || candidate.routed.loaded !== false ? TIER_LOADED : TIER_LOCAL;
}

/**
 * @param reserved whether the provider's last slot must be left to other work that waits for its engine
 */
export function chunkTable(
  candidates: readonly ProviderState[],
  lane: Lane,
  job: StripedJob,
  piece: Piece,
  reserved: (provider: ProviderState) => boolean,
  nowMs: number,
): ChunkTable {
  const others = lane.eligible.some(({ id }) => !piece.failedBy.includes(id));
  return {
    left: job.left,
    idleS: (nowMs - job.movedAtMs) / 1000,
    totalRate: lane.totalRate,
    fastestRate: lane.fastestRate,
    providers: lane.eligible.length,
    rate: candidates.map(({ rate }) => rate.perSecond),
    maxBatch: candidates.map(({ routed }) => Math.max(1, routed.maxBatch)),
    inFlight: candidates.map(({ inputsInFlight }) => inputsInFlight),
    // A single slot is the engine's: what other jobs have there counts too.
    chunksInFlight: candidates.map((candidate) =>
      candidate.pool.slots === 1 ? candidate.running : job.chunksAt(candidate.id),
    ),
    barred: candidates.map((candidate) => (others && piece.failedBy.includes(candidate.id)) || reserved(candidate)),
    piece: piece.count,
  };
}

/** Writes the currents that follow from a choice. */
export function settle(candidates: readonly ProviderState[], table: CandidateTable, choice: Choice): void {
  if (choice.rows.length === 0) return;
  const weights = choice.rows.map((row) => table.weight[row] ?? 0);
  const current = choice.rows.map((row) => table.current[row] ?? 0);
  settleSmooth(weights, current, choice.rows.indexOf(choice.picked));
  choice.rows.forEach((row, at) => {
    const candidate = candidates[row];
    if (candidate !== undefined) candidate.current = current[at] ?? 0;
  });
}
