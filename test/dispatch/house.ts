import type { CallFailure, CallHead } from '../../agent/wire/calls.ts';
import type { CallHandlers, CallOpener } from '../../agent/wire/stream.ts';
import { DispatchService } from '../../main/dispatch/dispatch-service.ts';
import type { RequestTrace } from '../../main/dispatch/trace.ts';
import type { EngineId, NodeId, ProjectId, ProviderId, RequestId, SpaceId } from '../../main/domain/ids.ts';
import type { RequestSummary } from '../../main/domain/observation.ts';
import type { RoleId } from '../../main/domain/roles.ts';
import type { Clock } from '../../main/domain/time.ts';
import type { Fingerprint } from '../../main/domain/verdict.ts';
import type { ChatSink, ChatWork, RequestContext } from '../../main/domain/work.ts';
import type { Gate, RoleSpace } from '../../main/gate/gate-api.ts';
import type { Space } from '../../main/gate/space.ts';
import { RouterCore } from '../../main/router/core.ts';
import type { RoutedProvider } from '../../main/router/types.ts';

export const FINGERPRINT: Fingerprint = {
  engine: 'llama.cpp',
  version: 'b1',
  modelDigest: 'd',
  upstream: null,
  pin: null,
  processMark: '1:1',
};

export const SPACE_ID = 'embedding-00000001' as SpaceId;

/** One call an agent was asked to make; the test answers it. */
export interface OpenedCall {
  readonly node: string;
  readonly head: CallHead;
  readonly body: Uint8Array;
  readonly handlers: CallHandlers;
  cancelled: boolean;
  resumed: number;
}

export const failure = (parts: Partial<CallFailure>): CallFailure => ({
  blame: 'engine',
  code: 'engine_error',
  sentence: 'The engine failed.',
  engineStatus: 500,
  retryAfterMs: null,
  failing: [],
  limitTokens: null,
  afterFirstByte: false,
  ...parts,
});

export const trailers = (parts: object = {}) => ({
  usage: { promptTokens: 7, completionTokens: 3, exact: true, costUsd: null },
  fingerprint: FINGERPRINT,
  engineMs: 5,
  firstByteMs: 1,
  tokensPerSecond: 10,
  finished: true,
  ...parts,
});

export function provider(role: RoleId, node: string, parts: Partial<RoutedProvider> = {}): RoutedProvider {
  return {
    id: `${role}~${node}~e~m` as ProviderId,
    role,
    kind: 'local',
    node: node as NodeId,
    nodeName: node,
    nodeState: 'ready',
    nodePulls: true,
    engine: 'e' as EngineId,
    engineKind: 'llama.cpp',
    slotPool: `${node}/e`,
    slots: 1,
    foreign: 0,
    model: 'm',
    aliases: [],
    present: true,
    loaded: true,
    reachable: true,
    contextTokens: null,
    maxBatch: 64,
    baseWeight: 1,
    tokensPerSecond: null,
    ttftMs: null,
    fingerprint: FINGERPRINT,
    spaces: new Map([[SPACE_ID, 'pass']]),
    verifiedAtMs: 0,
    pinned: true,
    closed: null,
    coolingUntilMs: null,
    unreachableSinceMs: null,
    nextProbeAtMs: null,
    ...parts,
  };
}

export const space = (parts: Partial<Space> = {}): Space =>
  ({
    id: SPACE_ID,
    role: 'embedding',
    width: 2,
    regime: 'local',
    limitTokens: 128,
    normalise: true,
    cutDimensions: [],
    retiredAtMs: null,
    anchor: new Float32Array(2),
    ...parts,
  }) as Space;

/** A dispatch over the real router, with agents and gate that the test plays. */
export function house(
  providers: readonly RoutedProvider[],
  clock: Clock,
  roleSpace: RoleSpace = { state: 'founded', space: space() },
  settled: Promise<void> | null = null,
) {
  const calls: OpenedCall[] = [];
  const summaries: RequestSummary[] = [];
  const traces: RequestTrace[] = [];
  const admitted: string[] = [];
  const gateListeners = new Set<() => void>();
  const state = { roleSpace, admit: true, pending: true, verdict: 'pass', retiredAtMs: null as number | null };
  const verified: string[] = [];
  const gate = {
    roleSpace: () => state.roleSpace,
    space: (id: SpaceId) => (id === SPACE_ID ? space({ retiredAtMs: state.retiredAtMs }) : null),
    verdictFor: () => state.verdict,
    verdict: () => ({ kind: 'pass', checkedAtMs: 1, fingerprint: FINGERPRINT }),
    admit: (id: ProviderId) => {
      admitted.push(id);
      return state.admit;
    },
    admitted: () => state.admit,
    pending: () => state.pending,
    verify: (id: ProviderId) => {
      verified.push(id);
      state.admit = false;
      return [id];
    },
    record: () => {},
    subscribe: (listener: () => void) => {
      gateListeners.add(listener);
      return () => gateListeners.delete(listener);
    },
  } as unknown as Gate;
  const router = new RouterCore({
    permits: { demand() {}, tryAcquire: () => 'cloud_off', release() {}, nextChangeMs: () => null },
  });
  router.setProviders(providers, clock.nowMs());
  const opener = (node: string): CallOpener => ({
    open(head, body, handlers) {
      const call: OpenedCall = { node, head, body, handlers, cancelled: false, resumed: 0 };
      calls.push(call);
      return {
        cancel: () => {
          call.cancelled = true;
        },
        resume: () => {
          call.resumed += 1;
        },
      };
    },
  });
  const dispatch = new DispatchService({
    router,
    clock,
    gate,
    opener,
    countTokens: () => async (texts) => texts.map((text) => text.length),
    providersOf: (role, model) =>
      providers.filter((each) => each.role === role && each.model === model).map(({ id }) => id),
    timeouts: () => ({ firstByteMs: 600_000, betweenTokensMs: 600_000 }),
    settled,
    observers: [{ finished: (summary) => summaries.push(summary) }],
    onTrace: (trace) => traces.push(trace),
  });
  const tellGate = () => {
    for (const listener of gateListeners) listener();
  };
  return { dispatch, router, calls, summaries, traces, admitted, verified, state, tellGate };
}

let sequence = 0;
export function context(role: RoleId, clock: Clock): RequestContext {
  sequence += 1;
  return {
    id: `req-${sequence}` as RequestId,
    project: 'p' as ProjectId,
    role,
    model: null,
    policy: 'local',
    policyFrom: 'role',
    class: 'normal',
    maxWaitMs: 3000,
    arrivedAtMs: clock.nowMs(),
  };
}

export function chatWork(clock: Clock, parts: Partial<ChatWork> = {}): ChatWork {
  return {
    context: context('code-assistant', clock),
    path: '/v1/chat/completions',
    stream: true,
    wantsUsage: false,
    body: new TextEncoder().encode('{}'),
    promptTokens: 10,
    maxOutputTokens: 10,
    conversation: null,
    ...parts,
  };
}

/** A sink that writes down what it hears. */
export function chatLog() {
  const log: string[] = [];
  const sink: ChatSink & { flowing: boolean } = {
    flowing: true,
    onHead: (route) => log.push(`head ${route.nodeName}`),
    onData(chunk) {
      log.push(new TextDecoder().decode(chunk));
      return this.flowing;
    },
    onEnd: (usage) => log.push(`end ${usage?.completionTokens ?? '-'}`),
    onFailure: (error) => log.push(`failed ${error.code}`),
  };
  return { log, sink };
}
