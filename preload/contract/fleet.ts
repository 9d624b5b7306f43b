import { z } from 'zod';
import { VERDICT_KINDS } from '../../main/domain/verdict.ts';
import {
  amount,
  atMs,
  change,
  count,
  Done,
  id,
  KindName,
  label,
  ms,
  Nothing,
  Reason,
  RoleName,
  read,
  Series,
  text,
} from './common.ts';
import { NODE_STATES } from './names.ts';

export const NodeStateName = z.enum(NODE_STATES);
export type NodeStateName = z.infer<typeof NodeStateName>;

export const GpuView = z.object({
  index: count,
  name: label.nullable(),
  utilisationPercent: amount.nullable(),
  memoryUsedBytes: amount.nullable(),
  memoryTotalBytes: amount.nullable(),
  temperatureC: z.number().nullable(),
  powerW: amount.nullable(),
});
export type GpuView = z.infer<typeof GpuView>;

export const NodeView = z.object({
  id,
  name: label,
  /** `host:port`; null for the embedded agent. */
  address: z.string().nullable(),
  /** The agent that the app starts for its own machine. */
  embedded: z.boolean(),
  state: NodeStateName,
  stateSinceMs: atMs.nullable(),
  /** Why the state is not `ready`. */
  reason: Reason.nullable(),
  /** Age when this view was made; `lastHeartbeatAtMs` lets a reader count on. */
  lastHeartbeatAgeMs: ms.nullable(),
  lastHeartbeatAtMs: atMs.nullable(),
  pairedAtMs: atMs.nullable(),
  agentVersion: z.string().nullable(),
  /** Version that the agent may be upgraded to; null when it is current. */
  upgradeTo: z.string().nullable(),
  platform: z.string().nullable(),
  arch: z.string().nullable(),
  cpu: z.string().nullable(),
  cores: count.nullable(),
  cpuPercent: amount.nullable(),
  memoryUsedBytes: amount.nullable(),
  memoryTotalBytes: amount.nullable(),
  uptimeS: amount.nullable(),
  gpus: z.array(GpuView),
  /** The roles this machine has a provider for, and why one of them gets no work. */
  roles: z.array(z.object({ role: RoleName, serving: z.boolean(), reason: Reason.nullable() })),
  slots: count.nullable(),
  running: count.nullable(),
  queued: count.nullable(),
  /** Work of other control planes and direct users, at the last heartbeat. */
  foreign: count.nullable(),
  tokensPerSecond: amount.nullable(),
  ttftP50Ms: ms.nullable(),
  /** Control planes paired with the agent, this one included. */
  controllers: count.nullable(),
});
export type NodeView = z.infer<typeof NodeView>;

/** weight = max(1, round(100 x base x load x speed)). */
export const WeightView = z.object({ total: amount, base: amount, load: amount, speed: amount });

export const ProviderView = z.object({
  id,
  role: RoleName,
  kind: KindName,
  nodeId: id,
  nodeName: label,
  engineId: id,
  engineKind: z.string(),
  engineVersion: z.string().nullable(),
  model: z.string(),
  /** Pinned or reported upstream of a cloud provider. */
  upstream: z.string().nullable(),
  /** The engine's slots; providers of one engine share them. */
  slots: count,
  running: count,
  queued: count,
  weight: WeightView.nullable(),
  verdict: z
    .object({ kind: z.enum(VERDICT_KINDS), minCosine: z.number().nullable(), spaceId: id.nullable() })
    .nullable(),
  state: z.enum(['ready', 'busy', 'ineligible', 'parked', 'unreachable', 'disabled']),
  /** Why it takes no work now; empty when it does. */
  reasons: z.array(Reason),
  parkedUntilMs: atMs.nullable(),
  present: z.boolean(),
  /** In the engine's memory. */
  loaded: z.boolean().nullable(),
  contextTokens: count.nullable(),
  maxBatch: count,
  width: count.nullable(),
  tokensPerSecond: amount.nullable(),
  itemsPerSecond: amount.nullable(),
  ttftMs: ms.nullable(),
});
export type ProviderView = z.infer<typeof ProviderView>;

export const ModelView = z.object({
  model: z.string(),
  aliases: z.array(z.string()),
  digest: z.string().nullable(),
  tasks: z.array(z.enum(['chat', 'embed', 'rerank'])),
  contextTokens: count.nullable(),
  width: count.nullable(),
  sizeBytes: amount.nullable(),
  loaded: z.boolean().nullable(),
  /** Set when the work really runs elsewhere: the provider is of cloud kind. */
  remoteHost: z.string().nullable(),
});

export const EngineView = z.object({
  id,
  kind: z.string(),
  version: z.string().nullable(),
  address: z.string(),
  reach: z.enum(['loopback', 'private', 'public']),
  /** `no-key`: it could call OpenRouter, and no key was ever given from here. */
  state: z.enum(['ready', 'loading', 'unreachable', 'error', 'no-key']),
  reason: Reason.nullable(),
  slots: count,
  running: count,
  queued: count.nullable(),
  foreign: count,
  errorsTotal: count,
  models: z.array(ModelView),
});
export type EngineView = z.infer<typeof EngineView>;

export const NodeDetail = z.object({
  node: NodeView,
  engines: z.array(EngineView),
  providers: z.array(ProviderView),
  /** The last hour in at most 120 points: `running`, `tokensPerSecond`. */
  history: z.object({ atMs: z.array(atMs), series: z.array(Series) }),
});
export type NodeDetail = z.infer<typeof NodeDetail>;

export const DiscoveredView = z.object({
  id,
  name: label,
  address: z.string(),
  /** First 16 hex digits of the certificate's fingerprint, to compare by eye. */
  fingerprintShort: z.string(),
  paired: z.boolean(),
  seenAtMs: atMs,
});
export type DiscoveredView = z.infer<typeof DiscoveredView>;

export const EnrolmentView = z.object({
  id,
  nodeId: id.nullable(),
  model: z.string().nullable(),
  engine: z.string().nullable(),
  baseWeight: amount,
  state: z.enum(['waiting', 'running', 'joined', 'failed', 'expired']),
  createdAtMs: atMs,
  expiresAtMs: atMs,
  /** Each step once, with its last report. */
  steps: z.array(
    z.object({
      code: z.string().max(64),
      sentence: text,
      state: z.enum(['running', 'done', 'failed']),
      percent: z.number().min(0).max(100).nullable(),
      /** What the step found, or why it failed and what to do. */
      detail: Reason.nullable(),
      atMs,
    }),
  ),
});
export type EnrolmentView = z.infer<typeof EnrolmentView>;

const One = z.strictObject({ id });

export const fleetOperations = {
  'nodes.list': read('Every machine with its state and load', Nothing, z.object({ nodes: z.array(NodeView) })),
  'nodes.detail': read('One machine with engines, providers and its last hour', One, NodeDetail),
  'nodes.add': change(
    'Pair with an agent by address and join code',
    z.strictObject({ address: z.string().min(1).max(300), joinCode: z.string().min(1).max(64) }),
    NodeView,
  ),
  'nodes.drain': change('Give a machine no new work; what runs may end', One, NodeView),
  'nodes.resume': change('Give a drained machine work again', One, NodeView),
  'nodes.maintenance': change('Take a machine out of service until it is resumed', One, NodeView),
  'nodes.remove': change('Unpair a machine and forget it', One, Done),
  'discovery.list': read(
    'Agents seen on the network; a hint only',
    Nothing,
    z.object({ searching: z.boolean(), problem: Reason.nullable(), found: z.array(DiscoveredView) }),
  ),
  'enrolments.create': change(
    'Make a one-time command that installs and joins a machine',
    z.strictObject({
      model: z
        .string()
        .regex(/^[A-Za-z0-9._:/@-]{1,128}$/)
        .nullable(),
      /** Installed where no engine runs; null: the one that runs is used. */
      engine: z.enum(['ollama']).nullable(),
      baseWeight: z.number().min(0.1).max(10).default(1),
      /** The address of this computer that the machine reports to; absent: the one with the default route. */
      address: z.string().min(1).max(64).optional(),
    }),
    z.object({
      enrolment: EnrolmentView,
      /** Each works once and for one machine; it is not shown again. */
      commands: z.object({ posix: z.string(), powershell: z.string() }),
    }),
  ),
  'enrolments.list': read('Machines that are being added', Nothing, z.object({ enrolments: z.array(EnrolmentView) })),
  'enrolments.cancel': change('Withdraw a one-time command', One, Done),
  'providers.list': read(
    'Every provider with weight, verdict and reasons',
    z.strictObject({ role: RoleName.optional(), nodeId: id.optional() }),
    z.object({ providers: z.array(ProviderView) }),
  ),
  'providers.weigh': change(
    "Set the operator's base weight of a provider",
    z.strictObject({ id, baseWeight: z.number().min(0.1).max(10) }),
    ProviderView,
  ),
} as const;
