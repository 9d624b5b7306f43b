import type { PriorityClass } from './classes.ts';
import type { SwitchyardError } from './errors.ts';
import type { ProjectId, ProviderId, RequestId, SpaceId } from './ids.ts';
import type { Policy, ProviderKind } from './policy.ts';
import type { RoleId } from './roles.ts';

/** Who asks, for which role, how it may be routed: parsed, authorised and final when it leaves the gateway. */
export interface RequestContext {
  readonly id: RequestId;
  readonly project: ProjectId;
  /** Id of the API key, for usage per key; absent or null: the open loopback project. */
  readonly keyId?: string | null;
  readonly role: RoleId;
  /** The concrete model asked for; null when the request named the role. */
  readonly model: string | null;
  /** After header, body field, suffix and role default have been weighed. */
  readonly policy: Policy;
  readonly policyFrom: 'header' | 'field' | 'suffix' | 'role';
  readonly class: PriorityClass;
  /** Threshold of the wait estimate under `backup`. */
  readonly maxWaitMs: number;
  /** Monotonic. */
  readonly arrivedAtMs: number;
  /** Route template and size of the body, for the trace; null for the operator's own test requests. */
  readonly arrival?: { readonly path: string; readonly bytes: number } | null;
}

export interface ChatWork {
  readonly context: RequestContext;
  readonly path: '/v1/chat/completions' | '/v1/completions';
  readonly stream: boolean;
  /** The client asked for the usage chunk of a stream itself. */
  readonly wantsUsage: boolean;
  /** The client's JSON, `switchyard` removed. */
  readonly body: Uint8Array;
  /** ceil(UTF-8 bytes / 3) of the messages. */
  readonly promptTokens: number;
  /** What the client stated, else 1,024. */
  readonly maxOutputTokens: number;
  /** Hash of project, system and first user message: prefix-cache affinity. Null: none. */
  readonly conversation: string | null;
}

export interface EmbedWork {
  readonly context: RequestContext;
  readonly texts: readonly string[];
  readonly dimensions: number | null;
  readonly truncate: boolean;
  /** Space asserted by the client. */
  readonly space: SpaceId | null;
}

export interface RerankWork {
  readonly context: RequestContext;
  readonly query: string;
  readonly documents: readonly string[];
}

/** Which way the answer came; for response headers and the trace. */
export interface Route {
  readonly provider: ProviderId;
  readonly kind: ProviderKind;
  readonly nodeName: string;
  readonly model: string;
  readonly queueMs: number;
}

export interface WorkUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly exact: boolean;
  readonly costUsd: number | null;
}

/** Hears: onHead once, onData any number, then exactly one of onEnd and onFailure; onFailure may also come first. */
export interface ChatSink {
  onHead(route: Route, head: { readonly status: number; readonly contentType: string }): void;
  /** False stops the flow until `resume`. */
  onData(chunk: Uint8Array): boolean;
  onEnd(usage: WorkUsage | null): void;
  /** After onHead the error must be passed on inside the stream, which then ends without a success marker. */
  onFailure(error: SwitchyardError): void;
}

export interface EmbedAnswer {
  readonly route: Route;
  readonly space: SpaceId;
  readonly count: number;
  readonly width: number;
  /** count x width, row-major, in the order of the inputs. */
  readonly vectors: Float32Array;
  readonly usage: WorkUsage;
}

export interface RerankAnswer {
  readonly route: Route;
  /** One per document, in the order of the documents, each in [0, 1]. */
  readonly scores: Float64Array;
  /** True when the engine's scores were outside [0, 1] and got a sigmoid. */
  readonly squashed: boolean;
  readonly usage: WorkUsage;
}

export interface AnswerSink<Answer> {
  onAnswer(answer: Answer): void;
  onFailure(error: SwitchyardError): void;
}

export interface RunningWork {
  /** The client is gone: leaves the queue, or aborts the call. No sink method is called afterwards. Idempotent. */
  cancel(): void;
  /** Goes on after `onData` returned false. */
  resume(): void;
}

export interface RunningChat extends RunningWork {
  /** Of what the client has been given so far, estimated before the end; null: nothing that can be told. */
  readonly usage: WorkUsage | null;
}

/** What the gateway hands work to. */
export interface Dispatcher {
  chat(work: ChatWork, sink: ChatSink): RunningChat;
  embed(work: EmbedWork, sink: AnswerSink<EmbedAnswer>): RunningWork;
  rerank(work: RerankWork, sink: AnswerSink<RerankAnswer>): RunningWork;
}
