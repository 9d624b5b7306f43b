import { createHash } from 'node:crypto';
import type { KeyView, Output, ParsedInput } from '../../preload/contract.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { ProjectId } from '../domain/ids.ts';
import { ROLE_IDS } from '../domain/roles.ts';
import type { ApiKeyRecord, UsageRow as StoredUsage } from '../store/ports.ts';
import type { House } from './house.ts';

/** Makes a tool key: 256 random bits. The text leaves once, in this answer; only its hash is stored. */
export function newSecret(randomBytes: House['randomBytes'], prefix: 'sy' | 'sya'): { secret: string; sha256: string } {
  const secret = `${prefix}-${Buffer.from(randomBytes(32)).toString('base64url')}`;
  return { secret, sha256: createHash('sha256').update(secret).digest('hex') };
}

export function keyView(key: ApiKeyRecord, house: House): KeyView {
  const project = house.store.access.projects().find(({ id }) => id === key.project);
  return {
    id: key.id,
    name: key.name,
    project: key.project,
    projectName: project?.name ?? key.project,
    scopes: ['inference'],
    allowWiden: key.allowWiden,
    anyProject: key.anyProject,
    maxClass: key.classCap,
    requestsPerMinute: key.limits.requestsPerMinute,
    tokensPerMinute: key.limits.tokensPerMinute,
    usdPerDay: key.limits.usdPerDay,
    createdAtMs: Math.round(key.createdAtMs),
    lastUsedAtMs: key.lastUsedAtMs === null ? null : Math.round(key.lastUsedAtMs),
    revokedAtMs: key.revokedAtMs === null ? null : Math.round(key.revokedAtMs),
  };
}

export async function createKey(input: ParsedInput<'keys.create'>, house: House): Promise<Output<'keys.create'>> {
  const { access } = house.store;
  const nowMs = house.clock.wallMs();
  let project = access.projects().find(({ name }) => name === input.project);
  if (!project) {
    project = { id: projectIdOf(input.project, house), name: input.project, createdAtMs: nowMs };
    await access.addProject(project);
  }
  const { secret, sha256 } = newSecret(house.randomBytes, 'sy');
  const record = {
    id: `key-${Buffer.from(house.randomBytes(6)).toString('hex')}`,
    name: input.name,
    project: project.id,
    hint: secret.slice(-4),
    allowWiden: input.allowWiden,
    anyProject: input.anyProject,
    classCap: input.maxClass,
    roles: null,
    limits: {
      requestsPerMinute: input.requestsPerMinute,
      tokensPerMinute: input.tokensPerMinute,
      usdPerDay: input.usdPerDay,
    },
    createdAtMs: nowMs,
  };
  await access.addApiKey(record, sha256);
  return { key: keyView({ ...record, lastUsedAtMs: null, revokedAtMs: null }, house), secret };
}

/** Readable where the name allows it, unique always. */
function projectIdOf(name: string, house: House): ProjectId {
  const slug = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 40);
  const taken = new Set<string>(house.store.access.projects().map(({ id }) => id));
  if (slug && !taken.has(slug)) return slug as ProjectId;
  return `${slug || 'project'}-${Buffer.from(house.randomBytes(4)).toString('hex')}` as ProjectId;
}

export async function revokeKey(id: string, house: House): Promise<void> {
  if (!house.store.access.apiKeys().some((key) => key.id === id)) throw new SwitchyardError('key_not_found');
  await house.store.access.revokeApiKey(id, house.clock.wallMs());
}

export async function usage(input: ParsedInput<'usage.get'>, house: House): Promise<Output<'usage.get'>> {
  const nowMs = house.clock.wallMs();
  const day = (atMs: number) => new Date(atMs).toISOString().slice(0, 10);
  const rows = await house.store.usage.query({
    fromDay: day(nowMs - (input.days - 1) * 86_400_000),
    toDay: day(nowMs),
  });
  const groups = new Map<string, StoredUsage[]>();
  for (const row of rows) {
    const group = { project: row.project, key: row.key ?? '', role: row.role, model: row.model ?? '' }[input.by];
    groups.set(group, [...(groups.get(group) ?? []), row]);
  }
  const sum = (of: readonly StoredUsage[], value: (row: StoredUsage) => number) =>
    of.reduce((total, row) => total + value(row), 0);
  const unmetered = house.store.health().dropped.usage;
  const names = new Map<string, string>([
    ...house.store.access.projects().map(({ id, name }): [string, string] => [id, name]),
    ...house.store.access.apiKeys().map(({ id, name }): [string, string] => [id, name]),
    ...ROLE_IDS.map((role): [string, string] => [role, role]),
  ]);
  return {
    rows: [...groups].map(([id, of]) => ({
      id: id || 'none',
      name: (names.get(id) ?? id) || 'without a key',
      requests: sum(of, ({ requests }) => requests),
      localRequests: sum(
        of.filter(({ route }) => route === 'local'),
        ({ requests }) => requests,
      ),
      cloudRequests: sum(
        of.filter(({ route }) => route === 'cloud'),
        ({ requests }) => requests,
      ),
      failed: sum(of, ({ failures }) => failures),
      promptTokens: sum(of, ({ promptTokens }) => promptTokens),
      completionTokens: sum(of, ({ completionTokens }) => completionTokens),
      costUsd: sum(of, ({ costUsd }) => costUsd),
      unmetered: 0,
    })),
    unmetered,
    totalUsd: sum(rows, ({ costUsd }) => costUsd),
  };
}
