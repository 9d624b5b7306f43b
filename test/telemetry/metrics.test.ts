import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { ProjectId, ProviderId, RequestId } from '../../main/domain/ids.ts';
import type { RequestSummary } from '../../main/domain/observation.ts';
import { registerMetrics } from '../../main/house-metrics.ts';
import type { House } from '../../main/operator/house.ts';
import { Metrics } from '../../main/telemetry/metrics.ts';

const summary = (parts: Partial<RequestSummary> = {}): RequestSummary => ({
  id: 'r1' as RequestId,
  project: 'p' as ProjectId,
  keyId: null,
  role: 'rlm',
  class: 'normal',
  policy: 'aggregate',
  policyFrom: 'role',
  requestedModel: null,
  overflowed: false,
  model: 'm',
  route: 'local',
  provider: 'x' as ProviderId,
  node: null,
  arrivedAtMs: 0,
  queueMs: 40,
  firstByteMs: 300,
  totalMs: 2000,
  usage: { promptTokens: 10, completionTokens: 5, exact: true, costUsd: 0.5 },
  attempts: 3,
  outcome: 'success',
  code: null,
  acrossGap: false,
  ...parts,
});

describe('metrics', () => {
  it('stand in docs/metrics.md, name for name', () => {
    const metrics = new Metrics();
    registerMetrics(metrics, {} as House);
    const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
    const documented = [...page.matchAll(/^\| `(switchyard_[a-z_]+)`/gm)].map(([, name]) => name);
    expect([...documented].sort()).toEqual([...metrics.names()].sort());
  });

  it('count requests, tokens, cost and retries', async () => {
    const metrics = new Metrics();
    metrics.finished(summary());
    const text = await metrics.exposition();
    expect(text).toContain('switchyard_requests_total{role="rlm",route="local",outcome="success",code=""} 1');
    expect(text).toContain('switchyard_tokens_total{role="rlm",route="local",kind="prompt"} 10');
    expect(text).toContain('switchyard_cost_usd_total{role="rlm"} 0.5');
    expect(text).toContain('switchyard_retries_total{role="rlm"} 2');
    // 300 ms falls into the bucket up to 0.5 s and not into the one up to 0.25 s.
    expect(text).toContain('switchyard_first_byte_seconds_bucket{le="0.25",role="rlm",route="local"} 0');
    expect(text).toContain('switchyard_first_byte_seconds_bucket{le="0.5",role="rlm",route="local"} 1');
  });

  it('leave latencies across a sleep out, but count the request', async () => {
    const metrics = new Metrics();
    metrics.finished(summary({ acrossGap: true }));
    const text = await metrics.exposition();
    expect(text).toContain('switchyard_requests_total{role="rlm",route="local",outcome="success",code=""} 1');
    expect(text).not.toContain('switchyard_request_duration_seconds_count{role="rlm"');
  });

  it('leave out what is unknown instead of saying 0', async () => {
    const metrics = new Metrics();
    metrics.gauge('x_celsius', 'x', ['gpu'], () => [
      { labels: { gpu: '0' }, value: null },
      { labels: { gpu: '1' }, value: 0 },
    ]);
    const text = await metrics.exposition();
    expect(text).toContain('x_celsius{gpu="1"} 0');
    expect(text).not.toContain('gpu="0"');
  });
});
