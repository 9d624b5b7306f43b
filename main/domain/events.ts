import type { NodeId, ProviderId, RequestId } from './ids.ts';
import type { RoleId } from './roles.ts';

export type Severity = 'info' | 'warn' | 'error';

/** Something that happened, told to people. Codes are stable; sentences are ours and hold no prompt, key or foreign text. */
export interface EventRecord {
  readonly id: string;
  readonly atMs: number;
  readonly severity: Severity;
  readonly source: 'fleet' | 'gate' | 'router' | 'cloud' | 'gateway' | 'store' | 'app';
  readonly code: string;
  readonly sentence: string;
  /** True when somebody must act: it is shown at once and counted as attention. */
  readonly needsPerson: boolean;
  readonly request?: RequestId;
  readonly node?: NodeId;
  readonly provider?: ProviderId;
  readonly role?: RoleId;
}

export type NewEvent = Omit<EventRecord, 'id' | 'atMs' | 'needsPerson'> & { readonly needsPerson?: boolean };

/** Where every room tells what happened. Never throws, never waits. */
export interface EventSink {
  record(event: NewEvent): void;
}
