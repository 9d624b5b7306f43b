import type { ErrorCode } from '../domain/errors.ts';
import type { Lane } from './lane.ts';
import type { ReasonCode } from './reasons.ts';
import type { RoleState } from './role.ts';
import type { ProviderRefusal, SubmitResult } from './types.ts';

/** Reasons that speak of the request's kind of work, not of a provider that fails it. */
const NOT_MEANT: readonly ReasonCode[] = ['other_model', 'policy_local', 'policy_cloud'];

export function refusedSubmit(
  code: ErrorCode,
  retryAfterMs: number | null,
  reasons: readonly ProviderRefusal[],
): SubmitResult {
  return { accepted: false, code, retryAfterMs, reasons };
}

/** With nobody eligible: the caller's own doing when every provider that is meant has too small a context window. */
export function verdictOnNobody(lane: Lane): ErrorCode {
  const meant = lane.refused.filter(({ reason }) => !NOT_MEANT.includes(reason));
  const tooSmall = meant.length > 0 && meant.every(({ reason }) => reason === 'context_too_small');
  return tooSmall ? 'context_too_long' : 'no_provider';
}

/** Earliest moment at which a parked or cooling provider of the lane may be tried; null: nothing is due. */
export function retryAfterOf(role: RoleState, lane: Lane, nowMs: number): number | null {
  let earliestMs = Number.POSITIVE_INFINITY;
  const refused = new Map(lane.refused.map(({ provider, reason }) => [provider, reason]));
  for (const provider of role.providers) {
    const reason = refused.get(provider.id);
    if (reason === 'parked') earliestMs = Math.min(earliestMs, provider.parkedUntilMs ?? earliestMs);
    if (reason === 'probe_failed') earliestMs = Math.min(earliestMs, provider.routed.nextProbeAtMs ?? earliestMs);
  }
  return earliestMs === Number.POSITIVE_INFINITY ? null : Math.max(1000, earliestMs - nowMs);
}
