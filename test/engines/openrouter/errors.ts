/** An error answer, as OpenRouter sends it. */
export interface StandInError {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
}

export interface ErrorContext {
  readonly provider: string;
  readonly model: string;
  readonly nowMs: number;
}

type Row = (context: ErrorContext) => StandInError;

const DAY_MS = 86_400_000;

/** Every documented row, by name. The texts are real ones where a capture exists, and hold what must not be passed on. */
export const ERROR_ROWS = {
  'free-daily': ({ nowMs }) => {
    const reset = String(nowMs - (nowMs % DAY_MS) + DAY_MS);
    const headers = { 'X-RateLimit-Limit': '50', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': reset };
    const message =
      'Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day';
    return make(
      429,
      message,
      { headers, limit_source: 'openrouter_free_tier_daily', remedy_hint: 'wait', provider_name: null },
      headers,
    );
  },
  'free-minute': ({ nowMs }) => {
    const headers = {
      'X-RateLimit-Limit': '20',
      'X-RateLimit-Remaining': '0',
      'X-RateLimit-Reset': String(nowMs + 30_000),
    };
    return make(
      429,
      'Rate limit exceeded: free-models-per-min.',
      { headers, limit_source: 'openrouter_free_tier_minute', remedy_hint: 'wait' },
      headers,
    );
  },
  'shared-capacity': ({ model }) =>
    make(429, `High demand for ${model} on OpenRouter - limited to 15 requests per minute. Please retry shortly.`, {
      limit_source: 'openrouter_shared_capacity',
      remedy_hint: 'retry',
      provider_name: null,
    }),
  'admission-control': () =>
    make(
      429,
      'Could not verify credits in time.',
      { limit_source: 'openrouter_admission_control', remedy_hint: 'slow down' },
      { 'Retry-After': '10' },
    ),
  'upstream-pool': ({ provider, model }) =>
    make(
      429,
      'Provider returned error',
      {
        raw: `${model} is temporarily rate-limited upstream.`,
        provider_name: provider,
        is_byok: false,
        limit_source: 'upstream_provider_shared_pool',
        remedy_hint: 'add your own key',
        error_type: 'rate_limit_exceeded',
        headers: { 'Retry-After': '30' },
      },
      { 'Retry-After': '30' },
    ),
  account: () => make(429, 'Rate limit exceeded', {}),
  capacity: () => ({
    status: 429,
    headers: {},
    body: {
      error: {
        code: 429,
        message: 'No capacity.',
        metadata: { limit_source: 'openrouter_capacity', provider_name: null },
        availability: { code: 'capacity_exhausted', retryable: true, retry_after: 12, requested_models: [] },
      },
    },
  }),
  'in-flight-budget': () =>
    make(
      402,
      'In-flight budget exhausted.',
      { limit_source: 'openrouter_in_flight_budget', reason: 'in_flight_budget_exhausted', remedy_hint: 'wait' },
      { 'Retry-After': '120' },
    ),
  credits: () =>
    make(
      402,
      'This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 3395.',
      {
        limit_source: 'openrouter_credits',
        reason: 'weight_exceeds_budget',
        provider_name: null,
        remedy_hint: 'add credits',
      },
    ),
  'key-limit': () =>
    make(402, 'This request requires more credits, or fewer max_tokens.', {
      limit_source: 'openrouter_key_limit',
      provider_name: null,
      previous_errors: [],
    }),
  'key-limit-403': () =>
    make(403, 'Key limit exceeded.', {
      limit_source: 'openrouter_key_limit',
      scope: 'key',
      limit_usd: 5,
      spend_usd: 5.01,
      resets_at: null,
    }),
  'guardrail-budget': () =>
    make(403, 'Guardrail budget exceeded.', {
      limit_source: 'openrouter_guardrail_budget',
      scope: 'guardrail',
      limit_usd: 1,
      spend_usd: 1.2,
    }),
  'workspace-budget': () =>
    make(403, 'Workspace budget exceeded.', {
      limit_source: 'openrouter_workspace_budget',
      scope: 'workspace',
      limit_usd: 1,
      spend_usd: 1.2,
    }),
  unauthorized: () => make(401, 'User not found.', {}),
  forbidden: () => make(403, 'Only management keys can perform this operation', {}),
  moderation: ({ provider, model }) =>
    make(403, 'Input was flagged', {
      reasons: ['violence'],
      flagged_input: 'a piece of the prompt',
      provider_name: provider,
      model_slug: model,
    }),
  'guardrail-pattern': () => make(403, 'Blocked by guardrail', { patterns: ['secret'] }),
  'bad-request': () => make(400, 'Invalid request parameters', { error_type: 'invalid_request' }),
  'context-length': ({ provider }) =>
    make(400, "This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens.", {
      error_type: 'context_length_exceeded',
      provider_name: provider,
    }),
  'not-found': ({ model }) => ({
    status: 404,
    headers: {},
    body: {
      error: {
        code: 404,
        message: `No endpoints found for ${model}.`,
        availability: {
          code: 'no_endpoints',
          retryable: false,
          requested_models: [model],
          docs_url: 'https://openrouter.ai/docs',
        },
      },
    },
  }),
  timeout: () => make(408, 'Operation timed out', {}),
  'too-large': () => make(413, 'Request payload too large', {}),
  unprocessable: () => make(422, 'Invalid argument', {}),
  server: () => make(500, 'Internal Server Error', {}),
  'bad-gateway': ({ provider }) =>
    make(502, 'Provider returned error', {
      provider_name: provider,
      raw: 'upstream exploded',
      error_type: 'provider_unavailable',
    }),
  unavailable: () =>
    make(503, 'Service temporarily unavailable', { error_type: 'provider_overloaded' }, { 'Retry-After': '5' }),
  'edge-timeout': () => make(524, 'Request timed out', {}),
  overloaded: ({ provider }) => make(529, 'Provider returned error', { provider_name: provider }),
} as const satisfies Record<string, Row>;

export type ErrorName = keyof typeof ERROR_ROWS;

export function errorNamed(name: ErrorName, context: ErrorContext): StandInError {
  return ERROR_ROWS[name](context);
}

export function make(
  status: number,
  message: string,
  metadata: Readonly<Record<string, unknown>>,
  headers: Readonly<Record<string, string>> = {},
): StandInError {
  const error = { code: status, message, ...(Object.keys(metadata).length === 0 ? {} : { metadata }) };
  return { status, headers, body: { error, user_id: 'user_2abcdefghijklmnop' } };
}
