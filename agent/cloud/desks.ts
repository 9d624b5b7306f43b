import type { Clock } from '../../main/domain/time.ts';
import type { CatalogueEndpoint, CloudAccount } from '../wire/cloud.ts';
import { readAccount } from './account.ts';
import type { CloudCatalogue } from './catalogue.ts';
import type { CloudRole, Credentials } from './credential.ts';
import type { CloudHttp } from './http.ts';
import { type CatalogueReading, kindOfRole, mayLeave, type Offers, offersOf } from './offers.ts';

const REFRESH_MS = 600_000;
const RETRY_MS = 30_000;
const TICK_MS = 10_000;
const SWEEP_MS = 3_600_000;

interface Desk {
  reading: CatalogueReading | null;
  offers: Offers;
  account: CloudAccount | null;
  refreshedAtMs: number;
  refreshing: boolean;
  /** It was asked to refresh while it did. */
  again: boolean;
}

const NOTHING: Offers = { offers: [], notOffered: [] };

export interface DesksOptions {
  readonly clock: Clock;
  readonly credentials: Credentials;
  readonly http: CloudHttp;
  readonly catalogue: CloudCatalogue;
  /** Something that a status tells has changed for this control plane. */
  onChange(controller: string): void;
}

/**
 * What the agent knows of OpenRouter for each control plane: catalogue and account, read again every 10 min. Nothing is asked
 * of anybody while no role may leave the network or no key is held.
 */
export class Desks {
  readonly #options: DesksOptions;
  readonly #desks = new Map<string, Desk>();
  readonly #stopping = new AbortController();
  #sweptAtMs: number;
  #cancelTick: () => void = () => {};

  constructor(options: DesksOptions) {
    this.#options = options;
    this.#sweptAtMs = options.clock.nowMs();
  }

  start(): void {
    this.#cancelTick();
    this.#cancelTick = this.#options.clock.after(TICK_MS, () => this.#tick());
  }

  stop(): void {
    this.#cancelTick();
    this.#stopping.abort(new Error('stopping'));
  }

  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  controllers(): readonly string[] {
    return [...this.#desks.keys()];
  }

  reading(controller: string): CatalogueReading | null {
    return this.#desk(controller).reading;
  }

  offers(controller: string): Offers {
    return this.#desk(controller).offers;
  }

  account(controller: string): CloudAccount | null {
    return this.#desk(controller).account;
  }

  /** Key or routes are others now: the old account says nothing, the catalogue is matched anew. */
  changed(controller: string): void {
    const desk = this.#desk(controller);
    desk.account = null;
    this.#match(controller);
    void this.refresh(controller);
  }

  forget(controller: string): void {
    this.#desks.delete(controller);
  }

  /** The key is held and some role may leave the network: without both nothing is asked of OpenRouter, whoever asks. */
  mayAsk(controller: string): boolean {
    const { credentials } = this.#options;
    return credentials.state(controller) === 'held' && [...credentials.routes(controller).values()].some(mayLeave);
  }

  /** Reads catalogue and account now, where that is allowed. */
  async refresh(controller: string): Promise<void> {
    const desk = this.#desk(controller);
    if (desk.refreshing) {
      desk.again = true;
      return;
    }
    if (!this.mayAsk(controller)) return;
    const { clock } = this.#options;
    desk.refreshing = true;
    try {
      desk.refreshedAtMs = clock.nowMs();
      await Promise.all([this.#readCatalogue(controller), this.readAccount(controller)]);
    } finally {
      desk.refreshing = false;
    }
    if (this.#stopping.signal.aborted || !this.#desks.has(controller)) return;
    this.#match(controller);
    this.#options.onChange(controller);
    void this.#readPrices(controller);
    if (!desk.again) return;
    desk.again = false;
    await this.refresh(controller);
  }

  async readAccount(controller: string): Promise<void> {
    const { credentials, http } = this.#options;
    const authorization = credentials.authorization(controller, false);
    if (authorization === null) return;
    const { keyPush } = credentials.view(controller);
    const reading = await readAccount(http, credentials.baseUrl(controller), authorization, this.#stopping.signal);
    // The answer of a key that has been replaced meanwhile says nothing about the new one.
    if (reading.kind === 'unknown' || credentials.view(controller).keyPush !== keyPush) return;
    this.#desk(controller).account = reading.kind === 'read' ? reading.account : null;
    credentials.markRefused(controller, reading.kind === 'refused');
  }

  async #readCatalogue(controller: string): Promise<void> {
    const { credentials, catalogue, clock } = this.#options;
    const { signal } = this.#stopping;
    const baseUrl = credentials.baseUrl(controller);
    const models = await catalogue.models(baseUrl, signal);
    if (models === null) return;
    const pinned = this.#modelsOf(controller, (role) => kindOfRole(role) === 'embed');
    const endpoints = await Promise.all(
      pinned.map(async (model) => [model, (await catalogue.endpoints(baseUrl, model, signal)) ?? []] as const),
    );
    const before = this.#desk(controller).reading?.endpoints ?? new Map<string, readonly CatalogueEndpoint[]>();
    const kept = this.#modelsOf(controller, () => true).map((model) => [model, before.get(model) ?? []] as const);
    const reading = { models, endpoints: new Map([...kept, ...endpoints]), atWallMs: clock.wallMs() };
    this.#desk(controller).reading = reading;
  }

  /** What the upstreams of the other models take. Nobody waits for it: until it is known the price of the model stands. */
  async #readPrices(controller: string): Promise<void> {
    const { credentials, catalogue } = this.#options;
    const { signal } = this.#stopping;
    const baseUrl = credentials.baseUrl(controller);
    const models = this.#modelsOf(controller, (role) => kindOfRole(role) !== 'embed');
    const read = await Promise.all(
      models.map(async (model) => [model, await catalogue.endpoints(baseUrl, model, signal)] as const),
    );
    const desk = this.#desks.get(controller);
    if (signal.aborted || desk === undefined || desk.reading === null) return;
    const endpoints = new Map(desk.reading.endpoints);
    for (const [model, list] of read) if (list !== null) endpoints.set(model, list);
    desk.reading = { ...desk.reading, endpoints };
    const before = JSON.stringify(desk.offers);
    this.#match(controller);
    if (JSON.stringify(desk.offers) !== before) this.#options.onChange(controller);
  }

  #modelsOf(controller: string, isWanted: (role: CloudRole) => boolean): readonly string[] {
    const routes = [...this.#options.credentials.routes(controller)];
    const models = routes.flatMap(([role, route]) =>
      isWanted(role) && route.model !== null && mayLeave(route) ? [route.model] : [],
    );
    return [...new Set(models)];
  }

  #match(controller: string): void {
    const desk = this.#desk(controller);
    const routes = this.#options.credentials.routes(controller);
    desk.offers = desk.reading === null ? NOTHING : offersOf(routes, desk.reading);
  }

  #tick(): void {
    this.start();
    const nowMs = this.#options.clock.nowMs();
    for (const [controller, desk] of this.#desks) {
      if (nowMs - desk.refreshedAtMs >= (desk.reading === null ? RETRY_MS : REFRESH_MS)) void this.refresh(controller);
    }
    if (nowMs - this.#sweptAtMs < SWEEP_MS) return;
    this.#sweptAtMs = nowMs;
    for (const controller of this.#options.credentials.sweep()) this.#options.onChange(controller);
  }

  #desk(controller: string): Desk {
    const known = this.#desks.get(controller);
    if (known !== undefined) return known;
    const desk: Desk = {
      reading: null,
      offers: NOTHING,
      account: null,
      refreshedAtMs: Number.NEGATIVE_INFINITY,
      refreshing: false,
      again: false,
    };
    this.#desks.set(controller, desk);
    return desk;
  }
}
