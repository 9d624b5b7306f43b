import { createHash } from 'node:crypto';
import { type ErrorContext, errorNamed, make, type StandInError } from './errors.ts';

/** The account behind every key: limits nobody reports, money, and what `/key` says. All of it may be changed while it runs. */
export interface AccountSettings {
  /** Calls in flight; over it a 429 that names nobody. Null: no such limit. */
  concurrency: number | null;
  /** Starts in any 60 s. */
  rpm: number | null;
  /** What the key may still spend; falls with each call. Null: unlimited, as `/key` reports it. */
  creditUsd: number | null;
  limitUsd: number | null;
  isFreeTier: boolean;
  /** As reported; OpenRouter sends -1 and "10s". */
  rateLimit: { requests: number; interval: string };
  freeDaily: { used: number; limit: number };
  /** Money that running calls may tie up; over it a transient 402. */
  inFlightBudgetUsd: number | null;
  /** Seconds in the Retry-After of the account's own 429s; null: none. */
  retryAfterS: number | null;
}

/** One call as the stand-in saw it. */
export interface LedgerEntry {
  readonly id: string;
  readonly route: 'chat' | 'embeddings' | 'rerank';
  readonly startMs: number;
  /** When the upstream really ended; null while it works. */
  endMs: number | null;
  /** First 8 hex digits of SHA-256, never the key. */
  readonly keyHash: string;
  readonly model: string;
  upstream: string | null;
  status: number;
  /** The client went away before the end. */
  aborted: boolean;
  readonly stream: boolean;
  readonly inputs: number;
  costUsd: number;
  /** The whole request body, for tests that ask what left the house. */
  readonly body: Readonly<Record<string, unknown>>;
}

export function keyHash(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 8);
}

export const DEFAULT_ACCOUNT: Readonly<AccountSettings> = {
  concurrency: null,
  rpm: null,
  creditUsd: 100,
  limitUsd: 200,
  isFreeTier: false,
  rateLimit: { requests: -1, interval: '10s' },
  freeDaily: { used: 0, limit: 1000 },
  inFlightBudgetUsd: null,
  retryAfterS: null,
};

/** Admits calls and keeps the books. */
export class Account {
  readonly settings: AccountSettings = { ...DEFAULT_ACCOUNT };
  readonly ledger: LedgerEntry[] = [];
  #starts: number[] = [];
  #running = 0;
  #tiedUsd = 0;
  mostRunning = 0;

  get running(): number {
    return this.#running;
  }

  /** Why a call may not start now, or null; counts it when it may. `end` must be called once for each that started. */
  admit(free: boolean, estimateUsd: number, context: ErrorContext): StandInError | null {
    const { concurrency, rpm, creditUsd, inFlightBudgetUsd, freeDaily, retryAfterS } = this.settings;
    const headers: Record<string, string> = retryAfterS === null ? {} : { 'Retry-After': String(retryAfterS) };
    this.#starts = this.#starts.filter((start) => start > context.nowMs - 60_000);
    if (free && freeDaily.used >= freeDaily.limit) return errorNamed('free-daily', context);
    if (!free && creditUsd !== null && creditUsd <= estimateUsd) return errorNamed('credits', context);
    if (!free && inFlightBudgetUsd !== null && this.#tiedUsd + estimateUsd > inFlightBudgetUsd) {
      return errorNamed('in-flight-budget', context);
    }
    if (concurrency !== null && this.#running >= concurrency) return make(429, 'Rate limit exceeded', {}, headers);
    this.#starts.push(context.nowMs);
    if (rpm !== null && this.#starts.length > rpm) return make(429, 'Rate limit exceeded', {}, headers);
    if (free) freeDaily.used++;
    this.#running++;
    this.#tiedUsd += free ? 0 : estimateUsd;
    this.mostRunning = Math.max(this.mostRunning, this.#running);
    return null;
  }

  /** Empties the books; what runs goes on. */
  forget(): void {
    this.ledger.length = 0;
    this.#starts = [];
    this.mostRunning = this.#running;
  }

  end(entry: LedgerEntry, estimateUsd: number, nowMs: number): void {
    entry.endMs = nowMs;
    this.#running--;
    this.#tiedUsd = Math.max(0, this.#tiedUsd - estimateUsd);
    if (this.settings.creditUsd !== null) this.settings.creditUsd -= entry.costUsd;
  }

  /** Body of `GET /key`, every field the SDK asks for. */
  keyReport(): Readonly<Record<string, unknown>> {
    const { creditUsd, limitUsd, isFreeTier, rateLimit, freeDaily } = this.settings;
    const usage = this.ledger.reduce((sum, entry) => sum + entry.costUsd, 0);
    return {
      label: 'sk-or-v1-au7...890',
      limit: creditUsd === null ? null : limitUsd,
      limit_remaining: creditUsd,
      limit_reset: null,
      include_byok_in_limit: false,
      usage,
      usage_daily: usage,
      usage_weekly: usage,
      usage_monthly: usage,
      byok_usage: 0,
      byok_usage_daily: 0,
      byok_usage_weekly: 0,
      byok_usage_monthly: 0,
      is_free_tier: isFreeTier,
      is_management_key: false,
      is_provisioning_key: false,
      creator_user_id: 'user_2dHFtVWx2n56w6HkM0000000000',
      expires_at: null,
      allowed_data_regions: ['global'],
      organization_id: null,
      workspace_id: null,
      free_model_daily_requests: { ...freeDaily, remaining: Math.max(0, freeDaily.limit - freeDaily.used) },
      rate_limit: { ...rateLimit, note: 'This field is deprecated and safe to ignore.' },
    };
  }
}
