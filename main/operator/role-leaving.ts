import type { LeavingView, RolePatch } from '../../preload/contract.ts';
import type { RoleId } from '../domain/roles.ts';
import type { House } from './house.ts';
import { patchRole } from './role-views.ts';

/**
 * Where texts of a role would go from then on, when a change lets go of `local`. Null for every other change: what may leave already
 * may, and a narrower policy lets out less.
 */
export function leavingBy(role: RoleId, patch: RolePatch, house: House): LeavingView | null {
  const before = house.roles()[role];
  const after = patchRole(before, patch);
  if (before.policy !== 'local' || after.policy === 'local') return null;
  const { model, upstreams } = after.cloud;
  const hosts = house.cloud
    .status()
    .holders.flatMap(({ baseUrl }) => (baseUrl === null ? [] : [new URL(baseUrl).host]));
  return {
    openRouter: model === null ? null : { hosts: [...new Set(hosts)].sort(), model, upstreams: [...upstreams] },
    elsewhere: [...new Set(publicHosts(role, house))].sort(),
  };
}

/** An engine at a public address, or a model that its engine runs elsewhere, is in the cloud without being OpenRouter's. */
function publicHosts(role: RoleId, house: House): readonly string[] {
  return house
    .routed()
    .filter((provider) => provider.role === role && provider.kind === 'cloud' && provider.engineKind !== 'openrouter')
    .flatMap((provider) => {
      const node = house.fleet.get(provider.node);
      const engine = node?.heartbeat?.engines.find((one) => one.engine === provider.engine);
      const remote = engine?.models.find(({ model }) => model === provider.model)?.remoteHost;
      const host = remote ?? engine?.address;
      return host === undefined ? [] : [host.slice(0, 256)];
    });
}
