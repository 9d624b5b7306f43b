import type { EngineId, NodeId, ProviderId } from './ids.ts';
import type { ProviderKind } from './policy.ts';
import type { RoleId } from './roles.ts';
import type { Fingerprint } from './verdict.ts';

export type NodeState = 'ready' | 'degraded' | 'draining' | 'unreachable' | 'unknown' | 'maintenance' | 'error';

/** What the control plane knows of one provider: facts from heartbeats, settings and the gate, no opinions. */
export interface Provider {
  readonly id: ProviderId;
  readonly role: RoleId;
  readonly kind: ProviderKind;
  readonly node: NodeId;
  readonly nodeName: string;
  readonly nodeState: NodeState;
  /** False after 3 s without a pong: it pulls no more, but what runs may end. */
  readonly nodePulls: boolean;
  readonly engine: EngineId;
  readonly engineKind: string;
  /** Providers of one engine share its slots: `slots` and `foreign` are the engine's, equal on each of them. */
  readonly slotPool: string;
  readonly slots: number;
  /** Work of other control planes or direct users on the engine at the last heartbeat. */
  readonly foreign: number;
  readonly model: string;
  readonly aliases: readonly string[];
  readonly present: boolean;
  /** In the engine's memory now (preferred inside a tier); null when the engine cannot say. */
  readonly loaded: boolean | null;
  readonly reachable: boolean;
  /** Tokens for prompt and answer together; null when unknown, which counts as large enough. */
  readonly contextTokens: number | null;
  /** Inputs of one embedding call. */
  readonly maxBatch: number;
  readonly baseWeight: number;
  readonly tokensPerSecond: number | null;
  readonly ttftMs: number | null;
  readonly fingerprint: Fingerprint;
}
