import { type Said, said } from '../domain/said.ts';
import { REFUSALS } from '../domain/sentences/cloud.ts';

/** What the agent reports of a refusal by OpenRouter: numbers, flags and words of closed lists, never foreign text. */
export interface CloudRefusal {
  /** HTTP status, or the `error.code` of a 200 and of a stream. */
  readonly status: number;
  readonly limitSource: string | null;
  /** The error names an upstream: its fault or its limit, not the account's. */
  readonly fromProvider: boolean;
  /** `availability.code`. */
  readonly availability: string | null;
  /** The content was refused (moderation, guardrail pattern): the caller's own matter. */
  readonly moderated: boolean;
  readonly retryAfterMs: number | null;
  /** `X-RateLimit-Reset` or `resets_at`, epoch ms. */
  readonly resetAtWallMs: number | null;
}

/** Whom a refusal stops. */
export type Scope =
  /** Account: halve, and start nothing while cooling. */
  | 'account'
  /** All `:free` models, until the reset; nothing is halved. */
  | 'free-models'
  /** This model through any upstream. */
  | 'model'
  /** This model through this upstream. */
  | 'provider'
  /** Paid starts wait: money is tied up in calls that run. */
  | 'paid-wait'
  /** Paid models are off until money is there again. */
  | 'credit'
  /** The key is refused. */
  | 'key'
  /** Nobody: the request itself was wrong. */
  | 'caller'
  /** Nobody here; the router counts it against the provider as it does for any engine. */
  | 'none';

export type SourceCode = keyof typeof REFUSALS;

export interface SourceRow {
  readonly name: string;
  /** Statuses; null: any. */
  readonly statuses: readonly number[] | null;
  /** Exact `limit_source`; null: whatever; 'absent': none. */
  readonly limitSource: string | null | 'absent';
  readonly fromProvider: boolean | null;
  readonly moderated?: true;
  readonly availability?: readonly string[];
  readonly scope: Scope;
  /** Pause without a hint, ms: the first one; it doubles with each refusal in a row up to `maxMs`. Null: see the scope. */
  readonly pauseMs: number | null;
  readonly maxMs: number | null;
  /** For the operator: `sentence` in English, by its code in every language. */
  readonly code: SourceCode;
  readonly sentence: string;
}

const MINUTE = 60_000;

/** The whole table; the first row that fits decides. docs/budget.md prints it. */
export const SOURCES: readonly SourceRow[] = [
  row('content refused', [400, 403], null, null, 'caller', null, null, 'source_content', {
    moderated: true,
  }),
  row('free daily', [429], 'openrouter_free_tier_daily', null, 'free-models', null, null, 'source_free_daily'),
  row('free minute', [429], 'openrouter_free_tier_minute', null, 'free-models', MINUTE, MINUTE, 'source_free_minute'),
  row(
    'shared capacity',
    [429],
    'openrouter_shared_capacity',
    null,
    'model',
    MINUTE,
    5 * MINUTE,
    'source_shared_capacity',
  ),
  row('admission control', [429], 'openrouter_admission_control', null, 'account', 10_000, null, 'source_admission'),
  row(
    'upstream pool',
    [429],
    'upstream_provider_shared_pool',
    null,
    'provider',
    30_000,
    5 * MINUTE,
    'source_upstream_pool',
  ),
  row(
    'in-flight budget',
    [402],
    'openrouter_in_flight_budget',
    null,
    'paid-wait',
    30_000,
    2 * MINUTE,
    'source_in_flight',
  ),
  row('credit', [402], 'openrouter_credits', null, 'credit', null, null, 'source_credit'),
  row('key limit', [402, 403], 'openrouter_key_limit', null, 'credit', null, null, 'source_key_limit'),
  row('guardrail budget', [402, 403], 'openrouter_guardrail_budget', null, 'credit', null, null, 'source_guardrail'),
  row('workspace budget', [402, 403], 'openrouter_workspace_budget', null, 'credit', null, null, 'source_workspace'),
  row('region', [403], null, null, 'provider', 5 * MINUTE, 60 * MINUTE, 'source_region', {
    availability: ['region_restricted'],
  }),
  row('capacity', [429], null, null, 'model', 30_000, 5 * MINUTE, 'source_capacity', {
    availability: ['capacity_exhausted'],
  }),
  row('provider limit', [429], null, true, 'provider', 20_000, 5 * MINUTE, 'source_provider_limit'),
  row('account limit', [429], 'absent', false, 'account', null, null, 'source_account_limit'),
  row('unknown limit', [429], null, false, 'model', 30_000, 5 * MINUTE, 'source_unknown_limit'),
  row('credit, unnamed', [402], null, null, 'credit', null, null, 'source_payment'),
  row('upstream rejects', [401, 403], null, true, 'provider', MINUTE, 5 * MINUTE, 'source_upstream_rejects'),
  row('key', [401], null, null, 'key', null, null, 'source_key'),
  row('forbidden', [403], null, null, 'key', null, null, 'source_forbidden'),
  row('overloaded', [503, 529], null, null, 'provider', 20_000, 5 * MINUTE, 'source_overloaded'),
  row('not offered', [404], null, null, 'provider', MINUTE, 10 * MINUTE, 'source_not_offered'),
  row('upstream fault', [408, 500, 502, 504, 524], null, true, 'provider', 20_000, 5 * MINUTE, 'source_upstream_fault'),
  row('fault', [408, 500, 502, 504, 524], null, false, 'none', null, null, 'source_fault'),
  row(
    'request',
    [400, 404, 405, 409, 410, 411, 412, 413, 414, 415, 422],
    null,
    null,
    'caller',
    null,
    null,
    'source_request',
  ),
  row('anything else', null, null, null, 'none', null, null, 'source_unknown'),
];

/** What a row of this name says; the name itself where no row has it any more. */
export function saidOfSource(name: string): Said {
  const found = SOURCES.find((each) => each.name === name);
  return found === undefined
    ? { code: 'account_limited', sentence: `OpenRouter limited the account: ${name}.` }
    : said(found.code);
}

/** The row that fits a refusal. Total: the last row takes all. */
export function sourceOf(refusal: CloudRefusal): SourceRow {
  for (const candidate of SOURCES) if (fits(candidate, refusal)) return candidate;
  throw new RangeError('the last row of the table takes everything');
}

function fits(candidate: SourceRow, refusal: CloudRefusal): boolean {
  if (candidate.statuses !== null && !candidate.statuses.includes(refusal.status)) return false;
  if (candidate.limitSource === 'absent') {
    if (refusal.limitSource !== null) return false;
  } else if (candidate.limitSource !== null && candidate.limitSource !== refusal.limitSource) {
    return false;
  }
  if (candidate.fromProvider !== null && candidate.fromProvider !== refusal.fromProvider) return false;
  if (candidate.moderated === true && !refusal.moderated) return false;
  if (candidate.availability === undefined) return true;
  return refusal.availability !== null && candidate.availability.includes(refusal.availability);
}

function row(
  name: string,
  statuses: readonly number[] | null,
  limitSource: string | null | 'absent',
  fromProvider: boolean | null,
  scope: Scope,
  pauseMs: number | null,
  maxMs: number | null,
  code: SourceCode,
  also: { moderated?: true; availability?: readonly string[] } = {},
): SourceRow {
  return {
    name,
    statuses,
    limitSource,
    fromProvider,
    scope,
    pauseMs,
    maxMs,
    code,
    sentence: REFUSALS[code].en,
    ...also,
  };
}
