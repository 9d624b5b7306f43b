import type { CallHead } from '../wire/calls.ts';
import type { EngineKind, Load } from './adapter.ts';
import type { Connection } from './connections.ts';
import type { HttpAnswer } from './engine-http.ts';
import type { ModelFacts } from './model-facts.ts';
import type { CountTokens } from './refusals.ts';
import type { Edit } from './splice.ts';
import type { VectorBatch, VectorDemand } from './vectors.ts';

/**
 * What differs between engines: where they tell things, and how they want to be asked. `DialectAdapter` does the rest. Requests
 * throw EngineFailure.
 */
export interface EngineDialect {
  readonly kind: EngineKind;
  /** Sent with every request of a call. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Reads everything; may try each task once. */
  inspect(): Promise<EngineFacts>;
  /** One look that a busy engine answers too. May renew what its models report of themselves. */
  pulse(): Promise<EngineSign>;
  load(): Promise<Load>;
  /** What the engine tells of its process, for the mark; null: nothing. */
  sign(connection: Connection, signal?: AbortSignal): Promise<string | null>;
  /** `each-answer`: the sign is read again when vectors have come; `each-socket`: it holds as long as the socket. */
  readonly signHolds: 'each-answer' | 'each-socket';
  /** Digest of the model as it is now, asked after each chunk of vectors. Absent: it cannot change within a process. */
  digestNow?(connection: Connection, model: ModelFacts, signal: AbortSignal): Promise<string | null>;
  /** Changes of the client's chat body beyond its model. */
  chatEdits(head: ChatHead): readonly Edit[];
  /** Null: the engine has no such route. */
  readonly embed: EmbedRoute | null;
  readonly rerank: RerankRoute | null;
  /** Null: it cannot count. */
  counter(model: ModelFacts): CountTokens | null;
}

export type ChatHead = CallHead & { readonly op: 'chat' };

export interface EngineFacts {
  readonly version: string | null;
  readonly slots: number;
  readonly models: readonly ModelFacts[];
}

export interface EngineSign {
  readonly state: 'ready' | 'loading';
  /** Changes whenever another model, build or configuration answers. */
  readonly identity: string;
}

export interface EmbedRoute {
  readonly path: string;
  /** Inputs of one request go up to this many bytes together. */
  readonly maxBytes: number;
  /** `inputs`: a JSON array of strings, as bytes. */
  body(model: string, inputs: Uint8Array): Buffer;
  /** @throws EngineFailure as `readVectors` */
  read(answer: HttpAnswer, demand: VectorDemand): EmbedAnswer | Promise<EmbedAnswer>;
}

export interface EmbedAnswer {
  readonly batch: VectorBatch;
  readonly promptTokens: number | null;
}

export interface RerankRoute {
  readonly path: string;
  /** Documents of one request. Scores do not depend on each other, so longer lists are sent in parts. */
  readonly maxDocuments: number;
  body(model: string, query: string, documents: readonly string[]): Buffer;
  /** @throws EngineFailure as `readScores` */
  read(answer: HttpAnswer, count: number): RerankAnswer;
}

export interface RerankAnswer {
  readonly scores: readonly number[];
  readonly promptTokens: number | null;
}
