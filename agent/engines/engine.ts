import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Clock } from '../../main/domain/time.ts';
import type { EngineReport } from '../wire/control.ts';
import type { IncomingCall } from '../wire/stream.ts';
import type { EngineAdapter, EngineDefinition, Load } from './adapter.ts';
import { type EngineAddress, furthest, type Reach, reachOf, within } from './address.ts';
import { type Aliases, withAliases } from './aliases.ts';
import { EngineCall } from './engine-call.ts';
import { EngineHttp } from './engine-http.ts';
import { EngineFailure } from './failure.ts';
import { identify } from './identify.ts';
import { ProbeLoop } from './probe-loop.ts';
import type { ProcessMarks } from './process-mark.ts';
import { Slots } from './slots.ts';
import { SpeedSignals } from './speed.ts';

/** An engine as the agent serves it, over HTTP or built in. */
export interface ServedEngine {
  readonly id: string;
  /** Null: nothing is known that would be worth reporting. */
  report(): EngineReport | null;
  /** Takes a call and ends it in every case. */
  serve(call: IncomingCall): void;
  start(): void;
  stop(): void;
  /** Looks again, soon. */
  poke(): void;
  /** Calls of one control plane that run here now; absent: they are nobody else's business (a cloud account). */
  runningOf?(controller: string): number;
}

export interface HttpEngineOptions {
  readonly address: EngineAddress;
  readonly definitions: readonly EngineDefinition[];
  readonly clock: Clock;
  readonly marks: ProcessMarks;
  readonly aliases: Aliases;
  /** State, models or process are not what the last report said. */
  onChange(): void;
}

const LOAD_PERIOD_MS = 2000;
/** Where several control planes share an engine, each hears of the others' calls, but not more often than this. */
const LOAD_NEWS_MS = 500;

/** One engine at one address: identified, inspected, watched, used. */
export class HttpEngine implements ServedEngine {
  readonly id: string;
  readonly #options: HttpEngineOptions;
  readonly #http: EngineHttp;
  readonly #slots = new Slots();
  readonly #speed = new SpeedSignals();
  readonly #loop: ProbeLoop;
  readonly #calls = new Set<EngineCall>();
  #adapter: EngineAdapter | null = null;
  #reach: Reach = 'public';
  #state: EngineReport['state'] = 'loading';
  #reason: string | null = 'It has not answered yet.';
  #version: string | null = null;
  /** What was there may be another engine, or the same with another model. */
  #identified = false;
  #inspected = false;
  #load: Load = { running: null, queued: null };
  #foreign = 0;
  #errors = 0;
  #probesAnswered = 0;
  #reported = '';
  #cancelLoad: (() => void) | null = null;
  readonly #controllers = new Set<string>();
  #cancelNews: (() => void) | null = null;
  #stopped = true;
  #unreachableSinceMs: number | null = null;

  constructor(options: HttpEngineOptions) {
    this.#options = options;
    this.id = options.address.id;
    const { clock, marks, address } = options;
    const watch = {
      readMark: async () => (this.#reach === 'loopback' ? marks.read(address.port) : null),
      admits: (remote: string) => within(reachOf(remote), this.#reach),
    };
    this.#http = new EngineHttp(address.origin, clock, watch);
    this.#loop = new ProbeLoop(
      { probe: () => this.#probe(), onUnreachable: () => this.#lost(), busy: () => this.#calls.size > 0 },
      clock,
    );
  }

  /** Milliseconds (clock) since when it does not answer; null while it does. */
  get unreachableSinceMs(): number | null {
    return this.#unreachableSinceMs;
  }

  start(): void {
    this.#stopped = false;
    this.#loop.start();
    this.#scheduleLoad();
  }

  stop(): void {
    this.#stopped = true;
    this.#loop.stop();
    this.#cancelLoad?.();
    this.#cancelNews?.();
    this.#giveUpCalls();
    this.#http.close();
  }

  poke(): void {
    this.#loop.poke();
  }

  report(): EngineReport {
    const ready = this.#state === 'ready';
    return {
      engine: this.id,
      kind: this.#adapter?.kind ?? 'openai',
      version: this.#version,
      address: this.id,
      reach: this.#reach,
      state: this.#state,
      reason: ready ? null : this.#reason,
      processMark: this.#adapter?.processMark ?? null,
      slots: this.#slots.capacity,
      running: this.#slots.running,
      queued: this.#load.queued,
      foreign: this.#foreign,
      errorsTotal: this.#errors,
      probesAnswered: this.#probesAnswered,
      models: this.#inspected ? withAliases(this.#adapter?.models ?? [], this.#options.aliases) : [],
    };
  }

  serve(incoming: IncomingCall): void {
    const { head } = incoming;
    const adapter = this.#adapter;
    if (adapter === null || this.#state !== 'ready') {
      const loading = this.#state === 'loading';
      incoming.fail(new EngineFailure(loading ? 'engine_busy' : 'engine_unreachable').failure);
      return;
    }
    // Counting tokens is answered beside the model's work and takes no slot.
    const spread = head.op === 'embed' || head.op === 'rerank' ? Math.min(head.count, this.#slots.capacity) : 1;
    const use = { controller: incoming.controller, follows: head.op === 'embed' };
    const release = head.op === 'tokenize' ? () => undefined : this.#slots.take(spread, use);
    if (release === null) {
      incoming.fail(new EngineFailure('engine_busy').failure);
      return;
    }
    this.#controllers.add(incoming.controller);
    this.#newsOfLoad();
    const call = new EngineCall(incoming, release);
    this.#calls.add(call);
    this.#loop.hurry();
    const limitBefore = limits(adapter);
    void adapter.serve(call).then((outcome) => {
      release();
      this.#newsOfLoad();
      this.#calls.delete(call);
      if (outcome === 'engine-failed') this.#errors++;
      if (outcome === 'engine-failed' || outcome === 'moved') this.#loop.poke();
      if (limits(adapter) !== limitBefore) this.#changed();
    });
  }

  async #probe(): Promise<void> {
    try {
      await this.#look();
      this.#unreachableSinceMs = null;
      this.#probesAnswered += 1;
    } catch (error) {
      const code = error instanceof EngineFailure ? error.failure.code : '';
      // After a refusal anything may sit at this port; an engine that stays silent is still the same one.
      if (code === 'engine_unreachable') this.#identified = false;
      if (code === 'engine_invalid_response' || code === 'unsupported_task') {
        this.#identified = false;
        this.#become('error', 'It answers, but not as this kind of engine should.');
      }
      throw error;
    }
  }

  async #look(): Promise<void> {
    let adapter = this.#identified && this.#adapter !== null ? this.#adapter : await this.#identify();
    let pulse = await adapter.pulse();
    if (pulse.changed && this.#inspected) {
      // Another process, version or list of models: it may be another engine altogether.
      adapter = await this.#identify();
      pulse = await adapter.pulse();
    }
    if (pulse.state === 'loading') {
      this.#inspected = false;
      this.#become('loading', 'The engine is loading its model.');
      return;
    }
    if (pulse.changed || !this.#inspected) {
      this.#become('loading', 'The agent is finding out what the engine can do.');
      const { version, slots } = await adapter.inspect();
      this.#version = version;
      this.#slots.resize(slots);
      this.#inspected = true;
    }
    this.#become('ready', null);
  }

  async #identify(): Promise<EngineAdapter> {
    this.#reach = await this.#findReach();
    const found = await identify(this.#http, this.#options.definitions);
    if (found === null) throw new EngineFailure('engine_unreachable');
    const same = this.#adapter?.kind === found.definition.kind ? this.#adapter : null;
    if (same === null) this.#speed.forget();
    const adapter = same ?? found.definition.create(this.#http, this.#speed);
    this.#adapter = adapter;
    this.#identified = true;
    this.#inspected = false;
    this.#version = found.identity.version;
    return adapter;
  }

  #lost(): void {
    this.#unreachableSinceMs = this.#options.clock.nowMs();
    this.#load = { running: null, queued: null };
    this.#foreign = 0;
    this.#become('unreachable', 'It did not answer three times in a row.');
    this.#giveUpCalls();
  }

  /** A frozen engine must not hold its calls until their own time-outs: the router has other places for them. */
  #giveUpCalls(): void {
    for (const call of [...this.#calls]) call.giveUp(new EngineFailure('engine_unreachable').failure);
  }

  #become(state: EngineReport['state'], reason: string | null): void {
    this.#state = state;
    this.#reason = reason;
    this.#changed();
  }

  #changed(): void {
    const { state, version, processMark, slots, models, kind, reach } = this.report();
    const facts = models.map((model) => ({ ...model, tokensPerSecond: null, ttftMs: null }));
    const reported = JSON.stringify([state, version, processMark, slots, facts, kind, reach]);
    if (reported === this.#reported) return;
    this.#reported = reported;
    if (!this.#stopped) this.#options.onChange();
  }

  async #findReach(): Promise<Reach> {
    const { host } = this.#options.address;
    if (isIP(host) !== 0) return reachOf(host);
    try {
      const found = await lookup(host, { all: true });
      return furthest(found.map(({ address }) => reachOf(address)));
    } catch {
      throw new EngineFailure('engine_unreachable');
    }
  }

  #scheduleLoad(): void {
    this.#cancelLoad = this.#options.clock.after(LOAD_PERIOD_MS, () => {
      void this.#readLoad().finally(() => {
        if (!this.#stopped) this.#scheduleLoad();
      });
    });
  }

  async #readLoad(): Promise<void> {
    if (this.#adapter === null || this.#state !== 'ready') return;
    const before = this.#slots.occupied;
    try {
      this.#load = await this.#adapter.load();
    } catch {
      return; // a busy engine is late with its counts; whether it lives, the pulse says
    }
    // Ours may have begun or ended while it was asked: the larger count is taken, so that nobody is invented.
    const ours = Math.max(before, this.#slots.occupied);
    const foreign = this.#load.running === null ? 0 : Math.max(0, this.#load.running - ours);
    const isNews = foreign !== this.#foreign;
    this.#foreign = foreign;
    if (isNews) this.#options.onChange();
  }

  runningOf(controller: string): number {
    return this.#slots.runningOf(controller);
  }

  #newsOfLoad(): void {
    if (this.#controllers.size < 2 || this.#cancelNews !== null) return;
    this.#cancelNews = this.#options.clock.after(LOAD_NEWS_MS, () => {
      this.#cancelNews = null;
      if (!this.#stopped) this.#options.onChange();
    });
  }
}

function limits(adapter: EngineAdapter): string {
  return adapter.models.map((model) => model.maxInputTokens).join();
}
