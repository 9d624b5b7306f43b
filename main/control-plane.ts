import probeTexts from '../assets/probes.json' with { type: 'json' };
import type { Operations } from '../preload/contract.ts';
import { fleetAgents } from './cloud/fleet-agents.ts';
import { type OpenCloud, openCloud } from './cloud/open-room.ts';
import { permitOf } from './cloud/permits.ts';
import type { Discovery } from './discovery/lan-discovery.ts';
import { AgentProbes } from './dispatch/agent-probes.ts';
import { DispatchService } from './dispatch/dispatch-service.ts';
import { tokenCounter } from './dispatch/token-counter.ts';
import type { RequestTrace } from './dispatch/trace.ts';
import { SwitchyardError } from './domain/errors.ts';
import type { NodeId, ProviderId, SpaceId } from './domain/ids.ts';
import { ROLE_IDS, ROLES, type RoleId, type RoleSettings } from './domain/roles.ts';
import { said } from './domain/said.ts';
import type { Clock, Random } from './domain/time.ts';
import { type EnrolmentPlace, EnrolmentService, noEnrolment } from './enrolment/service.ts';
import { DEFAULT_PROJECT, ensureFirstRun, type FirstSecrets, handedOver } from './first-run.ts';
import { EmbeddedAgent, type StartAgentProcess } from './fleet/embedded-agent.ts';
import { pairAgent } from './fleet/pair.ts';
import { FleetRegistry } from './fleet/registry.ts';
import { AgentSession } from './fleet/session.ts';
import { Settling } from './fleet/settling.ts';
import { GateService } from './gate/gate.ts';
import { parseProbeSet } from './gate/probes.ts';
import { sha256 } from './gate/service-digest.ts';
import { MemoryKeyLimits } from './gateway/key-limits.ts';
import { checkAddress } from './gateway/listen.ts';
import type { ConsoleFile } from './gateway/ports.ts';
import type { Gateway } from './gateway/server.ts';
import { budgetEvents, rememberAbility, wrongUpstreamEvent } from './house-cloud.ts';
import { makeEndpoint } from './house-endpoint.ts';
import { Newcomers } from './house-enrolment.ts';
import { gateEvents, storeEvents } from './house-events.ts';
import { levels } from './house-levels.ts';
import { registerMetrics } from './house-metrics.ts';
import { costRecord, traceRecords, usageRecords } from './house-records.ts';
import { Routing } from './house-routing.ts';
import type { CloudDesk } from './operator/cloud-desk.ts';
import { appInfo } from './operator/documents.ts';
import { type GeneralSettings, readSettings } from './operator/general-settings.ts';
import { endpointNote } from './operator/health-endpoint.ts';
import { HealthSince } from './operator/health-since.ts';
import type { House } from './operator/house.ts';
import { callOperation, operatorOf } from './operator/operator.ts';
import { TopicHub } from './operator/topic-hub.ts';
import type { UpdatesDesk } from './operator/updates-desk.ts';
import { RouterCore } from './router/core.ts';
import { SqliteStore } from './store/client.ts';
import type { KeySourceOptions } from './store/key-source.ts';
import type { Json } from './store/ports.ts';
import { EventLog } from './telemetry/event-log.ts';
import { Metrics } from './telemetry/metrics.ts';
import { RecentRequests } from './telemetry/recent-requests.ts';
import { Sampler } from './telemetry/sampler.ts';
import { TimeSeries } from './telemetry/time-series.ts';

export interface ControlPlaneOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly version: string;
  readonly shell: 'desktop' | 'headless';
  readonly dataFolder: string;
  readonly storeWorker: URL;
  /** Where the vault's keyring comes from. */
  readonly vaultKeys: KeySourceOptions;
  /** Replaces the admin token; the new one is among the secrets of the start. */
  readonly newAdminToken?: boolean;
  /** Overrides the stored setting; 0: any free port. */
  readonly port: number | null;
  /** Null: no agent for this machine. */
  readonly embeddedAgent: StartAgentProcess | null;
  readonly consoleFiles: ReadonlyMap<string, ConsoleFile>;
  /** Agents on the network; `noDiscovery` where nobody looks for them. */
  readonly discovery: Discovery;
  /** What adding a machine by a command takes; absent: it is refused with what to do instead. */
  readonly enrolment?: EnrolmentPlace;
  /** What looks for newer versions, in the desktop app. */
  readonly updates?: UpdatesDesk;
}

export interface ControlPlaneStarted {
  /** `http://127.0.0.1:7411`. */
  readonly endpoint: string;
  readonly secrets: FirstSecrets;
  /** Addresses that it really listens on. */
  readonly listens: readonly string[];
  /** What a person must know about them: others can reach it, or it is not where it should be. */
  readonly warning: string | null;
}

interface Running {
  readonly operations: Operations;
  readonly hub: TopicHub;
  readonly cloud: CloudDesk;
  readonly gateway: Gateway;
  /** Nothing known of a machine holds any more, and no latency of now counts. */
  readonly woke: () => void;
}

/** How long running work may end at a stop. */
const DRAIN_MS = 10_000;

/** The composition root: every service is constructed and wired here, and nowhere else. */
export class ControlPlane {
  readonly #options: ControlPlaneOptions;
  readonly #events: EventLog;
  readonly #series = new TimeSeries();
  readonly #requests = new RecentRequests<RequestTrace>();
  readonly #metrics = new Metrics();
  readonly #stops: (() => Promise<void> | void)[] = [];
  #running: Running | null = null;
  /** By then what runs has ended, whoever waits for it. */
  #drainedByMs = 0;

  constructor(options: ControlPlaneOptions) {
    this.#options = options;
    this.#events = new EventLog(options.clock, options.random);
  }

  /**
   * Opens the store, starts the rooms from the inside out and the endpoint last: what answers is whole.
   *
   * @throws SwitchyardError as `Store.start`; address_in_use when the port is taken.
   */
  async start(): Promise<ControlPlaneStarted> {
    const { clock, random, randomBytes, dataFolder, storeWorker } = this.#options;
    const events = this.#events;
    const store = new SqliteStore({ dataFolder, workerUrl: storeWorker, clock, keys: this.#options.vaultKeys });
    await store.start();
    this.#stops.push(() => store.stop());
    const { controller, secrets } = await ensureFirstRun(
      store,
      randomBytes,
      clock.wallMs(),
      this.#options.newAdminToken ?? false,
    );
    this.#stops.push(events.subscribe((event) => store.events.record(event)));
    this.#stops.push(store.onHealth(storeEvents(events)));

    let settings: GeneralSettings = readSettings(store.settings.get('general')?.value ?? null);
    this.#options.updates?.setAutomatic(settings.updates.check);
    const roles = () =>
      Object.fromEntries(ROLE_IDS.map((id) => [id, store.roles.get(id).value])) as Record<RoleId, RoleSettings>;

    const fleet = new FleetRegistry({
      controller,
      clock,
      random,
      events,
      store: store.nodes,
      pair: pairAgent,
      makeLink: (link) => new AgentSession(link),
      onSession: (node, change) => (change === 'began' ? cloud.sessionBegan(node) : cloud.sessionLost(node)),
      onCloud: (node, message) => cloud.onMessage(node, message),
    });
    const agents = fleetAgents(fleet);
    const limits = new MemoryKeyLimits(clock);
    const cloud: OpenCloud = openCloud({
      clock,
      random,
      store,
      events,
      agents,
      roles,
      baseUrl: () => null,
      projectName: (id) => store.access.projects().find((project) => project.id === id)?.name ?? id,
      remember: () => rememberAbility(agents, cloud),
      sizeOf: (item) => dispatch.sizeOf(item),
      onProviders: () => routing.refresh(),
      onPermits: () => {
        tellBudget();
        routing.permitsChanged();
      },
      onSpent: (booked) => {
        if (booked.keyId !== null) limits.spent(booked.keyId, booked.usd);
        costRecord(store, booked);
      },
      onRefused: (status, whose) => {
        if (status === 429) this.#series.fold(`429.${whose}`, 1, 'sum');
      },
    });
    const probePort = new AgentProbes(({ node, role }) => {
      const opener = fleet.opener(node);
      return opener && cloud.lane.probes(opener, node, role);
    });
    const gate = new GateService({
      clock,
      random,
      store: store.gate,
      port: probePort,
      probeSet: parseProbeSet(probeTexts),
      digest: sha256,
    });
    const router = new RouterCore({ permits: cloud.permits });

    const routing = new Routing({ clock, store, fleet, cloud, gate, router, roles, kick: () => dispatch.kick() });
    const newcomers = new Newcomers({
      clock,
      events,
      store: store.nodes,
      entries: () => routing.catalogue.entries,
      refresh: () => routing.refresh(),
    });
    const enrolments = new EnrolmentService({
      clock,
      randomBytes,
      events,
      ...(this.#options.enrolment ?? noEnrolment),
      controlPlane: controller,
      add: async (address, joinCode, fingerprint) => (await fleet.add(address, joinCode, fingerprint)).id,
      weigh: (node, name, weight) => newcomers.weigh(node, name, weight),
    });
    const settling = new Settling(clock, () => this.#options.embeddedAgent === null || fleet.embedded !== null);
    const dispatch = new DispatchService({
      router,
      clock,
      gate,
      opener: (node) => fleet.opener(node),
      withPermit: (opener, reference, maxTokens) => {
        const permit = permitOf(reference);
        return permit ? cloud.lane.withPermit(opener, permit, maxTokens) : opener;
      },
      onWrongUpstream: (provider) => {
        tellWrongUpstream(provider);
        if (ROLES[provider.role].task === 'embed') gate.verify(provider.id);
      },
      countTokens: tokenCounter({ probes: probePort, gate, encoders: () => routing.catalogue.entries }),
      providersOf: (role, model) => routing.providersOf(role, model),
      timeouts: () => settings.timeouts,
      settled: settling.done,
      observers: [this.#metrics, { finished: (summary) => sampler.finished(summary) }, usageRecords(store)],
      onTrace: traceRecords(store, this.#series, this.#requests),
    });

    const tellWrongUpstream = wrongUpstreamEvent(events);
    const tellBudget = budgetEvents(events, cloud, agents);
    const woke = () => {
      dispatch.noteGap();
      fleet.forgetLiveness();
    };
    const sampler = new Sampler({
      clock,
      series: this.#series,
      levels: () => levels(house),
      onClosed: (steps) => {
        for (const step of steps) store.series.record(step);
      },
      onGap: (gapMs) => {
        events.record({
          severity: 'warn',
          source: 'app',
          says: said('clock_gap', { gapMs }),
        });
        woke();
      },
    });

    let endpoint: string | null = null;
    let gateway: Gateway | null = null;
    const healthSince = new HealthSince(clock);
    const rolesChanged = () => {
      routing.applyRoles();
      cloud.rolesChanged();
    };
    const house: House = {
      clock,
      randomBytes,
      store,
      fleet,
      enrolments,
      gate,
      dispatcher: dispatch,
      events,
      series: this.#series,
      requests: this.#requests,
      cloud: cloud.desk,
      catalogue: () => routing.catalogue,
      routed: () => routing.routed,
      router: () => router.snapshot(clock.nowMs()),
      roles,
      settings: () => settings,
      setRole: async (role, changed) => {
        await store.roles.put(role, changed);
        rolesChanged();
      },
      rolesChanged,
      setSettings: async (changed) => {
        await store.settings.put('general', changed as unknown as Json);
        settings = changed;
        this.#options.discovery.setEnabled(changed.discovery.enabled);
        this.#options.updates?.setAutomatic(changed.updates.check);
      },
      refresh: () => routing.refresh(),
      healthSince: (id) => healthSince.of(id),
      discovery: this.#options.discovery,
      updates: this.#options.updates ?? null,
      app: {
        version: this.#options.version,
        shell: this.#options.shell,
        startedAtMs: clock.wallMs(),
        dataFolder,
        endpoint: () => endpoint,
        listening: () => (endpoint === null ? null : gateway),
        checkAddress,
      },
      ownProject: DEFAULT_PROJECT,
    };
    const operations = operatorOf(house);
    const hub = new TopicHub(house, () => appInfo(house));

    await gate.start();
    this.#stops.push(() => gate.stop());
    const isAuto = ({ provider, space }: { readonly provider: ProviderId; readonly space: SpaceId }) => {
      const role = gate.space(space)?.role;
      const isCloud = routing.catalogue.byId.get(provider)?.provider.kind === 'cloud';
      return role !== undefined && !isCloud && roles()[role].localModels === 'auto';
    };
    this.#stops.push(gate.subscribe(gateEvents(events, { stored: gate.verdicts(), isAuto })));
    this.#stops.push(
      gate.subscribe((event) => {
        if (event.type === 'space' && event.change === 'retired') dispatch.spaceRetired(event.space.id);
        routing.refresh();
      }),
    );
    cloud.start();
    this.#stops.push(() => cloud.stop());
    routing.applyRoles();
    this.#stops.push(
      fleet.subscribe(() => {
        routing.refresh();
        for (const { id, pulls } of fleet.nodes()) if (!pulls) dispatch.nodeSilent(id);
        routing.lookAtProbes();
        newcomers.look();
        dispatch.kick();
        settling.look(fleet.nodes());
      }),
    );
    fleet.start();
    this.#stops.push(() => fleet.stop());
    this.#stops.push(() => enrolments.stop());
    const { embeddedAgent, discovery } = this.#options;
    discovery.start({
      enabled: settings.discovery.enabled,
      events,
      onSeen: ({ id, address, fingerprint }) => fleet.foundAt(id as NodeId, address, fingerprint),
    });
    this.#stops.push(() => discovery.stop());
    if (embeddedAgent) {
      const embedded = new EmbeddedAgent({
        controller,
        clock,
        randomBytes,
        events,
        start: embeddedAgent,
        onUp: (id, target) => fleet.attachEmbedded(id, target),
        onDown: () => fleet.detachEmbedded(),
      });
      embedded.start();
      this.#stops.push(() => {
        // Its end is meant: nobody has to hear that it went.
        fleet.detachEmbedded();
        return embedded.stop();
      });
    }
    settling.start(fleet.nodes());
    for (const range of ['5m', '1h', '24h'] as const) {
      store.series.load(range, clock.wallMs() - 86_400_000).then(
        (steps) => {
          for (const step of steps) this.#series.restore(step);
        },
        () => {}, // the charts begin empty; the store's own health says why
      );
    }
    sampler.start();
    this.#stops.push(() => sampler.stop());
    hub.start();
    this.#stops.push(() => hub.stop());
    registerMetrics(this.#metrics, house);
    this.#metrics.collectProcess();

    const listening = makeEndpoint({
      house,
      store,
      dispatcher: dispatch,
      gate,
      events,
      operations,
      hub,
      metrics: this.#metrics,
      limits,
      randomBytes,
      consoleFiles: this.#options.consoleFiles,
      port: this.#options.port,
    });
    const { url } = await listening.start();
    await handedOver(store);
    gateway = listening;
    endpoint = url;
    this.#stops.push(() => listening.stop());
    this.#stops.push(() => dispatch.stop(Math.max(0, this.#drainedByMs - clock.nowMs())));
    events.record({ severity: 'info', source: 'app', says: said('started', { endpoint }) });
    this.#running = { operations, hub, cloud: cloud.desk, gateway: listening, woke };
    return { endpoint, secrets, listens: listening.addresses, warning: endpointNote(house)?.sentence ?? null };
  }

  /** Ends what runs (at most 10 s), then the rooms from the outside in. Idempotent. @throws what the first room threw that could not */
  async stop(): Promise<void> {
    this.#drainedByMs = this.#options.clock.nowMs() + DRAIN_MS;
    await this.#running?.gateway.drain(DRAIN_MS);
    this.#running = null;
    const failures: unknown[] = [];
    for (const stop of this.#stops.splice(0).reverse()) {
      try {
        await stop();
      } catch (error) {
        failures.push(error); // The store, which stops last, must still write what it holds and free its folder.
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  /** An address that opens the console in a browser: good for one use within 10 min. */
  consoleUrl(): string {
    return this.#need().gateway.consoleUrl();
  }

  /** The one door of every console. @throws SwitchyardError as the operation. */
  call(name: string, input: unknown): Promise<unknown> {
    return callOperation(this.#need().operations, name, input);
  }

  /** Takes ownership of the bytes and zeroes them. */
  pushCloudKey(key: Buffer, options: Parameters<CloudDesk['pushKey']>[1]): Promise<void> {
    return this.#need().cloud.pushKey(key, options);
  }

  get topics(): TopicHub {
    return this.#need().hub;
  }

  get events(): EventLog {
    return this.#events;
  }

  /** The machine is about to sleep, or woke up. */
  onPower(change: 'suspend' | 'resume'): void {
    if (change === 'resume') this.#running?.woke();
  }

  #need(): Running {
    if (!this.#running) throw new SwitchyardError('not_ready');
    return this.#running;
  }
}
