import { SwitchyardError } from '../domain/errors.ts';
import type { Policy, ProviderKind } from '../domain/policy.ts';
import { said } from '../domain/said.ts';
import type { Regime, VerdictKind } from '../domain/verdict.ts';

/** Whose encoders a policy must be able to rely on: under `cloud` the cloud's, under every other the network's own. */
export function regimeOf(policy: Policy): Regime {
  return policy === 'cloud' ? 'cloud' : 'local';
}

/** A verdict lets texts through: `pass`, or `pass-reduced` where the space itself comes from the cloud. */
export function admits(kind: VerdictKind, space: Regime): boolean {
  return kind === 'pass' || (kind === 'pass-reduced' && space === 'cloud');
}

export interface SpacePass {
  readonly kind: ProviderKind;
  readonly verdict: VerdictKind;
}

/** True when an encoder of the policy's kind founded the space or has passed in it: then that policy has somebody to ask. */
export function canFollow(policy: Policy, space: Regime, verdicts: readonly SpacePass[]): boolean {
  const needed = regimeOf(policy);
  return space === needed || verdicts.some(({ kind, verdict }) => kind === needed && admits(verdict, space));
}

/**
 * @param space regime of the role's current space; null: none yet, so any policy may be set
 * @throws SwitchyardError new_space_required. The reference is the space's, not the policy's: flipping the policy to
 *   `cloud` and back lets nobody in who has not passed.
 */
export function checkPolicyChange(policy: Policy, space: Regime | null, verdicts: readonly SpacePass[]): void {
  if (space === null || canFollow(policy, space, verdicts)) return;
  throw new SwitchyardError('new_space_required', said(policy === 'cloud' ? 'no_cloud_passed' : 'no_local_passed'));
}
