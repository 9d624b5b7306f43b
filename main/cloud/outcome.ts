import type { CallFailure, Usage } from '../../agent/wire/calls.ts';
import type { CallOutcome } from '../budget/permit.ts';
import { type CloudRefusal, sourceOf } from '../budget/sources.ts';

/** What OpenRouter said in a failed call, in the budget's terms; null when it said nothing. */
export function refusalOf(failure: CallFailure): CloudRefusal | null {
  const { cloud } = failure;
  if (cloud === undefined || cloud.status === null) return null;
  const { status, limitSource, fromProvider, availability, moderated, retryAfterMs, resetAtWallMs } = cloud;
  return { status, limitSource, fromProvider, availability, moderated, retryAfterMs, resetAtWallMs };
}

/**
 * Whom a refusal limits: the pinned upstream or the model where only they are at their limit, else the account, which is no one
 * model's.
 */
export function whoseLimit(
  refusal: CloudRefusal,
  asked: { readonly model: string; readonly upstream: string | null },
): string {
  const { scope } = sourceOf(refusal);
  if (scope === 'model') return asked.model;
  return scope === 'provider' || scope === 'none' || scope === 'caller' ? (asked.upstream ?? asked.model) : 'account';
}

/** How a failed call ended, for `Budget.ended`. */
export function failedOutcome(failure: CallFailure): CallOutcome {
  const refusal = refusalOf(failure);
  // A call that was refused, or never sent, costs nothing; one that broke off counts as estimated where nothing is reported.
  const neverSent =
    failure.cloud?.key != null || failure.code === 'unsupported_task' || failure.code === 'model_missing';
  const costUsd = failure.cloud?.costUsd ?? (neverSent ? 0 : null);
  return refusal === null ? { kind: 'ended', costUsd } : { kind: 'refused', refusal, costUsd };
}

/** How a good call ended. `latencyMs`: the agent's own measure, queueing excluded. */
export function succeededOutcome(usage: Usage | null, latencyMs: number): CallOutcome {
  return { kind: 'success', latencyMs, costUsd: usage?.costUsd ?? null };
}
