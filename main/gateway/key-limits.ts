import type { Clock } from '../domain/time.ts';
import type { WorkUsage } from '../domain/work.ts';
import type { Admission, ApiKey, KeyLimits, RateAmount, RateState } from './ports.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

interface Account {
  /** Token buckets: what is left, refilled evenly over a minute. */
  requests: Bucket | null;
  tokens: Bucket | null;
  day: number;
  spentUsd: number;
}

interface Bucket {
  limit: number;
  left: number;
  atMs: number;
}

/**
 * Limits of API keys in this process. Requests and tokens per minute are token buckets (a full minute's worth at once, then an
 * even refill), so there is no edge at which a window doubles. A request's tokens are known only when it has ended: the bucket
 * may go below zero, and then nothing is admitted until it is above again. Dollars count by UTC day.
 */
export class MemoryKeyLimits implements KeyLimits {
  readonly #clock: Clock;
  readonly #accounts = new Map<string, Account>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** After a restart: a part of what a key has spent already on the day of `wallMs`. */
  restoreSpend(keyId: string, usd: number, wallMs: number): void {
    const account = this.#account(keyId);
    const day = Math.floor(wallMs / DAY_MS);
    account.spentUsd = usd + (account.day === day ? account.spentUsd : 0);
    account.day = day;
  }

  admit(key: ApiKey): Admission {
    const { requestsPerMinute, tokensPerMinute, usdPerDay } = key.limits;
    if (requestsPerMinute === null && tokensPerMinute === null && usdPerDay === null) return UNLIMITED;
    const account = this.#account(key.id);
    const nowMs = this.#clock.nowMs();
    account.requests = refilled(account.requests, requestsPerMinute, nowMs);
    account.tokens = refilled(account.tokens, tokensPerMinute, nowMs);
    const refuse = (limit: 'requests' | 'tokens' | 'usd', retryAfterMs: number): Admission => ({
      admitted: false,
      limit,
      retryAfterMs,
      rate: rateOf(account),
    });
    if (usdPerDay !== null && this.#spentToday(account) >= usdPerDay) {
      return refuse('usd', DAY_MS - (this.#clock.wallMs() % DAY_MS));
    }
    const { requests, tokens } = account;
    if (requests !== null && requests.left < 1) return refuse('requests', waitFor(requests, 1));
    if (tokens !== null && tokens.left <= 0) return refuse('tokens', waitFor(tokens, 1));
    if (requests !== null) requests.left -= 1;
    return { admitted: true, rate: rateOf(account) };
  }

  settle(key: ApiKey, usage: WorkUsage): void {
    const { tokensPerMinute } = key.limits;
    if (tokensPerMinute === null) return;
    const account = this.#account(key.id);
    account.tokens = refilled(account.tokens, tokensPerMinute, this.#clock.nowMs());
    if (account.tokens !== null) account.tokens.left -= usage.promptTokens + usage.completionTokens;
  }

  /** A cloud call has cost that much. Not told with the request: one that is left, or fails, or is tried twice costs too. */
  spent(keyId: string, usd: number): void {
    const account = this.#account(keyId);
    account.spentUsd = this.#spentToday(account) + usd;
  }

  #account(keyId: string): Account {
    let account = this.#accounts.get(keyId);
    if (account === undefined) {
      account = { requests: null, tokens: null, day: 0, spentUsd: 0 };
      this.#accounts.set(keyId, account);
    }
    return account;
  }

  #spentToday(account: Account): number {
    const today = Math.floor(this.#clock.wallMs() / DAY_MS);
    if (account.day !== today) {
      account.day = today;
      account.spentUsd = 0;
    }
    return account.spentUsd;
  }
}

const UNLIMITED: Admission = { admitted: true, rate: { requests: null, tokens: null } };

/** A changed limit starts full: the operator has just thought about it. */
function refilled(bucket: Bucket | null, limit: number | null, nowMs: number): Bucket | null {
  if (limit === null) return null;
  if (bucket === null || bucket.limit !== limit) return { limit, left: limit, atMs: nowMs };
  bucket.left = Math.min(limit, bucket.left + (limit * (nowMs - bucket.atMs)) / MINUTE_MS);
  bucket.atMs = nowMs;
  return bucket;
}

function waitFor(bucket: Bucket, wanted: number): number {
  return ((wanted - bucket.left) * MINUTE_MS) / bucket.limit;
}

function rateOf(account: Account): RateState {
  return { requests: amountOf(account.requests), tokens: amountOf(account.tokens) };
}

function amountOf(bucket: Bucket | null): RateAmount | null {
  if (bucket === null) return null;
  return {
    limit: bucket.limit,
    remaining: Math.max(0, Math.floor(bucket.left)),
    resetMs: waitFor(bucket, bucket.limit),
  };
}

/** OpenAI's names, flat. Reset is a span such as `1.5s`, as its own service writes it. */
export function rateHeaders(rate: RateState): string[] {
  const headers: string[] = [];
  for (const [name, amount] of [
    ['requests', rate.requests],
    ['tokens', rate.tokens],
  ] as const) {
    if (amount === null) continue;
    headers.push(
      `x-ratelimit-limit-${name}`,
      String(amount.limit),
      `x-ratelimit-remaining-${name}`,
      String(amount.remaining),
      `x-ratelimit-reset-${name}`,
      `${Math.round(amount.resetMs / 100) / 10}s`,
    );
  }
  return headers;
}
