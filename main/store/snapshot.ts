import type { NodeId, ProviderId } from '../domain/ids.ts';
import { defaultRoleSettings, isRoleId, type RoleId, type RoleSettings } from '../domain/roles.ts';
import { type Said, said } from '../domain/said.ts';
import type { ApiKey } from '../gateway/ports.ts';
import type { ApiKeyRecord, Json, NodeRecord, PendingPairingRecord, ProjectRecord, Versioned } from './ports.ts';
import type { BaseWeight, NodeChange } from './repositories/nodes.ts';
import { closedRoleSettings, readRoleDocument } from './role-document.ts';
import type { Configuration } from './worker-api.ts';

const SETTINGS = 'settings:';
const ROLE = 'role:';
export const settingsDocument = (name: string): string => `${SETTINGS}${name}`;
export const roleDocument = (role: RoleId): string => `${ROLE}${role}`;
const BUDGET = 'budget';

/**
 * The last good configuration in memory. Requests are served from it whatever the disk does; it changes only after the database
 * has taken a change, with one exception: what is revoked is gone here at once.
 */
export class Snapshot {
  readonly #settings = new Map<string, Versioned<Json>>();
  readonly #roles = new Map<RoleId, Versioned<RoleSettings>>();
  readonly #nodes = new Map<NodeId, NodeRecord>();
  readonly #nodeKeys = new Map<NodeId, Uint8Array>();
  #pending: readonly PendingPairingRecord[] = [];
  readonly #weights = new Map<ProviderId, BaseWeight>();
  readonly #projects = new Map<string, ProjectRecord>();
  readonly #apiKeys = new Map<string, ApiKeyRecord>();
  readonly #idByHash = new Map<string, string>();
  #adminTokenSha256: string | null = null;
  #budget: Json = null;
  /** By document: one that is written again is understood. */
  readonly #problems = new Map<string, Said>();

  /** Takes over what the database holds. */
  replace(configuration: Configuration): void {
    for (const map of [this.#settings, this.#roles, this.#nodes, this.#weights, this.#projects, this.#apiKeys])
      map.clear();
    this.#idByHash.clear();
    for (const key of this.#nodeKeys.values()) key.fill(0);
    this.#nodeKeys.clear();
    this.#problems.clear();
    for (const { name, version, body } of configuration.documents) this.putDocument(name, version, body);
    for (const { record, key } of configuration.nodes) {
      this.#nodes.set(record.id, record);
      if (key) this.#nodeKeys.set(record.id, key);
    }
    this.#pending = configuration.pending;
    for (const weight of configuration.weights) this.#weights.set(weight.provider, weight);
    for (const project of configuration.projects) this.#projects.set(project.id, project);
    for (const { record, sha256 } of configuration.apiKeys) this.putApiKey(record, sha256);
    this.#adminTokenSha256 = configuration.adminTokenSha256;
  }

  /** Documents that could not be understood. */
  get problems(): readonly Said[] {
    return [...this.#problems.values()];
  }

  putDocument(name: string, version: number, body: string): void {
    this.#problems.delete(name);
    const role = name.slice(ROLE.length);
    if (name.startsWith(ROLE) && isRoleId(role)) {
      const settings = readRoleDocument(role, body);
      if (!settings) {
        this.#problems.set(name, said('store_role_unread', { role }));
      }
      this.#roles.set(role, { version, value: settings ?? closedRoleSettings(role) });
      return;
    }
    const value = parseJson(body);
    if (name === BUDGET) {
      // Not null: null is a budget that was never saved, which starts unpaused.
      this.#budget = value ?? 'unreadable';
      if (value === undefined) {
        this.#problems.set(name, said('store_budget_unread'));
      }
    }
    if (!name.startsWith(SETTINGS)) return;
    const settings = name.slice(SETTINGS.length);
    if (value === undefined) {
      const says =
        settings === 'project-caps' ? said('project_caps_unread') : said('store_settings_unread', { settings });
      this.#problems.set(name, says);
    }
    // Kept as null: that there is such a row, and nobody knows what it says, is not the same as none.
    this.#settings.set(settings, { version, value: value ?? null });
  }

  settings(name: string): Versioned<Json> | null {
    return this.#settings.get(name) ?? null;
  }

  role(role: RoleId): Versioned<RoleSettings> {
    return this.#roles.get(role) ?? { version: 0, value: defaultRoleSettings(role) };
  }

  get budget(): Json {
    return this.#budget;
  }

  set budget(state: Json) {
    this.#budget = state;
  }

  nodes(): readonly NodeRecord[] {
    return [...this.#nodes.values()];
  }

  node(id: NodeId): NodeRecord | null {
    return this.#nodes.get(id) ?? null;
  }

  nodeKey(id: NodeId): Uint8Array | null {
    const key = this.#nodeKeys.get(id);
    return key ? Uint8Array.from(key) : null;
  }

  addNode(record: NodeRecord, key: Uint8Array): void {
    this.#nodes.set(record.id, record);
    this.#nodeKeys.set(record.id, Uint8Array.from(key));
    this.dropPending(record.id);
  }

  updateNode(id: NodeId, change: NodeChange): void {
    const record = this.#nodes.get(id);
    if (record) this.#nodes.set(id, { ...record, ...change });
  }

  removeNode(id: NodeId): void {
    this.#nodes.delete(id);
    this.#nodeKeys.get(id)?.fill(0);
    this.#nodeKeys.delete(id);
    this.dropPending(id);
    for (const [provider, { node }] of this.#weights) if (node === id) this.#weights.delete(provider);
  }

  pending(address: string): readonly PendingPairingRecord[] {
    return this.#pending
      .filter((pending) => pending.address === address)
      .map((pending) => ({ ...pending, key: Uint8Array.from(pending.key) }));
  }

  putPending(pending: PendingPairingRecord): void {
    const others = this.#pending.filter(({ node }) => node !== pending.node);
    this.#pending = [{ ...pending, key: Uint8Array.from(pending.key) }, ...others];
  }

  dropPending(node: string): void {
    this.#pending = this.#pending.filter((pending) => pending.node !== node);
  }

  baseWeight(provider: ProviderId): number {
    return this.#weights.get(provider)?.weight ?? 1;
  }

  setBaseWeight(provider: ProviderId, node: NodeId, weight: number | null): void {
    if (weight === null) this.#weights.delete(provider);
    else this.#weights.set(provider, { provider, node, weight });
  }

  projects(): readonly ProjectRecord[] {
    return [...this.#projects.values()];
  }

  hasProject(id: string): boolean {
    return this.#projects.has(id);
  }

  putProject(project: ProjectRecord): void {
    this.#projects.set(project.id, project);
  }

  apiKeys(): readonly ApiKeyRecord[] {
    return [...this.#apiKeys.values()];
  }

  findApiKey(sha256: string): ApiKey | null {
    const key = this.#apiKeys.get(this.#idByHash.get(sha256) ?? '');
    return key && key.revokedAtMs === null ? key : null;
  }

  putApiKey(record: ApiKeyRecord, sha256: string): void {
    this.#apiKeys.set(record.id, record);
    this.#idByHash.set(sha256, record.id);
  }

  revokeApiKey(id: string, atMs: number): void {
    const key = this.#apiKeys.get(id);
    if (key) this.#apiKeys.set(id, { ...key, revokedAtMs: key.revokedAtMs ?? atMs });
  }

  /** @returns false when this minute is noted already. */
  noteUse(id: string, atMs: number): boolean {
    const key = this.#apiKeys.get(id);
    const minute = Math.floor(atMs / 60_000) * 60_000;
    if (!key || (key.lastUsedAtMs ?? 0) >= minute) return false;
    this.#apiKeys.set(id, { ...key, lastUsedAtMs: minute });
    return true;
  }

  get adminTokenSha256(): string | null {
    return this.#adminTokenSha256;
  }

  set adminTokenSha256(sha256: string | null) {
    this.#adminTokenSha256 = sha256;
  }
}

/** Undefined: no JSON. Its message would quote the text. */
function parseJson(body: string): Json | undefined {
  try {
    return JSON.parse(body) as Json;
  } catch {
    return undefined;
  }
}
