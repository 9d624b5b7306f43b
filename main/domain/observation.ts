import type { PriorityClass } from './classes.ts';
import type { ErrorCode } from './errors.ts';
import type { NodeId, ProjectId, ProviderId, RequestId } from './ids.ts';
import type { Policy, ProviderKind } from './policy.ts';
import type { RoleId } from './roles.ts';
import type { WorkUsage } from './work.ts';

/** One finished request in figures: what metrics, usage, the request list and time series are made of. No text of it. */
export interface RequestSummary {
  readonly id: RequestId;
  readonly project: ProjectId;
  /** API key that asked; null: the open loopback project, or a request of the operator's own. */
  readonly keyId: string | null;
  readonly role: RoleId;
  readonly class: PriorityClass;
  readonly policy: Policy;
  readonly policyFrom: 'header' | 'field' | 'suffix' | 'role';
  /** What was asked for, when it was a concrete model. */
  readonly requestedModel: string | null;
  /** Went to the cloud because the network could not, or would have been too slow. */
  readonly overflowed: boolean;
  /** The model that answered; null when none did. */
  readonly model: string | null;
  readonly route: ProviderKind | null;
  readonly provider: ProviderId | null;
  readonly node: NodeId | null;
  /** Epoch ms. */
  readonly arrivedAtMs: number;
  /** Arrival to first dispatch; null when it was never dispatched. */
  readonly queueMs: number | null;
  /** Arrival to first byte of the answer; null when there was none. */
  readonly firstByteMs: number | null;
  readonly totalMs: number;
  readonly usage: WorkUsage | null;
  readonly attempts: number;
  readonly outcome: 'success' | 'failed' | 'cancelled';
  readonly code: ErrorCode | null;
  /** The machine slept or its clock jumped meanwhile: left out of latency statistics. */
  readonly acrossGap: boolean;
}

/** Told once per request, after its last byte. Never throws, never waits. */
export interface RequestObserver {
  finished(summary: RequestSummary): void;
}
