import type { NodeId, ProviderId, RequestId } from './ids.ts';
import type { RoleId } from './roles.ts';
import type { Said } from './said.ts';

export type Severity = 'info' | 'warn' | 'error';

/** Something that happened, told to people. Codes are stable; sentences are ours and hold no prompt, key or foreign text. */
export interface EventRecord {
  readonly id: string;
  readonly atMs: number;
  readonly severity: Severity;
  readonly source: 'fleet' | 'gate' | 'router' | 'cloud' | 'gateway' | 'store' | 'app';
  readonly code: string;
  readonly sentence: string;
  /** The sentence by code and figures, for whoever reads another language; absent in events stored before there was one. */
  readonly says?: Omit<Said, 'sentence'>;
  /** True when somebody must act: it is shown at once and counted as attention. */
  readonly needsPerson: boolean;
  readonly request?: RequestId;
  readonly node?: NodeId;
  readonly provider?: ProviderId;
  readonly role?: RoleId;
}

/** `code` names the kind of event where its sentence, which may come from elsewhere, does not. */
export interface NewEvent extends Omit<EventRecord, 'id' | 'atMs' | 'needsPerson' | 'code' | 'sentence' | 'says'> {
  readonly code?: string;
  readonly says: Said;
  readonly needsPerson?: boolean;
}

/** Where every room tells what happened. Never throws, never waits. */
export interface EventSink {
  record(event: NewEvent): void;
}
