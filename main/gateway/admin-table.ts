import type { OperationName } from '../../preload/contract.ts';
import type { Method } from './routes.ts';

/** One route of administration and the operation of the console's contract that it is. */
export interface AdminEntry {
  readonly method: Method;
  readonly path: string;
  readonly operation: OperationName;
  /** The body is this member of the input, less the members beside it; absent: the body's members are the input's. */
  readonly bodyIs?: string;
  /** Names of path, query or body that the contract calls otherwise. */
  readonly renamed?: Readonly<Record<string, string>>;
}

/**
 * The REST form of the contract. Path parameters, query and body together make an operation's input; every operation can also
 * be called by its name with `POST /admin/op/:operation`.
 */
export const ADMIN_TABLE: readonly AdminEntry[] = [
  { method: 'GET', path: '/admin/nodes', operation: 'nodes.list' },
  { method: 'POST', path: '/admin/nodes', operation: 'nodes.add' },
  { method: 'GET', path: '/admin/nodes/:id', operation: 'nodes.detail' },
  { method: 'DELETE', path: '/admin/nodes/:id', operation: 'nodes.remove' },
  { method: 'POST', path: '/admin/nodes/:id/drain', operation: 'nodes.drain' },
  { method: 'POST', path: '/admin/nodes/:id/resume', operation: 'nodes.resume' },
  { method: 'POST', path: '/admin/nodes/:id/maintenance', operation: 'nodes.maintenance' },
  { method: 'GET', path: '/admin/discovery', operation: 'discovery.list' },
  { method: 'GET', path: '/admin/enrolments', operation: 'enrolments.list' },
  { method: 'POST', path: '/admin/enrolments', operation: 'enrolments.create' },
  { method: 'DELETE', path: '/admin/enrolments/:id', operation: 'enrolments.cancel' },
  { method: 'GET', path: '/admin/providers', operation: 'providers.list', renamed: { node: 'nodeId' } },
  { method: 'PATCH', path: '/admin/providers/:id', operation: 'providers.weigh' },
  { method: 'GET', path: '/admin/roles', operation: 'roles.list' },
  { method: 'GET', path: '/admin/roles/:id', operation: 'roles.get' },
  { method: 'PATCH', path: '/admin/roles/:id', operation: 'roles.update', bodyIs: 'patch' },
  { method: 'POST', path: '/admin/roles/:id/preview', operation: 'roles.preview', bodyIs: 'patch' },
  { method: 'GET', path: '/admin/roles/:id/models', operation: 'roles.models' },
  { method: 'GET', path: '/admin/gate', operation: 'gate.list' },
  { method: 'POST', path: '/admin/gate/verify', operation: 'gate.verify', renamed: { provider: 'providerId' } },
  {
    method: 'GET',
    path: '/admin/gate/history',
    operation: 'gate.history',
    renamed: { provider: 'providerId', space: 'spaceId' },
  },
  { method: 'GET', path: '/admin/gate/affected', operation: 'gate.affected', renamed: { provider: 'providerId' } },
  { method: 'GET', path: '/admin/gate/probes', operation: 'gate.probes' },
  { method: 'GET', path: '/admin/spaces', operation: 'spaces.list' },
  { method: 'POST', path: '/admin/spaces', operation: 'spaces.found' },
  { method: 'GET', path: '/admin/spaces/candidates', operation: 'spaces.candidates' },
  { method: 'POST', path: '/admin/spaces/import', operation: 'spaces.import' },
  { method: 'POST', path: '/admin/spaces/:id/retire', operation: 'spaces.retire' },
  { method: 'GET', path: '/admin/spaces/:id/export', operation: 'spaces.export' },
  { method: 'GET', path: '/admin/cloud', operation: 'cloud.status' },
  { method: 'POST', path: '/admin/cloud/pause', operation: 'cloud.pause' },
  { method: 'POST', path: '/admin/cloud/resume', operation: 'cloud.resume' },
  { method: 'POST', path: '/admin/cloud/test', operation: 'cloud.test' },
  { method: 'POST', path: '/admin/cloud/forget', operation: 'cloud.forget' },
  { method: 'GET', path: '/admin/budget', operation: 'budget.get' },
  { method: 'PATCH', path: '/admin/budget', operation: 'budget.set' },
  { method: 'PATCH', path: '/admin/budget/projects/:id', operation: 'budget.capProject' },
  { method: 'POST', path: '/admin/budget/dismiss', operation: 'budget.dismiss' },
  { method: 'GET', path: '/admin/requests', operation: 'requests.list', renamed: { provider: 'providerId' } },
  { method: 'GET', path: '/admin/requests/:id', operation: 'requests.get' },
  { method: 'GET', path: '/admin/events', operation: 'events.list' },
  { method: 'GET', path: '/admin/health', operation: 'health.list' },
  { method: 'GET', path: '/admin/overview', operation: 'overview.get' },
  { method: 'GET', path: '/admin/keys', operation: 'keys.list' },
  { method: 'POST', path: '/admin/keys', operation: 'keys.create' },
  { method: 'DELETE', path: '/admin/keys/:id', operation: 'keys.revoke' },
  { method: 'GET', path: '/admin/usage', operation: 'usage.get' },
  { method: 'GET', path: '/admin/settings', operation: 'settings.get' },
  { method: 'PATCH', path: '/admin/settings', operation: 'settings.set' },
  { method: 'GET', path: '/admin/settings/export', operation: 'settings.export' },
  { method: 'POST', path: '/admin/settings/preview', operation: 'settings.preview' },
  { method: 'POST', path: '/admin/settings/import', operation: 'settings.import' },
  { method: 'POST', path: '/admin/encryption/rotate', operation: 'encryption.rotate' },
  { method: 'POST', path: '/admin/backup', operation: 'store.backup' },
  { method: 'POST', path: '/admin/updates/check', operation: 'updates.check' },
  { method: 'POST', path: '/admin/updates/install', operation: 'updates.install' },
  { method: 'GET', path: '/admin/diagnostics', operation: 'diagnostics.get' },
  { method: 'GET', path: '/admin/app', operation: 'app.info' },
  { method: 'POST', path: '/admin/test', operation: 'test.request' },
];
