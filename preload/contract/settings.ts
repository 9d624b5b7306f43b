import { z } from 'zod';
import { isListenAddress, isOrigin, isServedName } from './addresses.ts';
import {
  amount,
  atMs,
  change,
  count,
  FileIn,
  FileOut,
  id,
  label,
  ms,
  Nothing,
  Reason,
  RoleName,
  read,
  text,
} from './common.ts';
import { LeavingView } from './roles.ts';

export const ThemeName = z.enum(['system', 'light', 'dark']);
export const LanguageName = z.enum(['system', 'en', 'fr']);
export const LANGUAGES = ['en', 'fr'] as const;

const hosts = z.array(z.string().min(1).max(255)).max(32);

export const SettingsView = z.object({
  endpoint: z.object({
    bind: z.string(),
    port: count,
    names: hosts,
    allowedOrigins: hosts,
    /** Loopback callers need no API key. */
    openLoopback: z.boolean(),
    trustProxy: z.boolean(),
    tls: z.boolean(),
  }),
  discovery: z.object({ enabled: z.boolean() }),
  timeouts: z.object({ firstByteMs: ms, betweenTokensMs: ms }),
  notifications: z.object({ enabled: z.boolean() }),
  desktop: z.object({ startAtLogin: z.boolean(), closeToTray: z.boolean() }),
  console: z.object({ theme: ThemeName, language: LanguageName, singleKeys: z.boolean(), firstRunDone: z.boolean() }),
  updates: z.object({ check: z.boolean() }),
});
export type SettingsView = z.infer<typeof SettingsView>;

/** Only the members that are sent change. What needs a restart says so in the answer. */
export const SettingsPatch = z.strictObject({
  endpoint: z
    .strictObject({
      /** Also refused when this machine has no such address. */
      bind: z.string().max(255).refine(isListenAddress).optional(),
      port: z.number().int().min(0).max(65_535).optional(),
      names: z.array(z.string().max(255).refine(isServedName)).max(32).optional(),
      allowedOrigins: z.array(z.string().max(255).refine(isOrigin)).max(32).optional(),
      openLoopback: z.boolean().optional(),
      trustProxy: z.boolean().optional(),
    })
    .optional(),
  discovery: z.strictObject({ enabled: z.boolean().optional() }).optional(),
  timeouts: z
    .strictObject({
      firstByteMs: z.number().int().min(1000).max(3_600_000).optional(),
      betweenTokensMs: z.number().int().min(1000).max(3_600_000).optional(),
    })
    .optional(),
  notifications: z.strictObject({ enabled: z.boolean().optional() }).optional(),
  desktop: z.strictObject({ startAtLogin: z.boolean().optional(), closeToTray: z.boolean().optional() }).optional(),
  console: z
    .strictObject({
      theme: ThemeName.optional(),
      language: LanguageName.optional(),
      singleKeys: z.boolean().optional(),
      firstRunDone: z.boolean().optional(),
    })
    .optional(),
  updates: z.strictObject({ check: z.boolean().optional() }).optional(),
});
export type SettingsPatch = z.infer<typeof SettingsPatch>;

/** How the search for a newer version stands; only the desktop app looks for one. */
export const UpdateView = z.discriminatedUnion('state', [
  /** Nothing is ever asked: it runs from a checkout, or was built without an address to ask. */
  z.object({ state: z.literal('unavailable'), reason: z.enum(['development', 'no-feed']) }),
  z.object({ state: z.literal('idle'), checkedAtMs: atMs.nullable() }),
  z.object({ state: z.literal('checking') }),
  /** A person fetches it, from this address: this copy has no signature that could be checked. */
  z.object({ state: z.literal('available'), version: label, feedUrl: text }),
  z.object({ state: z.literal('downloading'), version: label }),
  /** Put in place when the app quits, or at once by `updates.install`. */
  z.object({ state: z.literal('ready'), version: label }),
  z.object({ state: z.literal('failed'), step: z.enum(['check', 'download']), version: label.nullable() }),
]);
export type UpdateView = z.infer<typeof UpdateView>;

export const AppView = z.object({
  version: z.string(),
  /** `desktop` under Electron, else `headless`. */
  shell: z.enum(['desktop', 'headless']),
  platform: z.string(),
  startedAtMs: atMs,
  /** `http://127.0.0.1:7411`; null while it does not listen. */
  endpoint: z.string().nullable(),
  endpointNote: Reason.nullable(),
  dataFolder: z.string(),
  dataBytes: amount.nullable(),
  encryption: z.object({
    /** Where the keyring comes from. */
    source: z.enum(['environment', 'file', 'os-keychain', 'key-file']),
    version: count,
    note: Reason.nullable(),
  }),
  store: z.enum(['ready', 'read-only', 'unavailable']),
  update: z.object({ version: z.string(), canInstall: z.boolean() }).nullable(),
  /** Null where nothing looks for updates: without the desktop. */
  updates: UpdateView.nullable(),
});
export type AppView = z.infer<typeof AppView>;

export const settingsOperations = {
  'settings.get': read('Every setting that is no secret', Nothing, SettingsView),
  'settings.set': change(
    'Change settings, member by member',
    SettingsPatch,
    z.object({ settings: SettingsView, restartNeeded: z.boolean() }),
  ),
  'settings.export': read('Settings and roles as a file, without secrets', Nothing, FileOut),
  'settings.preview': read(
    'What taking over an exported file would do, before it is done',
    z.strictObject({ content: FileIn }),
    z.object({
      /** What would be taken over: `settings` and roles. */
      changes: z.array(label),
      skipped: z.array(Reason),
      /** Roles whose texts would leave the network that so far may not, and where they would go. */
      leaves: z.array(z.object({ role: RoleName, to: LeavingView })),
    }),
  ),
  'settings.import': change(
    'Take over an exported file; one that lets out what so far stays in the network needs `confirm`',
    z.strictObject({ content: FileIn, confirm: z.boolean().optional() }),
    z.object({ changed: z.array(label), skipped: z.array(Reason) }),
  ),
  'encryption.rotate': change(
    'Re-encrypt everything in the vault with the newest key',
    Nothing,
    z.object({ rows: count, version: count }),
  ),
  'store.backup': change(
    'Write a copy of the database into the data folder, while requests go on; the newest three are kept',
    Nothing,
    z.object({ file: label }),
  ),
  'diagnostics.get': read('A bundle for a bug report, without keys, hashes, prompts and addresses', Nothing, FileOut),
  'updates.check': change('Look for a newer version now (desktop app)', Nothing, UpdateView),
  'updates.install': change(
    'End running work in order, then start again as the version that is ready (desktop app)',
    Nothing,
    z.object({ restarting: z.boolean() }),
  ),
  'app.info': read('Version, addresses, data folder, encryption', Nothing, AppView),
  'test.request': change(
    'Send one small request through the router and say who answered',
    z.strictObject({ role: RoleName }),
    z.object({
      requestId: id,
      ok: z.boolean(),
      error: Reason.nullable(),
      providerName: label.nullable(),
      model: z.string().nullable(),
      totalMs: ms,
      /** Width of the vector, number of scores, or tokens of the answer. */
      measure: z.object({ unit: z.enum(['wide', 'scores', 'tokens']), value: count }).nullable(),
    }),
  ),
} as const;
