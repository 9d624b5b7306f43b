import { TOPIC_KINDS } from '../../preload/contract/names.ts';
import type { RowTopicName, TopicName, TopicRow, TopicUpdate, ValueTopicName } from '../../preload/contract.ts';

/** What the console knows of each topic; a topic that has not answered yet is absent. */
export type TopicState = { readonly [Name in RowTopicName]?: readonly TopicRow<Name>[] } & {
  readonly [Name in ValueTopicName]?: TopicRow<Name>;
};

type Row = { readonly id: string };

/**
 * Rows keep the place they have, so that nothing moves under the pointer; new rows go to the end, and logs forget their oldest
 * rows. A delta for a topic without a snapshot is left out: the snapshot that follows holds it.
 */
export function applyUpdate(state: TopicState, update: TopicUpdate): TopicState {
  if (update.type === 'value') return { ...state, [update.topic]: update.value };
  if (update.type === 'snapshot') return { ...state, [update.topic]: bounded(update.topic, update.rows) };
  const before = state[update.topic] as readonly Row[] | undefined;
  if (!before) return state;
  return { ...state, [update.topic]: bounded(update.topic, mergeRows(before, update.changed, update.removed)) };
}

function mergeRows(before: readonly Row[], changed: readonly Row[], removed: readonly string[]): Row[] {
  const fresh = new Map(changed.map((row) => [row.id, row]));
  const gone = new Set(removed);
  const merged: Row[] = [];
  for (const row of before) {
    if (gone.has(row.id)) continue;
    merged.push(fresh.get(row.id) ?? row);
    fresh.delete(row.id);
  }
  merged.push(...fresh.values());
  return merged;
}

function bounded(topic: TopicName, rows: readonly Row[]): readonly Row[] {
  const kind = TOPIC_KINDS[topic];
  return kind.kind === 'log' && rows.length > kind.keep ? rows.slice(-kind.keep) : rows;
}
