import type { Input } from '../../preload/contract.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { ProviderId } from '../domain/ids.ts';
import { said } from '../domain/said.ts';
import type { Space } from '../gate/space.ts';
import type { House } from './house.ts';
import { patchRole, roleEffect } from './role-views.ts';

/**
 * Founds a space, and changes the role with it where a patch is sent. Both are kept in one transaction after the founder was
 * measured under the wanted settings: a refused founder, a full disk or a crash leaves space and role as they were.
 *
 * @throws SwitchyardError as `Gate.found`; invalid_request when the patch cannot hold in the new space
 */
export async function foundSpace(
  { role, founder, width, patch, confirm }: Input<'spaces.found'>,
  house: House,
): Promise<Space> {
  const stored = house.store.roles.get(role);
  const isChange = patch !== undefined && Object.keys(patch).length > 0;
  const settings = isChange ? patchRole(stored.value, patch) : stored.value;
  if (isChange) {
    // What is wrong with a patch whatever the space.
    const { effect, error } = roleEffect(role, { ...patch, cutDimensions: undefined }, house);
    if (error && effect === 'plain') throw error;
    const wide = width ?? settings.dimension;
    if (width !== undefined && settings.dimension !== null && settings.dimension !== width) {
      throw new SwitchyardError('invalid_request', said('found_two_widths', { width, dimension: settings.dimension }));
    }
    const cut = settings.cutDimensions.find((one) => wide !== null && one >= wide);
    if (cut !== undefined && wide !== null) {
      throw new SwitchyardError('invalid_request', said('cut_too_wide', { width: wide, cut }));
    }
  }
  const { space } = await house.gate.found({
    role,
    founder: founder as ProviderId,
    width: width ?? null,
    confirm: confirm ?? false,
    change: isChange ? { settings, ifVersion: stored.version } : null,
  });
  if (isChange) house.rolesChanged();
  house.refresh();
  return space;
}
