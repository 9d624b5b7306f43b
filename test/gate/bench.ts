import { readFileSync } from 'node:fs';
import type { ProviderId, SpaceId } from '../../main/domain/ids.ts';
import { defaultRoleSettings, ROLE_IDS, type RoleId, type RoleSettings } from '../../main/domain/roles.ts';
import { GateService } from '../../main/gate/gate.ts';
import type { GateEvent } from '../../main/gate/gate-api.ts';
import type { GateTiming } from '../../main/gate/gate-timing.ts';
import type { Encoder } from '../../main/gate/probe-port.ts';
import { parseProbeSet } from '../../main/gate/probes.ts';
import { sha256 } from '../../main/gate/service-digest.ts';
import type { Space } from '../../main/gate/space.ts';
import { FakePort } from './fake-port.ts';
import { MemoryGateStore } from './memory-store.ts';
import { SimClock } from './sim-clock.ts';

export const probeSet = parseProbeSet(
  JSON.parse(readFileSync(new URL('../../assets/probes.json', import.meta.url), 'utf8')),
);

export type Roles = Readonly<Record<RoleId, RoleSettings>>;

export function roles(change: Partial<RoleSettings> = {}, role: RoleId = 'embedding'): Roles {
  const all = Object.fromEntries(ROLE_IDS.map((id) => [id, defaultRoleSettings(id)])) as Record<RoleId, RoleSettings>;
  return { ...all, [role]: { ...all[role], ...change } };
}

/** Small numbers from a seed, so that ids are the same in every run. */
export function seededRandom(seed = 1): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A gate over fake engines, a simulated clock and a store in memory. */
export class GateBench {
  readonly clock: SimClock;
  readonly port: FakePort;
  readonly store: MemoryGateStore;
  readonly gate: GateService;
  readonly events: GateEvent[] = [];

  constructor(
    parts: {
      readonly clock?: SimClock;
      readonly port?: FakePort;
      readonly store?: MemoryGateStore;
      readonly timing?: Partial<GateTiming>;
      readonly seed?: number;
    } = {},
  ) {
    this.clock = parts.clock ?? new SimClock();
    this.port = parts.port ?? new FakePort();
    this.store = parts.store ?? new MemoryGateStore();
    this.gate = new GateService({
      clock: this.clock,
      random: seededRandom(parts.seed),
      store: this.store,
      port: this.port,
      probeSet,
      digest: sha256,
      ...(parts.timing === undefined ? {} : { timing: parts.timing }),
    });
    this.gate.subscribe((event) => this.events.push(event));
  }

  async start(encoders: readonly Encoder[], settings: Roles = roles()): Promise<this> {
    this.gate.onRoles(settings);
    await this.gate.start();
    this.gate.onProviders(encoders);
    await this.clock.advance(6000);
    return this;
  }

  /** Lets verifications that need no waiting run to their end. */
  async rest(): Promise<void> {
    const calls = (): number => [...this.port.engines.values()].reduce((sum, engine) => sum + engine.calls, 0);
    for (let before = -1; before !== calls(); ) {
      before = calls();
      for (let i = 0; i < 3; i++) await this.clock.settle();
    }
  }

  space(role: RoleId = 'embedding'): Space {
    const state = this.gate.roleSpace(role);
    if (state.state !== 'founded') throw new Error(`${role} is ${state.state}: ${JSON.stringify(state)}`);
    return state.space;
  }

  kind(encoder: Encoder, space: SpaceId = this.space().id) {
    return this.gate.verdictFor(encoder.provider.id, space);
  }

  admits(id: ProviderId, space: SpaceId = this.space().id): boolean {
    return this.gate.admit(id, space, this.port.engine(id).fingerprint);
  }

  eventsOf<Type extends GateEvent['type']>(type: Type): Extract<GateEvent, { readonly type: Type }>[] {
    return this.events.filter((event): event is Extract<GateEvent, { readonly type: Type }> => event.type === type);
  }
}
