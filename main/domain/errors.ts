import type { Said } from './said.ts';

/**
 * The one error table: code -> HTTP status, who is to blame, and what the person should do. `docs/errors.md` mirrors it
 * (a test compares both). A code is stable for ever; its sentence may improve.
 */
export interface ErrorDefinition {
  readonly status: number;
  /** OpenAI's coarse `type`. */
  readonly type:
    | 'invalid_request_error'
    | 'authentication_error'
    | 'permission_error'
    | 'not_found_error'
    | 'rate_limit_error'
    | 'api_error';
  /** What it means and what to do, for docs and as the default message. */
  readonly sentence: string;
}

const invalid = (status: number, sentence: string): ErrorDefinition => ({
  status,
  type: 'invalid_request_error',
  sentence,
});
const unavailable = (status: number, sentence: string): ErrorDefinition => ({ status, type: 'api_error', sentence });

export const ERRORS = {
  // The request itself
  invalid_json: invalid(400, 'The body is not valid JSON. Send one JSON object encoded as UTF-8.'),
  invalid_request: invalid(400, 'A field is missing or has the wrong type. The message names the field.'),
  duplicate_field: invalid(400, 'A top-level field appears twice. Send each field once.'),
  too_complex: invalid(
    400,
    'The JSON is nested deeper than 64 levels or holds more than 200,000 containers. Simplify it.',
  ),
  empty_input: invalid(400, 'There is nothing to work on. Send at least one non-empty text.'),
  too_many_inputs: invalid(400, 'More than 2,048 inputs in one request. Split them over several requests.'),
  input_too_long: invalid(400, 'An input is longer than the model can read. Shorten it or send truncate: true.'),
  context_too_long: invalid(
    400,
    'Prompt and answer do not fit the context window of any model of this role. Shorten the prompt or lower max_tokens.',
  ),
  unsupported_dimensions: invalid(
    400,
    'This width is not served. Ask for the width of the space or one that the operator has declared.',
  ),
  unsupported_encoding: invalid(415, 'Compressed bodies are not accepted. Send the body without Content-Encoding.'),
  unsupported_media_type: invalid(415, 'Only application/json is accepted here. Set Content-Type.'),
  payload_too_large: invalid(413, 'The body is larger than 32 MiB. Send less in one request.'),
  request_timeout: invalid(
    408,
    'The request did not arrive in time. Send it again over a faster or less busy connection.',
  ),
  remote_media: invalid(400, 'Local engines do not fetch media from addresses. Send media as a data: URL.'),
  not_found: {
    status: 404,
    type: 'not_found_error',
    sentence: 'There is no such route. See GET /openapi.json or the README.',
  },
  method_not_allowed: invalid(405, 'This route does not take this method. The Allow header lists the ones it takes.'),
  model_not_found: {
    status: 404,
    type: 'not_found_error',
    sentence: 'No model of that name is served. The message lists what exists.',
  },
  ambiguous_model: invalid(400, 'This model serves several roles. Use the role id as the model name.'),
  // Guard and keys
  invalid_host: {
    status: 421,
    type: 'invalid_request_error',
    sentence: 'The Host header does not name this endpoint. Use the address that Switchyard shows.',
  },
  forbidden_origin: {
    status: 403,
    type: 'permission_error',
    sentence: 'Pages of other origins may not call this endpoint. Add the exact origin in the settings if it is yours.',
  },
  bad_request_line: invalid(
    400,
    'The request line or headers are malformed. Use HTTP/1.1 with one Host header and a relative path.',
  ),
  headers_too_large: invalid(431, 'The headers are larger than 16 KiB. Send fewer or shorter ones.'),
  upgrade_required: invalid(
    426,
    'This route is a WebSocket. Connect with the sub-protocols switchyard.v1 and a fresh ticket.',
  ),
  invalid_api_key: {
    status: 401,
    type: 'authentication_error',
    sentence: 'The API key is missing or not known. Send Authorization: Bearer with a key made in Keys.',
  },
  invalid_admin_token: {
    status: 401,
    type: 'authentication_error',
    sentence:
      'The admin token is missing or not known. Send Authorization: Bearer with the token printed at the first start.',
  },
  invalid_ticket: {
    status: 401,
    type: 'authentication_error',
    sentence: 'The ticket is used, too old or unknown. Open the console again from the address that Switchyard prints.',
  },
  tls_required: {
    status: 403,
    type: 'permission_error',
    sentence: 'Administration over the network needs TLS. Use the loopback address or set up a certificate.',
  },
  policy_not_allowed: {
    status: 403,
    type: 'permission_error',
    sentence:
      'This key may not send work further out than the role does. Use a key that may (allowWiden; under Keys: "May send work further out") or a narrower policy.',
  },
  project_not_allowed: {
    status: 403,
    type: 'permission_error',
    sentence: 'This key belongs to another project. Leave project out or use a key with anyProject.',
  },
  too_many_in_flight: {
    status: 429,
    type: 'rate_limit_error',
    sentence: 'This key has 64 requests in flight. Wait for one to end.',
  },
  too_many_readers: {
    status: 429,
    type: 'rate_limit_error',
    sentence: 'There are 16 readers of events already. Close one.',
  },
  role_not_allowed: {
    status: 403,
    type: 'permission_error',
    sentence: 'This key may not use this role. Use a key whose scope includes it.',
  },
  rate_limited: {
    status: 429,
    type: 'rate_limit_error',
    sentence: 'This key has used up its requests or tokens for this minute. Wait as Retry-After says.',
  },
  key_spend_reached: {
    status: 429,
    type: 'rate_limit_error',
    sentence: 'This key has spent its dollars for today. It may go on after midnight UTC or when its limit is raised.',
  },
  invalid_cloud_key: invalid(
    400,
    'The key must be 8 to 512 printable ASCII characters, sent as application/octet-stream.',
  ),
  no_key_agent: unavailable(
    503,
    'No agent is there to take the OpenRouter key. Wait until a machine is ready, or add one, then enter the key again.',
  ),
  idempotency_mismatch: invalid(
    422,
    'This Idempotency-Key was used with another body. Use a new key for a new request.',
  ),
  idempotency_running: invalid(
    409,
    'A request with this Idempotency-Key is running and its answer cannot be shared. Wait for it and ask again.',
  ),
  idempotency_unavailable: unavailable(
    503,
    'It cannot be checked whether this Idempotency-Key was used. Try again, or send the request without it.',
  ),
  // Routing
  role_disabled: unavailable(503, 'The operator has switched this role off.'),
  no_provider: unavailable(503, 'Nobody can serve this request now. The message lists each provider with its reason.'),
  queue_full: {
    status: 429,
    type: 'rate_limit_error',
    sentence: 'The queue of this role is full. Wait as Retry-After says.',
  },
  queue_timeout: unavailable(
    503,
    'No provider became free before the deadline. Try again later or raise the priority.',
  ),
  shutting_down: unavailable(503, 'Switchyard is stopping. Send the request again when it is back.'),
  // Embedding spaces
  space_unfounded: unavailable(
    503,
    'This role has no vector space yet. Found one with POST /admin/spaces; the message lists the candidates.',
  ),
  space_mismatch: invalid(
    409,
    'The asserted vector space is unknown or retired, or the model belongs to another one. Rebuild the index in the current space.',
  ),
  new_space_required: invalid(
    409,
    'No encoder of this space can follow that change. Confirm a new space, which means rebuilding the index.',
  ),
  founder_refused: invalid(
    409,
    'This encoder fails a check of the gate and cannot found a space. The message names the check; choose another one.',
  ),
  invalid_space_file: invalid(
    400,
    'This is not a whole export of a space: it was changed, cut or made by a newer version. Export it again.',
  ),
  space_exists: invalid(409, 'A space of this id with other reference vectors is already here. Nothing was changed.'),
  space_anchor_lost: unavailable(503, 'The reference vectors of this space are lost. Import the space from an export.'),
  confirmation_required: invalid(
    409,
    'This change replaces a vector space and makes the index worthless. Repeat it with confirm: true if that is meant.',
  ),
  leaving_unconfirmed: invalid(
    409,
    'This would let texts out of the network that so far may not leave. Repeat it with confirm: true if that is meant.',
  ),
  // Engines and agents
  engine_error: unavailable(502, 'The engine failed. The provider and its reason are on the trace.'),
  engine_busy: unavailable(503, 'Every engine that could serve this is busy. Wait as Retry-After says.'),
  engine_refused: invalid(400, 'The engine refused the request as malformed. Check the parameters of the request.'),
  engine_invalid_response: unavailable(
    502,
    'The engine answered with something that cannot be used (not finite, wrong width or too few vectors). The provider is parked.',
  ),
  engine_timeout: unavailable(504, 'The engine did not answer in time.'),
  stream_interrupted: unavailable(
    502,
    'The stream broke after it had begun. What arrived is incomplete; send the request again.',
  ),
  agent_lost: unavailable(502, 'The machine that did the work was lost. Send the request again.'),
  client_closed: { status: 499, type: 'invalid_request_error', sentence: 'The client closed the connection.' },
  // Fleet
  node_not_found: {
    status: 404,
    type: 'not_found_error',
    sentence: 'There is no such machine. GET /admin/nodes lists them.',
  },
  enrolment_not_found: {
    status: 404,
    type: 'not_found_error',
    sentence: 'There is no such one-time command. GET /admin/enrolments lists them.',
  },
  too_many_enrolments: invalid(
    409,
    'Eight machines are being added already. Wait until one has joined, or withdraw a command.',
  ),
  node_exists: invalid(409, 'This machine is already in the fleet.'),
  invalid_address: invalid(
    400,
    'The address is not HOST or HOST:PORT. Link-local IPv6 keeps its zone, as in [fe80::1%25eth0]:7412.',
  ),
  invalid_join_code: invalid(
    400,
    'A join code has 16 letters and digits, such as 7K3M-Q2XH-9PZR-4TVW (never the letter U). Read it again where the agent prints it.',
  ),
  join_refused: invalid(
    403,
    'The agent refused the join code: it is wrong, used or shut out for 30 minutes. Show a new one with: npm run agent -- code.',
  ),
  node_unreachable: unavailable(
    502,
    'Nothing answers as an agent at that address. Check that the agent runs and that its port is open.',
  ),
  identity_changed: invalid(
    409,
    'The machine shows another certificate than the one it was paired with. If you re-installed it, remove it and pair again.',
  ),
  wire_version: invalid(409, 'Agent and control plane speak different versions. Upgrade the older one.'),
  too_many_controllers: invalid(409, 'The agent already serves 8 control planes. Remove one on that machine.'),
  provider_not_found: {
    status: 404,
    type: 'not_found_error',
    sentence: 'There is no such provider. GET /admin/providers lists them.',
  },
  role_not_found: {
    status: 404,
    type: 'not_found_error',
    sentence: 'There is no such role. GET /admin/roles lists them.',
  },
  space_not_found: {
    status: 404,
    type: 'not_found_error',
    sentence: 'There is no such space. GET /admin/spaces lists them.',
  },
  request_not_found: {
    status: 404,
    type: 'not_found_error',
    sentence: 'No trace of that request is kept. Traces are kept for 7 days.',
  },
  // Start
  address_absent: invalid(
    400,
    'This machine has no such address. Listen on 127.0.0.1, on 0.0.0.0 (all of them), or on an address that it has.',
  ),
  address_unknown: invalid(
    400,
    'No address is found by that name. Enter an IP address of this machine, or a name that leads to one.',
  ),
  address_in_use: unavailable(503, 'Another program listens on this address. Stop it or choose another port.'),
  // Store
  store_unavailable: unavailable(
    503,
    'The database cannot be written. Serving goes on; changes are refused until it is back.',
  ),
  store_in_use: unavailable(
    409,
    'Another Switchyard process owns this data folder. Stop it, or give this one a folder of its own.',
  ),
  store_newer: unavailable(
    500,
    'A newer Switchyard wrote this database. Install that version again, or restore a backup that this one reads.',
  ),
  version_conflict: invalid(409, 'Somebody changed this meanwhile. Read it again and repeat the change.'),
  project_not_found: {
    status: 404,
    type: 'not_found_error',
    sentence: 'There is no such project. GET /admin/projects lists them.',
  },
  key_not_found: {
    status: 404,
    type: 'not_found_error',
    sentence: 'There is no such API key. GET /admin/keys lists them.',
  },
  vault_damaged: unavailable(
    503,
    'A sealed record does not open: it was changed or belongs elsewhere. Restore a backup, or pair the machine again.',
  ),
  vault_locked: unavailable(503, 'The key that opens the vault is missing. Give the keyring that sealed it.'),
  not_ready: unavailable(503, 'Switchyard is starting and takes no work yet. Ask again in a second.'),
  internal_error: unavailable(500, 'Something went wrong inside Switchyard. The request id finds it in the log.'),
} as const satisfies Record<string, ErrorDefinition>;

export type ErrorCode = keyof typeof ERRORS;

/** The only error that crosses rooms. `detail` is ours, never a foreign message, and safe to show and log. */
export class SwitchyardError extends Error {
  readonly code: ErrorCode;
  /** Extra members of the error object, e.g. failing indices. JSON-serialisable, no secrets, no prompts. */
  readonly extra: Readonly<Record<string, unknown>>;
  readonly retryAfterMs: number | null;
  /** `message` by code and figures, for a console in another language; null: it is the code's own, or cannot be said anew. */
  readonly says: Said | null;

  constructor(
    code: ErrorCode,
    detail?: string | Said,
    options: { extra?: Record<string, unknown>; retryAfterMs?: number } = {},
  ) {
    super(typeof detail === 'object' ? detail.sentence : (detail ?? ERRORS[code].sentence));
    this.says = typeof detail === 'object' ? detail : null;
    this.name = 'SwitchyardError';
    this.code = code;
    this.extra = options.extra ?? {};
    this.retryAfterMs = options.retryAfterMs ?? null;
  }

  get status(): number {
    return ERRORS[this.code].status;
  }
}
