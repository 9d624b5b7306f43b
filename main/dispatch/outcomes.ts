import type { CallFailure } from '../../agent/wire/calls.ts';
import { ERRORS, type ErrorCode, SwitchyardError } from '../domain/errors.ts';
import { type Said, said } from '../domain/said.ts';
import type { AttemptOutcome, Decision, ProviderRefusal } from '../router/types.ts';

/** Codes of the wire that clients do not see under that name. */
const CLIENT_CODES: Readonly<Record<CallFailure['code'], ErrorCode>> = {
  input_too_long: 'input_too_long',
  context_too_long: 'context_too_long',
  empty_input: 'empty_input',
  engine_refused: 'engine_refused',
  engine_busy: 'engine_busy',
  engine_error: 'engine_error',
  engine_invalid_response: 'engine_invalid_response',
  engine_timeout: 'engine_timeout',
  stream_interrupted: 'stream_interrupted',
  engine_unreachable: 'engine_error',
  model_missing: 'engine_error',
  fingerprint_changed: 'engine_error',
  unsupported_task: 'engine_error',
};

/** The session broke. What an agent tells of a cloud that it could not reach came over one that lives. */
function isLost({ blame, cloud }: CallFailure): boolean {
  return blame === 'transport' && cloud === undefined;
}

export function clientCode(failure: CallFailure): ErrorCode {
  return isLost(failure) ? 'agent_lost' : CLIENT_CODES[failure.code];
}

/** What the router learns from a failed call. */
export function outcomeOf(failure: CallFailure): AttemptOutcome {
  const failing = failure.failing.map(({ index }) => index);
  const withFailing = failing.length > 0 ? { failing } : {};
  switch (failure.blame) {
    case 'caller':
      return { kind: 'callerFault', code: clientCode(failure), ...withFailing };
    case 'busy':
      return { kind: 'busy', retryAfterMs: failure.retryAfterMs };
    case 'fingerprint':
      return { kind: 'fingerprint' };
    case 'transport':
    case 'engine': {
      if (isLost(failure)) return { kind: 'failed', code: clientCode(failure), silent: 'node' };
      // A cloud that says of its upstream that it was late has spoken itself.
      const isSilence = failure.code === 'engine_timeout' || failure.code === 'engine_unreachable';
      const silent = isSilence && failure.cloud?.status == null ? 'engine' : 'no';
      return { kind: 'failed', code: clientCode(failure), silent, ...withFailing };
    }
  }
}

/**
 * The error a client gets for an item that failed.
 *
 * @param last the failure of the attempt that decided it, for its sentence and token counts; null when none was made.
 * @param offset of the failed attempt's range, so that indices are those of the request.
 */
export function errorOf(
  decision: Extract<Decision, { kind: 'fail' }>,
  last: CallFailure | null,
  offset: number,
): SwitchyardError {
  const { code, retryAfterMs, reasons, failing } = decision;
  const extra: Record<string, unknown> = {};
  if (reasons.length > 0) extra.providers = reasons.slice(0, 50);
  if (failing.length > 0) extra.failing = failing;
  if (last && last.failing.length > 0 && (code === 'input_too_long' || code === 'empty_input')) {
    extra.inputs = last.failing.map(({ index, tokens }) => ({
      index: index + offset,
      tokens,
      limit: last.limitTokens,
    }));
  }
  return new SwitchyardError(code, sentenceOf(code, reasons, last), {
    extra,
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
  });
}

function sentenceOf(code: ErrorCode, reasons: readonly ProviderRefusal[], last: CallFailure | null): string | Said {
  const { sentence } = ERRORS[code];
  if (last && !isLost(last) && clientCode(last) === code) return last.sentence || sentence;
  if (code !== 'no_provider' && code !== 'queue_timeout') return sentence;
  const counts = new Map<string, number>();
  for (const { reason } of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const refusals = [...counts].map(([reason, count]) => (count > 1 ? `${reason} (${count})` : reason)).join(', ');
  if (refusals) return `${sentence} Reasons: ${refusals}.`;
  return said('nobody_offers');
}
