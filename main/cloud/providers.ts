import { CLOUD_ENGINE, splitCloudModel } from '../../agent/wire/cloud.ts';
import type { ModelReport } from '../../agent/wire/control.ts';
import { type EngineId, type NodeId, type ProviderId, providerId } from '../domain/ids.ts';
import type { NodeState } from '../domain/provider.ts';
import type { RoleId } from '../domain/roles.ts';
import type { CatalogueEntry } from '../fleet/catalogue.ts';
import type { CloudRoute, MissingRoute } from './catalogue.ts';

const SLOTS = 256;
const MAX_BATCH = 96;

export interface CloudNode {
  readonly id: NodeId;
  readonly name: string;
  readonly state: NodeState;
  readonly pulls: boolean;
  /** The node's report on OpenRouter; null: none. */
  readonly models: readonly ModelReport[] | null;
}

/**
 * The cloud providers of the fleet as catalogue entries: one per agent, role, model and pinned upstream. Those that an agent does
 * not serve now (no key, not offered) are there too, so that a refusal has its reason; nothing is ever sent to them.
 */
export function cloudEntries(
  routes: readonly CloudRoute[],
  missing: readonly MissingRoute[],
  nodes: readonly CloudNode[],
  baseWeight: (provider: ProviderId) => number,
): readonly CatalogueEntry[] {
  const make = (route: RouteFacts): readonly CatalogueEntry[] => {
    const node = nodes.find(({ id }) => id === route.node);
    return node === undefined ? [] : [entryOf(route, node, baseWeight)];
  };
  const served = routes.map(({ node, role, name, offer: { model, upstream, pin, contextTokens } }) => {
    const aliases = upstream === null ? [] : [model];
    return { node, role, name, aliases, upstream, pin, contextTokens, present: true, reachable: true };
  });
  const others = missing.map(({ notOffered, ...route }) => {
    const { model, upstream } = splitCloudModel(route.name);
    const aliases = upstream === null ? [] : [model];
    return { ...route, aliases, contextTokens: null, present: !notOffered, reachable: false };
  });
  return [...served, ...others].flatMap(make);
}

interface RouteFacts {
  readonly node: NodeId;
  readonly role: RoleId;
  readonly name: string;
  readonly aliases: readonly string[];
  readonly upstream: string | null;
  readonly pin: string | null;
  readonly contextTokens: number | null;
  readonly present: boolean;
  readonly reachable: boolean;
}

function entryOf(
  { role, name, aliases, upstream, pin, contextTokens, present, reachable }: RouteFacts,
  node: CloudNode,
  baseWeight: (provider: ProviderId) => number,
): CatalogueEntry {
  const id = providerId(role, node.id, CLOUD_ENGINE as EngineId, name);
  const report = node.models?.find(({ model }) => model === name) ?? null;
  return {
    provider: {
      id,
      role,
      kind: 'cloud',
      node: node.id,
      nodeName: node.name,
      nodeState: node.state,
      nodePulls: node.pulls,
      engine: CLOUD_ENGINE as EngineId,
      engineKind: 'openrouter',
      slotPool: `${node.id}/${CLOUD_ENGINE}`,
      slots: SLOTS,
      foreign: 0,
      model: name,
      aliases,
      present,
      loaded: true,
      reachable,
      contextTokens,
      maxBatch: MAX_BATCH,
      baseWeight: baseWeight(id),
      tokensPerSecond: report?.tokensPerSecond ?? null,
      ttftMs: report?.ttftMs ?? null,
      fingerprint: { engine: CLOUD_ENGINE, version: null, modelDigest: null, upstream, pin, processMark: null },
    },
    width: null,
    maxInputTokens: contextTokens,
    tokenCounting: 'none',
    trial: false,
  };
}
