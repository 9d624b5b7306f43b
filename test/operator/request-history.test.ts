import { describe, expect, it } from 'vitest';
import type { ProjectId, RequestId } from '../../main/domain/ids.ts';
import type { RequestSummary } from '../../main/domain/observation.ts';
import type { House } from '../../main/operator/house.ts';
import { listRequests } from '../../main/operator/request-history.ts';
import type { TraceFilter } from '../../main/store/ports.ts';

/** Newest first: request 0 came last. Every hundredth failed, every thousandth was asked of a model of its own. */
const KEPT: readonly RequestSummary[] = Array.from({ length: 8000 }, (_, at) => ({
  id: `req_${String(at).padStart(4, '0')}` as RequestId,
  project: (at % 2 === 0 ? 'p-nightly' : 'p-default') as ProjectId,
  keyId: null,
  role: 'code-assistant' as const,
  class: 'normal' as const,
  policy: 'backup' as const,
  policyFrom: 'role' as const,
  requestedModel: at % 1000 === 999 ? 'rare-model:7b' : null,
  overflowed: false,
  model: null,
  route: null,
  provider: null,
  node: null,
  arrivedAtMs: 1_000_000 - at,
  queueMs: null,
  firstByteMs: null,
  totalMs: 1,
  usage: null,
  attempts: 0,
  outcome: at % 100 === 50 ? ('failed' as const) : ('success' as const),
  code: null,
  acrossGap: false,
}));

function houseOf() {
  const asked: TraceFilter[] = [];
  const list = async (filter: TraceFilter, limit: number, after?: string) => {
    asked.push(filter);
    const from = after === undefined ? 0 : Number(after.slice(-4)) + 1;
    const matching = KEPT.slice(from).filter(
      (one) =>
        (filter.outcome === undefined || one.outcome === filter.outcome) &&
        (filter.project === undefined || one.project === filter.project),
    );
    const items = matching.slice(0, limit);
    const last = items.at(-1);
    return { items, next: matching.length > limit && last ? `${last.arrivedAtMs}.${last.id}` : null };
  };
  const house = {
    requests: { get: (id: string) => ({ summary: KEPT[Number(id.slice(-4))] }), list: () => [] },
    store: {
      traces: { list },
      access: {
        projects: () => [
          { id: 'p-nightly', name: 'Nightly index' },
          { id: 'p-default', name: 'default' },
        ],
      },
    },
    catalogue: () => ({ byId: new Map() }),
  } as unknown as House;
  return { asked, list: (matching: string, more = {}) => listRequests({ limit: 100, matching, ...more }, house) };
}

describe('requests that match the words of a filter', () => {
  it('are found however old they are, with what the store has an index for', async () => {
    const { asked, list } = houseOf();
    const page = await list('outcome:failed\nproject:nightly');
    expect(page.requests).toHaveLength(80);
    expect(page.more).toBe(false);
    expect(asked).toEqual([{ outcome: 'failed', project: 'p-nightly' }]);
  });

  it('are looked for in 5,000 rows at a time, and the next page goes on where that ended', async () => {
    const { list } = houseOf();
    const first = await list('model:rare');
    expect(first.requests.map(({ id }) => id)).toEqual([0, 1, 2, 3, 4].map((at) => `req_${at}999`));
    expect(first).toMatchObject({ more: true, lookedTo: { id: 'req_4999' } });
    const second = await list('model:rare', { before: first.lookedTo?.id });
    expect(second.requests.map(({ id }) => id)).toEqual([5, 6, 7].map((at) => `req_${at}999`));
    expect(second).toMatchObject({ more: false, lookedTo: null });
  });

  it('end a page without leaving one out between it and the next', async () => {
    const { list } = houseOf();
    const first = await list('class:normal');
    expect(first).toMatchObject({ more: true, lookedTo: { id: 'req_0099' } });
    const second = await list('class:normal', { before: first.lookedTo?.id });
    expect(second.requests[0]?.id).toBe('req_0100');
  });

  it('are none where a value is none that there is', async () => {
    const { list } = houseOf();
    expect(await list('outcome:lost')).toEqual({ requests: [], more: false, lookedTo: null });
    expect(await list('role:nobody')).toEqual({ requests: [], more: false, lookedTo: null });
  });

  it('are the one whose whole id is given, also where it is too old to be looked for', async () => {
    const { asked, list } = houseOf();
    expect((await list('id:req_7777')).requests.map(({ id }) => id)).toEqual(['req_7777']);
    expect(await list('id:req_7777\noutcome:failed')).toMatchObject({ requests: [], more: false });
    expect(asked).toEqual([]);
  });
});
