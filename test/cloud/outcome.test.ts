import { expect, it } from 'vitest';
import type { CloudRefusal } from '../../main/budget/sources.ts';
import { whoseLimit } from '../../main/cloud/outcome.ts';

const limited = (over: Partial<CloudRefusal> = {}): CloudRefusal => ({
  status: 429,
  limitSource: null,
  fromProvider: false,
  availability: null,
  moderated: false,
  retryAfterMs: null,
  resetAtWallMs: null,
  ...over,
});
const pinned = { model: 'org/model', upstream: 'nebius' };

it.each([
  ['account', limited()],
  ['account', limited({ limitSource: 'openrouter_admission_control' })],
  ['account', limited({ limitSource: 'openrouter_free_tier_daily' })],
  ['account', limited({ limitSource: 'openrouter_free_tier_minute' })],
  ['org/model', limited({ limitSource: 'openrouter_shared_capacity' })],
  ['nebius', limited({ limitSource: 'upstream_provider_shared_pool' })],
  ['nebius', limited({ fromProvider: true })],
])('a 429 is told as one of %s: %j', (whose, refusal) => {
  expect(whoseLimit(refusal, pinned)).toBe(whose);
});

it('without a pin the limit of an upstream is told as the model that was asked for', () => {
  expect(whoseLimit(limited({ fromProvider: true }), { model: 'org/model', upstream: null })).toBe('org/model');
});
