import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ErrorCode, SwitchyardError } from '../domain/errors.ts';
import type { RequestId } from '../domain/ids.ts';
import { said } from '../domain/said.ts';
import { authenticateKey, bearerToken, matchesToken, peerOf } from './auth.ts';
import { BODY_LIMITS, type BodyLimits, checkBodyHeaders } from './body.ts';
import type { ConsoleSessions } from './console-sessions.ts';
import { errorReply } from './error-reply.ts';
import { asSwitchyardError, type ErrorForm } from './errors.ts';
import type { GuardVerdict } from './guard.ts';
import { HttpReply, type Reply, SLOW_READER_MS } from './http-reply.ts';
import { Idempotency, idempotencyKey } from './idempotency.ts';
import { checkJsonType, readJsonBody } from './json-body.ts';
import { rateHeaders } from './key-limits.ts';
import type { ApiKey, GatewayPorts, GatewaySettings } from './ports.ts';
import { hasUnreadBody, refuseUnread, wipeBody } from './refusals.ts';
import type { Call, Route, RouteTable, WorkCall } from './routes.ts';

export const MAX_IN_FLIGHT = 64;

export interface ExchangeLimits {
  readonly body: BodyLimits;
  readonly slowReaderMs: number;
}

/** Headers of every answer: what a browser must not guess, and who may embed it. */
const SECURITY = ['x-content-type-options', 'nosniff', 'cross-origin-resource-policy', 'same-origin'];
const EXPOSED =
  'x-request-id, x-switchyard-provider, x-switchyard-route, x-switchyard-queue-ms, x-switchyard-space, ' +
  'x-switchyard-score, x-switchyard-overruled, retry-after';

/** Read by all who were asked without one, changed by nobody. */
const NO_QUERY = new URLSearchParams();

/** What is known of one request while it is served. */
interface State {
  readonly id: RequestId;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly reply: HttpReply;
  /** Flat headers of its answer; grows until the head is sent. */
  readonly common: string[];
  readonly arrivedAtMs: number;
  form: ErrorForm;
  route: Route | null;
  key: ApiKey | null;
  code: ErrorCode | null;
}

/** From a request that came in to an answer that is out: route, access, limits, body, work, and one report at the end. */
export class Exchanges {
  readonly #ports: GatewayPorts;
  readonly #settings: GatewaySettings;
  readonly #table: RouteTable;
  readonly #sessions: ConsoleSessions;
  readonly #limits: ExchangeLimits;
  readonly #idempotency: Idempotency;
  readonly #inFlight = new Map<string, number>();
  #working = 0;
  #draining = false;
  #onIdle: (() => void)[] = [];

  constructor(
    ports: GatewayPorts,
    settings: GatewaySettings,
    table: RouteTable,
    sessions: ConsoleSessions,
    limits: Partial<ExchangeLimits>,
  ) {
    this.#ports = ports;
    this.#settings = settings;
    this.#table = table;
    this.#sessions = sessions;
    this.#limits = { body: BODY_LIMITS, slowReaderMs: SLOW_READER_MS, ...limits };
    this.#idempotency = new Idempotency(ports.idempotency);
  }

  get draining(): boolean {
    return this.#draining;
  }

  beginDraining(): void {
    this.#draining = true;
  }

  drain(timeoutMs: number): Promise<void> {
    this.#draining = true;
    if (this.#working === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#ports.clock.after(timeoutMs, resolve);
      this.#onIdle.push(() => {
        cancel();
        resolve();
      });
    });
  }

  /** Never throws, never rejects: whatever happens becomes an answer or a closed connection. */
  serve(request: IncomingMessage, response: ServerResponse, id: RequestId, verdict: GuardVerdict): void {
    const common = ['x-request-id', id, ...SECURITY];
    const state: State = {
      id,
      request,
      response,
      common,
      reply: new HttpReply(response, common, this.#limits.slowReaderMs),
      arrivedAtMs: this.#ports.clock.nowMs(),
      form: 'openai',
      route: null,
      key: null,
      code: null,
    };
    response.on('close', () => this.#report(state));
    this.#run(state, verdict).catch((error: unknown) => this.#fail(state, asSwitchyardError(error)));
  }

  async #run(state: State, verdict: GuardVerdict): Promise<void> {
    const { request, reply, common } = state;
    if (!verdict.admitted) throw new SwitchyardError(verdict.code);
    const { expect } = request.headers;
    if (expect !== undefined && expect.toLowerCase() !== '100-continue') throw new SwitchyardError('bad_request_line');
    if (verdict.origin !== null) {
      common.push('access-control-allow-origin', verdict.origin, 'vary', 'origin');
      common.push('access-control-expose-headers', EXPOSED);
    }
    const target = request.url ?? '/';
    const mark = target.indexOf('?');
    const path = mark < 0 ? target : target.slice(0, mark);
    const match = this.#table.find(request.method ?? '', path);
    if (match.kind === 'none') throw new SwitchyardError('not_found');
    if (match.kind === 'other-method') {
      if (request.method === 'OPTIONS' && verdict.origin !== null) return answerPreflight(state, match.allow);
      common.push('allow', match.allow.join(', '));
      throw new SwitchyardError('method_not_allowed');
    }
    const { route, parameters } = match;
    state.route = route;
    state.form = route.form;
    let toContinue = expect !== undefined;
    const call: Call = {
      id: state.id,
      request,
      parameters,
      query: mark < 0 ? NO_QUERY : new URLSearchParams(target.slice(mark + 1)),
      reply,
      arrivedAtMs: state.arrivedAtMs,
      continueBody: () => {
        if (toContinue) state.response.writeContinue();
        toContinue = false;
      },
    };
    if (route.access === 'work') {
      await this.#work(state, call, route);
      return;
    }
    this.#authorise(state, route.access);
    await route.handle(call);
  }

  #authorise(state: State, access: 'key' | 'admin' | 'private' | 'console' | 'public'): void {
    if (access === 'public') return;
    const { request } = state;
    const peer = peerOf(request, this.#settings.trustProxy);
    if (access === 'key') {
      state.key = authenticateKey(request, this.#ports.keys, this.#settings.openProject, peer);
      return;
    }
    if (access === 'private' && peer.loopback) return;
    if (!peer.loopback && !peer.tls) throw new SwitchyardError('tls_required');
    if (access === 'console') return;
    const token = bearerToken(request);
    if (token !== null && matchesToken(token, this.#settings.adminTokenSha256)) return;
    if (token !== null && this.#sessions.isSession(token)) return;
    throw new SwitchyardError('invalid_admin_token');
  }

  async #work(state: State, call: Call, route: Route & { readonly access: 'work' }): Promise<void> {
    const { request, reply } = state;
    if (this.#draining) throw new SwitchyardError('shutting_down');
    const peer = peerOf(request, this.#settings.trustProxy);
    const key = authenticateKey(request, this.#ports.keys, this.#settings.openProject, peer);
    state.key = key;
    this.#enter(state, key);
    this.#admitByLimits(state, key);
    checkBodyHeaders(request, this.#limits.body);
    checkJsonType(request);
    const idempotent = idempotencyKey(request.headers['idempotency-key']);
    call.continueBody();
    const body = await readJsonBody(request, this.#limits.body, this.#ports.clock);
    const handle = (target: Reply): void | Promise<void> => {
      const workCall: WorkCall = { ...call, reply: target, key, body };
      return route.handle(workCall);
    };
    if (idempotent === null) {
      await handle(reply);
      return;
    }
    const scope = { project: key.project, route: route.path, key: idempotent };
    await this.#idempotency.serve(scope, body.bytes, route.form, reply, async (shared) => {
      try {
        await handle(shared);
      } catch (error) {
        answerError(shared, asSwitchyardError(error), route.form);
      }
    });
  }

  /** Counts what a key has in flight until its connection has its answer. @throws SwitchyardError too_many_in_flight */
  #enter(state: State, key: ApiKey): void {
    const running = this.#inFlight.get(key.id) ?? 0;
    if (running >= MAX_IN_FLIGHT) throw new SwitchyardError('too_many_in_flight');
    this.#inFlight.set(key.id, running + 1);
    this.#working += 1;
    state.response.on('close', () => {
      const left = (this.#inFlight.get(key.id) ?? 1) - 1;
      if (left > 0) this.#inFlight.set(key.id, left);
      else this.#inFlight.delete(key.id);
      this.#working -= 1;
      if (this.#working > 0) return;
      for (const listener of this.#onIdle.splice(0)) listener();
    });
  }

  #admitByLimits(state: State, key: ApiKey): void {
    const admission = this.#ports.limits.admit(key);
    state.common.push(...rateHeaders(admission.rate));
    if (admission.admitted) return;
    const code = admission.limit === 'usd' ? 'key_spend_reached' : 'rate_limited';
    throw new SwitchyardError(code, undefined, {
      retryAfterMs: admission.retryAfterMs,
      extra: { limit: admission.limit },
    });
  }

  #fail(state: State, error: SwitchyardError): void {
    const { request, response, reply } = state;
    state.code = error.code;
    if (error.code === 'internal_error') {
      this.#ports.events.record({
        severity: 'error',
        source: 'gateway',
        code: 'internal_error',
        says: said('request_fault'),
        request: state.id,
      });
    }
    wipeBody(request);
    if (reply.gone) return;
    if (reply.headSent) reply.cut();
    else if (hasUnreadBody(request)) {
      refuseUnread(request, response, error, state.form, state.common, this.#ports.clock);
    } else errorReply(reply, error, state.form);
  }

  #report(state: State): void {
    const { response, reply } = state;
    this.#ports.exchanges.finished({
      id: state.id,
      route: state.route?.path ?? null,
      method: state.route?.method ?? 'OTHER',
      status: response.headersSent ? response.statusCode : 499,
      code: state.code,
      key: state.key === null || state.key.id === '' ? null : state.key.id,
      bodyBytes: reply.bytes,
      totalMs: this.#ports.clock.nowMs() - state.arrivedAtMs,
    });
  }
}

function answerError(reply: Reply, error: SwitchyardError, form: ErrorForm): void {
  if (reply.headSent) reply.cut();
  else errorReply(reply, error, form);
}

/** A listed foreign page asks what it may send. Never with a private-network header. */
function answerPreflight(state: State, allow: readonly string[]): void {
  const wanted = state.request.headers['access-control-request-headers'] ?? '';
  const headers = /^[A-Za-z0-9\-, ]{1,1024}$/.test(wanted) ? wanted : 'authorization, content-type';
  state.reply.head(204, [
    'access-control-allow-methods',
    allow.join(', '),
    'access-control-allow-headers',
    headers,
    'access-control-max-age',
    '600',
  ]);
  state.reply.end();
}
