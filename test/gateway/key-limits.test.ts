import { afterEach, describe, expect, it } from 'vitest';
import { SwitchyardError } from '../../main/domain/errors.ts';
import { restoreSpend } from '../../main/first-run.ts';
import { MemoryKeyLimits, rateHeaders } from '../../main/gateway/key-limits.ts';
import type { ApiKey } from '../../main/gateway/ports.ts';
import type { UsageRow } from '../../main/store/ports.ts';
import {
  API_KEY,
  answerChat,
  codeOf,
  KEY,
  LOCAL_ROUTE,
  post,
  sha256,
  startGateway,
  stopAll,
  USAGE,
} from './harness.ts';
import { ManualClock } from './manual-clock.ts';

afterEach(stopAll);

const limited = (limits: Partial<ApiKey['limits']>): ApiKey => ({ ...KEY, limits: { ...KEY.limits, ...limits } });
const tokens = (promptTokens: number) => ({ ...USAGE, promptTokens, completionTokens: 0 });

describe('requests per minute', () => {
  it('come all at once or evenly, and a refused one is not counted', () => {
    const clock = new ManualClock();
    const limits = new MemoryKeyLimits(clock);
    const key = limited({ requestsPerMinute: 6 });
    for (let count = 0; count < 6; count += 1) expect(limits.admit(key).admitted).toBe(true);
    // 6 a minute is one in 10 s.
    expect(limits.admit(key)).toMatchObject({ admitted: false, limit: 'requests', retryAfterMs: 10_000 });
    clock.advance(9999);
    expect(limits.admit(key)).toMatchObject({ admitted: false });
    clock.advance(1);
    expect(limits.admit(key)).toMatchObject({
      admitted: true,
      rate: { requests: { limit: 6, remaining: 0, resetMs: 60_000 } },
    });
    clock.advance(3_600_000);
    expect(limits.admit(key)).toMatchObject({ rate: { requests: { remaining: 5 } } });
  });

  it('are each key’s own', () => {
    const limits = new MemoryKeyLimits(new ManualClock());
    const key = limited({ requestsPerMinute: 1 });
    expect(limits.admit(key).admitted).toBe(true);
    expect(limits.admit(key).admitted).toBe(false);
    expect(limits.admit({ ...key, id: 'another' }).admitted).toBe(true);
    expect(limits.admit(KEY)).toEqual({ admitted: true, rate: { requests: null, tokens: null } });
  });
});

it('tokens per minute may be overdrawn by one request and are then paid back', () => {
  const clock = new ManualClock();
  const limits = new MemoryKeyLimits(clock);
  const key = limited({ tokensPerMinute: 600 });
  expect(limits.admit(key).admitted).toBe(true);
  limits.settle(key, tokens(1200));
  // 600 below nought at 10 a second: 60 s to nought, 0.1 s more to the first token.
  expect(limits.admit(key)).toMatchObject({ admitted: false, limit: 'tokens', retryAfterMs: 60_100 });
  clock.advance(60_100);
  expect(limits.admit(key).admitted).toBe(true);
});

it('dollars count by UTC day and survive a restart', () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 2, 23, 0, 0));
  const limits = new MemoryKeyLimits(clock);
  const key = limited({ usdPerDay: 1 });
  limits.restoreSpend(key.id, 0.5, clock.wallMs());
  expect(limits.admit(key).admitted).toBe(true);
  limits.spent(key.id, 0.5);
  expect(limits.admit(key)).toMatchObject({ admitted: false, limit: 'usd', retryAfterMs: 3_600_000 });
  clock.advance(3_600_000);
  expect(limits.admit(key).admitted).toBe(true);
});

it('what a key has spent today comes back whole after a restart, whatever roles and models it was for', async () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 2, 23, 0, 0));
  const limits = new MemoryKeyLimits(clock);
  const key = limited({ usdPerDay: 1 });
  const row = {
    day: '2026-01-02',
    key: key.id,
    project: key.project,
    route: 'cloud',
    requests: 1,
    failures: 0,
  } as const;
  const counts = { promptTokens: 1, completionTokens: 1, inexact: 0 };
  const rows: UsageRow[] = [
    { ...row, ...counts, role: 'code-assistant', model: 'a/b', costUsd: 0.6 },
    { ...row, ...counts, role: 'reranker', model: 'c/d', costUsd: 0.3 },
  ];
  const restored = restoreSpend(limits, { usage: { query: async () => rows } }, clock.wallMs());
  // It is open before the database has answered.
  limits.spent(key.id, 0.2);
  await restored;
  expect(limits.admit(key)).toMatchObject({ admitted: false, limit: 'usd' });
});

it('rates are told as OpenAI tells them', () => {
  const rate = { requests: { limit: 6, remaining: 5, resetMs: 10_000 }, tokens: null };
  expect(rateHeaders(rate)).toEqual([
    'x-ratelimit-limit-requests',
    '6',
    'x-ratelimit-remaining-requests',
    '5',
    'x-ratelimit-reset-requests',
    '10s',
  ]);
});

it('over HTTP a used-up key is 429 with its rates, before the body is looked at', async () => {
  const harness = await startGateway();
  harness.keys.set(sha256(API_KEY), limited({ requestsPerMinute: 1, tokensPerMinute: 1000 }));
  harness.dispatcher.onChat = answerChat;
  const chat = { model: 'code-assistant', messages: [{ role: 'user', content: 'hi' }] };
  const first = await post(harness, '/v1/chat/completions', chat);
  expect([first.status, first.headers.get('x-ratelimit-remaining-requests')]).toEqual([200, '0']);
  const second = await post(harness, '/v1/chat/completions', '{"malformed');
  expect([second.status, await codeOf(second)]).toEqual([429, 'rate_limited']);
  expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(50);
  // The first answer used 7 + 5 tokens.
  expect(Number(second.headers.get('x-ratelimit-remaining-tokens'))).toBeGreaterThanOrEqual(988);
  expect(Number(second.headers.get('x-ratelimit-remaining-tokens'))).toBeLessThan(1000);
});

it.each(['left', 'broken off'])('a stream that was %s counts with the tokens that were given', async (how) => {
  const harness = await startGateway();
  harness.keys.set(sha256(API_KEY), limited({ requestsPerMinute: 9, tokensPerMinute: 1000 }));
  harness.dispatcher.usageSoFar = { promptTokens: 40, completionTokens: 500, exact: false, costUsd: null };
  harness.dispatcher.onChat = ({ sink }) => {
    sink.onHead(LOCAL_ROUTE, { status: 200, contentType: 'text/event-stream' });
    sink.onData(Buffer.from('data: 1\n\n'));
  };
  const chat = { model: 'code-assistant', messages: [{ role: 'user', content: 'hi' }], stream: true };
  const answer = await post(harness, '/v1/chat/completions', chat);
  if (how === 'left') {
    await answer.body?.cancel();
    await expect.poll(() => harness.dispatcher.chats[0]?.cancelled).toBe(1);
  } else {
    harness.dispatcher.chats[0]?.sink.onFailure(new SwitchyardError('stream_interrupted'));
    await answer.text();
  }
  harness.dispatcher.onChat = answerChat;
  const next = await post(harness, '/v1/chat/completions', { ...chat, stream: false });
  // 1,000 less 540, and less than a second's refill.
  expect(Number(next.headers.get('x-ratelimit-remaining-tokens'))).toBeGreaterThanOrEqual(460);
  expect(Number(next.headers.get('x-ratelimit-remaining-tokens'))).toBeLessThan(520);
});
