import { z } from 'zod';
import { PRIORITY_CLASSES } from '../domain/classes.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { SpaceId } from '../domain/ids.ts';
import { isPolicy, POLICIES, type Policy } from '../domain/policy.ts';
import type { Task } from '../domain/roles.ts';
import type { RequestContext, Route as WorkRoute } from '../domain/work.ts';
import { headerValue } from './header-values.ts';
import { invalidField } from './json-body.ts';
import { resolveModel } from './models.ts';
import type { KeyDirectory, ModelCatalogue, RoleRoute } from './ports.ts';
import type { WorkCall } from './routes.ts';
import { steer } from './steering.ts';

/** The body field `switchyard`; it is removed before anything is forwarded. */
export const SwitchyardField = z.strictObject({
  policy: z.enum(POLICIES).optional(),
  /** Own threshold of the wait estimate under `backup`. */
  maxWaitMs: z.number().int().min(0).max(3_600_000).optional(),
  priority: z.enum(PRIORITY_CLASSES).optional(),
  project: z.string().min(1).max(256).optional(),
  /** Embeddings: the vector space that the client's index is in. */
  space: z.string().min(1).max(128).optional(),
});
export type SwitchyardField = z.infer<typeof SwitchyardField>;

export interface PreparedRequest {
  readonly context: RequestContext;
  readonly role: RoleRoute;
  readonly field: SwitchyardField;
  /** Flat headers that say how the steering ended, where that could surprise. */
  readonly headers: readonly string[];
}

export interface PreparePorts {
  readonly catalogue: ModelCatalogue;
  readonly keys: KeyDirectory;
}

/**
 * Model, steering and rights of a request, weighed once and final.
 * @throws SwitchyardError invalid_request, model_not_found, ambiguous_model, role_not_allowed, policy_not_allowed,
 *   project_not_allowed
 */
export function prepareRequest(call: WorkCall, task: Task, ports: PreparePorts): PreparedRequest {
  const name = call.body.string('model');
  if (name === null) throw invalidField('model', 'is missing: send a role such as code-assistant, or a model');
  const resolved = resolveModel(name, task, ports.catalogue.models());
  const { key } = call;
  if (key.roles !== null && !key.roles.includes(resolved.role)) throw new SwitchyardError('role_not_allowed');
  const role = ports.catalogue.role(resolved.role);
  const field = readSwitchyardField(call);
  const steering = steer(
    {
      header: headerPolicy(call),
      field: field.policy ?? null,
      suffix: resolved.suffix,
      maxWaitMs: field.maxWaitMs ?? null,
      priority: field.priority ?? null,
      project: field.project ?? null,
    },
    role,
    key,
    (project) => ports.keys.hasProject(project),
  );
  const context: RequestContext = {
    id: call.id,
    project: steering.project,
    keyId: key.id === '' ? null : key.id,
    role: resolved.role,
    model: resolved.model,
    policy: steering.policy,
    policyFrom: steering.policyFrom,
    class: steering.class,
    maxWaitMs: steering.maxWaitMs,
    arrivedAtMs: call.arrivedAtMs,
    arrival: { path: pathOf(call), bytes: call.body.bytes.byteLength },
  };
  const headers =
    steering.overruled.length === 0
      ? []
      : ['x-switchyard-overruled', `${steering.overruled.join(',')};by=${steering.policyFrom}=${steering.policy}`];
  return { context, role, field, headers };
}

/** Work routes have no parameters: the path is the template. Never the query. */
function pathOf(call: WorkCall): string {
  return (call.request.url ?? '').split('?', 1)[0] ?? '';
}

function headerPolicy(call: WorkCall): Policy | null {
  const header = call.request.headers['x-switchyard-policy'];
  if (header === undefined) return null;
  const wish = String(header).trim();
  if (!isPolicy(wish)) throw invalidField('X-Switchyard-Policy', `must be one of ${POLICIES.join(', ')}`);
  return wish;
}

function readSwitchyardField(call: WorkCall): SwitchyardField {
  const member = call.body.member('switchyard');
  if (member === null || member.kind === 'null') return {};
  const parsed = SwitchyardField.safeParse(call.body.value('switchyard'));
  if (parsed.success) return parsed.data;
  const at = parsed.error.issues[0]?.path[0];
  const known = Object.keys(SwitchyardField.shape).find((name) => name === at);
  throw known === undefined
    ? invalidField('switchyard', `must be an object of ${Object.keys(SwitchyardField.shape).join(', ')}`)
    : invalidField(`switchyard.${known}`, 'has a value that is not taken');
}

/** Flat headers that say which way an answer came. */
export function routeHeaders(route: WorkRoute): string[] {
  return [
    'x-switchyard-provider',
    headerValue(route.provider),
    'x-switchyard-route',
    route.kind,
    'x-switchyard-queue-ms',
    String(Math.max(0, Math.round(route.queueMs))),
  ];
}

/** A space that a client asserts: `<role>-<8 hex>`, with `/<width>` when `dimensions` cut its vectors. */
export interface AssertedSpace {
  readonly id: SpaceId;
  readonly width: number | null;
}

/** @throws SwitchyardError space_mismatch for what is no space, or two that differ */
export function assertedSpace(call: WorkCall, field: SwitchyardField): AssertedSpace | null {
  const header = call.request.headers['x-switchyard-space'];
  const fromHeader = header === undefined ? null : String(header).trim();
  const text = fromHeader ?? field.space ?? null;
  if (text === null) return null;
  const parts = /^([a-z-]{1,32}-[0-9a-f]{8})(?:\/([1-9][0-9]{0,5}))?$/.exec(text);
  if (parts === null || (fromHeader !== null && field.space !== undefined && field.space !== fromHeader)) {
    throw new SwitchyardError('space_mismatch');
  }
  return { id: parts[1] as SpaceId, width: parts[2] === undefined ? null : Number(parts[2]) };
}
