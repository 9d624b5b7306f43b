import { z } from 'zod';
import { type Output, RolePatch, SettingsPatch, type SettingsView, type UpdateView } from '../../preload/contract.ts';
import { SwitchyardError } from '../domain/errors.ts';
import { ROLE_IDS } from '../domain/roles.ts';
import { type Said, said, saidOf, together } from '../domain/said.ts';
import { knownSettings, mergeSettings } from './general-settings.ts';
import { endpointNote } from './health-endpoint.ts';
import type { House } from './house.ts';
import { patchRole, roleEffect } from './role-views.ts';

export function settingsView(house: House): SettingsView {
  const settings = house.settings();
  return { ...settings, endpoint: { ...settings.endpoint, tls: false } };
}

export function appInfo(house: House): Output<'app.info'> {
  const store = house.store.health();
  const vault = house.store.vault.report();
  return {
    version: house.app.version,
    shell: house.app.shell,
    platform: `${process.platform}-${process.arch}`,
    startedAtMs: Math.round(house.app.startedAtMs),
    endpoint: house.app.endpoint(),
    endpointNote: endpointNote(house),
    dataFolder: house.app.dataFolder,
    dataBytes: store.databaseBytes,
    encryption: {
      source: vault.source === 'keychain' ? 'os-keychain' : vault.source,
      version: vault.keyVersion,
      note: vault.weak,
    },
    store: store.state === 'ok' ? 'ready' : store.state === 'degraded' ? 'read-only' : 'unavailable',
    update: updateOf(house.updates?.state ?? null),
    updates: house.updates?.state ?? null,
  };
}

function updateOf(state: UpdateView | null): Output<'app.info'>['update'] {
  if (state?.state === 'available') return { version: state.version, canInstall: false };
  if (state?.state === 'downloading' || state?.state === 'ready') return { version: state.version, canInstall: true };
  return null;
}

const FORMAT = 'switchyard-settings/1';
const SettingsFile = z.object({
  format: z.literal(FORMAT),
  settings: z.unknown(),
  roles: z.record(z.string(), z.unknown()),
});

export function exportSettings(house: House): Output<'settings.export'> {
  const { endpoint, ...settings } = house.settings();
  const roles = Object.fromEntries(
    ROLE_IDS.map((role) => {
      // The width belongs to a space, which has an export of its own.
      const { dimension: _, ...rest } = house.roles()[role];
      return [role, rest];
    }),
  );
  // Names and origins are addresses of this network; they stay here.
  const { names: _names, allowedOrigins: _origins, bind: _bind, ...plain } = endpoint;
  const content = JSON.stringify({ format: FORMAT, settings: { ...settings, endpoint: plain }, roles }, null, 2);
  return { fileName: 'switchyard-settings.json', mediaType: 'application/json', content };
}

/** Takes over what fits; what does not is said, and stays as it was. @throws SwitchyardError invalid_request, store_unavailable. */
export async function importSettings(content: string, house: House): Promise<Output<'settings.import'>> {
  let document: unknown;
  try {
    document = JSON.parse(content);
  } catch {
    throw new SwitchyardError('invalid_request', said('import_not_json'));
  }
  const file = SettingsFile.safeParse(document);
  if (!file.success) throw new SwitchyardError('invalid_request', said('import_not_settings'));
  const changed: string[] = [];
  const skipped: Said[] = [];
  const settings = SettingsPatch.safeParse(knownSettings(file.data.settings));
  if (settings.success) {
    await house.setSettings(mergeSettings(house.settings(), settings.data));
    changed.push('settings');
  } else skipped.push(said('import_settings_left'));
  for (const role of ROLE_IDS) {
    if (!(role in file.data.roles)) continue;
    const patch = RolePatch.safeParse(dropNulls(file.data.roles[role]));
    const error = patch.success ? roleEffect(role, patch.data, house).error : null;
    if (!patch.success || error) {
      skipped.push(
        error ? together(said('import_role_refused', { role }), saidOf(error)) : said('import_role_left', { role }),
      );
      continue;
    }
    await house.setRole(role, patchRole(house.roles()[role], patch.data));
    changed.push(role);
  }
  return { changed, skipped };
}

/** A stored null of a member that takes none (the threshold of a role without vectors) means "left out". */
function dropNulls(document: unknown): unknown {
  if (typeof document !== 'object' || document === null) return document;
  return Object.fromEntries(
    Object.entries(document).filter(([name, value]) => !(name === 'threshold' && value === null)),
  );
}
