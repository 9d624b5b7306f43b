import type { Clock } from '../../main/domain/time.ts';
import type { ServedEngine } from '../engines/engine.ts';
import { EngineFailure, failureOf } from '../engines/failure.ts';
import { SpeedSignals } from '../engines/speed.ts';
import type { CallHead, Trailers } from '../wire/calls.ts';
import {
  BadPush,
  CLOUD_ENGINE,
  type CloudAnswer,
  type CloudAsk,
  type CloudFromAgent,
  type CloudStatus,
  cloudModelName,
  decodePush,
  splitCloudModel,
} from '../wire/cloud.ts';
import type { EngineReport, ModelReport } from '../wire/control.ts';
import type { IncomingCall } from '../wire/stream.ts';
import { CloudCatalogue } from './catalogue.ts';
import { serveChat } from './chat.ts';
import { type Credentials, pinOf } from './credential.ts';
import { Desks } from './desks.ts';
import { CloudHttp } from './http.ts';
import { CallCancelled, type CloudJob } from './job.ts';
import { kindOfRole, mayLeave } from './offers.ts';
import { CloudCallFailed, failedCall } from './refusal.ts';
import { RunningCalls } from './running-calls.ts';
import { serveEmbed, serveRerank } from './vectors.ts';

const SLOTS = 256;
/** Inputs of one embedding call that every upstream takes. */
const MAX_BATCH = 96;

export interface OpenRouterOptions {
  readonly clock: Clock;
  readonly credentials: Credentials;
  /** To the control plane's session, if it has one now. */
  send(controller: string, message: CloudFromAgent): void;
  /** What `report` says has changed. */
  onChange(): void;
}

/** OpenRouter as an engine of this agent, for each control plane with its own key and routes. */
export class OpenRouterEngine implements ServedEngine {
  readonly id = CLOUD_ENGINE;
  readonly #options: OpenRouterOptions;
  readonly #credentials: Credentials;
  readonly #http: CloudHttp;
  readonly #catalogue: CloudCatalogue;
  readonly #speed = new SpeedSignals();
  readonly #desks: Desks;
  readonly #running = new RunningCalls();
  #errors = 0;

  constructor(options: OpenRouterOptions) {
    this.#options = options;
    this.#credentials = options.credentials;
    this.#http = new CloudHttp(options.clock);
    this.#catalogue = new CloudCatalogue(this.#http);
    this.#desks = new Desks({
      clock: options.clock,
      credentials: options.credentials,
      http: this.#http,
      catalogue: this.#catalogue,
      onChange: (controller) => {
        options.send(controller, this.status(controller));
        options.onChange();
      },
    });
  }

  start(): void {
    this.#desks.start();
  }

  stop(): void {
    this.#desks.stop();
    void this.#http.close().catch(() => undefined);
  }

  poke(): void {
    for (const controller of this.#desks.controllers()) void this.#desks.refresh(controller);
  }

  /**
   * The control socket has fallen silent or is gone: its permits return soon, so that control plane's calls end now and are not
   * answered late.
   */
  abort(controller: string): void {
    this.#running.abort(controller);
  }

  /** A session with a control plane has begun: it learns how its key stands. */
  greet(controller: string): void {
    this.#options.send(controller, this.status(controller));
    void this.#desks.refresh(controller);
  }

  /** A push (binary control message). The frame is zeroed, whatever it holds. */
  push(controller: string, frame: Uint8Array): void {
    let number = 0;
    try {
      const push = decodePush(frame);
      number = push.number;
      const result = this.#credentials.apply(controller, push);
      if (result === 'applied')
        this.#options.send(controller, { t: 'cloud-ack', push: number, result: 'applied', reason: null });
      else this.#options.send(controller, { t: 'cloud-ack', push: number, result: 'refused', reason: result });
    } catch (error) {
      if (!(error instanceof BadPush)) throw error;
      this.#options.send(controller, { t: 'cloud-ack', push: number, result: 'refused', reason: 'malformed' });
    } finally {
      frame.fill(0);
    }
    this.#desks.changed(controller);
    this.#options.send(controller, this.status(controller));
    this.#options.onChange();
    void this.#credentials.settled().then(() => {
      if (this.#credentials.view(controller).remembered) this.#options.send(controller, this.status(controller));
    });
  }

  async ask(controller: string, ask: CloudAsk): Promise<void> {
    const answer: CloudAnswer = { t: 'cloud-answer', id: ask.id, ok: false, models: null, endpoints: null };
    const baseUrl = this.#credentials.baseUrl(controller);
    const { signal } = this.#desks;
    if (!this.#desks.mayAsk(controller)) this.#options.send(controller, answer);
    else if (ask.what === 'account') {
      await this.#desks.readAccount(controller);
      this.#options.send(controller, this.status(controller));
      this.#options.send(controller, { ...answer, ok: this.#desks.account(controller) !== null });
    } else if (ask.what === 'catalogue') {
      const models = await this.#catalogue.models(baseUrl, signal);
      this.#options.send(controller, {
        ...answer,
        ok: models !== null,
        models: models?.map(({ requestUsd: _, ...model }) => model) ?? null,
      });
    } else {
      const endpoints = await this.#catalogue.endpoints(baseUrl, ask.model ?? '', signal);
      this.#options.send(controller, {
        ...answer,
        ok: endpoints !== null,
        endpoints: endpoints === null ? null : [...endpoints],
      });
    }
  }

  /** The control plane was removed on this machine. */
  forget(controller: string): void {
    this.#credentials.forget(controller);
    this.#desks.forget(controller);
    this.#options.onChange();
  }

  status(controller: string): CloudStatus {
    const { offers, notOffered } = this.#desks.offers(controller);
    return {
      t: 'cloud-status',
      ...this.#credentials.view(controller),
      canRemember: this.#credentials.canRemember,
      account: this.#desks.account(controller),
      offers: [...offers],
      notOffered: [...notOffered],
      catalogueAtWallMs: this.#desks.reading(controller)?.atWallMs ?? null,
    };
  }

  report(): EngineReport | null {
    const models = new Map<string, ModelReport>();
    const hosts = new Set<string>();
    let usable = false;
    for (const controller of this.#desks.controllers()) {
      if (this.#credentials.state(controller) === 'held') usable = true;
      const { host } = new URL(this.#credentials.baseUrl(controller));
      hosts.add(host);
      for (const offer of this.#desks.offers(controller).offers) {
        const name = cloudModelName(offer.model, offer.upstream);
        models.set(name, {
          model: name,
          aliases: [],
          digest: null,
          tasks: [kindOfRole(offer.role)],
          contextTokens: offer.contextTokens,
          maxInputTokens: kindOfRole(offer.role) === 'chat' ? null : offer.contextTokens,
          width: null,
          maxBatch: MAX_BATCH,
          tokenCounting: 'none',
          loaded: true,
          sizeBytes: null,
          ...this.#speed.of(name),
          remoteHost: host,
          trial: false,
        });
      }
    }
    if (this.#desks.controllers().length === 0) return null;
    return {
      engine: CLOUD_ENGINE,
      kind: 'openrouter',
      version: null,
      // Control planes may each have a base URL of their own.
      address: [...hosts].sort().join(', '),
      reach: 'public',
      state: usable ? 'ready' : 'error',
      reason: usable ? null : 'This agent holds no OpenRouter key.',
      processMark: null,
      slots: SLOTS,
      running: this.#running.count,
      queued: null,
      foreign: 0,
      errorsTotal: this.#errors,
      probesAnswered: 0,
      models: [...models.values()].slice(0, 512),
    };
  }

  serve(call: IncomingCall): void {
    if (this.#running.count >= SLOTS)
      call.fail(failedCall(new EngineFailure('engine_busy').failure, { costUsd: 0 }).failure);
    else this.#running.run(call, (abortable) => this.#serve(abortable));
  }

  async #serve(call: IncomingCall): Promise<void> {
    const { controller, head, signal } = call;
    let settled = false;
    try {
      const trailers = await this.#dispatch(call, () => {
        settled = true;
      });
      this.#learn(head.model, trailers);
      this.#credentials.markRefused(controller, false);
      call.end(trailers);
      if (signal.aborted) this.#ended(call, false, trailers.usage?.costUsd ?? null);
    } catch (error) {
      if (error instanceof CallCancelled) {
        this.#ended(call, error.aborted, error.costUsd);
        return;
      }
      // What was refused here has cost nothing; what broke off behind counts as the control plane estimated it.
      const { failure } =
        error instanceof CloudCallFailed ? error : failedCall(failureOf(error), settled ? {} : { costUsd: 0 });
      if (signal.aborted) this.#ended(call, false, failure.cloud?.costUsd ?? null);
      else call.fail(failure);
      if (failure.blame !== 'caller' && failure.blame !== 'busy') this.#errors++;
      if (failure.cloud?.status === 401) {
        this.#credentials.markRefused(controller, true);
        this.#options.send(controller, this.status(controller));
      }
    }
  }

  /** `settled` is called before a byte may leave. */
  async #dispatch(call: IncomingCall, settled: () => void): Promise<Trailers> {
    const { head } = call;
    if (head.op === 'tokenize' || head.cloud === undefined) throw new EngineFailure('unsupported_task');
    const job = this.#job(call, head, head.cloud);
    if (head.op === 'chat' && head.path !== '/v1/chat/completions') throw new EngineFailure('unsupported_task');
    settled();
    if (head.op === 'chat') return await serveChat(job, head);
    return head.op === 'embed' ? await serveEmbed(job, head) : await serveRerank(job, head);
  }

  /** Settles everything about a call before a byte leaves, or refuses it. */
  #job(call: IncomingCall, head: CallHead, cloud: NonNullable<(CallHead & { op: 'chat' })['cloud']>): CloudJob {
    const { controller } = call;
    const { model, upstream } = splitCloudModel(head.model);
    const route = this.#credentials.route(controller, cloud.role);
    if (!mayLeave(route)) throw new EngineFailure('unsupported_task', {}, 'This role does not leave the network.');
    const key = this.#credentials.state(controller);
    if (key !== 'held') {
      const sentence =
        key === 'missing' ? 'This agent holds no key.' : 'This agent holds an older key than the newest.';
      throw failedCall(new EngineFailure('engine_busy', {}, sentence).failure, { key });
    }
    const kind = kindOfRole(cloud.role);
    if (route.model !== model || TASKS[head.op] !== kind)
      throw new EngineFailure('model_missing', {}, 'This model is not the one of its role.');
    if (kind === 'embed' && (upstream === null || !route.upstreams.includes(upstream))) {
      throw new EngineFailure('fingerprint_changed', {}, 'No upstream is pinned for these vectors.');
    }
    const pin = pinOf(route, upstream);
    if (pin !== cloud.pin)
      throw new EngineFailure('fingerprint_changed', {}, 'The pin has changed since this call was routed.');
    const offer = this.#desks
      .offers(controller)
      .offers.find((known) => known.role === cloud.role && known.model === model && known.upstream === upstream);
    if (offer === undefined)
      throw new EngineFailure('model_missing', {}, 'OpenRouter does not offer this model or upstream now.');
    const authorization = this.#credentials.authorization(controller, true);
    if (authorization === null) throw failedCall(new EngineFailure('engine_busy').failure, { key: 'missing' });
    const endpoints = this.#desks.reading(controller)?.endpoints.get(model) ?? [];
    return {
      call,
      http: this.#http,
      clock: this.#options.clock,
      baseUrl: this.#credentials.baseUrl(controller),
      authorization,
      model,
      pin: { upstreams: upstream === null ? route.upstreams : [upstream], quantizations: route.quantizations },
      names: new Map(endpoints.map(({ tag, upstream: name }) => [tag, name])),
      price: offer.promptUsd === null ? null : { promptUsd: offer.promptUsd, completionUsd: offer.completionUsd ?? 0 },
      blank: (bytes) => this.#credentials.blank(controller, bytes),
      fingerprint: (answered) => ({
        engine: CLOUD_ENGINE,
        version: null,
        modelDigest: null,
        // A pinned upstream has been checked: its tag is what the gate knows it by.
        upstream: upstream ?? answered,
        pin,
        processMark: null,
      }),
    };
  }

  #learn(model: string, trailers: Trailers): void {
    if (trailers.firstByteMs !== null) this.#speed.firstByte(model, trailers.firstByteMs);
    const tokens = trailers.usage?.completionTokens ?? 0;
    if (trailers.tokensPerSecond !== null && trailers.tokensPerSecond > 0) {
      this.#speed.tokens(model, tokens, (tokens / trailers.tokensPerSecond) * 1000);
    }
  }

  #ended(call: IncomingCall, aborted: boolean, costUsd: number | null): void {
    const permit = 'cloud' in call.head ? call.head.cloud?.permit : undefined;
    if (permit !== undefined) this.#options.send(call.controller, { t: 'cloud-ended', permit, aborted, costUsd });
  }
}

const TASKS = { chat: 'chat', embed: 'embed', rerank: 'rerank', tokenize: null } as const;
