import type { PriorityClass } from '../../main/domain/classes.ts';
import {
  type EngineId,
  type NodeId,
  type ProjectId,
  providerId,
  type RequestId,
  type SpaceId,
} from '../../main/domain/ids.ts';
import { ROLES, type RoleId } from '../../main/domain/roles.ts';
import type { VerdictKind } from '../../main/domain/verdict.ts';
import type { RequestContext } from '../../main/domain/work.ts';
import { RouterCore } from '../../main/router/core.ts';
import type {
  CloudDemand,
  Decision,
  PermitPort,
  PermitRef,
  PermitRefusal,
  RoutedProvider,
  RouterItem,
  RouterSettings,
} from '../../main/router/types.ts';

export const SPACE = 'embedding-00000001' as SpaceId;

export function provider(name: string, more: Partial<RoutedProvider> = {}): RoutedProvider {
  const role = more.role ?? 'code-assistant';
  const node = (more.node ?? name) as NodeId;
  const engine = (more.engine ?? 'e') as EngineId;
  const verdict: VerdictKind = 'pass';
  return {
    id: providerId(role, node, engine, more.model ?? 'm'),
    role,
    kind: 'local',
    node,
    nodeName: name,
    nodeState: 'ready',
    nodePulls: true,
    engine,
    engineKind: 'llama.cpp',
    slotPool: `${node}/${engine}`,
    slots: 1,
    foreign: 0,
    model: 'm',
    aliases: [],
    present: true,
    loaded: null,
    reachable: true,
    contextTokens: null,
    maxBatch: 64,
    baseWeight: 1,
    tokensPerSecond: null,
    ttftMs: null,
    fingerprint: { engine: 'llama.cpp', version: null, modelDigest: null, upstream: null, pin: null, processMark: '1' },
    spaces: ROLES[role].task === 'embed' ? new Map([[SPACE, verdict]]) : new Map(),
    verifiedAtMs: 0,
    pinned: true,
    closed: null,
    coolingUntilMs: null,
    unreachableSinceMs: null,
    nextProbeAtMs: null,
    ...more,
  };
}

export const cloud = (name: string, more: Partial<RoutedProvider> = {}): RoutedProvider =>
  provider(name, { kind: 'cloud', engineKind: 'openrouter', slots: 256, ...more });

export interface ItemOptions extends Partial<Omit<RouterItem, 'context'>> {
  readonly context?: Partial<RequestContext>;
  readonly project?: string;
  readonly class?: PriorityClass;
  readonly role?: RoleId;
}

export function item(id: string, options: ItemOptions = {}): RouterItem {
  const role = options.role ?? 'code-assistant';
  const { task } = ROLES[role];
  const { context, project, class: cls, role: _role, ...rest } = options;
  return {
    task,
    units: 1,
    neededTokens: 100,
    costTokens: 100,
    conversation: null,
    space: task === 'embed' ? { id: SPACE, regime: 'local' } : null,
    ...rest,
    context: {
      id: id as RequestId,
      project: (project ?? 'p') as ProjectId,
      role,
      model: null,
      policy: 'aggregate',
      policyFrom: 'role',
      class: cls ?? 'normal',
      maxWaitMs: 3000,
      arrivedAtMs: 0,
      ...context,
    },
  };
}

/** Grants up to `limit` permits to whoever asks; counts what is out. */
export class Permits implements PermitPort {
  limit: number;
  refusal: PermitRefusal = 'no_permit';
  nextMs: number | null = null;
  readonly out = new Set<PermitRef>();
  demands: readonly CloudDemand[] = [];

  constructor(limit = 256) {
    this.limit = limit;
  }

  demand(waiting: readonly CloudDemand[]): void {
    this.demands = waiting;
  }

  tryAcquire(): PermitRef | PermitRefusal {
    if (this.out.size >= this.limit) return this.refusal;
    const permit = {};
    this.out.add(permit);
    return permit;
  }

  release(permit: PermitRef): void {
    if (!this.out.delete(permit)) throw new Error('a permit came back twice');
  }

  nextChangeMs(): number | null {
    return this.nextMs;
  }
}

export type Dispatch = Extract<Decision, { kind: 'dispatch' }>;
export type Failure = Extract<Decision, { kind: 'fail' }>;

export const dispatches = (decisions: readonly Decision[]): readonly Dispatch[] =>
  decisions.filter((decision) => decision.kind === 'dispatch');

export const failures = (decisions: readonly Decision[]): readonly Failure[] =>
  decisions.filter((decision) => decision.kind === 'fail');

/** `request@node` of every dispatch, in order: short enough to compare at a glance. */
export const sent = (decisions: readonly Decision[]): readonly string[] =>
  dispatches(decisions).map(({ request, provider: { nodeName } }) => `${request}@${nodeName}`);

/** A router with a fleet at time 0 and every role's defaults. */
export function routerWith(
  providers: readonly RoutedProvider[],
  options: { readonly permits?: PermitPort; readonly settings?: Partial<RouterSettings> } = {},
): RouterCore {
  const router = new RouterCore({ permits: options.permits ?? new Permits(), settings: options.settings ?? {} });
  router.setProviders(providers, 0);
  return router;
}

/** Submits at `nowMs`; the item must be accepted. */
export function accept(router: RouterCore, submitted: RouterItem, nowMs: number): void {
  const result = router.submit(submitted, nowMs);
  if (!result.accepted) throw new Error(`refused: ${result.code} ${JSON.stringify(result.reasons)}`);
}

/** Submits and decides. */
export function send(router: RouterCore, nowMs: number, ...items: readonly RouterItem[]): readonly Decision[] {
  for (const one of items) accept(router, one, nowMs);
  return router.decide(nowMs);
}

export function only<T>(list: readonly T[]): T {
  const [first] = list;
  if (first === undefined || list.length !== 1) throw new Error(`one was expected, not ${list.length}`);
  return first;
}

export const ok = { kind: 'success' } as const;
export const broken = { kind: 'failed', code: 'engine_error', silent: 'no' } as const;
export const silentEngine = { kind: 'failed', code: 'engine_timeout', silent: 'engine' } as const;
export const silentNode = { kind: 'failed', code: 'agent_lost', silent: 'node' } as const;
export const busy = (retryAfterMs: number | null = null) => ({ kind: 'busy', retryAfterMs }) as const;
