import { describe, expect, it } from 'vitest';
import type { OfferedModel } from '../../agent/cloud/catalogue.ts';
import type { RoleRoute } from '../../agent/cloud/credential.ts';
import { offersOf } from '../../agent/cloud/offers.ts';
import type { CatalogueEndpoint } from '../../agent/wire/cloud.ts';

const CHAT: OfferedModel = {
  model: 'x/chat',
  kind: 'chat',
  contextTokens: 1000,
  promptUsd: 2e-6,
  completionUsd: 4e-6,
  requestUsd: null,
};
const at = (tag: string, promptUsd: number | null, completionUsd: number | null, quantization: string | null = 'fp8') =>
  ({
    tag,
    upstream: tag,
    quantization,
    contextTokens: null,
    promptUsd,
    completionUsd,
    healthy: true,
  }) satisfies CatalogueEndpoint;
const ENDPOINTS = [
  at('cheap', 1e-6, 2e-6),
  at('wide/turbo', 3e-6, 5e-6),
  at('wide/exact', 2e-6, 9e-6, 'bf16'),
  at('silent', null, null),
  at('dear', 2e-5, 1e-6, null),
];

function priceOf(pin: Partial<RoleRoute>, endpoints: readonly CatalogueEndpoint[] = ENDPOINTS) {
  const route: RoleRoute = { model: 'x/chat', upstreams: [], quantizations: [], policy: 'cloud', ...pin };
  const endpointsOf = new Map([['x/chat', endpoints]]);
  const reading = { models: [CHAT], endpoints: endpointsOf, atWallMs: 0 };
  const [offer] = offersOf(new Map([['rlm', route]]), reading).offers;
  return [offer?.promptUsd, offer?.completionUsd];
}

describe('the price of a chat, by which spend caps are checked', () => {
  it.each([
    ['unpinned: of all upstreams, each figure by itself', {}, [2e-5, 9e-6]],
    ['pinned to a cheaper one than the model says', { upstreams: ['cheap'] }, [1e-6, 2e-6]],
    ['pinned to several', { upstreams: ['cheap', 'dear'] }, [2e-5, 2e-6]],
    ['pinned to an upstream with all its variants', { upstreams: ['wide'] }, [3e-6, 9e-6]],
    ['pinned to one variant', { upstreams: ['wide/turbo'] }, [3e-6, 5e-6]],
    [
      'a variant that another quantization has is not asked',
      { upstreams: ['wide'], quantizations: ['fp8'] },
      [3e-6, 5e-6],
    ],
    ['one that names no price has that of the model', { upstreams: ['silent'] }, [2e-6, 4e-6]],
    ['nobody is known for the pin', { upstreams: ['gone'] }, [2e-6, 4e-6]],
  ])('%s', (_, pin, price) => {
    expect(priceOf(pin)).toEqual(price);
  });

  it('is that of the model where its upstreams could not be read', () => {
    expect(priceOf({}, [])).toEqual([2e-6, 4e-6]);
  });
});
