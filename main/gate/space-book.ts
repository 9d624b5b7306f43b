import type { SpaceId } from '../domain/ids.ts';
import type { RoleId } from '../domain/roles.ts';
import { type Digest, fromBytes, toBytes } from './bytes.ts';
import { anchorTexts } from './probes.ts';
import type { Space, SpaceFacts } from './space.ts';
import type { GateStore, RoleChange, StoredMatrix, StoredSpace } from './store-port.ts';

export function storeMatrix(values: Float32Array, digest: Digest): StoredMatrix {
  const bytes = toBytes(values);
  return { bytes, sha256: digest(bytes) };
}

/** Null when the bytes are not what was stored: a damaged reference is a lost one. */
export function restoreMatrix(stored: StoredMatrix | null, length: number, digest: Digest): Float32Array | null {
  if (stored === null || digest(stored.bytes) !== stored.sha256) return null;
  const values = fromBytes(stored.bytes);
  return values === null || values.length !== length ? null : values;
}

/** All spaces, and which one each role answers in. A change is on disk before it counts. */
export class SpaceBook {
  readonly #store: GateStore;
  readonly #digest: Digest;
  readonly #spaces = new Map<SpaceId, Space>();
  readonly #current = new Map<RoleId, SpaceId>();

  constructor(store: GateStore, digest: Digest) {
    this.#store = store;
    this.#digest = digest;
  }

  load(stored: readonly StoredSpace[]): void {
    for (const { facts, anchor, current } of stored) {
      const length = anchorTexts(facts.probes).length * facts.width;
      this.#spaces.set(facts.id, { ...facts, anchor: restoreMatrix(anchor, length, this.#digest) });
      if (current && facts.retiredAtMs === null) this.#current.set(facts.role, facts.id);
    }
  }

  get(id: SpaceId): Space | null {
    return this.#spaces.get(id) ?? null;
  }

  all(): readonly Space[] {
    return [...this.#spaces.values()];
  }

  current(role: RoleId): Space | null {
    const id = this.#current.get(role);
    return id === undefined ? null : this.get(id);
  }

  /** Spaces of a role that are still served: the current one and those kept beside it. */
  served(role: RoleId): readonly Space[] {
    return this.all().filter((space) => space.role === role && space.retiredAtMs === null);
  }

  /** @throws SwitchyardError store_unavailable (whatever the store rejects with); then nothing changed here either */
  async save(space: Space, makeCurrent: boolean, role: RoleChange | null = null): Promise<void> {
    const { anchor, ...facts } = space;
    const stays = this.#current.get(space.role) === space.id && facts.retiredAtMs === null;
    const current = makeCurrent || stays;
    const stored: StoredSpace = {
      facts: facts satisfies SpaceFacts,
      anchor: anchor === null ? null : storeMatrix(anchor, this.#digest),
      current,
    };
    await this.#store.saveSpace(stored, role);
    this.#spaces.set(space.id, space);
    if (current) this.#current.set(space.role, space.id);
    else if (this.#current.get(space.role) === space.id) this.#current.delete(space.role);
  }
}
