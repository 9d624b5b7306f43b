import { z } from 'zod';
import { CloudAck, CloudAnswer, CloudAsk, CloudEnded, CloudStatus } from './cloud.ts';

/**
 * JSON messages of the control socket after the handshake, one schema each. Unknown members are dropped (a newer peer may
 * send more); an unknown `t` closes the session, because versions are checked before. Units are in the names; null means
 * "unknown", never 0.
 */
export const WIRE_VERSION = 1;

const count = z.number().int().min(0).max(1e9);
const amount = z.number().min(0).max(1e15);
const text = z.string().max(512);
/** SHA-256 of a public key (SPKI). */
const fingerprint = z.string().regex(/^[0-9a-f]{64}$/);

export const TASKS = ['chat', 'embed', 'rerank'] as const;

export const ModelReport = z.object({
  /** The engine's own name: what calls must carry. */
  model: text,
  /** Names the operator gave at this engine; never guessed. */
  aliases: z.array(text).max(32),
  digest: text.nullable(),
  tasks: z.array(z.enum(TASKS)),
  /** Usable window in tokens (prompt and answer), as configured on the engine, not as trained. */
  contextTokens: count.nullable(),
  /** Longest single embedding or rerank input in tokens, special tokens included. */
  maxInputTokens: count.nullable(),
  /** Width of this model's vectors. */
  width: count.nullable(),
  /** Inputs of one embed call. */
  maxBatch: count,
  /** How over-long inputs can be counted before dispatch. */
  tokenCounting: z.enum(['exact', 'none']),
  loaded: z.boolean().nullable(),
  sizeBytes: amount.nullable(),
  tokensPerSecond: amount.nullable(),
  ttftMs: amount.nullable(),
  /** Set when the work really runs elsewhere (an Ollama cloud model): the provider is of cloud kind. */
  remoteHost: text.nullable(),
  /** The built-in encoder: an embedding role without any other candidate is founded by it as a trial. */
  trial: z.boolean(),
});
export type ModelReport = z.infer<typeof ModelReport>;

export const EngineReport = z.object({
  engine: text,
  kind: z.enum(['llama.cpp', 'builtin', 'ollama', 'vllm', 'tgi', 'tei', 'lmstudio', 'openai', 'openrouter']),
  version: text.nullable(),
  /** Where it listens, for people: `127.0.0.1:8080`; empty for the built-in. */
  address: text,
  /** `public` makes its providers cloud kind. */
  reach: z.enum(['loopback', 'private', 'public']),
  state: z.enum(['ready', 'loading', 'unreachable', 'error']),
  /** A sentence of ours when the state is not ready. */
  reason: text.nullable(),
  processMark: text.nullable(),
  slots: count,
  running: count,
  queued: count.nullable(),
  /** Calls of other control planes through this agent, and work the engine reports beyond what this agent sent. */
  foreign: count,
  errorsTotal: count,
  /** Looks at the engine that it answered, since the agent's start: one more means that it lives again. */
  probesAnswered: count,
  models: z.array(ModelReport).max(512),
});
export type EngineReport = z.infer<typeof EngineReport>;

export const GpuReport = z.object({
  index: count,
  uuid: text.nullable(),
  name: text.nullable(),
  utilisationPercent: amount.nullable(),
  memoryUsedBytes: amount.nullable(),
  memoryTotalBytes: amount.nullable(),
  temperatureC: z.number().min(-273).max(1000).nullable(),
  powerW: amount.nullable(),
});
export type GpuReport = z.infer<typeof GpuReport>;

export const HostReport = z.object({
  cpuPercent: amount.nullable(),
  memoryUsedBytes: amount.nullable(),
  memoryTotalBytes: amount.nullable(),
  uptimeS: amount.nullable(),
});

/** First message of the agent in a session: what does not change while it runs. */
export const Welcome = z.object({
  t: z.literal('welcome'),
  wireVersion: z.number().int(),
  agentVersion: text,
  node: text,
  name: text,
  platform: text,
  arch: text,
  cpu: text.nullable(),
  cores: count,
  memoryTotalBytes: amount,
  pid: count,
  startedAtMs: amount,
});
export type Welcome = z.infer<typeof Welcome>;

/** Every 5 s, and at once when an engine, a model or a state changes. Complete: it replaces the one before. */
export const Heartbeat = z.object({
  t: z.literal('heartbeat'),
  seq: count,
  /** The agent's wall clock, for people only. */
  atMs: amount,
  host: HostReport,
  gpus: z.array(GpuReport).max(64),
  engines: z.array(EngineReport).max(64),
  controllers: count,
  /** Of the key that new connections are shown, now or once every control plane has kept it. Absent: it never changes. */
  fingerprint: fingerprint.optional(),
});
export type Heartbeat = z.infer<typeof Heartbeat>;

/** Agent to controller: something a person may want to know, from the table of agent events. */
export const AgentEvent = z.object({
  t: z.literal('event'),
  code: text,
  severity: z.enum(['info', 'warn', 'error']),
  sentence: text,
});
export type AgentEvent = z.infer<typeof AgentEvent>;

/** Controller to agent. `detect` asks for engines to be looked for again; `bye` ends the session in peace. */
export const Detect = z.object({ t: z.literal('detect') });
export const Bye = z.object({ t: z.literal('bye'), reason: text });
/** Agent to controller, then closed: this control plane was removed on the machine. */
export const Revoked = z.object({ t: z.literal('revoked') });
/** Controller to agent: it has kept the announced fingerprint, and takes a connection that shows it. */
export const IdentityKnown = z.object({ t: z.literal('identity-known'), fingerprint });
/** Controller to agent: forget this control plane (its node key included). The agent answers `revoked` and closes. */
export const Forget = z.object({ t: z.literal('forget') });

export const FromAgent = z.discriminatedUnion('t', [
  Welcome,
  Heartbeat,
  AgentEvent,
  Bye,
  Revoked,
  CloudStatus,
  CloudAck,
  CloudEnded,
  CloudAnswer,
]);
export type FromAgent = z.infer<typeof FromAgent>;
export const FromController = z.discriminatedUnion('t', [Detect, Bye, Forget, IdentityKnown, CloudAsk]);
export type FromController = z.infer<typeof FromController>;
