import type { ProviderId } from '../domain/ids.ts';
import { choose } from './choice.ts';
import type { CandidateTable, Explanation } from './explanation.ts';
import { copyPays } from './striping.ts';
import { serviceRate, waitEstimate } from './wait.ts';
import { loadFactor, weightOf } from './weights.ts';

/** What a record gives when its inputs go through the pure functions again. */
export interface Replayed {
  /** Null: the recorded inputs do not lead to any provider. */
  readonly provider: ProviderId | null;
  /** Inputs handed out; 0 for chat and rerank. */
  readonly inputs: number;
  readonly weights: readonly number[];
  /** Wait estimate from the recorded B, C, L and service times; null: unknown or not recorded. */
  readonly waitMs: number | null;
}

/** Makes the recorded choice again from its recorded inputs, weights and wait estimate included. Pure. */
export function replay(record: Explanation): Replayed {
  const weights = record.candidates.provider.map((_, row) => weightAt(record.candidates, row));
  const table: CandidateTable = { ...record.candidates, weight: weights };
  const waitMs = waitOf(record);
  if (record.copy !== null) {
    const { sentAtMs, expectedAtMs, inputs, rate } = record.copy;
    const pays = copyPays({ nowMs: record.atMs, sentAtMs, expectedAtMs, inputs, rate });
    return { provider: pays ? (table.provider[0] ?? null) : null, inputs, weights, waitMs };
  }
  const { picked, size } = choose(table, record.affinity, record.chunk);
  return { provider: table.provider[picked] ?? null, inputs: size, weights, waitMs };
}

function weightAt(table: CandidateTable, row: number): number {
  return weightOf(table.base[row] ?? 1, loadFactor(table.busy[row] ?? 0, table.slots[row] ?? 1), table.speed[row] ?? 1);
}

function waitOf({ wait }: Explanation): number | null {
  if (wait === null || wait.serviceMs.length === 0) return null;
  const serving = wait.serviceMs.map(({ slots, ms }) => ({ slots, busy: 0, serviceMs: ms }));
  return waitEstimate(wait.busy, wait.slots, wait.ahead, serviceRate(serving));
}
