import type { RequestTrace } from '../dispatch/trace.ts';
import type { ProjectId } from '../domain/ids.ts';
import type { RoleId, RoleSettings } from '../domain/roles.ts';
import type { Said } from '../domain/said.ts';
import type { Clock } from '../domain/time.ts';
import type { Dispatcher } from '../domain/work.ts';
import type { EnrolmentService } from '../enrolment/service.ts';
import type { Catalogue } from '../fleet/catalogue.ts';
import type { FleetRegistry } from '../fleet/registry.ts';
import type { Gate } from '../gate/gate-api.ts';
import type { RouterSnapshot } from '../router/snapshot.ts';
import type { RoutedProvider } from '../router/types.ts';
import type { Store } from '../store/ports.ts';
import type { EventLog } from '../telemetry/event-log.ts';
import type { RecentRequests } from '../telemetry/recent-requests.ts';
import type { TimeSeries } from '../telemetry/time-series.ts';
import type { CloudDesk } from './cloud-desk.ts';
import type { GeneralSettings } from './general-settings.ts';
import type { UpdatesDesk } from './updates-desk.ts';

/** What the operations work on: the rooms as the composition root has wired them. */
export interface House {
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly store: Store;
  readonly fleet: FleetRegistry;
  readonly enrolments: EnrolmentService;
  readonly gate: Gate;
  readonly dispatcher: Dispatcher;
  readonly events: EventLog;
  readonly series: TimeSeries;
  readonly requests: RecentRequests<RequestTrace>;
  readonly cloud: CloudDesk;
  readonly catalogue: () => Catalogue;
  readonly routed: () => readonly RoutedProvider[];
  readonly router: () => RouterSnapshot;
  readonly roles: () => Readonly<Record<RoleId, RoleSettings>>;
  readonly settings: () => GeneralSettings;
  /** Stores and applies; rejects with `store_unavailable` and then nothing has changed. */
  readonly setRole: (role: RoleId, settings: RoleSettings) => Promise<void>;
  /** The store has other settings of a role than the rooms work by. */
  readonly rolesChanged: () => void;
  readonly setSettings: (settings: GeneralSettings) => Promise<void>;
  /** A base weight or another fact outside heartbeats changed: providers are looked at again. */
  readonly refresh: () => void;
  /** Epoch ms since when a health item has been there without a break. */
  readonly healthSince: (id: string) => number;
  readonly discovery: DiscoverySource;
  /** Null without the desktop. */
  readonly updates: UpdatesDesk | null;
  readonly app: AppFacts;
  /** Project of test requests. */
  readonly ownProject: ProjectId;
}

export interface AppFacts {
  readonly version: string;
  readonly shell: 'desktop' | 'headless';
  readonly startedAtMs: number;
  readonly dataFolder: string;
  /** `http://127.0.0.1:7411`; null while it does not listen. */
  readonly endpoint: () => string | null;
  /** Null while it does not listen. */
  readonly listening: () => Listening | null;
  /** @throws SwitchyardError address_absent, address_unknown: this machine cannot listen there */
  readonly checkAddress: (address: string) => Promise<void>;
}

/** Where the endpoint really listens, which is not always where it was to. */
export interface Listening {
  readonly addresses: readonly string[];
  /** Others can reach it, and overhear what they say to it. */
  readonly exposedInClear: boolean;
  readonly misplaced: { readonly address: string; readonly code: 'address_absent' | 'address_unknown' } | null;
}

export interface FoundAgent {
  readonly id: string;
  readonly name: string;
  readonly address: string;
  /** 64 hex digits, as announced: a hint until the session proves it. */
  readonly fingerprint: string;
  readonly seenAtMs: number;
}

/** Agents seen on the network. */
export interface DiscoverySource {
  readonly searching: boolean;
  readonly problem: Said | null;
  found(): readonly FoundAgent[];
}
