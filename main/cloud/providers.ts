import { CLOUD_ENGINE } from '../../agent/wire/cloud.ts';
import type { ModelReport } from '../../agent/wire/control.ts';
import { type EngineId, type NodeId, type ProviderId, providerId } from '../domain/ids.ts';
import type { NodeState } from '../domain/provider.ts';
import type { CatalogueEntry } from '../fleet/catalogue.ts';
import type { CloudRoute } from './catalogue.ts';

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

/** The cloud providers of the fleet as catalogue entries: one per agent that holds the key, role, model and pinned upstream. */
export function cloudEntries(
  routes: readonly CloudRoute[],
  nodes: readonly CloudNode[],
  baseWeight: (provider: ProviderId) => number,
): readonly CatalogueEntry[] {
  return routes.flatMap(({ node: nodeId, role, name, offer }) => {
    const node = nodes.find(({ id }) => id === nodeId);
    if (node === undefined) return [];
    const id = providerId(role, nodeId, CLOUD_ENGINE as EngineId, name);
    const report = node.models?.find(({ model }) => model === name) ?? null;
    return [
      {
        provider: {
          id,
          role,
          kind: 'cloud' as const,
          node: nodeId,
          nodeName: node.name,
          nodeState: node.state,
          nodePulls: node.pulls,
          engine: CLOUD_ENGINE as EngineId,
          engineKind: 'openrouter',
          slotPool: `${nodeId}/${CLOUD_ENGINE}`,
          slots: SLOTS,
          foreign: 0,
          model: name,
          aliases: offer.upstream === null ? [] : [offer.model],
          present: true,
          loaded: true,
          reachable: true,
          contextTokens: offer.contextTokens,
          maxBatch: MAX_BATCH,
          baseWeight: baseWeight(id),
          tokensPerSecond: report?.tokensPerSecond ?? null,
          ttftMs: report?.ttftMs ?? null,
          fingerprint: {
            engine: CLOUD_ENGINE,
            version: null,
            modelDigest: null,
            upstream: offer.upstream,
            pin: offer.pin,
            processMark: null,
          },
        },
        width: null,
        maxInputTokens: offer.contextTokens,
        tokenCounting: 'none' as const,
        trial: false,
      },
    ];
  });
}
