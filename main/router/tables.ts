import { type Choice, TIER_CLOUD, TIER_LOADED, TIER_LOCAL } from './choice.ts';
import type { CandidateTable, ChunkTable } from './explanation.ts';
import type { ProviderState } from './fleet.ts';
import type { Piece, StripedJob } from './job.ts';
import type { Lane } from './lane.ts';
import type { RoleState } from './role.ts';
import { settleSmooth } from './swrr.ts';
import { loadFactor, weightOf } from './weights.ts';

/** Free providers of one lane and kind, in the order of the fleet, with what does not change from choice to choice. */
export interface Candidates {
  readonly states: readonly ProviderState[];
  readonly fixed: Pick<CandidateTable, 'provider' | 'tier' | 'base' | 'slots' | 'speed'>;
}

/**
 * Who is free changes little from one choice to the next in a large fleet: the columns that hang on that alone are made once
 * and shared by the records of all choices among the same providers.
 */
export class CandidateCache {
  private known: Candidates | null = null;
  private knownVersion = -1;
  private readonly found: ProviderState[] = [];

  /** Providers of the lane and kind that have room now. */
  free(role: RoleState, lane: Lane, local: boolean): Candidates {
    this.find(role, lane, local);
    const { known, found } = this;
    if (known !== null && this.knownVersion === role.factsVersion && sameStates(known.states, found)) return known;
    const fresh = candidatesOf([...found], role.embeds);
    this.known = fresh;
    this.knownVersion = role.factsVersion;
    return fresh;
  }

  private find(role: RoleState, lane: Lane, local: boolean): void {
    const { free, providers } = role;
    const { found } = this;
    found.length = 0;
    if (free.length * 8 < providers.length) {
      for (const provider of free) {
        if (lane.member[provider.index] === 1 && provider.local === local) found.push(provider);
      }
      found.sort((a, b) => a.index - b.index);
      return;
    }
    // Where most are free, walking the fleet in its order is cheaper than sorting the free ones.
    for (const provider of providers) {
      if (provider.freeAt >= 0 && lane.member[provider.index] === 1 && provider.local === local) found.push(provider);
    }
  }
}

function sameStates(a: readonly ProviderState[], b: readonly ProviderState[]): boolean {
  if (a.length !== b.length) return false;
  for (let row = 0; row < a.length; row += 1) if (a[row] !== b[row]) return false;
  return true;
}

export function candidatesOf(states: readonly ProviderState[], embeds: boolean): Candidates {
  return {
    states,
    fixed: {
      provider: states.map(({ id }) => id),
      tier: states.map((state) => tierOf(state, embeds)),
      base: states.map(({ routed }) => routed.baseWeight),
      slots: states.map(({ pool }) => pool.slots),
      speed: states.map(({ speed }) => speed),
    },
  };
}

/** What the choice reads of each candidate, one row each. Weights are of this very moment. */
export function candidateTable({ states, fixed }: Candidates): CandidateTable {
  const count = states.length;
  const busy = new Array<number>(count);
  const weight = new Array<number>(count);
  const current = new Array<number>(count);
  for (let row = 0; row < count; row += 1) {
    const state = states[row];
    if (state === undefined) continue;
    const { pool } = state;
    busy[row] = pool.busy;
    weight[row] = weightOf(state.routed.baseWeight, loadFactor(pool.busy, pool.slots), state.speed);
    current[row] = state.current;
  }
  const { provider, tier, base, slots, speed } = fixed;
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
  const { rows, picked } = choice;
  if (rows === null) {
    settleSmooth(table.weight, picked, (row, change) => grow(candidates[row], change));
    return;
  }
  const weights = rows.map((row) => table.weight[row] ?? 0);
  settleSmooth(weights, rows.indexOf(picked), (at, change) => grow(candidates[rows[at] ?? -1], change));
}

function grow(candidate: ProviderState | undefined, change: number): void {
  if (candidate !== undefined) candidate.current += change;
}
