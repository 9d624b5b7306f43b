import type { Policy } from './policy.ts';

/** The five kinds of work, in the order in which every list shows them. */
export const ROLE_IDS = ['embedding', 'code-embedding', 'reranker', 'code-assistant', 'rlm'] as const;
export type RoleId = (typeof ROLE_IDS)[number];

/** What is asked of an engine; each role needs exactly one. */
export type Task = 'embed' | 'rerank' | 'chat';

export interface RoleDefinition {
  readonly id: RoleId;
  readonly task: Task;
  readonly defaultPolicy: Policy;
  /** Width proposed when a space is founded; null for roles without vectors. */
  readonly proposedWidth: number | null;
  readonly defaultCloudModel: string | null;
}

export const ROLES: Readonly<Record<RoleId, RoleDefinition>> = {
  embedding: {
    id: 'embedding',
    task: 'embed',
    defaultPolicy: 'aggregate',
    proposedWidth: 1024,
    defaultCloudModel: null,
  },
  'code-embedding': {
    id: 'code-embedding',
    task: 'embed',
    defaultPolicy: 'aggregate',
    proposedWidth: 2560,
    defaultCloudModel: null,
  },
  reranker: {
    id: 'reranker',
    task: 'rerank',
    defaultPolicy: 'aggregate',
    proposedWidth: null,
    defaultCloudModel: 'qwen/qwen3-reranker-8b',
  },
  'code-assistant': {
    id: 'code-assistant',
    task: 'chat',
    defaultPolicy: 'aggregate',
    proposedWidth: null,
    defaultCloudModel: 'poolside/laguna-s-2.1',
  },
  rlm: {
    id: 'rlm',
    task: 'chat',
    defaultPolicy: 'local',
    proposedWidth: null,
    defaultCloudModel: 'deepseek/deepseek-v4-flash',
  },
};

export function isRoleId(text: string): text is RoleId {
  return (ROLE_IDS as readonly string[]).includes(text);
}

/** What an operator may set on a role; `PATCH /admin/roles/:id` changes it field by field. */
export interface RoleSettings {
  readonly enabled: boolean;
  readonly policy: Policy;
  /** Width of the role's space; null until one is founded or chosen, and for roles without vectors. */
  readonly dimension: number | null;
  /** Gate threshold on the minimum cosine; never below 0.99. Null for roles without vectors. */
  readonly threshold: number | null;
  /** `backup` spills to the cloud when the wait estimate passes this. */
  readonly maxLocalWaitMs: number;
  /** Providers known to be slower are not eligible; null: no floor. */
  readonly minTokensPerSecond: number | null;
  /** 'auto', or model names and aliases in the operator's order. */
  readonly localModels: 'auto' | readonly string[];
  readonly cloud: CloudModel;
  readonly spendCaps: SpendCaps;
  /** Vectors are L2-normalised at the endpoint (default); false passes an engine's own scale, which the gate then checks. */
  readonly normalise: boolean;
  /** Widths below the space's own that may be asked for with `dimensions` (Matryoshka models). */
  readonly cutDimensions: readonly number[];
}

export interface CloudModel {
  /** OpenRouter id `author/slug`; null: the role has no cloud provider. */
  readonly model: string | null;
  /** Pinned upstream slugs or endpoint tags. Embedding roles have no cloud provider without one. */
  readonly upstreams: readonly string[];
  readonly quantizations: readonly string[];
}

export interface SpendCaps {
  readonly dayUsd: number | null;
  readonly monthUsd: number | null;
}

export function defaultRoleSettings(id: RoleId): RoleSettings {
  const role = ROLES[id];
  return {
    enabled: true,
    policy: role.defaultPolicy,
    dimension: null,
    threshold: role.task === 'embed' ? 0.99 : null,
    maxLocalWaitMs: 3000,
    minTokensPerSecond: null,
    localModels: 'auto',
    cloud: { model: role.defaultCloudModel, upstreams: [], quantizations: [] },
    spendCaps: { dayUsd: null, monthUsd: null },
    normalise: true,
    cutDimensions: [],
  };
}
