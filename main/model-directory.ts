import type { SpaceId } from './domain/ids.ts';
import { ROLE_IDS, ROLES, type RoleId, type RoleSettings } from './domain/roles.ts';
import type { Catalogue } from './fleet/catalogue.ts';
import type { Gate } from './gate/gate-api.ts';
import type { ModelCatalogue, ServedModel } from './gateway/ports.ts';

export interface ModelDirectoryOptions {
  readonly catalogue: () => Catalogue;
  readonly settings: (role: RoleId) => RoleSettings;
  readonly gate: Gate;
}

/** What the endpoint asks about names: roles, the models each lists, the spaces that answer. Always from memory. */
export function modelDirectory({ catalogue, settings, gate }: ModelDirectoryOptions): ModelCatalogue {
  // Asked for with every request, and another only when the catalogue is.
  let listed: { readonly of: Catalogue | null; readonly models: readonly ServedModel[] } = { of: null, models: [] };
  return {
    role(id) {
      const { policy, maxLocalWaitMs, cloud } = settings(id);
      const space = ROLES[id].task === 'embed' ? gate.roleSpace(id) : null;
      return {
        policy,
        maxLocalWaitMs,
        hasCloud: cloud.model !== null,
        space: space?.state === 'founded' ? { id: space.space.id, width: space.space.width } : null,
      };
    },
    models() {
      const now = catalogue();
      if (now !== listed.of) listed = { of: now, models: servedBy(now) };
      return listed.models;
    },
    spaceWidth(space: SpaceId) {
      const found = gate.space(space);
      return found && found.retiredAtMs === null ? found.width : null;
    },
  };
}

function servedBy({ providers }: Catalogue): readonly ServedModel[] {
  const served = new Map<
    string,
    { name: string; aliases: Set<string>; roles: Set<RoleId>; kinds: Set<'local' | 'cloud'> }
  >();
  for (const { role, model, aliases, kind } of providers) {
    const seen = served.get(model) ?? { name: model, aliases: new Set(), roles: new Set(), kinds: new Set() };
    for (const alias of aliases) seen.aliases.add(alias);
    seen.roles.add(role);
    seen.kinds.add(kind);
    served.set(model, seen);
  }
  return [...served.values()].map(({ name, aliases, roles: of, kinds }) => ({
    name,
    aliases: [...aliases],
    roles: ROLE_IDS.filter((role) => of.has(role)),
    kinds: [...kinds],
  }));
}
