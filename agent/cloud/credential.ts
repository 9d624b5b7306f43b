import type { Clock } from '../../main/domain/time.ts';
import { type Push, type PushMeta, pinText } from '../wire/cloud.ts';
import type { AtRest } from './at-rest.ts';
import { originOf, safeBaseUrl } from './base-url.ts';

/** A key that nobody has used for so long is zeroed. */
export const UNUSED_MS = 7 * 24 * 3_600_000;

export type CloudRole = keyof NonNullable<PushMeta['roles']>;

/** What a role does in the cloud, as pushed field by field. */
export interface RoleRoute {
  readonly model: string | null;
  readonly upstreams: readonly string[];
  readonly quantizations: readonly string[];
  readonly policy: 'local' | 'backup' | 'aggregate' | 'cloud' | null;
}

const NO_ROUTE: RoleRoute = { model: null, upstreams: [], quantizations: [], policy: null };

export type KeyState = 'held' | 'missing' | 'stale';
export type ApplyResult = 'applied' | 'out-of-order' | 'bad-base-url';

/** The credential and configuration of one control plane. */
class Slot {
  key: Buffer | null = null;
  /** Push that brought the key. */
  keyPush: number | null = null;
  /** Newest push that carried a key, to whomever. */
  newestKeyPush = 0;
  push = 0;
  baseUrl: string;
  keyRefused = false;
  /** The key is to rest encrypted, and does. */
  restWanted = false;
  remembered = false;
  usedAtMs: number;
  readonly roles = new Map<CloudRole, RoleRoute>();

  constructor(baseUrl: string, nowMs: number) {
    this.baseUrl = baseUrl;
    this.usedAtMs = nowMs;
  }

  drop(): void {
    this.key?.fill(0);
    this.key = null;
    this.keyPush = null;
    this.keyRefused = false;
  }
}

/**
 * One slot per control plane. A key is bytes in a buffer of its own, outside the pool, zeroed when it goes. It belongs to
 * the origin it was pushed for.
 */
export class Credentials {
  readonly #clock: Clock;
  readonly #baseUrl: string;
  readonly #atRest: AtRest | null;
  readonly #slots = new Map<string, Slot>();
  /** Writes at rest, one after the other. */
  #writing: Promise<void> = Promise.resolve();

  constructor(options: { readonly clock: Clock; readonly baseUrl: string; readonly atRest: AtRest | null }) {
    this.#clock = options.clock;
    this.#baseUrl = options.baseUrl;
    this.#atRest = options.atRest;
  }

  get canRemember(): boolean {
    return this.#atRest !== null;
  }

  /** Takes up the keys that rest encrypted; a damaged or foreign file holds none. */
  async load(): Promise<void> {
    for (const rest of (await this.#atRest?.load()) ?? []) {
      const slot = this.#slot(rest.controller);
      if (originOf(slot.baseUrl) !== rest.origin) {
        rest.key.fill(0);
        continue;
      }
      slot.key = rest.key;
      slot.keyPush = rest.keyPush;
      slot.newestKeyPush = rest.keyPush;
      slot.restWanted = true;
      slot.remembered = true;
    }
  }

  /** Resolves when everything at rest is written. */
  settled(): Promise<void> {
    return this.#writing;
  }

  /** Merges a push into what is held. The key's bytes are copied; the frame they lie in is the caller's to zero. */
  apply(controller: string, push: Push): ApplyResult {
    const slot = this.#slot(controller);
    if (push.number <= slot.push) return 'out-of-order';
    const { meta, key } = push;
    const baseUrl = meta.baseUrl === undefined ? slot.baseUrl : safeBaseUrl(meta.baseUrl);
    if (baseUrl === null) return 'bad-base-url';
    slot.push = push.number;
    slot.newestKeyPush = Math.max(slot.newestKeyPush, meta.keyPush);
    const moved = originOf(baseUrl) !== originOf(slot.baseUrl);
    slot.baseUrl = baseUrl;
    if (moved || meta.forget === true || key !== null) slot.drop();
    if (key !== null) {
      slot.key = Buffer.allocUnsafeSlow(key.length);
      slot.key.set(key);
      slot.keyPush = push.number;
      slot.usedAtMs = this.#clock.nowMs();
    }
    for (const [role, route] of Object.entries(meta.roles ?? {})) {
      const before = slot.roles.get(role as CloudRole) ?? NO_ROUTE;
      slot.roles.set(role as CloudRole, {
        model: route.model === undefined ? before.model : route.model,
        upstreams: route.upstreams ?? before.upstreams,
        quantizations: route.quantizations ?? before.quantizations,
        policy: route.policy ?? before.policy,
      });
    }
    const wantsRest = key !== null ? meta.remember === true : slot.restWanted && slot.key !== null;
    if (key !== null || wantsRest !== slot.restWanted) this.#remember(controller, slot, wantsRest);
    return 'applied';
  }

  /** State of the key in the slot of a control plane. */
  state(controller: string): KeyState {
    const slot = this.#slots.get(controller);
    if (slot?.key == null) return 'missing';
    return (slot.keyPush ?? 0) < slot.newestKeyPush ? 'stale' : 'held';
  }

  view(controller: string) {
    const slot = this.#slots.get(controller);
    return {
      push: slot?.push ?? 0,
      keyPush: slot?.keyPush ?? null,
      key: this.state(controller),
      keyRefused: slot?.keyRefused ?? false,
      remembered: slot?.remembered ?? false,
      baseUrl: slot?.baseUrl ?? this.#baseUrl,
    };
  }

  baseUrl(controller: string): string {
    return this.#slots.get(controller)?.baseUrl ?? this.#baseUrl;
  }

  routes(controller: string): ReadonlyMap<CloudRole, RoleRoute> {
    return this.#slots.get(controller)?.roles ?? new Map();
  }

  route(controller: string, role: CloudRole): RoleRoute {
    return this.#slots.get(controller)?.roles.get(role) ?? NO_ROUTE;
  }

  /** Value of the Authorization header, or null unless the key is held. `use`: somebody's work needs it, not our own upkeep. */
  authorization(controller: string, use: boolean): string | null {
    const slot = this.#slots.get(controller);
    if (slot?.key == null || this.state(controller) !== 'held') return null;
    if (use) slot.usedAtMs = this.#clock.nowMs();
    return `Bearer ${slot.key.toString('latin1')}`;
  }

  /** Overwrites the key wherever it stands in bytes that are about to be passed on. */
  blank(controller: string, bytes: Uint8Array): void {
    const key = this.#slots.get(controller)?.key ?? null;
    if (key === null) return;
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = view.indexOf(key); at >= 0; at = view.indexOf(key, at + key.length))
      view.fill(0x2a, at, at + key.length);
  }

  /** OpenRouter has said whether the key works. */
  markRefused(controller: string, refused: boolean): void {
    const slot = this.#slots.get(controller);
    if (slot !== undefined && slot.key !== null) slot.keyRefused = refused;
  }

  /** Zeroes keys that were not used for 7 days. Returns the control planes concerned. */
  sweep(): readonly string[] {
    const gone: string[] = [];
    for (const [controller, slot] of this.#slots) {
      if (slot.key === null || this.#clock.nowMs() - slot.usedAtMs < UNUSED_MS) continue;
      slot.drop();
      this.#remember(controller, slot, false);
      gone.push(controller);
    }
    return gone;
  }

  /** The control plane was removed on this machine. */
  forget(controller: string): void {
    const slot = this.#slots.get(controller);
    if (slot === undefined) return;
    slot.drop();
    this.#remember(controller, slot, false);
    this.#slots.delete(controller);
  }

  /** Zeroes everything in memory; what rests stays. */
  close(): void {
    for (const slot of this.#slots.values()) slot.drop();
    this.#slots.clear();
  }

  controllers(): readonly string[] {
    return [...this.#slots.keys()];
  }

  #slot(controller: string): Slot {
    const known = this.#slots.get(controller);
    if (known !== undefined) return known;
    const slot = new Slot(this.#baseUrl, this.#clock.nowMs());
    this.#slots.set(controller, slot);
    return slot;
  }

  #remember(controller: string, slot: Slot, wanted: boolean): void {
    const before = slot.restWanted;
    slot.restWanted = wanted && this.#atRest !== null && slot.key !== null;
    slot.remembered = false;
    if (this.#atRest === null || (!slot.restWanted && !before)) return;
    const atRest = this.#atRest;
    // Sealed now, in this turn: the key may be zeroed before the write comes to it.
    const { key, keyPush } = slot;
    const write =
      slot.restWanted && key !== null
        ? atRest.put({ controller, origin: originOf(slot.baseUrl), keyPush: keyPush ?? 0, key })
        : atRest.remove(controller);
    // Only what is on the disk is remembered.
    this.#writing = this.#writing.then(write).then(
      () => {
        slot.remembered = slot.restWanted && slot.keyPush === keyPush;
      },
      () => {
        slot.restWanted = false;
      },
    );
  }
}

/** Upstreams that one provider of this role is pinned to: embeddings one at a time, the others all that are listed. */
export function pinOf(route: RoleRoute, upstream: string | null): string | null {
  return pinText(upstream === null ? route.upstreams : [upstream], route.quantizations);
}
