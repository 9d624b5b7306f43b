import type { OpenCloud } from './cloud/open-room.ts';
import { keepUnchanged, routedProviders } from './dispatch/fleet-view.ts';
import type { ProviderId } from './domain/ids.ts';
import { ROLE_IDS, type RoleId, type RoleSettings } from './domain/roles.ts';
import type { Clock } from './domain/time.ts';
import { buildCatalogue, type Catalogue } from './fleet/catalogue.ts';
import { ProbeWatch } from './fleet/probe-watch.ts';
import type { FleetRegistry } from './fleet/registry.ts';
import type { GateService } from './gate/gate.ts';
import type { RouterCore } from './router/core.ts';
import type { RoutedProvider } from './router/types.ts';
import type { SqliteStore } from './store/client.ts';

export interface RoutingOptions {
  readonly clock: Clock;
  readonly store: SqliteStore;
  readonly fleet: FleetRegistry;
  readonly cloud: OpenCloud;
  readonly gate: GateService;
  readonly router: RouterCore;
  readonly roles: () => Readonly<Record<RoleId, RoleSettings>>;
  /** Something may start now that could not before. */
  readonly kick: () => void;
}

/**
 * What the router looks at: fleet, gate, cloud and roles joined into providers, made anew whenever one of them has changed, and
 * handed on only where that changed anything.
 */
export class Routing {
  readonly #options: RoutingOptions;
  readonly #probes = new ProbeWatch();
  readonly #unreachableSince = new Map<ProviderId, number>();
  #catalogue: Catalogue;
  #routed: readonly RoutedProvider[] = [];
  /** What keeps cloud providers closed, as routed last. */
  #closures = '';

  constructor(options: RoutingOptions) {
    this.#options = options;
    const nothing = { nodes: [], spaceWidths: () => [], baseWeight: () => 1 };
    this.#catalogue = buildCatalogue({ ...nothing, roles: options.roles() });
  }

  get catalogue(): Catalogue {
    return this.#catalogue;
  }

  get routed(): readonly RoutedProvider[] {
    return this.#routed;
  }

  /** The providers of a role by a model's name or alias. */
  providersOf(role: RoleId, model: string): ProviderId[] {
    return this.#catalogue.providers
      .filter((provider) => provider.role === role && (provider.model === model || provider.aliases.includes(model)))
      .map(({ id }) => id);
  }

  /** Machines, models, spaces or offers have changed. */
  refresh(): void {
    const { fleet, cloud, gate, roles, store } = this.#options;
    const baseWeight = (provider: ProviderId) => store.nodes.baseWeight(provider);
    const nodes = fleet.nodes().map(({ id, name, state, pulls, heartbeat }) => ({
      id,
      name,
      state,
      pulls,
      engines: heartbeat?.engines ?? [],
    }));
    const cloudNodes = nodes.map((node) => ({
      ...node,
      models: node.engines.find(({ kind }) => kind === 'openrouter')?.models ?? null,
    }));
    this.#catalogue = buildCatalogue({
      nodes,
      cloud: cloud.entries(cloudNodes, baseWeight),
      roles: roles(),
      spaceWidths: (role) =>
        gate.spaces().flatMap((space) => (space.role === role && space.retiredAtMs === null ? [space.width] : [])),
      baseWeight,
    });
    gate.onProviders(this.#catalogue.entries);
    this.#route();
  }

  /** Settings of roles have changed. */
  applyRoles(): void {
    const { router, gate, clock } = this.#options;
    const roles = this.#options.roles();
    for (const id of ROLE_IDS) router.setRole(id, roles[id], clock.nowMs());
    gate.onRoles(roles);
    this.refresh();
  }

  /** Permits came or went; only what closes or opens a cloud provider is worth a look at all of them. */
  permitsChanged(): void {
    this.#options.router.permitsChanged();
    if (this.#closuresNow() === this.#closures) this.#options.kick();
    else this.#route();
  }

  /** What the agents' own probes of their engines say ends or begins the router's waiting for them. */
  lookAtProbes(): void {
    const { fleet, router, clock } = this.#options;
    for (const { id, pulls, heartbeat } of fleet.nodes()) {
      for (const { slotPool, ok } of this.#probes.look(id, pulls, heartbeat?.engines ?? [])) {
        for (const provider of this.#routed)
          if (provider.slotPool === slotPool) router.probed(provider.id, ok, clock.nowMs());
      }
    }
  }

  #closuresNow(): string {
    return this.#catalogue.providers
      .filter(({ kind }) => kind === 'cloud')
      .map((provider) => Object.values(this.#options.cloud.standing(provider)).join())
      .join(' ');
  }

  #route(): void {
    const { clock, gate, cloud, router, kick } = this.#options;
    const nowMs = clock.nowMs();
    this.#closures = this.#closuresNow();
    const seen = routedProviders({
      providers: this.#catalogue.providers,
      gate,
      cloud: cloud.standing,
      clockOffsetMs: nowMs - clock.wallMs(),
      unreachableSince: this.#unreachableSince,
      nowMs,
    });
    const kept = keepUnchanged(this.#routed, seen);
    if (kept === this.#routed) return;
    this.#routed = kept;
    router.setProviders(kept, nowMs);
    kick();
  }
}
