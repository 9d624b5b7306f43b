import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { HashVectors, type VectorSource } from './vectors.ts';

/** What a stand-in was sent. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  /** Parsed; null when there was none. */
  readonly body: Readonly<Record<string, unknown>> | null;
  readonly headers: IncomingHttpHeaders;
  readonly atMs: number;
  /** When the client left before its answer was complete; null while it has not. */
  abortedAtMs: number | null;
}

/** What goes wrong with the next calls, in the engine's own form. */
export type Trouble =
  /** Overloaded. */
  | { readonly kind: 'busy' }
  /** A stream breaks off after so many words, as this engine breaks off. */
  | { readonly kind: 'mid-stream'; readonly afterWords: number }
  /** The connection is closed after so many words. */
  | { readonly kind: 'cut'; readonly afterWords: number }
  /** 200 with an error object and no data. */
  | { readonly kind: 'error-in-200' };

export interface StandInOptions {
  readonly vectors?: VectorSource;
  /** Window in tokens. */
  readonly window?: number;
  readonly model?: string;
}

/** One request being answered. */
export class Reply {
  readonly seen: SeenRequest;
  readonly #response: ServerResponse;
  #gone = false;

  constructor(seen: SeenRequest, response: ServerResponse) {
    this.seen = seen;
    this.#response = response;
    response.once('close', () => {
      this.#gone = true;
      if (!response.writableFinished) seen.abortedAtMs = performance.now();
    });
  }

  get gone(): boolean {
    return this.#gone;
  }

  get body(): Readonly<Record<string, unknown>> {
    return this.seen.body ?? {};
  }

  json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
    this.text(status, JSON.stringify(body), { 'content-type': 'application/json', ...headers });
  }

  text(status: number, body: string, headers: Readonly<Record<string, string>> = {}): void {
    if (!this.#gone) this.#response.writeHead(status, headers).end(body);
  }

  events(): void {
    this.#response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    this.#response.flushHeaders();
  }

  write(text: string): void {
    if (!this.#gone) this.#response.write(text);
  }

  end(): void {
    if (!this.#gone) this.#response.end();
  }

  /** Ends without an end. */
  cut(): void {
    this.#response.socket?.destroy();
  }
}

/** An HTTP server on a loopback port that behaves as an engine does. */
export abstract class StandIn {
  readonly requests: SeenRequest[] = [];
  readonly vectors: VectorSource;
  readonly window: number;
  /** Between two words of a chat answer. */
  wordMs = 2;
  /** Words of a chat answer, unless the client wants fewer. */
  words = 8;
  /** Headers of every answer. */
  readonly headers: Readonly<Record<string, string>> = {};
  model: string;
  #server: Server | null = null;
  #url = '';
  #troubles: { readonly trouble: Trouble; left: number }[] = [];
  #thaw: Promise<void> | null = null;
  #release: () => void = () => undefined;

  constructor(options: StandInOptions, model: string) {
    this.vectors = options.vectors ?? new HashVectors();
    this.window = options.window ?? 256;
    this.model = options.model ?? model;
  }

  get url(): string {
    return this.#url;
  }

  /** Whatever was sent to a path. */
  to(path: string): readonly SeenRequest[] {
    return this.requests.filter((request) => request.path === path);
  }

  async start(port = 0): Promise<this> {
    const server = createServer((request, response) => void this.#serve(request, response));
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    this.#url = `http://127.0.0.1:${address.port}`;
    return this;
  }

  get port(): number {
    return Number(new URL(this.#url).port);
  }

  async stop(): Promise<void> {
    this.thaw();
    const server = this.#server;
    if (server === null) return;
    this.#server = null;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  /** The next `times` calls meet it. */
  trouble(trouble: Trouble, times = 1): void {
    this.#troubles.push({ trouble, left: times });
  }

  heal(): void {
    this.#troubles = [];
  }

  /** Answers nothing any more, but the kernel goes on accepting. */
  freeze(): void {
    this.#thaw ??= new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  thaw(): void {
    this.#thaw = null;
    this.#release();
  }

  /** Resolves at once unless frozen. */
  protected async awake(): Promise<void> {
    while (this.#thaw !== null) await this.#thaw;
  }

  /** The trouble that this call meets; each call asks once. */
  protected meets(): Trouble | null {
    const next = this.#troubles.find(({ left }) => left > 0);
    if (next === undefined) return null;
    next.left--;
    return next.trouble;
  }

  protected abstract route(reply: Reply): Promise<void> | void;

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
    } catch {
      return; // left while sending
    }
    const text = Buffer.concat(chunks).toString();
    const seen: SeenRequest = {
      method: incoming.method ?? '',
      path: new URL(incoming.url ?? '/', 'http://stand.in').pathname,
      body: text === '' ? null : (JSON.parse(text) as Record<string, unknown>),
      headers: incoming.headers,
      atMs: performance.now(),
      abortedAtMs: null,
    };
    this.requests.push(seen);
    for (const [name, value] of Object.entries(this.headers)) response.setHeader(name, value);
    const reply = new Reply(seen, response);
    await this.awake();
    await this.route(reply);
  }
}

export const pause = (ms: number) => wait(ms);

/** `input` of an embedding request as texts; null when it is none of strings. */
export function textsIn(input: unknown): readonly string[] | null {
  const list = Array.isArray(input) ? input : [input];
  return list.every((text) => typeof text === 'string') ? list : null;
}
