import type { Choice } from './choice.ts';
import type { CandidateTable, ChunkTable, CopyRecord, Explanation } from './explanation.ts';
import type { ProviderState } from './fleet.ts';
import type { ItemState } from './item.ts';
import type { Lane } from './lane.ts';

/** A choice that has been made, with everything that it was made from. */
export interface Match {
  readonly candidates: readonly ProviderState[];
  readonly table: CandidateTable;
  readonly chunk: ChunkTable | null;
  readonly affinity: Explanation['affinity'];
  readonly choice: Choice;
  readonly provider: ProviderState;
}

/** The record from which `replay` makes the choice again. */
export function explain(
  item: ItemState,
  lane: Lane,
  match: Match,
  copy: CopyRecord | null,
  nowMs: number,
): Explanation {
  const { context, space, neededTokens } = item.item;
  return {
    version: 1,
    atMs: nowMs,
    request: context.id,
    role: context.role,
    project: context.project,
    class: context.class,
    policy: context.policy,
    model: context.model,
    space: space?.id ?? null,
    neededTokens,
    eligible: lane.eligibleIds,
    refused: lane.refused,
    wait: item.wait,
    spill: item.spill,
    candidates: match.table,
    affinity: match.affinity,
    chunk: match.chunk,
    copy,
    picked: match.provider.id,
    before: item.setbacks,
  };
}
