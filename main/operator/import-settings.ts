import { z } from 'zod';
import { type LeavingView, type Output, RolePatch, SettingsPatch } from '../../preload/contract.ts';
import { SwitchyardError } from '../domain/errors.ts';
import { ROLE_IDS, type RoleId } from '../domain/roles.ts';
import { type Said, said, saidOf, together } from '../domain/said.ts';
import { type GeneralSettings, knownSettings, mergeSettings } from './general-settings.ts';
import type { House } from './house.ts';
import { leavingBy } from './role-leaving.ts';
import { patchRole, roleEffect } from './role-views.ts';

export const SETTINGS_FORMAT = 'switchyard-settings/1';
const SettingsFile = z.object({
  format: z.literal(SETTINGS_FORMAT),
  settings: z.unknown(),
  roles: z.record(z.string(), z.unknown()),
});

/** What a file would do, worked out before any of it is done. */
interface ImportPlan {
  readonly settings: GeneralSettings | null;
  readonly roles: readonly { readonly role: RoleId; readonly patch: RolePatch }[];
  /** What does not fit, and stays as it is. */
  readonly skipped: readonly Said[];
  /** Roles that so far stay in the network, and where their texts would go. */
  readonly leaves: readonly { readonly role: RoleId; readonly to: LeavingView }[];
}

async function plan(content: string, house: House): Promise<ImportPlan> {
  let document: unknown;
  try {
    document = JSON.parse(content);
  } catch {
    throw new SwitchyardError('invalid_request', said('import_not_json'));
  }
  const file = SettingsFile.safeParse(document);
  if (!file.success) throw new SwitchyardError('invalid_request', said('import_not_settings'));
  const skipped: Said[] = [];
  const settings = await settingsOf(file.data.settings, house, skipped);
  const roles: { role: RoleId; patch: RolePatch }[] = [];
  for (const role of ROLE_IDS) {
    if (!(role in file.data.roles)) continue;
    const patch = RolePatch.safeParse(dropNulls(file.data.roles[role]));
    const error = patch.success ? roleEffect(role, patch.data, house).error : null;
    if (patch.success && !error) roles.push({ role, patch: patch.data });
    else
      skipped.push(
        error ? together(said('import_role_refused', { role }), saidOf(error)) : said('import_role_left', { role }),
      );
  }
  const leaves = roles.flatMap(({ role, patch }) => {
    const to = leavingBy(role, patch, house);
    return to === null ? [] : [{ role, to }];
  });
  return { settings, roles, skipped, leaves };
}

async function settingsOf(document: unknown, house: House, skipped: Said[]): Promise<GeneralSettings | null> {
  const patch = SettingsPatch.safeParse(knownSettings(document));
  if (!patch.success) {
    skipped.push(said('import_settings_left'));
    return null;
  }
  const before = house.settings();
  const after = mergeSettings(before, patch.data);
  try {
    if (after.endpoint.bind !== before.endpoint.bind) await house.app.checkAddress(after.endpoint.bind);
    return after;
  } catch (error) {
    if (!(error instanceof SwitchyardError)) throw error;
    skipped.push(together(said('import_settings_refused'), saidOf(error)));
    return null;
  }
}

const changedBy = ({ settings, roles }: ImportPlan): string[] => [
  ...(settings === null ? [] : ['settings']),
  ...roles.map(({ role }) => role),
];

/** @throws SwitchyardError invalid_request */
export async function previewImport(content: string, house: House): Promise<Output<'settings.preview'>> {
  const planned = await plan(content, house);
  return { changes: changedBy(planned), skipped: [...planned.skipped], leaves: [...planned.leaves] };
}

/**
 * Takes over what fits; what does not is said, and stays as it was.
 *
 * @throws SwitchyardError invalid_request, store_unavailable; leaving_unconfirmed when texts of a role would leave that so far may
 *   not, and nobody has said that this is meant: then nothing has changed
 */
export async function importSettings(
  content: string,
  confirm: boolean,
  house: House,
): Promise<Output<'settings.import'>> {
  const planned = await plan(content, house);
  if (planned.leaves.length > 0 && !confirm) {
    const roles = planned.leaves.map(({ role }) => role);
    throw new SwitchyardError('leaving_unconfirmed', said('import_leaves', { roles: roles.join(', ') }), {
      extra: { roles },
    });
  }
  if (planned.settings !== null) await house.setSettings(planned.settings);
  for (const { role, patch } of planned.roles) await house.setRole(role, patchRole(house.roles()[role], patch));
  return { changed: changedBy(planned), skipped: [...planned.skipped] };
}

/** A stored null of a member that takes none (the threshold of a role without vectors) means "left out". */
function dropNulls(document: unknown): unknown {
  if (typeof document !== 'object' || document === null) return document;
  return Object.fromEntries(
    Object.entries(document).filter(([name, value]) => !(name === 'threshold' && value === null)),
  );
}
