import type { ProviderId } from '../domain/ids.ts';
import type { CandidateTable, ChunkTable } from './explanation.ts';
import { chunkSize } from './striping.ts';
import { pickSmooth } from './swrr.ts';

export const TIER_LOADED = 0;
export const TIER_LOCAL = 1;
export const TIER_CLOUD = 2;

export interface Choice {
  /** Row of the candidate table; -1: nobody (every one declines). */
  readonly picked: number;
  /** Rows that took part in the round robin, null: all; empty when affinity decided, so that no `current` moves. */
  readonly rows: readonly number[] | null;
  /** Inputs to hand out; 0 for chat and rerank. */
  readonly size: number;
}

const NO_ROWS: readonly number[] = [];
const NOBODY: Choice = { picked: -1, rows: NO_ROWS, size: 0 };

/**
 * The one choice among free providers: affinity first, else the best tier, in it smooth weighted round robin. With a chunk
 * table only those that want a chunk take part. Pure: `replay` calls it again on the record.
 */
export function choose(table: CandidateTable, affinity: ProviderId | null, chunk: ChunkTable | null): Choice {
  if (chunk !== null) return chooseForChunk(table, chunk);
  if (affinity !== null) {
    const preferred = table.provider.indexOf(affinity);
    if (preferred >= 0) return { picked: preferred, rows: NO_ROWS, size: 0 };
  }
  const { tier } = table;
  const best = bestOf(tier);
  if (tier.every((other) => other === best)) return { picked: roundRobin(table, null), rows: null, size: 0 };
  const rows: number[] = [];
  for (let row = 0; row < tier.length; row += 1) if (tier[row] === best) rows.push(row);
  return { picked: roundRobin(table, rows), rows, size: 0 };
}

function bestOf(tier: readonly number[]): number {
  let best = TIER_CLOUD;
  for (const one of tier) if (one < best) best = one;
  return best;
}

function chooseForChunk(table: CandidateTable, chunk: ChunkTable): Choice {
  const rows: number[] = [];
  const sizes: number[] = [];
  for (let row = 0; row < table.provider.length; row += 1) {
    const size = chunk.barred[row] === true ? 0 : chunkFor(chunk, row);
    if (size === 0) continue;
    rows.push(row);
    sizes.push(size);
  }
  if (rows.length === 0) return NOBODY;
  const picked = roundRobin(table, rows);
  return { picked, rows, size: sizes[rows.indexOf(picked)] ?? 0 };
}

function chunkFor(chunk: ChunkTable, row: number): number {
  const size = chunkSize({
    left: chunk.left,
    providers: chunk.providers,
    totalRate: chunk.totalRate,
    fastestRate: chunk.fastestRate,
    rate: chunk.rate[row] ?? null,
    maxBatch: chunk.maxBatch[row] ?? 1,
    inFlight: chunk.inFlight[row] ?? 0,
    chunksInFlight: chunk.chunksInFlight[row] ?? 0,
    idleS: chunk.idleS,
  });
  return Math.min(size, chunk.piece);
}

function roundRobin(table: CandidateTable, rows: readonly number[] | null): number {
  if (rows === null) return pickSmooth(table.weight, table.current);
  if (rows.length === 1) return rows[0] ?? -1;
  const weights = rows.map((row) => table.weight[row] ?? 0);
  const current = rows.map((row) => table.current[row] ?? 0);
  return rows[pickSmooth(weights, current)] ?? -1;
}
