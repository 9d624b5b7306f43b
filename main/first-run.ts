import type { ProjectId } from './domain/ids.ts';
import type { MemoryKeyLimits } from './gateway/key-limits.ts';
import { newSecret } from './operator/keys.ts';
import type { Store } from './store/ports.ts';

export const DEFAULT_PROJECT = 'default' as ProjectId;

/** Secrets that exist as text once, for the one line of the first start; null on every later start. */
export interface FirstSecrets {
  readonly adminToken: string | null;
  readonly apiKey: string | null;
}

export interface ControlPlaneIdentity {
  /** What agents know this control plane by; made once. */
  readonly controller: string;
  readonly secrets: FirstSecrets;
}

/** Makes what a fresh data folder lacks: an id, a project with one API key, an admin token. Of secrets only hashes rest. */
export async function ensureFirstRun(
  store: Store,
  randomBytes: (count: number) => Uint8Array,
  wallMs: number,
): Promise<ControlPlaneIdentity> {
  const { access, settings } = store;
  const stored = settings.get('controller')?.value;
  let controller = typeof stored === 'string' ? stored : null;
  if (controller === null) {
    controller = Buffer.from(randomBytes(16)).toString('base64url');
    await settings.put('controller', controller);
  }
  let adminToken: string | null = null;
  if (access.adminTokenSha256() === null) {
    const made = newSecret(randomBytes, 'sya');
    await access.setAdminTokenSha256(made.sha256);
    adminToken = made.secret;
  }
  let apiKey: string | null = null;
  if (!access.projects().some(({ id }) => id === DEFAULT_PROJECT)) {
    await access.addProject({ id: DEFAULT_PROJECT, name: 'default', createdAtMs: wallMs });
    const made = newSecret(randomBytes, 'sy');
    await access.addApiKey(
      {
        id: `key-${Buffer.from(randomBytes(6)).toString('hex')}`,
        name: 'first key',
        project: DEFAULT_PROJECT,
        hint: made.secret.slice(-4),
        allowWiden: false,
        anyProject: false,
        classCap: 'interactive',
        roles: null,
        limits: { requestsPerMinute: null, tokensPerMinute: null, usdPerDay: null },
        createdAtMs: wallMs,
      },
      made.sha256,
    );
    apiKey = made.secret;
  }
  return { controller, secrets: { adminToken, apiKey } };
}

/** Keys with a daily cap go on from what they have spent today (UTC). A store that cannot say leaves them at zero, as a new day would. */
export async function restoreSpend(limits: MemoryKeyLimits, store: Store, wallMs: number): Promise<void> {
  const today = new Date(wallMs).toISOString().slice(0, 10);
  const rows = await store.usage.query({ fromDay: today, toDay: today }).catch(() => []);
  for (const { key, costUsd } of rows) if (key !== null && costUsd > 0) limits.restoreSpend(key, costUsd, wallMs);
}
