/** Which providers a role may use; ordered by exposure, least first. */
export const POLICIES = ['local', 'backup', 'aggregate', 'cloud'] as const;
export type Policy = (typeof POLICIES)[number];

export type ProviderKind = 'local' | 'cloud';

export function isPolicy(text: string): text is Policy {
  return (POLICIES as readonly string[]).includes(text);
}

/** True when `wanted` lets more leave the network than `current`: local < backup < aggregate < cloud. */
export function raisesExposure(current: Policy, wanted: Policy): boolean {
  return POLICIES.indexOf(wanted) > POLICIES.indexOf(current);
}

export function admitsKind(policy: Policy, kind: ProviderKind): boolean {
  if (policy === 'local') return kind === 'local';
  if (policy === 'cloud') return kind === 'cloud';
  return true;
}
