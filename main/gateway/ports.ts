import type { KeyPush, TopicName, TopicUpdate } from '../../preload/contract.ts';
import type { PriorityClass } from '../domain/classes.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { EventSink } from '../domain/events.ts';
import type { ProjectId, RequestId, SpaceId } from '../domain/ids.ts';
import type { Policy, ProviderKind } from '../domain/policy.ts';
import type { RoleId } from '../domain/roles.ts';
import type { Clock } from '../domain/time.ts';
import type { Dispatcher, WorkUsage } from '../domain/work.ts';

/** What the endpoint needs of the rest of the house. Everything that is asked per request answers from memory, at once. */
export interface GatewayPorts {
  readonly clock: Clock;
  /** Cryptographically strong random bytes: request ids, tickets, session tokens. */
  readonly randomBytes: (count: number) => Uint8Array;
  readonly dispatcher: Dispatcher;
  readonly keys: KeyDirectory;
  readonly limits: KeyLimits;
  readonly catalogue: ModelCatalogue;
  readonly operations: Operations;
  readonly topics: TopicFeed;
  readonly idempotency: IdempotencyStore;
  readonly health: HealthSource;
  /** Prometheus text exposition, and its content type. */
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  readonly events: EventSink;
  readonly exchanges: ExchangeObserver;
}

/** How the endpoint listens; settings of the operator, fixed while it runs. */
export interface GatewaySettings {
  /** Of Switchyard, for /openapi.json. */
  readonly version: string;
  /** 0: any free port, the same on every address. */
  readonly port: number;
  /** Addresses to listen on. Default: 127.0.0.1, and ::1 where it exists. */
  readonly addresses: readonly string[];
  /** Names beyond the loopback ones that a Host header may carry, without port. */
  readonly hostNames: readonly string[];
  /** Exact origins of pages that may call, e.g. `https://tool.example` or `chrome-extension://abc`. */
  readonly origins: readonly string[];
  readonly tls: { readonly key: string; readonly cert: string } | null;
  /** Believe the last X-Forwarded-For and X-Forwarded-Proto: only behind a proxy of one's own. */
  readonly trustProxy: boolean;
  /** Project of requests that come over loopback without a key; null: every request needs one. */
  readonly openProject: ProjectId | null;
  /** SHA-256 (hex) of the admin token. */
  readonly adminTokenSha256: string;
  /** The built console: URL path below /console/ -> file. Empty where the renderer was not built. */
  readonly consoleFiles: ReadonlyMap<string, ConsoleFile>;
}

export interface ConsoleFile {
  readonly contentType: string;
  readonly body: Uint8Array;
}

/** One API key of a tool, as a request meets it. */
export interface ApiKey {
  readonly id: string;
  readonly project: ProjectId;
  /** Its requests may raise exposure above the role's policy (never above `local`). */
  readonly allowWiden: boolean;
  /** Its requests may name another project. */
  readonly anyProject: boolean;
  readonly classCap: PriorityClass;
  /** Roles it may use; null: all. */
  readonly roles: readonly RoleId[] | null;
  readonly limits: ApiKeyLimits;
}

/** Null: no limit. */
export interface ApiKeyLimits {
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  readonly usdPerDay: number | null;
}

export interface KeyDirectory {
  /** @param sha256 lower-case hex of the key's bytes. From the last good snapshot: never waits, never throws. */
  find(sha256: string): ApiKey | null;
  /** Does a project of this name exist, for keys with `anyProject`. */
  hasProject(project: string): boolean;
}

/** Remaining amounts, for the dialect's rate headers; null where there is no such limit. */
export interface RateState {
  readonly requests: RateAmount | null;
  readonly tokens: RateAmount | null;
}

export interface RateAmount {
  readonly limit: number;
  readonly remaining: number;
  /** Until the whole limit is there again. */
  readonly resetMs: number;
}

export type Admission =
  | { readonly admitted: true; readonly rate: RateState }
  | {
      readonly admitted: false;
      readonly limit: 'requests' | 'tokens' | 'usd';
      readonly retryAfterMs: number;
      readonly rate: RateState;
    };

/** Limits per API key. */
export interface KeyLimits {
  /** Counts one request, before its body is read. Refuses when a window is used up; a refused request is not counted. */
  admit(key: ApiKey): Admission;
  /** Tokens of a finished request. */
  settle(key: ApiKey, usage: WorkUsage): void;
}

/** A model as `GET /v1/models` lists it. */
export interface ServedModel {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly roles: readonly RoleId[];
  readonly kinds: readonly ProviderKind[];
}

export interface RoleRoute {
  readonly policy: Policy;
  readonly maxLocalWaitMs: number;
  /** A cloud model is configured: media addresses may go there. */
  readonly hasCloud: boolean;
  /** Space of an embedding role that new requests write to; null: not founded, or no vectors. */
  readonly space: { readonly id: SpaceId; readonly width: number } | null;
}

export interface ModelCatalogue {
  role(id: RoleId): RoleRoute;
  /** Every concrete model that a role lists, in the order in which lists show them. */
  models(): readonly ServedModel[];
  /** Full width of a retained space; null when it is unknown or retired. */
  spaceWidth(space: SpaceId): number | null;
}

/** Everything an operator can do, by the names of the console's contract. Input has passed the contract's schema. */
export interface Operations {
  call(name: string, input: unknown): Promise<unknown>;
  /**
   * The cloud key on its way to the agents. `key` is one unpooled buffer that the callee owns and zeroes; it is never turned
   * into a string. `options` are the contract's `KeyPush`.
   */
  pushCloudKey(key: Buffer, options: KeyPush): Promise<unknown>;
}

/** The topics of the console's contract, before coalescing: each reader of the endpoint has its own `Feed`. */
export interface TopicFeed {
  /**
   * Calls `listener` with a snapshot (or value) of every topic asked for before it returns, then with each change.
   * @returns its own unsubscribe.
   */
  subscribe(topics: readonly TopicName[], listener: (update: TopicUpdate) => void): () => void;
}

export interface HealthItem {
  readonly code: string;
  readonly severity: 'info' | 'warn' | 'error';
  readonly sentence: string;
  readonly needsPerson: boolean;
}

export interface HealthSource {
  /** Ready: the store was read and every room has started. */
  ready(): boolean;
  /** Without secrets and addresses: anybody on this machine may read it. */
  items(): readonly HealthItem[];
}

/** One HTTP exchange in figures, told after its last byte; refusals of the guard included. */
export interface Exchange {
  readonly id: RequestId;
  /** Route template, never the path that was sent; null: no such route or refused before routing. */
  readonly route: string | null;
  readonly method: string;
  readonly status: number;
  /** Why the endpoint itself refused it; null when it went on to its operation, whose own record tells the outcome. */
  readonly code: ErrorCode | null;
  /** Id of the API key; null: none was needed or none was known. */
  readonly key: string | null;
  readonly bodyBytes: number;
  readonly totalMs: number;
}

export interface ExchangeObserver {
  /** Never throws, never waits. */
  finished(exchange: Exchange): void;
}

export interface IdempotencyScope {
  readonly project: ProjectId;
  /** Route template. */
  readonly route: string;
  /** As the client sent it, at most 255 characters. */
  readonly key: string;
}

export interface StoredAnswer {
  readonly status: number;
  /** Flat name, value, name, value; without ids and dates. */
  readonly headers: readonly string[];
  /** At most 8 MiB. Rests encrypted. */
  readonly body: Uint8Array;
}

export type IdempotencyClaim =
  | { readonly state: 'claimed' }
  | { readonly state: 'stored'; readonly answer: StoredAnswer }
  /** The key was used with another body. */
  | { readonly state: 'other-body' }
  /** Another process of the team runs it now. */
  | { readonly state: 'running' };

/** Answers kept for 24 h. A rejected promise means the store cannot be read: the request is refused. */
export interface IdempotencyStore {
  /** @param bodySha256 lower-case hex. */
  claim(scope: IdempotencyScope, bodySha256: string): Promise<IdempotencyClaim>;
  complete(scope: IdempotencyScope, answer: StoredAnswer): Promise<void>;
  /** Gives a claim back: nothing worth keeping came of it. */
  forget(scope: IdempotencyScope): Promise<void>;
}
