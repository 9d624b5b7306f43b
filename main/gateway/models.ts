import { SwitchyardError } from '../domain/errors.ts';
import { isPolicy, type Policy } from '../domain/policy.ts';
import { isRoleId, ROLE_IDS, ROLES, type RoleId, type Task } from '../domain/roles.ts';
import type { ServedModel } from './ports.ts';

/** What the `model` of a request comes to. */
export interface ResolvedModel {
  readonly role: RoleId;
  /** The concrete model or alias, as the client named it; null when it named the role. */
  readonly model: string | null;
  readonly suffix: Policy | null;
}

/** Names listed in a refusal; a longer list helps nobody. */
const LISTED = 100;
const LONGEST_NAME = 256;

/** Route that does each kind of work, for refusals. */
const ROUTE_OF: Readonly<Record<Task, string>> = {
  chat: 'POST /v1/chat/completions',
  embed: 'POST /v1/embeddings',
  rerank: 'POST /v1/rerank',
};

/**
 * Role id, then a whole model name or alias, then either of them with a policy suffix: so a model named `tiny:local` is never
 * cut into `tiny` and a policy. Names are compared exactly; aliases are never guessed.
 *
 * @param served concrete models; `roles` says where each belongs
 * @param task the kind of work the route does
 * @throws SwitchyardError model_not_found with what exists, ambiguous_model, invalid_request for the wrong kind of work
 */
export function resolveModel(name: string, task: Task, served: readonly ServedModel[]): ResolvedModel {
  if (name.length <= LONGEST_NAME) {
    const whole = match(name, task, served);
    if (whole !== null) return { ...whole, suffix: null };
    const colon = name.lastIndexOf(':');
    const suffix = name.slice(colon + 1);
    if (colon > 0 && isPolicy(suffix)) {
      const stem = match(name.slice(0, colon), task, served);
      if (stem !== null) return { ...stem, suffix };
    }
  }
  const models = [
    ...ROLE_IDS.filter((role) => ROLES[role].task === task),
    ...served.filter((model) => model.roles.some((role) => ROLES[role].task === task)).map((model) => model.name),
  ].slice(0, LISTED);
  throw new SwitchyardError(
    'model_not_found',
    `No model of that name is served here. There are: ${models.join(', ')}.`,
    {
      extra: { param: 'model', models },
    },
  );
}

function match(name: string, task: Task, served: readonly ServedModel[]): Omit<ResolvedModel, 'suffix'> | null {
  if (isRoleId(name)) {
    if (ROLES[name].task !== task) throw wrongTask(ROLES[name].task);
    return { role: name, model: null };
  }
  const roles = new Set<RoleId>();
  for (const model of served) {
    if (model.name === name || model.aliases.includes(name)) for (const role of model.roles) roles.add(role);
  }
  if (roles.size === 0) return null;
  const fitting = ROLE_IDS.filter((role) => roles.has(role) && ROLES[role].task === task);
  const [role, another] = fitting;
  if (role === undefined) throw wrongTask(ROLES[[...roles][0] ?? 'embedding'].task);
  if (another !== undefined) {
    throw new SwitchyardError('ambiguous_model', undefined, { extra: { param: 'model', roles: fitting } });
  }
  return { role, model: name };
}

function wrongTask(task: Task): SwitchyardError {
  return new SwitchyardError('invalid_request', `This model does other work. Use ${ROUTE_OF[task]} for it.`, {
    extra: { param: 'model' },
  });
}
