import { PRIORITY_CLASSES, type PriorityClass } from '../domain/classes.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { ProjectId } from '../domain/ids.ts';
import { type Policy, raisesExposure } from '../domain/policy.ts';

/** What a request says about its own way, parsed and of known kinds; null where it says nothing. */
export interface SteeringWishes {
  readonly header: Policy | null;
  readonly field: Policy | null;
  readonly suffix: Policy | null;
  readonly maxWaitMs: number | null;
  readonly priority: PriorityClass | null;
  readonly project: string | null;
}

/** What the key behind it may do. */
export interface SteeringRights {
  readonly project: ProjectId;
  readonly allowWiden: boolean;
  readonly anyProject: boolean;
  readonly classCap: PriorityClass;
}

export interface Steering {
  readonly policy: Policy;
  readonly policyFrom: 'header' | 'field' | 'suffix' | 'role';
  readonly maxWaitMs: number;
  readonly class: PriorityClass;
  readonly project: ProjectId;
  /** Wishes that a stronger one overruled, weakest last, e.g. `['suffix=cloud']`; told to the client. */
  readonly overruled: readonly string[];
}

/**
 * Weighs header > body field > model suffix > role. A request may always narrow; only a key with `allowWiden` may raise
 * exposure or shorten the wait before a spill, and nobody raises a `local` role. Pure.
 *
 * @param hasProject does a project of that id exist
 * @throws SwitchyardError policy_not_allowed, project_not_allowed
 */
export function steer(
  wishes: SteeringWishes,
  role: { readonly policy: Policy; readonly maxLocalWaitMs: number },
  rights: SteeringRights,
  hasProject: (project: string) => boolean,
): Steering {
  const stated = [
    ['header', wishes.header],
    ['field', wishes.field],
    ['suffix', wishes.suffix],
  ] as const;
  let policy = role.policy;
  let policyFrom: Steering['policyFrom'] = 'role';
  const overruled: string[] = [];
  for (const [from, wish] of stated) {
    if (wish === null) continue;
    if (policyFrom === 'role') {
      policy = wish;
      policyFrom = from;
    } else if (wish !== policy) overruled.push(`${from}=${wish}`);
  }
  if (raisesExposure(role.policy, policy) && (role.policy === 'local' || !rights.allowWiden)) {
    throw new SwitchyardError('policy_not_allowed');
  }
  const maxWaitMs = wishes.maxWaitMs ?? role.maxLocalWaitMs;
  if (maxWaitMs < role.maxLocalWaitMs && !rights.allowWiden) throw new SwitchyardError('policy_not_allowed');
  return {
    policy,
    policyFrom,
    maxWaitMs,
    class: capped(wishes.priority ?? 'normal', rights.classCap),
    project: chosenProject(wishes.project, rights, hasProject),
    overruled,
  };
}

/** The lower of both: a cap is silent, as a request that says nothing has a class too. */
function capped(wanted: PriorityClass, cap: PriorityClass): PriorityClass {
  return PRIORITY_CLASSES[Math.max(PRIORITY_CLASSES.indexOf(wanted), PRIORITY_CLASSES.indexOf(cap))] ?? cap;
}

function chosenProject(
  wanted: string | null,
  rights: SteeringRights,
  hasProject: (project: string) => boolean,
): ProjectId {
  if (wanted === null || wanted === rights.project) return rights.project;
  // Whether a project exists is told only to a key that may use all of them.
  if (!rights.anyProject) throw new SwitchyardError('project_not_allowed');
  if (!hasProject(wanted)) throw new SwitchyardError('invalid_request', 'switchyard.project names no project.');
  return wanted as ProjectId;
}
