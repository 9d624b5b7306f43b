import { z } from 'zod';
import { CLOUD_ENGINE, type CloudFromAgent, splitCloudModel } from '../../agent/wire/cloud.ts';
import { upperEstimateUsd } from '../budget/spend.ts';
import type { EventSink } from '../domain/events.ts';
import type { NodeId, ProjectId, ProviderId } from '../domain/ids.ts';
import type { Provider } from '../domain/provider.ts';
import { ROLE_IDS, type RoleId, type RoleSettings } from '../domain/roles.ts';
import type { Clock, Random } from '../domain/time.ts';
import type { CatalogueEntry } from '../fleet/catalogue.ts';
import type { RoutedProvider, RouterItem } from '../router/types.ts';
import type { Json, Store } from '../store/ports.ts';
import { type Booked, BudgetService } from './budget-service.ts';
import { accountFacts, CloudCatalogue, priceOf } from './catalogue.ts';
import { CloudRoom as CloudDeskRoom } from './desk.ts';
import { KeyPush } from './key-push.ts';
import { CloudLane } from './lane.ts';
import { refusalOf, whoseLimit } from './outcome.ts';
import { budgetPermits, type CloudCall, closureOf, type KeyState } from './permits.ts';
import type { AgentPort, PushFacts } from './ports.ts';
import { ProjectCaps } from './project-caps.ts';
import { type CloudNode, cloudEntries } from './providers.ts';
import type { CloudRoom } from './room.ts';

const FACTS = 'cloud-push';
const Facts: z.ZodType<PushFacts> = z.object({
  version: z.literal(1),
  number: z.number().int().min(0),
  keyPush: z.number().int().min(0),
  keyPushedAtWallMs: z.number().nullable(),
  narrowedTo: z.array(z.string()).nullable(),
  sentTo: z.array(
    z.object({
      node: z.string(),
      push: z.number(),
      atWallMs: z.number(),
      outcome: z.enum(['sent', 'accepted', 'refused']),
    }),
  ),
  // Absent before there were such things.
  forgotten: z.object({ all: z.boolean(), nodes: z.array(z.string()) }).optional(),
  warned: z.enum(['one', 'none', '']).optional(),
});

export interface OpenCloudOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly store: Pick<Store, 'access' | 'budget' | 'settings'>;
  readonly events: EventSink;
  readonly agents: AgentPort;
  readonly roles: () => Readonly<Record<RoleId, RoleSettings>>;
  /** Base URL the key is for; null: each agent's own. */
  readonly baseUrl: () => string | null;
  readonly projectName: (id: ProjectId) => string;
  readonly remember: ConstructorParameters<typeof CloudDeskRoom>[0]['remember'];
  /** Bytes of an item's prompt, and the output tokens it may take: for the upper estimate. */
  readonly sizeOf: (item: RouterItem) => {
    readonly promptBytes: number;
    readonly maxOutputTokens: number;
    readonly documents: number;
  };
  /** Providers, closures or offers have changed: build the catalogue again. */
  onProviders(): void;
  /** Permits may be had: `router.permitsChanged()`, then decide. */
  onPermits(): void;
  /** What a call has cost, whether or not its client has waited for the end. */
  onSpent?(booked: Booked): void;
  /** OpenRouter or an upstream has refused a call. `whose` limit it was: an upstream, a model, or `account`. */
  onRefused?(status: number, whose: string): void;
}

/** The cloud with its agents. */
export interface OpenCloud extends CloudRoom {
  readonly keys: KeyPush;
  readonly catalogue: CloudCatalogue;
  readonly service: BudgetService;
  readonly lane: CloudLane;
  /** Its providers for the fleet's catalogue. */
  entries(nodes: readonly CloudNode[], baseWeight: (provider: ProviderId) => number): readonly CatalogueEntry[];
  start(): void;
  stop(): void;
  /** A control session has begun. */
  sessionBegan(node: NodeId): void;
  sessionLost(node: NodeId): void;
  /** A cloud message of an agent. */
  onMessage(node: NodeId, message: CloudFromAgent): void;
  /** Roles have changed: caps, and what agents may do. */
  rolesChanged(): void;
}

export function openCloud(options: OpenCloudOptions): OpenCloud {
  const { clock, agents, store } = options;
  const service = new BudgetService({
    clock,
    random: options.random,
    store: store.budget,
    onChange: () => options.onPermits(),
    onSpent: (booked) => options.onSpent?.(booked),
  });
  const keys = new KeyPush({
    clock,
    agents,
    events: options.events,
    roles: options.roles,
    baseUrl: options.baseUrl,
    store: {
      load: () => Facts.safeParse(store.settings.get(FACTS)?.value).data ?? null,
      // Lost facts are mended from what the agents say: nobody waits for this write.
      save: (facts) => void store.settings.put(FACTS, facts as unknown as Json).catch(() => undefined),
    },
    onChange: () => options.onProviders(),
    onKeyApplied: (node) => service.keyChanged(node),
  });
  const catalogue = new CloudCatalogue({
    clock,
    agents,
    status: (node) => keys.status(node),
    holds: (node) => keys.holds(node),
  });
  const describe = (item: RouterItem, provider: RoutedProvider): CloudCall => {
    const { model, upstream } = splitCloudModel(provider.model);
    const offer = catalogue.offer(provider.node, provider.role, provider.model);
    const price = offer === null ? null : priceOf(offer);
    return { model, upstream, free: offer?.free ?? false, estimateUsd: upperEstimateUsd(price, options.sizeOf(item)) };
  };
  const keyState = (node: NodeId): KeyState => {
    if (keys.holds(node)) return 'held';
    const status = keys.status(node);
    if (status?.keyRefused === true) return 'refused';
    return status?.key === 'stale' ? 'stale' : 'missing';
  };
  const projectCaps = new ProjectCaps({
    store: store.settings,
    events: options.events,
    projects: () => store.access.projects().map(({ id }) => id),
    apply: (project, caps) => service.setCaps('project', project, caps),
  });
  const applyCaps = () => {
    const roles = options.roles();
    for (const role of ROLE_IDS) service.setCaps('role', role, roles[role].spendCaps);
  };
  return {
    keys,
    catalogue,
    service,
    lane: new CloudLane({
      clock,
      service,
      catalogue,
      onFailed: ({ ask }, failure) => {
        const refusal = refusalOf(failure);
        if (refusal !== null) options.onRefused?.(refusal.status, whoseLimit(refusal, ask));
      },
    }),
    desk: new CloudDeskRoom({
      clock,
      budget: service,
      keys,
      catalogue,
      projectName: options.projectName,
      projectCaps,
      remember: options.remember,
    }),
    permits: budgetPermits(service.budget, describe, (permit) => service.isSent(permit)),
    entries: (nodes, baseWeight) => {
      // Who has never entered a key is not told of providers that want one.
      const missing = keys.facts.keyPush === 0 ? [] : catalogue.missing(options.roles());
      return cloudEntries(catalogue.routes(), missing, nodes, baseWeight);
    },
    standing: (provider: Provider) => {
      // An Ollama model that runs elsewhere and an engine at a public address are cloud kind without being OpenRouter's.
      if (provider.engine !== CLOUD_ENGINE) return { closed: null, coolingUntilMs: null };
      const { model, upstream } = splitCloudModel(provider.model);
      const free = catalogue.offer(provider.node, provider.role, provider.model)?.free ?? false;
      return closureOf(
        service.budget,
        { agent: provider.node, model, upstream, free },
        keyState(provider.node),
        clock.nowMs(),
      );
    },
    start: () => {
      keys.start();
      applyCaps();
      projectCaps.start();
      service.start();
    },
    stop: () => {
      keys.stop();
      service.stop();
    },
    sessionBegan: (node) => keys.sessionBegan(node),
    sessionLost: (node) => {
      service.sessionLost(node);
      catalogue.sessionLost(node);
      keys.sessionLost(node);
    },
    onMessage: (node, message) => {
      if (message.t === 'cloud-ended') service.onEnded(node, message);
      else if (message.t === 'cloud-answer') catalogue.onAnswer(node, message);
      else if (message.t === 'cloud-ack') keys.onAck(node, message);
      else {
        keys.onStatus(node, message);
        const facts = accountFacts(message);
        if (facts !== null && keys.holds(node)) service.discovered(facts);
      }
    },
    rolesChanged: () => {
      applyCaps();
      keys.configChanged();
    },
  };
}
