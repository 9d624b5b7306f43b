import { hash, randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import type { NewEvent } from '../../main/domain/events.ts';
import type { ProjectId, ProviderId, SpaceId } from '../../main/domain/ids.ts';
import { defaultRoleSettings } from '../../main/domain/roles.ts';
import type {
  AnswerSink,
  ChatSink,
  ChatWork,
  Dispatcher,
  EmbedAnswer,
  EmbedWork,
  RerankAnswer,
  RerankWork,
  Route,
  RunningChat,
  RunningWork,
  WorkUsage,
} from '../../main/domain/work.ts';
import { MemoryIdempotencyStore } from '../../main/gateway/idempotency-memory.ts';
import { MemoryKeyLimits } from '../../main/gateway/key-limits.ts';
import type {
  ApiKey,
  Exchange,
  GatewayPorts,
  GatewaySettings,
  RoleRoute,
  ServedModel,
} from '../../main/gateway/ports.ts';
import { Gateway, type GatewayOptions } from '../../main/gateway/server.ts';
import { createSystemClock } from '../../main/platform/clock.ts';
import type { TopicName, TopicUpdate } from '../../preload/contract.ts';

export const API_KEY = 'sk-sw-project-one';
export const ADMIN_TOKEN = 'admin-token-of-the-tests';
export const sha256 = (text: string): string => hash('sha256', text, 'hex');

export const LOCAL_ROUTE: Route = {
  provider: 'code-assistant~n1~e1~Qwen%2FQwen3-8B' as ProviderId,
  kind: 'local',
  nodeName: 'workstation',
  model: 'Qwen/Qwen3-8B',
  queueMs: 3.4,
};
export const USAGE: WorkUsage = { promptTokens: 7, completionTokens: 5, exact: true, costUsd: null };
export const SPACE = 'embedding-0a1b2c3d' as SpaceId;

/** One piece of work that the gateway handed over, and what it did with it since. */
export interface Handed<Work, Sink> {
  readonly work: Work;
  readonly sink: Sink;
  cancelled: number;
  resumed: number;
}

/** Takes work like the real one and lets the test play the engine. */
export class ScriptedDispatcher implements Dispatcher {
  readonly chats: Handed<ChatWork, ChatSink>[] = [];
  readonly embeds: Handed<EmbedWork, AnswerSink<EmbedAnswer>>[] = [];
  readonly reranks: Handed<RerankWork, AnswerSink<RerankAnswer>>[] = [];
  onChat: (handed: Handed<ChatWork, ChatSink>) => void = () => undefined;
  /** Of every chat that is handed over. */
  usageSoFar: WorkUsage | null = null;
  onEmbed: (handed: Handed<EmbedWork, AnswerSink<EmbedAnswer>>) => void = () => undefined;
  onRerank: (handed: Handed<RerankWork, AnswerSink<RerankAnswer>>) => void = () => undefined;

  get untouched(): boolean {
    return this.chats.length + this.embeds.length + this.reranks.length === 0;
  }

  chat(work: ChatWork, sink: ChatSink): RunningChat {
    const handed = { work, sink, cancelled: 0, resumed: 0 };
    this.chats.push(handed);
    this.onChat(handed);
    return { ...runningOf(handed), usage: this.usageSoFar };
  }

  embed(work: EmbedWork, sink: AnswerSink<EmbedAnswer>): RunningWork {
    const handed = { work, sink, cancelled: 0, resumed: 0 };
    this.embeds.push(handed);
    this.onEmbed(handed);
    return runningOf(handed);
  }

  rerank(work: RerankWork, sink: AnswerSink<RerankAnswer>): RunningWork {
    const handed = { work, sink, cancelled: 0, resumed: 0 };
    this.reranks.push(handed);
    this.onRerank(handed);
    return runningOf(handed);
  }
}

function runningOf(handed: { cancelled: number; resumed: number }): RunningWork {
  return {
    cancel: () => {
      handed.cancelled += 1;
    },
    resume: () => {
      handed.resumed += 1;
    },
  };
}

/** Answers every chat with one whole JSON completion, or three events and `[DONE]`. */
export function answerChat({ work, sink }: Handed<ChatWork, ChatSink>): void {
  if (!work.stream) {
    sink.onHead(LOCAL_ROUTE, { status: 200, contentType: 'application/json' });
    sink.onData(Buffer.from(COMPLETION));
    sink.onEnd(USAGE);
    return;
  }
  sink.onHead(LOCAL_ROUTE, { status: 200, contentType: 'text/event-stream' });
  for (const piece of ['Hel', 'lo'])
    sink.onData(Buffer.from(`data: ${JSON.stringify(chunkOf({ content: piece }, null))}\n\n`));
  sink.onData(Buffer.from(`data: ${JSON.stringify(chunkOf({}, 'stop'))}\n\ndata: [DONE]\n\n`));
  sink.onEnd(USAGE);
}

export const COMPLETION = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'Qwen/Qwen3-8B',
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hello' } }],
  usage: { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 },
});

function chunkOf(delta: Record<string, string>, finish: string | null): Record<string, unknown> {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'Qwen/Qwen3-8B',
    choices: [{ index: 0, delta, finish_reason: finish }],
  };
}

/** Row r of width w is r + 1 parts in its first value and 1/8 in the others: exact in float32. */
export function answerEmbed(width: number): (handed: Handed<EmbedWork, AnswerSink<EmbedAnswer>>) => void {
  return ({ work, sink }) => {
    const vectors = new Float32Array(work.texts.length * width).fill(0.125);
    work.texts.forEach((_text, row) => {
      vectors[row * width] = (row + 1) / 4096;
    });
    sink.onAnswer({
      route: LOCAL_ROUTE,
      space: SPACE,
      count: work.texts.length,
      width,
      vectors,
      usage: { ...USAGE, completionTokens: 0 },
    });
  };
}

export const KEY: ApiKey = {
  id: 'key-1',
  project: 'project-1' as ProjectId,
  allowWiden: false,
  anyProject: false,
  classCap: 'interactive',
  roles: null,
  limits: { requestsPerMinute: null, tokensPerMinute: null, usdPerDay: null },
};

export const MODELS: readonly ServedModel[] = [
  { name: 'Qwen/Qwen3-8B', aliases: ['qwen3:8b'], roles: ['code-assistant', 'rlm'], kinds: ['local'] },
  { name: 'tiny:local', aliases: [], roles: ['code-assistant'], kinds: ['local'] },
  { name: 'bge-m3', aliases: [], roles: ['embedding'], kinds: ['local'] },
];

export interface Harness {
  readonly gateway: Gateway;
  readonly dispatcher: ScriptedDispatcher;
  readonly url: string;
  readonly port: number;
  readonly keys: Map<string, ApiKey>;
  readonly roles: Map<string, Partial<RoleRoute>>;
  readonly exchanges: Exchange[];
  readonly events: NewEvent[];
  /** Operations called, and what they answer by name. */
  readonly called: { readonly name: string; readonly input: unknown }[];
  readonly answers: Map<string, unknown>;
  readonly pushed: { readonly key: Buffer; readonly options: unknown }[];
  readonly listeners: Set<{ readonly topics: readonly TopicName[]; readonly send: (update: TopicUpdate) => void }>;
}

export interface HarnessOptions {
  readonly settings?: Partial<GatewaySettings>;
  readonly ports?: Partial<GatewayPorts>;
  readonly gateway?: GatewayOptions;
}

/** A gateway on a free loopback port with scripted rooms behind it. `stopAll` ends every one that a test file started. */
export async function startGateway(options: HarnessOptions = {}): Promise<Harness> {
  const clock = createSystemClock();
  const dispatcher = new ScriptedDispatcher();
  const keys = new Map([[sha256(API_KEY), KEY]]);
  const roles: Harness['roles'] = new Map();
  const exchanges: Exchange[] = [];
  const events: NewEvent[] = [];
  const called: { name: string; input: unknown }[] = [];
  const answers = new Map<string, unknown>();
  const pushed: { key: Buffer; options: unknown }[] = [];
  const listeners: Harness['listeners'] = new Set();
  const ports: GatewayPorts = {
    clock,
    randomBytes,
    dispatcher,
    keys: { find: (digest) => keys.get(digest) ?? null, hasProject: (project) => project === 'project-2' },
    limits: new MemoryKeyLimits(clock),
    catalogue: {
      role: (id) => ({
        policy: defaultRoleSettings(id).policy,
        maxLocalWaitMs: 3000,
        hasCloud: false,
        space: null,
        ...roles.get(id),
      }),
      models: () => MODELS,
      spaceWidth: (space) => (space === SPACE ? 512 : null),
    },
    operations: {
      call: async (name, input) => {
        called.push({ name, input });
        return answers.get(name) ?? { done: true };
      },
      pushCloudKey: async (key, pushOptions) => {
        pushed.push({ key, options: pushOptions });
        return answers.get('cloud.push');
      },
    },
    topics: {
      subscribe: (topics, send) => {
        const listener = { topics, send };
        listeners.add(listener);
        for (const topic of topics) {
          if (topic === 'events') send({ topic, type: 'snapshot', rows: [] });
        }
        return () => listeners.delete(listener);
      },
    },
    idempotency: new MemoryIdempotencyStore(clock),
    health: { ready: () => true, items: () => [] },
    metrics: async () => ({ contentType: 'text/plain; version=0.0.4', text: 'switchyard_up 1\n' }),
    events: { record: (event) => events.push(event) },
    exchanges: { finished: (exchange) => exchanges.push(exchange) },
    ...options.ports,
  };
  const settings: GatewaySettings = {
    version: '0.0.0-test',
    port: 0,
    addresses: ['127.0.0.1'],
    hostNames: [],
    origins: [],
    tls: null,
    trustProxy: false,
    openProject: null,
    adminTokenSha256: sha256(ADMIN_TOKEN),
    consoleFiles: new Map(),
    ...options.settings,
  };
  const gateway = new Gateway(ports, settings, options.gateway);
  const { url, port } = await gateway.start();
  running.push(gateway);
  return { gateway, dispatcher, url, port, keys, roles, exchanges, events, called, answers, pushed, listeners };
}

const running: Gateway[] = [];

export async function stopAll(): Promise<void> {
  await Promise.all(running.splice(0).map((gateway) => gateway.stop()));
}

export const authorised = { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' };
export const asAdmin = { authorization: `Bearer ${ADMIN_TOKEN}` };

export function post(
  harness: Harness,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${harness.url}${path}`, {
    method: 'POST',
    headers: { ...authorised, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

/** @returns the code of an error answer in OpenAI's form. */
export async function codeOf(response: Response): Promise<string> {
  const body = (await response.json()) as { readonly error: { readonly code: string } };
  return body.error.code;
}

/** A bare connection: what a client that keeps no rules sends, and all it hears until the server closes or `until` is seen. */
export interface RawConnection {
  readonly socket: Socket;
  /** Resolves with everything heard so far once `pattern` is in it, or the connection has ended. */
  heard(pattern?: RegExp): Promise<string>;
}

export async function openRaw(port: number): Promise<RawConnection> {
  const socket = connect({ host: '127.0.0.1', port });
  let text = '';
  let ended = false;
  const waiting = new Set<() => void>();
  const wake = (): void => {
    for (const look of waiting) look();
  };
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
    wake();
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    ended = true;
    wake();
  });
  await new Promise((resolve) => socket.once('connect', resolve));
  return {
    socket,
    heard: (pattern) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!ended && !(pattern?.test(text) ?? false)) return;
          waiting.delete(look);
          resolve(text);
        };
        waiting.add(look);
        look();
      }),
  };
}

/** Sends raw bytes, waits for the whole answer of a connection that closes, and returns it. */
export async function raw(port: number, ...pieces: readonly (string | Buffer)[]): Promise<string> {
  const connection = await openRaw(port);
  for (const piece of pieces) connection.socket.write(piece);
  const text = await connection.heard(/\r\n\r\n[\s\S]*\}$/);
  connection.socket.destroy();
  return text;
}
