import { performance } from 'node:perf_hooks';
import type { AtRest } from '../../agent/cloud/at-rest.ts';
import { Credentials } from '../../agent/cloud/credential.ts';
import { OpenRouterEngine } from '../../agent/cloud/openrouter.ts';
import type { CallFailure, CallHead, ResponseHead, Trailers } from '../../agent/wire/calls.ts';
import {
  type CloudCall,
  type CloudFromAgent,
  type CloudStatus,
  encodePush,
  type PushMeta,
  pinText,
} from '../../agent/wire/cloud.ts';
import type { IncomingCall } from '../../agent/wire/stream.ts';
import type { Clock } from '../../main/domain/time.ts';
import { OpenRouterStandIn } from '../engines/openrouter.ts';

export const KEY = 'sk-or-v1-canary-0123456789abcdef';

export const realClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  after: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

/** One call as the agent's session would hand it over, and what became of it. */
export class TestCall implements IncomingCall {
  readonly controller: string;
  readonly head: CallHead;
  readonly body: Uint8Array;
  readonly abort = new AbortController();
  readonly chunks: Buffer[] = [];
  response: ResponseHead | null = null;
  trailers: Trailers | null = null;
  failure: CallFailure | null = null;
  readonly over: Promise<void>;
  /** Chunks that fit before `write` says stop. */
  window = Number.POSITIVE_INFINITY;
  #done: () => void = () => undefined;
  #open: (() => void)[] = [];

  constructor(head: CallHead, body: unknown, controller = 'cp1') {
    this.head = head;
    this.body = Buffer.from(JSON.stringify(body));
    this.controller = controller;
    this.over = new Promise((resolve) => {
      this.#done = resolve;
    });
  }

  get signal(): AbortSignal {
    return this.abort.signal;
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString('utf8');
  }

  respond(head: ResponseHead): void {
    this.response = head;
  }

  write(chunk: Uint8Array): boolean {
    this.chunks.push(Buffer.from(chunk));
    return this.chunks.length < this.window;
  }

  drained(): Promise<void> {
    return new Promise((resolve) => this.#open.push(resolve));
  }

  open(): void {
    this.window = Number.POSITIVE_INFINITY;
    for (const resolve of this.#open.splice(0)) resolve();
  }

  end(trailers: Trailers): void {
    this.trailers = trailers;
    this.#done();
  }

  fail(failure: CallFailure): void {
    this.failure = failure;
    this.#done();
  }
}

export const ROLES: NonNullable<PushMeta['roles']> = {
  'code-assistant': { model: 'poolside/laguna-s-2.1', policy: 'aggregate' },
  rlm: { model: 'deepseek/deepseek-v4-flash', policy: 'cloud' },
  embedding: { model: 'qwen/qwen3-embedding-8b', upstreams: ['deepinfra/turbo', 'nebius'], policy: 'aggregate' },
  reranker: { model: 'cohere/rerank-4-fast', policy: 'aggregate' },
};

/** The OpenRouter engine of an agent in front of a stand-in, over real sockets. */
export class Bench {
  readonly standIn: OpenRouterStandIn;
  readonly credentials: Credentials;
  readonly engine: OpenRouterEngine;
  readonly sent: { readonly controller: string; readonly message: CloudFromAgent }[] = [];
  #number = 0;
  #permit = 0;

  private constructor(standIn: OpenRouterStandIn, atRest: AtRest | null, clock: Clock) {
    this.standIn = standIn;
    this.credentials = new Credentials({ clock, baseUrl: standIn.url, atRest });
    this.engine = new OpenRouterEngine({
      clock,
      credentials: this.credentials,
      send: (controller, message) => this.sent.push({ controller, message }),
      onChange: () => undefined,
    });
    this.engine.start();
  }

  static async start(
    options: { readonly standIn?: OpenRouterStandIn; readonly atRest?: AtRest; readonly clock?: Clock } = {},
  ): Promise<Bench> {
    const standIn = options.standIn ?? new OpenRouterStandIn();
    if (standIn.url === '') await standIn.start();
    standIn.keys.add(KEY);
    const bench = new Bench(standIn, options.atRest ?? null, options.clock ?? realClock);
    await bench.credentials.load();
    return bench;
  }

  async stop(): Promise<void> {
    this.engine.stop();
    await this.standIn.stop();
  }

  push(meta: Partial<PushMeta>, key: string | null, controller = 'cp1'): number {
    const number = ++this.#number;
    const bytes = key === null ? null : Buffer.from(key);
    this.engine.push(controller, encodePush(number, { keyPush: key === null ? 0 : number, ...meta }, bytes));
    return number;
  }

  /** Pushes the key with all routes and waits until the agent knows the catalogue. */
  async ready(controller = 'cp1'): Promise<void> {
    this.push({ roles: ROLES }, KEY, controller);
    await this.until(
      () => this.status(controller)?.catalogueAtWallMs !== null && this.status(controller)?.account !== null,
    );
  }

  /** The newest status sent. */
  status(controller = 'cp1'): CloudStatus | null {
    for (let at = this.sent.length - 1; at >= 0; at--) {
      const entry = this.sent[at];
      if (entry?.controller === controller && entry.message.t === 'cloud-status') return entry.message;
    }
    return null;
  }

  async until(condition: () => boolean, limitMs = 5000): Promise<void> {
    const end = performance.now() + limitMs;
    while (!condition()) {
      if (performance.now() > end) throw new Error('it did not come to pass');
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  cloud(role: CloudCall['role'], changes: Partial<CloudCall> = {}): CloudCall {
    return { permit: `p${++this.#permit}`, role, pin: null, maxTokens: null, ...changes };
  }

  chat(body: unknown, changes: Partial<CallHead & { op: 'chat' }> = {}, controller = 'cp1'): TestCall {
    const role = changes.cloud?.role ?? 'code-assistant';
    const head: CallHead = {
      op: 'chat',
      engine: 'openrouter',
      model: ROLES[role]?.model ?? '',
      stream: false,
      wantsUsage: false,
      path: '/v1/chat/completions',
      firstByteMs: 5000,
      betweenTokensMs: 5000,
      cloud: this.cloud(role),
      ...changes,
    };
    return this.#serve(new TestCall(head, body, controller));
  }

  embed(texts: readonly string[], upstream: string, changes: Partial<CallHead & { op: 'embed' }> = {}): TestCall {
    const head: CallHead = {
      op: 'embed',
      engine: 'openrouter',
      model: `qwen/qwen3-embedding-8b@${upstream}`,
      count: texts.length,
      width: 256,
      cut: null,
      normalise: true,
      processMark: null,
      timeoutMs: 5000,
      cloud: this.cloud('embedding', { pin: pinText([upstream], []) }),
      ...changes,
    };
    return this.#serve(new TestCall(head, texts));
  }

  rerank(query: string, documents: readonly string[]): TestCall {
    const head: CallHead = {
      op: 'rerank',
      engine: 'openrouter',
      model: 'cohere/rerank-4-fast',
      count: documents.length,
      timeoutMs: 5000,
      cloud: this.cloud('reranker'),
    };
    return this.#serve(new TestCall(head, { query, documents }));
  }

  #serve(call: TestCall): TestCall {
    this.engine.serve(call);
    return call;
  }
}
