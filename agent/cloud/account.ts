import { isRecord } from '../engines/sse.ts';
import type { CloudAccount } from '../wire/cloud.ts';
import type { CloudHttp } from './http.ts';

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 256 * 1024;

/** `refused`: OpenRouter does not know the key. `unknown`: it could not be asked. */
export type AccountReading =
  | { readonly kind: 'read'; readonly account: CloudAccount }
  | { readonly kind: 'refused' | 'unknown' };

/** Asks `/key`. Numbers and flags only leave this function: no label, no ids. */
export async function readAccount(
  http: CloudHttp,
  baseUrl: string,
  authorization: string,
  signal: AbortSignal,
): Promise<AccountReading> {
  try {
    const request = { baseUrl, path: '/key', authorization, body: null, firstByteMs: TIMEOUT_MS, signal };
    const { status, json } = await http.json(request, MAX_BYTES);
    if (status === 401 || status === 403) return { kind: 'refused' };
    const data = isRecord(json) && isRecord(json.data) ? json.data : null;
    return status !== 200 || data === null ? { kind: 'unknown' } : { kind: 'read', account: toAccount(data) };
  } catch {
    return { kind: 'unknown' };
  }
}

export function toAccount(data: Readonly<Record<string, unknown>>): CloudAccount {
  const rate = isRecord(data.rate_limit) ? data.rate_limit : {};
  const free = isRecord(data.free_model_daily_requests) ? data.free_model_daily_requests : {};
  const budget = isRecord(data.effective_budget) ? data.effective_budget : {};
  const left = [number(data.limit_remaining), number(budget.remaining_usd)].filter((value) => value !== null);
  return {
    // The tighter of the key's own limit and the budget above it.
    creditUsd: left.length === 0 ? null : Math.min(...left),
    usageUsd: number(data.usage),
    isFreeTier: typeof data.is_free_tier === 'boolean' ? data.is_free_tier : null,
    rateRequests: number(rate.requests),
    rateIntervalMs: intervalMs(rate.interval),
    freeUsed: number(free.used),
    freeLimit: number(free.limit),
    expiresAtWallMs: time(data.expires_at),
  };
}

/** "10s", "1m", "1h", "1d". */
function intervalMs(value: unknown): number | null {
  const match = typeof value === 'string' ? /^(\d{1,6})(ms|s|m|h|d)$/.exec(value) : null;
  const unit = UNITS.get(match?.[2] ?? '');
  return match === null || unit === undefined ? null : Number(match[1]) * unit;
}

const UNITS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

function number(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

function time(value: unknown): number | null {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isFinite(ms) && ms >= 0 ? ms : null;
}
