import { z } from 'zod';
import type { SettingsPatch, SettingsView } from '../../preload/contract.ts';

/** Everything of the console's settings that is stored; TLS is a fact of the start, not a setting. */
export type GeneralSettings = Omit<SettingsView, 'endpoint'> & {
  readonly endpoint: Omit<SettingsView['endpoint'], 'tls'>;
};

export const DEFAULT_SETTINGS: GeneralSettings = {
  endpoint: { bind: '127.0.0.1', port: 7411, names: [], allowedOrigins: [], openLoopback: false, trustProxy: false },
  discovery: { enabled: true },
  timeouts: { firstByteMs: 600_000, betweenTokensMs: 600_000 },
  notifications: { enabled: true },
  desktop: { startAtLogin: false, closeToTray: true },
  console: { theme: 'system', language: 'system', singleKeys: true, firstRunDone: false },
  updates: { check: true },
};

const Stored = z.record(z.string(), z.record(z.string(), z.unknown()));

/** Changes group by group, member by member; what the patch leaves out stays. */
export function mergeSettings(before: GeneralSettings, patch: SettingsPatch): GeneralSettings {
  const merged: Record<string, unknown> = { ...before };
  for (const [group, members] of Object.entries(patch)) {
    if (members === undefined) continue;
    const defined = Object.entries(members).filter(([, value]) => value !== undefined);
    merged[group] = { ...(merged[group] as object), ...Object.fromEntries(defined) };
  }
  return merged as GeneralSettings;
}

/** A stored document over the defaults; members of a wrong type fall back, so that a damaged row never stops the start. */
export function readSettings(document: unknown): GeneralSettings {
  const stored = Stored.safeParse(document);
  if (!stored.success) return DEFAULT_SETTINGS;
  const settings: Record<string, Record<string, unknown>> = {};
  for (const [group, defaults] of Object.entries(DEFAULT_SETTINGS)) {
    const given = stored.data[group] ?? {};
    settings[group] = Object.fromEntries(
      Object.entries(defaults).map(([name, value]) => {
        const candidate = given[name];
        const fits = typeof candidate === typeof value && Array.isArray(candidate) === Array.isArray(value);
        return [name, fits && candidate !== null ? candidate : value];
      }),
    );
  }
  return settings as unknown as GeneralSettings;
}

/** A file of another version without what it names and this one does not know. */
export function knownSettings(document: unknown): unknown {
  const file = Stored.safeParse(document);
  if (!file.success) return document;
  return Object.fromEntries(
    Object.entries(DEFAULT_SETTINGS).flatMap(([group, defaults]) => {
      const given = Object.entries(file.data[group] ?? {});
      return group in file.data ? [[group, Object.fromEntries(given.filter(([name]) => name in defaults))]] : [];
    }),
  );
}

/** True when the change takes effect only at the next start. */
export function needsRestart(before: GeneralSettings, after: GeneralSettings): boolean {
  return JSON.stringify(before.endpoint) !== JSON.stringify(after.endpoint);
}
