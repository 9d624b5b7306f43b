import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Account, keyHash, type LedgerEntry } from './openrouter/account.ts';
import { type Running, serveChat, serveEmbeddings, serveRerank, tokensOf } from './openrouter/calls.ts';
import { endpointsObject, modelObject, modelsOf } from './openrouter/catalogue.ts';
import { type ErrorName, errorNamed, make, type StandInError } from './openrouter/errors.ts';
import { DEFAULT_MODELS, type StandInModel, type StandInUpstream } from './openrouter/models.ts';

export type { AccountSettings, LedgerEntry } from './openrouter/account.ts';
export { ERROR_ROWS, type ErrorName } from './openrouter/errors.ts';
export { DEFAULT_MODELS, type StandInModel, type StandInUpstream, upstream } from './openrouter/models.ts';

/** What goes wrong next. */
export interface Fault {
  readonly error: ErrorName;
  /** Calls it hits; default 1. */
  readonly times?: number;
  /**
   * `status`: an answer of that status. `ok`: the same body with status 200. `stream`: a chunk with the error after
   * `afterTokens` words. `cut`: the connection closes there instead. `end`: the
   * stream ends there in good order, without finish reason or end mark.
   */
  readonly as?: 'status' | 'ok' | 'stream' | 'cut' | 'end';
  readonly afterTokens?: number;
  /** Only calls of this model. */
  readonly model?: string;
  /** In place of the row's own Retry-After. */
  readonly retryAfterS?: number;
  /** In place of the row's own X-RateLimit-Reset: so long after the refusal. */
  readonly resetS?: number;
}

type Route = LedgerEntry['route'];

/**
 * OpenRouter on a loopback port: its routes, errors and habits, over an account with limits that it does not report. Its own
 * ledger says what was really called. Everything may be changed while it runs.
 */
export class OpenRouterStandIn {
  readonly account = new Account();
  /** Accepted keys; empty: any. */
  readonly keys = new Set<string>();
  /** Until the answer or the first token. */
  latencyMs = 20;
  tokenMs = 2;
  /** Between two keep-alive comments while a stream waits. */
  commentMs = 15;
  /** What answers claim as upstream: null as it is, `hidden` not at all, else this name. */
  claimUpstream: string | null = null;
  /** Repeats the caller's key in answers and errors, as a careless upstream might. */
  echoKey = false;
  readonly models: StandInModel[];
  readonly seed: string;
  /** Requests of any route, catalogue and `/key` included. */
  requests = 0;
  /** Sockets ever opened, and those of them over which a test gave its orders. */
  readonly #opened = new Set<Socket>();
  readonly #ordering = new Set<Socket>();
  readonly #down = new Set<string>();
  readonly #drift = new Map<string, { readonly cosine: number; readonly seed: string }>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #faults: { fault: Fault; left: number }[] = [];
  #server: Server | null = null;
  #url = '';
  #nextId = 1;

  constructor(options: { readonly models?: readonly StandInModel[]; readonly seed?: string } = {}) {
    this.models = [...(options.models ?? DEFAULT_MODELS)];
    this.seed = options.seed ?? randomBytes(8).toString('hex');
  }

  /** Base URL, `http://127.0.0.1:PORT/api/v1`. */
  get url(): string {
    return this.#url;
  }

  get ledger(): readonly LedgerEntry[] {
    return this.account.ledger;
  }

  /** Connections of others than the test itself. */
  get connections(): number {
    return this.#opened.size - this.#ordering.size;
  }

  async start(port = 0): Promise<string> {
    const server = createServer((request, response) => void this.#serve(request, response));
    this.#server = server;
    server.on('connection', (socket) => this.#opened.add(socket));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    this.#url = `http://127.0.0.1:${address.port}/api/v1`;
    return this.#url;
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    const server = this.#server;
    if (server === null) return;
    this.#server = null;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  fail(fault: Fault): void {
    this.#faults.push({ fault, left: fault.times ?? 1 });
  }

  heal(): void {
    this.#faults = [];
  }

  /** Takes an upstream (by tag) off the net, or puts it back. */
  setDown(tag: string, down: boolean): void {
    if (down) this.#down.add(tag);
    else this.#down.delete(tag);
  }

  /** The upstream changes its serving stack: from now on its vectors are at `cosine` to the reference. Null: as before. */
  setDrift(tag: string, cosine: number | null): void {
    if (cosine === null) this.#drift.delete(tag);
    else this.#drift.set(tag, { cosine, seed: randomBytes(8).toString('hex') });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://stand.in');
    const body = await readBody(request);
    const path = url.pathname.replace(/^\/api\/v1/, '');
    if (url.pathname === '/__control' || url.pathname === '/__ledger') {
      this.#ordering.add(request.socket);
      this.#control(url.pathname, body, response);
      return;
    }
    this.requests++;
    const key = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? null;
    const isPublic = path.startsWith('/models') || path === '/embeddings/models';
    if (!isPublic && key === null) {
      sendError(response, make(401, 'Missing Authentication header', {}));
      return;
    }
    if (!isPublic && this.keys.size > 0 && !this.keys.has(key ?? '')) {
      sendError(response, errorNamed('unauthorized', this.#context('', '')));
      return;
    }
    if (request.method === 'GET') {
      this.#get(path, url, response);
      return;
    }
    if (request.method === 'POST' && isRoute(path)) {
      this.#post(ROUTES[path], key ?? '', body, response);
      return;
    }
    sendError(response, make(404, 'Not Found', {}));
  }

  #get(path: string, url: URL, response: ServerResponse): void {
    if (path === '/key' || path === '/auth/key') {
      sendJson(response, { data: this.account.keyReport() });
      return;
    }
    if (path === '/credits') {
      sendError(response, errorNamed('forbidden', this.#context('', '')));
      return;
    }
    if (path === '/models' || path === '/embeddings/models') {
      const asked = path === '/models' ? url.searchParams.get('output_modalities') : 'embeddings';
      const all = modelsOf(this.models, asked);
      const offset = Number(url.searchParams.get('offset') ?? 0);
      const limit = Number(url.searchParams.get('limit') ?? 1000);
      const data = all.slice(offset, offset + limit).map(modelObject);
      sendJson(response, { data, total_count: all.length, links: { next: null } });
      return;
    }
    const slug = /^\/models\/([^/]+\/[^/]+)\/endpoints$/.exec(path)?.[1];
    const model = this.models.find((candidate) => candidate.id === decodeURIComponent(slug ?? ''));
    if (model === undefined) {
      sendError(response, make(404, 'Resource not found', {}));
      return;
    }
    sendJson(response, { data: endpointsObject(model, this.#down) });
  }

  #post(route: Route, key: string, text: string, response: ServerResponse): void {
    const body = parse(text);
    const nowMs = Date.now();
    const entry: LedgerEntry = {
      id: `${route === 'chat' ? 'gen' : `gen-${route}`}-${Math.floor(nowMs / 1000)}-${this.#nextId++}`,
      route,
      startMs: nowMs,
      endMs: null,
      keyHash: keyHash(key),
      model: String(body?.model ?? ''),
      upstream: null,
      status: 0,
      aborted: false,
      stream: body?.stream === true,
      inputs: Array.isArray(body?.input)
        ? body.input.length
        : Array.isArray(body?.documents)
          ? body.documents.length
          : 1,
      costUsd: 0,
      body: body ?? {},
    };
    this.account.ledger.push(entry);
    const refuse = (error: StandInError, status = error.status) => {
      entry.status = status;
      entry.endMs = Date.now();
      sendError(response, this.echoKey ? { ...error, body: { ...error.body, echo: key } } : error, status);
    };
    if (body === null) {
      refuse(errorNamed('bad-request', this.#context('', '')));
      return;
    }
    const model = this.models.find((candidate) => candidate.id === entry.model);
    if (model === undefined || model.kind !== KINDS[route]) {
      const code = model === undefined ? 'model_not_found' : 'wrong_endpoint';
      const message = `${entry.model} is not a valid model ID`;
      refuse({
        status: 400,
        headers: {},
        body: { error: { code: 400, message, availability: { code, retryable: false } } },
      });
      return;
    }
    const chosen = choose(model, body.provider, this.#down);
    if (typeof chosen === 'string') {
      const availability = {
        code: chosen,
        retryable: chosen === 'temporarily_unavailable',
        requested_models: [model.id],
      };
      const status = chosen === 'temporarily_unavailable' ? 503 : 404;
      refuse({
        status,
        headers: {},
        body: { error: { code: status, message: `No endpoints found for ${model.id}.`, availability } },
      });
      return;
    }
    entry.upstream = chosen.name;
    const context = this.#context(chosen.name, model.id);
    const fault = this.#nextFault(model.id);
    const as = fault?.as ?? 'status';
    if (fault !== null && (as === 'status' || as === 'ok')) {
      const error = hinted(errorNamed(fault.error, context), fault);
      refuse(error, as === 'ok' ? 200 : error.status);
      return;
    }
    const overlong = this.#overlong(model, chosen, body);
    if (overlong) {
      refuse(errorNamed('context-length', context));
      return;
    }
    const free = model.promptUsd === 0 && model.completionUsd === 0 && model.kind === 'chat';
    const output = Number(body.max_completion_tokens ?? body.max_tokens ?? 8192);
    const estimateUsd = free ? 0 : tokensOf(text) * model.promptUsd + Math.min(output, 8192) * model.completionUsd;
    const refused = this.account.admit(free, estimateUsd, context);
    if (refused !== null) {
      refuse(refused);
      return;
    }
    entry.status = 200;
    const running: Running = {
      entry,
      model,
      upstream: chosen,
      body,
      response,
      latencyMs: this.latencyMs,
      tokenMs: this.tokenMs,
      commentMs: this.commentMs,
      saidUpstream: this.claimUpstream === 'hidden' ? null : (this.claimUpstream ?? chosen.name),
      midStream:
        fault !== null && (as === 'stream' || as === 'end')
          ? {
              afterTokens: fault.afterTokens ?? 0,
              error: as === 'end' ? null : hintedInside(errorNamed(fault.error, context), fault),
            }
          : null,
      drift: this.#drift.get(chosen.tag) ?? null,
      seed: this.seed,
      echo: this.echoKey ? key : null,
      after: (delayMs, run) => this.#after(delayMs, run),
      finish: () => {
        if (entry.endMs === null) this.account.end(entry, estimateUsd, Date.now());
      },
    };
    if (as === 'cut') {
      this.#after(this.latencyMs + (fault?.afterTokens ?? 0) * this.tokenMs, () => {
        running.finish();
        response.destroy();
      });
    }
    if (route === 'chat') serveChat(running);
    else if (route === 'embeddings') serveEmbeddings(running);
    else serveRerank(running);
  }

  #overlong(model: StandInModel, chosen: StandInUpstream, body: Readonly<Record<string, unknown>>): boolean {
    if (model.kind === 'chat') return tokensOf(JSON.stringify(body.messages ?? '')) > model.contextTokens;
    if (chosen.overlong === 'truncate') return false;
    const texts = Array.isArray(body.input) ? body.input : [body.input ?? ''];
    return texts.some((text) => tokensOf(String(text)) > model.contextTokens);
  }

  #nextFault(model: string): Fault | null {
    const index = this.#faults.findIndex(
      ({ fault, left }) => left > 0 && (fault.model === undefined || fault.model === model),
    );
    const found = this.#faults[index];
    if (found === undefined) return null;
    found.left--;
    if (found.left === 0) this.#faults.splice(index, 1);
    return found.fault;
  }

  /**
   * For other processes: `POST /__control` with any of latencyMs, tokenMs, account, fail, heal, down, drift, claimUpstream, echoKey,
   * keys (accepted ones), models (further ones) and forget (the books); `GET /__ledger`.
   */
  #control(path: string, text: string, response: ServerResponse): void {
    if (path === '/__ledger') {
      const { running, mostRunning } = this.account;
      const { requests, connections } = this;
      sendJson(response, { ledger: this.ledger, running, mostRunning, requests, connections });
      return;
    }
    const order = parse(text) ?? {};
    const { latencyMs, tokenMs, account, fail, heal, down, drift, claimUpstream, echoKey, keys, forget } = order;
    if (Array.isArray(order.models)) this.models.push(...(order.models as StandInModel[]));
    if (Array.isArray(keys)) {
      this.keys.clear();
      for (const key of keys) this.keys.add(String(key));
    }
    if (forget === true) this.account.forget();
    if (typeof echoKey === 'boolean') this.echoKey = echoKey;
    if (typeof latencyMs === 'number') this.latencyMs = latencyMs;
    if (typeof tokenMs === 'number') this.tokenMs = tokenMs;
    if (typeof claimUpstream === 'string' || claimUpstream === null) this.claimUpstream = claimUpstream;
    if (isRecord(account)) Object.assign(this.account.settings, account);
    if (isRecord(fail)) this.fail(fail as unknown as Fault);
    if (heal === true) this.heal();
    if (isRecord(down)) for (const [tag, is] of Object.entries(down)) this.setDown(tag, is === true);
    if (isRecord(drift))
      for (const [tag, to] of Object.entries(drift)) this.setDrift(tag, typeof to === 'number' ? to : null);
    sendJson(response, { ok: true });
  }

  #context(provider: string, model: string) {
    return { provider, model, nowMs: Date.now() };
  }

  #after(delayMs: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      run();
    }, delayMs);
    this.#timers.add(timer);
  }
}

const ROUTES = { '/chat/completions': 'chat', '/embeddings': 'embeddings', '/rerank': 'rerank' } as const;
const KINDS = { chat: 'chat', embeddings: 'embeddings', rerank: 'rerank' } as const;

/** The same error with another hint when to come again. */
function hinted(error: StandInError, { retryAfterS, resetS }: Fault): StandInError {
  const headers = { ...error.headers };
  if (retryAfterS !== undefined) headers['Retry-After'] = String(retryAfterS);
  if (resetS !== undefined) headers['X-RateLimit-Reset'] = String(Date.now() + resetS * 1000);
  return { ...error, headers };
}

/** A stream has no headers left: there the hint stands in the error's own metadata. */
function hintedInside({ body }: StandInError, { retryAfterS }: Fault): unknown {
  if (retryAfterS === undefined || !isRecord(body.error)) return body.error;
  const metadata = isRecord(body.error.metadata) ? body.error.metadata : {};
  return { ...body.error, metadata: { ...metadata, headers: { 'Retry-After': String(retryAfterS) } } };
}

function isRoute(path: string): path is keyof typeof ROUTES {
  return path in ROUTES;
}

/** The upstream that answers under these preferences, or the availability code of the refusal. */
function choose(model: StandInModel, preferences: unknown, down: ReadonlySet<string>): StandInUpstream | string {
  const wishes = isRecord(preferences) ? preferences : {};
  const list = (value: unknown) => (Array.isArray(value) ? value.map(String) : null);
  const only = list(wishes.only);
  const order = list(wishes.order);
  const quantizations = list(wishes.quantizations);
  const named = (upstream: StandInUpstream, slugs: readonly string[]) =>
    slugs.some((slug) => slug === upstream.tag || slug === upstream.tag.split('/')[0]);
  const allowed = model.upstreams.filter(
    (upstream) =>
      (only === null || named(upstream, only)) &&
      (quantizations === null || quantizations.includes(upstream.quantization ?? 'unknown')),
  );
  if (allowed.length === 0) return 'constraint_filtered';
  const first =
    order === null ? allowed : [...allowed].sort((a, b) => Number(named(b, order)) - Number(named(a, order)));
  const candidates = wishes.allow_fallbacks === false ? first.slice(0, Math.max(1, only?.length ?? 1)) : first;
  return candidates.find((upstream) => !down.has(upstream.tag)) ?? 'temporarily_unavailable';
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

function parse(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function sendJson(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

function sendError(response: ServerResponse, error: StandInError, status = error.status): void {
  response.writeHead(status, { 'content-type': 'application/json', ...error.headers });
  response.end(JSON.stringify(error.body));
}
