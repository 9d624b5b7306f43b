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

const HANDED_OVER = 'first-run';

/**
 * Makes what a fresh data folder lacks: an id, a project with one API key, an admin token. Of secrets only hashes rest. Until a
 * start has got as far as showing them (`handedOver`), each start makes new ones: a first start that fails loses nobody's key.
 *
 * @param newAdminToken replaces the admin token, for an operator who lost it.
 */
export async function ensureFirstRun(
  store: Store,
  randomBytes: (count: number) => Uint8Array,
  wallMs: number,
  newAdminToken: boolean,
): Promise<ControlPlaneIdentity> {
  const { access, settings } = store;
  const stored = settings.get('controller')?.value;
  let controller = typeof stored === 'string' ? stored : null;
  if (controller === null) {
    controller = Buffer.from(randomBytes(16)).toString('base64url');
    await settings.put('controller', controller);
  }
  const isFirst = settings.get(HANDED_OVER) === null;
  let adminToken: string | null = null;
  if (isFirst || newAdminToken || access.adminTokenSha256() === null) {
    const made = newSecret(randomBytes, 'sya');
    await access.setAdminTokenSha256(made.sha256);
    adminToken = made.secret;
  }
  const apiKey = isFirst ? await firstKey(store, randomBytes, wallMs) : null;
  return { controller, secrets: { adminToken, apiKey } };
}

/** The secrets of this start were made and will be shown: later starts leave them alone. */
export async function handedOver(store: Store): Promise<void> {
  if (store.settings.get(HANDED_OVER) === null) await store.settings.put(HANDED_OVER, true);
}

const FIRST_KEY = 'first key';

/** The key of an earlier first start that never showed it is of no use to anybody: it is revoked. */
async function firstKey(
  { access }: Store,
  randomBytes: (count: number) => Uint8Array,
  wallMs: number,
): Promise<string> {
  if (!access.projects().some(({ id }) => id === DEFAULT_PROJECT)) {
    await access.addProject({ id: DEFAULT_PROJECT, name: 'default', createdAtMs: wallMs });
  }
  for (const { id, name, revokedAtMs } of access.apiKeys()) {
    if (name === FIRST_KEY && revokedAtMs === null) await access.revokeApiKey(id, wallMs);
  }
  const made = newSecret(randomBytes, 'sy');
  await access.addApiKey(
    {
      id: `key-${Buffer.from(randomBytes(6)).toString('hex')}`,
      name: FIRST_KEY,
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
  return made.secret;
}

/** Keys with a daily cap go on from what they have spent today (UTC). A store that cannot say leaves them at zero, as a new day would. */
export async function restoreSpend(
  limits: MemoryKeyLimits,
  store: { readonly usage: Pick<Store['usage'], 'query'> },
  wallMs: number,
): Promise<void> {
  const today = new Date(wallMs).toISOString().slice(0, 10);
  const rows = await store.usage.query({ fromDay: today, toDay: today }).catch(() => []);
  for (const { key, costUsd } of rows) if (key !== null && costUsd > 0) limits.restoreSpend(key, costUsd, wallMs);
}
