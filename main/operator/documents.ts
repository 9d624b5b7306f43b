import type { Output, SettingsView, UpdateView } from '../../preload/contract.ts';
import { ROLE_IDS } from '../domain/roles.ts';
import { endpointNote } from './health-endpoint.ts';
import type { House } from './house.ts';
import { SETTINGS_FORMAT } from './import-settings.ts';

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
  const content = JSON.stringify(
    { format: SETTINGS_FORMAT, settings: { ...settings, endpoint: plain }, roles },
    null,
    2,
  );
  return { fileName: 'switchyard-settings.json', mediaType: 'application/json', content };
}
