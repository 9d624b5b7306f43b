import type { NodeId, ProjectId, ProviderId, RequestId } from '../../main/domain/ids.ts';
import type { RequestSummary } from '../../main/domain/observation.ts';
import type { ApiKeyRecord, NodeRecord, UsageEntry } from '../../main/store/ports.ts';

/** 2026-07-15 12:00:00 UTC. */
export const NOON = Date.UTC(2026, 6, 15, 12);
export const DAY_MS = 86_400_000;

export const key32 = (fill: number): Uint8Array => new Uint8Array(32).fill(fill);

export function nodeRecord(id: string, change: Partial<NodeRecord> = {}): NodeRecord {
  return {
    id: id as NodeId,
    name: `machine ${id}`,
    address: '192.168.1.20:7412',
    manual: true,
    embedded: false,
    fingerprint: 'ab'.repeat(32),
    nextFingerprint: null,
    wish: 'serve',
    addedAtMs: NOON,
    ...change,
  };
}

export function apiKey(id: string, project: string): Omit<ApiKeyRecord, 'lastUsedAtMs' | 'revokedAtMs'> {
  return {
    id,
    project: project as ProjectId,
    name: `key ${id}`,
    hint: 'wxyz',
    allowWiden: false,
    anyProject: false,
    classCap: 'normal',
    roles: null,
    limits: { requestsPerMinute: 60, tokensPerMinute: null, usdPerDay: 2.5 },
    createdAtMs: NOON,
  };
}

export const hash = (digit: string): string => digit.repeat(64);

export function summary(id: string, change: Partial<RequestSummary> = {}): RequestSummary {
  return {
    id: id as RequestId,
    project: 'house' as ProjectId,
    keyId: null,
    role: 'code-assistant',
    class: 'normal',
    policy: 'aggregate',
    policyFrom: 'role',
    requestedModel: null,
    overflowed: false,
    model: 'qwen3:8b',
    route: 'local',
    provider: 'p1' as ProviderId,
    node: 'n1' as NodeId,
    arrivedAtMs: NOON,
    queueMs: 1,
    firstByteMs: 20,
    totalMs: 100,
    usage: { promptTokens: 10, completionTokens: 5, exact: true, costUsd: null },
    attempts: 1,
    outcome: 'success',
    code: null,
    acrossGap: false,
    ...change,
  };
}

export function usageEntry(change: Partial<UsageEntry> = {}): UsageEntry {
  return {
    key: 'k1',
    project: 'house' as ProjectId,
    role: 'code-assistant',
    model: 'qwen3:8b',
    route: 'local',
    atMs: NOON,
    success: true,
    promptTokens: 10,
    completionTokens: 5,
    exact: true,
    ...change,
  };
}
