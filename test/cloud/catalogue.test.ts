import { describe, expect, it } from 'vitest';
import { NOTHING_SAID } from '../../agent/cloud/refusal.ts';
import { EngineFailure } from '../../agent/engines/failure.ts';
import type { CloudAsk, CloudOffer, CloudStatus } from '../../agent/wire/cloud.ts';
import { accountFacts, CloudCatalogue, priceOf } from '../../main/cloud/catalogue.ts';
import { failedOutcome } from '../../main/cloud/outcome.ts';
import type { NodeId } from '../../main/domain/ids.ts';
import { defaultRoleSettings, ROLE_IDS, type RoleId, type RoleSettings } from '../../main/domain/roles.ts';

const A = 'a' as NodeId;
const B = 'b' as NodeId;
const offer: CloudOffer = {
  role: 'embedding',
  model: 'm/e',
  upstream: 'u1',
  pin: 'only=u1;quantizations=',
  contextTokens: 8192,
  promptUsd: 1e-8,
  completionUsd: 0,
  requestUsd: null,
  free: false,
};
const status: CloudStatus = {
  t: 'cloud-status',
  push: 1,
  keyPush: 1,
  key: 'held',
  keyRefused: false,
  remembered: false,
  canRemember: false,
  baseUrl: 'https://openrouter.ai/api/v1',
  account: null,
  offers: [offer, { ...offer, upstream: 'u2', pin: 'only=u2;quantizations=' }],
  notOffered: [{ role: 'reranker', model: 'm/r', upstream: null, nearest: ['m/s'] }],
  catalogueAtWallMs: 5,
};

function make(holding: readonly NodeId[]) {
  const asked: { node: NodeId; ask: CloudAsk }[] = [];
  const timers: (() => void)[] = [];
  const catalogue = new CloudCatalogue({
    clock: {
      nowMs: () => 0,
      wallMs: () => 0,
      after: (_, run) => {
        timers.push(run);
        return () => undefined;
      },
    },
    agents: {
      ready: () => [A, B].map((node) => ({ node, name: node })),
      name: (node) => node,
      sendBinary: () => true,
      send: (node, ask) => {
        asked.push({ node, ask });
        return true;
      },
    },
    status: () => status,
    holds: (node) => holding.includes(node),
  });
  return { catalogue, asked, timers };
}

describe('what the agents offer', () => {
  it('is one route per agent that holds the key, role and pinned upstream', () => {
    const { catalogue } = make([A]);
    expect(catalogue.routes().map(({ node, name }) => [node, name])).toEqual([
      [A, 'm/e@u1'],
      [A, 'm/e@u2'],
    ]);
    expect(catalogue.offer(A, 'embedding', 'm/e@u2')?.pin).toBe('only=u2;quantizations=');
    expect(catalogue.offer(A, 'code-embedding', 'm/e@u2')).toBeNull();
  });

  it('lists what roles are set to and nobody serves: not offered, without a pin, without a key', () => {
    const roles = Object.fromEntries(ROLE_IDS.map((role) => [role, defaultRoleSettings(role)])) as Record<
      RoleId,
      RoleSettings
    >;
    const none = { model: null, upstreams: [], quantizations: [] };
    for (const role of ROLE_IDS) roles[role] = { ...roles[role], policy: 'aggregate', cloud: none };
    roles.reranker = { ...roles.reranker, cloud: { ...none, model: 'm/r' } };
    roles.embedding = { ...roles.embedding, cloud: { ...none, model: 'm/e', upstreams: ['u1'] } };
    roles['code-embedding'] = { ...roles['code-embedding'], cloud: { ...none, model: 'm/e' } };
    roles.rlm = { ...roles.rlm, policy: 'local', cloud: { ...none, model: 'm/c' } };
    const { catalogue } = make([A]);
    expect(catalogue.missing(roles)).toEqual([
      { node: A, role: 'code-embedding', name: 'm/e', upstream: null, pin: null, notOffered: false },
      { node: A, role: 'reranker', name: 'm/r', upstream: null, pin: null, notOffered: true },
      { node: B, role: 'embedding', name: 'm/e@u1', upstream: 'u1', pin: 'only=u1;quantizations=', notOffered: false },
      { node: B, role: 'code-embedding', name: 'm/e', upstream: null, pin: null, notOffered: false },
      { node: B, role: 'reranker', name: 'm/r', upstream: null, pin: null, notOffered: true },
    ]);
  });

  it('names what is missing', () => {
    const { catalogue } = make([A]);
    expect(catalogue.offered('reranker', 'm/r')).toEqual({ offered: false, nearest: ['m/s'] });
    expect(catalogue.offered('embedding', 'm/e')).toEqual({ offered: true, nearest: [] });
    expect(catalogue.offered('rlm', 'x/y')).toEqual({ offered: null, nearest: [] });
  });

  it('is asked of the next agent when one does not answer, and kept', async () => {
    const { catalogue, asked, timers } = make([A, B]);
    const models = catalogue.models();
    expect(asked).toHaveLength(1);
    timers[0]?.();
    await Promise.resolve();
    await expect.poll(() => asked.length).toBe(2);
    const list = [{ model: 'm/e', kind: 'embed' as const, contextTokens: null, promptUsd: 0, completionUsd: 0 }];
    const id = asked[1]?.ask.id ?? 0;
    // Not the one that was asked: a paired machine without the key must not set prices.
    catalogue.onAnswer(A, { t: 'cloud-answer', id, ok: true, models: [], endpoints: null });
    catalogue.onAnswer(B, { t: 'cloud-answer', id, ok: true, models: list, endpoints: null });
    expect(await models).toEqual(list);
    expect(await catalogue.models()).toEqual(list);
    expect(asked).toHaveLength(2);
  });

  it('says where a model is served, and does not ask twice; a failure is not kept', async () => {
    const { catalogue, asked } = make([A]);
    const answer = (ok: boolean) => {
      const endpoint = { tag: 'u1', upstream: 'U1', quantization: 'fp8', contextTokens: null, healthy: true };
      const endpoints = ok ? [{ ...endpoint, promptUsd: null, completionUsd: null }] : null;
      const id = asked.at(-1)?.ask.id ?? 0;
      catalogue.onAnswer(A, { t: 'cloud-answer', id, ok, models: null, endpoints });
    };
    const [first] = [catalogue.endpoints('m/e'), answer(false)];
    expect(await first).toBeNull();
    const [second] = [catalogue.endpoints('m/e'), answer(true)];
    expect(await second).toMatchObject([{ tag: 'u1', quantization: 'fp8' }]);
    expect(await catalogue.endpoints('m/e')).toHaveLength(1);
    expect(asked.map(({ ask }) => ask)).toMatchObject([
      { what: 'endpoints', model: 'm/e' },
      { what: 'endpoints', model: 'm/e' },
    ]);
  });

  it('is unknown where nobody holds a key: nobody is asked', async () => {
    const { catalogue, asked } = make([]);
    expect(await catalogue.models()).toBeNull();
    expect(asked).toEqual([]);
  });
});

describe('facts for the budget', () => {
  const account = {
    creditUsd: 30,
    usageUsd: 1,
    isFreeTier: false,
    rateRequests: 100,
    rateIntervalMs: 10_000,
    freeUsed: null,
    freeLimit: null,
    expiresAtWallMs: null,
  };

  it('turn an interval into requests per minute', () => {
    expect(accountFacts({ ...status, account })).toEqual({ creditUsd: 30, isFreeTier: false, rpm: 600 });
    expect(accountFacts({ ...status, account: { ...account, rateRequests: -1 } })?.rpm).toBe(-6);
    expect(accountFacts({ ...status, account: { ...account, rateIntervalMs: null } })?.rpm).toBeNull();
    expect(accountFacts(status)).toBeNull();
  });

  it('price an offer, or admit that it has no price', () => {
    expect(priceOf(offer)).toEqual({ promptUsd: 1e-8, completionUsd: 0, requestUsd: 0 });
    expect(priceOf({ ...offer, promptUsd: null })).toBeNull();
  });

  it('a call that was never sent costs nothing, one that broke off counts as estimated', () => {
    const failure = (code: 'engine_busy' | 'stream_interrupted') => new EngineFailure(code).failure;
    expect(failedOutcome({ ...failure('engine_busy'), cloud: { ...NOTHING_SAID, key: 'missing' } })).toEqual({
      kind: 'ended',
      costUsd: 0,
    });
    expect(failedOutcome({ ...failure('stream_interrupted'), cloud: NOTHING_SAID })).toEqual({
      kind: 'ended',
      costUsd: null,
    });
    expect(
      failedOutcome({ ...failure('engine_busy'), cloud: { ...NOTHING_SAID, status: 429, costUsd: 0 } }),
    ).toMatchObject({ kind: 'refused', costUsd: 0 });
  });
});
