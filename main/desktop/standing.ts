import type { CloudView, HealthView, NodeView, RoleView, TopicUpdate } from '../../preload/contract.ts';
import type { DesktopPlane } from './ports.ts';

/** What the tray and the notifications need to know, kept up from the same topics that a console hears. */
export interface Standing {
  readonly nodes: readonly NodeView[];
  readonly roles: readonly RoleView[];
  readonly health: readonly HealthView[];
  readonly cloud: CloudView | null;
}

export const NOTHING: Standing = { nodes: [], roles: [], health: [], cloud: null };
const TOPICS = ['nodes', 'roles', 'health', 'cloud'] as const;

/** Calls back with the standing whenever it changes. @returns its own end. */
export function watchStanding(plane: DesktopPlane, onChange: (standing: Standing) => void): () => void {
  let standing = NOTHING;
  return plane.topics.subscribe(TOPICS, (update) => {
    standing = merge(standing, update);
    onChange(standing);
  });
}

export function merge(standing: Standing, update: TopicUpdate): Standing {
  if (update.topic === 'cloud') return { ...standing, cloud: update.value };
  if (update.topic === 'nodes') return { ...standing, nodes: rows(standing.nodes, update) };
  if (update.topic === 'roles') return { ...standing, roles: rows(standing.roles, update) };
  if (update.topic === 'health') return { ...standing, health: rows(standing.health, update) };
  return standing;
}

type RowUpdate<Row> =
  | { readonly type: 'snapshot'; readonly rows: readonly Row[] }
  | { readonly type: 'delta'; readonly changed: readonly Row[]; readonly removed: readonly string[] };

function rows<Row extends { readonly id: string }>(before: readonly Row[], update: RowUpdate<Row>): readonly Row[] {
  if (update.type === 'snapshot') return update.rows;
  const fresh = new Map(update.changed.map((row) => [row.id, row]));
  const kept = before.filter((row) => !update.removed.includes(row.id)).map((row) => fresh.get(row.id) ?? row);
  const known = new Set(before.map((row) => row.id));
  return [...kept, ...update.changed.filter((row) => !known.has(row.id))];
}
