import type { RolePatch } from '../../preload/contract.ts';
import { ROLES, type RoleId } from '../domain/roles.ts';
import { type Said, said } from '../domain/said.ts';
import type { House } from './house.ts';
import { patchRole } from './role-views.ts';

/** What comes of naming models by hand: one that nobody serves gets no work, and an encoder of another space no texts. */
export function namingNotes(role: RoleId, patch: RolePatch, house: House): readonly Said[] {
  const after = patchRole(house.roles()[role], patch);
  if (patch.localModels === undefined || after.localModels === 'auto') return [];
  const served = servedModels(role, house);
  const absent = after.localModels.filter((name) => !served.has(name));
  const misfits = after.localModels.filter((name) => served.has(name) && !fits(role, name, patch, house));
  return [
    ...(absent.length === 0 ? [] : [said('models_absent', { models: absent.join(', ') })]),
    ...(misfits.length === 0 ? [] : [said('models_misfit', { models: misfits.join(', ') })]),
  ];
}

/** Names and aliases of what engines of this network have for the role's task. */
function servedModels(role: RoleId, house: House): ReadonlySet<string> {
  const engines = house.fleet.nodes().flatMap((node) => (node.pulls ? (node.heartbeat?.engines ?? []) : []));
  const models = engines.filter(({ reach }) => reach !== 'public').flatMap((engine) => engine.models);
  return new Set(
    models.filter(({ tasks }) => tasks.includes(ROLES[role].task)).flatMap(({ model, aliases }) => [model, ...aliases]),
  );
}

/** False when every encoder of that name was checked in the role's space and none may serve it. */
function fits(role: RoleId, name: string, patch: RolePatch, house: House): boolean {
  if (ROLES[role].task !== 'embed') return true;
  const current = house.gate.roleSpace(role);
  if (current.state !== 'founded') return true;
  const encoders = house.gate
    .candidates(role, patchRole(house.roles()[role], { ...patch, policy: 'local' }))
    .filter(({ encoder: { provider } }) => provider.model === name || provider.aliases.includes(name));
  return encoders.length === 0 || encoders.some(({ provider }) => !isRefused(provider, current.space.id, house));
}

function isRefused(...[provider, space, house]: [...Parameters<House['gate']['verdictFor']>, House]): boolean {
  const kind = house.gate.verdictFor(provider, space);
  return kind !== 'unverified' && kind !== 'probe-failed' && !house.gate.admitted(provider, space);
}
