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
  /** For the operator. */
  readonly sentence: string;
}

const MINUTE = 60_000;

/** The whole table; the first row that fits decides. docs/budget.md prints it. */
export const SOURCES: readonly SourceRow[] = [
  row('content refused', [400, 403], null, null, 'caller', null, null, 'The content was refused by moderation.', {
    moderated: true,
  }),
  row(
    'free daily',
    [429],
    'openrouter_free_tier_daily',
    null,
    'free-models',
    null,
    null,
    'The daily number of free requests is used up; free models wait for the reset.',
  ),
  row(
    'free minute',
    [429],
    'openrouter_free_tier_minute',
    null,
    'free-models',
    MINUTE,
    MINUTE,
    'Free models allow 20 requests per minute; they wait for the next minute.',
  ),
  row(
    'shared capacity',
    [429],
    'openrouter_shared_capacity',
    null,
    'model',
    MINUTE,
    5 * MINUTE,
    'OpenRouter limits this model for everybody; it rests.',
  ),
  row(
    'admission control',
    [429],
    'openrouter_admission_control',
    null,
    'account',
    10_000,
    null,
    'OpenRouter could not check the account in time; the whole account slows down.',
  ),
  row(
    'upstream pool',
    [429],
    'upstream_provider_shared_pool',
    null,
    'provider',
    30_000,
    5 * MINUTE,
    'The upstream is full; it rests.',
  ),
  row(
    'in-flight budget',
    [402],
    'openrouter_in_flight_budget',
    null,
    'paid-wait',
    30_000,
    2 * MINUTE,
    'The balance is tied up in calls that run; paid calls wait.',
  ),
  row(
    'credit',
    [402],
    'openrouter_credits',
    null,
    'credit',
    null,
    null,
    'The credit is used up. Add credit at OpenRouter, then resume the cloud.',
  ),
  row(
    'key limit',
    [402, 403],
    'openrouter_key_limit',
    null,
    'credit',
    null,
    null,
    'The spending limit of the key is reached. Raise it at OpenRouter or wait for its reset.',
  ),
  row(
    'guardrail budget',
    [402, 403],
    'openrouter_guardrail_budget',
    null,
    'credit',
    null,
    null,
    'A budget guardrail of the OpenRouter account is reached.',
  ),
  row(
    'workspace budget',
    [402, 403],
    'openrouter_workspace_budget',
    null,
    'credit',
    null,
    null,
    'The budget of the OpenRouter workspace is reached.',
  ),
  row('region', [403], null, null, 'provider', 5 * MINUTE, 60 * MINUTE, 'The upstream does not serve this region.', {
    availability: ['region_restricted'],
  }),
  row(
    'capacity',
    [429],
    null,
    null,
    'model',
    30_000,
    5 * MINUTE,
    'No upstream has capacity for this model; it rests.',
    {
      availability: ['capacity_exhausted'],
    },
  ),
  row('provider limit', [429], null, true, 'provider', 20_000, 5 * MINUTE, 'The upstream limits requests; it rests.'),
  row('account limit', [429], 'absent', false, 'account', null, null, 'OpenRouter limits the account.'),
  row(
    'unknown limit',
    [429],
    null,
    false,
    'model',
    30_000,
    5 * MINUTE,
    'OpenRouter names a limit unknown here; the model rests.',
  ),
  row(
    'credit, unnamed',
    [402],
    null,
    null,
    'credit',
    null,
    null,
    'OpenRouter asks for payment. Add credit, then resume the cloud.',
  ),
  row(
    'upstream rejects',
    [401, 403],
    null,
    true,
    'provider',
    MINUTE,
    5 * MINUTE,
    'The upstream refuses OpenRouter; it rests.',
  ),
  row('key', [401], null, null, 'key', null, null, 'OpenRouter does not accept the key. Enter a valid one.'),
  row(
    'forbidden',
    [403],
    null,
    null,
    'key',
    null,
    null,
    'The key is not allowed to do this. Check its rights at OpenRouter.',
  ),
  row(
    'overloaded',
    [503, 529],
    null,
    null,
    'provider',
    20_000,
    5 * MINUTE,
    'The upstream is overloaded or away; it rests.',
  ),
  row(
    'not offered',
    [404],
    null,
    null,
    'provider',
    MINUTE,
    10 * MINUTE,
    'The model or its pinned upstream is not offered now.',
  ),
  row(
    'upstream fault',
    [408, 500, 502, 504, 524],
    null,
    true,
    'provider',
    20_000,
    5 * MINUTE,
    'The upstream failed; it rests.',
  ),
  row('fault', [408, 500, 502, 504, 524], null, false, 'none', null, null, 'OpenRouter failed.'),
  row(
    'request',
    [400, 404, 405, 409, 410, 411, 412, 413, 414, 415, 422],
    null,
    null,
    'caller',
    null,
    null,
    'The request was refused as malformed.',
  ),
  row('anything else', null, null, null, 'none', null, null, 'OpenRouter answered with something unknown.'),
];

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
  sentence: string,
  also: { moderated?: true; availability?: readonly string[] } = {},
): SourceRow {
  return { name, statuses, limitSource, fromProvider, scope, pauseMs, maxMs, sentence, ...also };
}
