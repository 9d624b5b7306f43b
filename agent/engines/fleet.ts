import type { Clock } from '../../main/domain/time.ts';
import type { EngineReport } from '../wire/control.ts';
import type { IncomingCall } from '../wire/stream.ts';
import type { EngineDefinition } from './adapter.ts';
import { type EngineAddress, loopbackAddress, reachOf, WELL_KNOWN_PORTS, within } from './address.ts';
import type { Aliases } from './aliases.ts';
import { HttpEngine, type ServedEngine } from './engine.ts';
import { EngineHttp } from './engine-http.ts';
import { EngineFailure } from './failure.ts';
import { identify } from './identify.ts';
import type { ProcessMarks } from './process-mark.ts';

const SCAN_PERIOD_MS = 15_000;
/** An engine that was found by itself and is gone for this long is forgotten. One that was named stays. */
const FORGET_AFTER_MS = 10 * 60_000;
const NO_ALIASES: Aliases = new Map();

export interface EngineFleetOptions {
  readonly clock: Clock;
  readonly marks: ProcessMarks;
  readonly definitions: readonly EngineDefinition[];
  /** Named by the operator: reported even while nothing answers there. */
  readonly named: readonly EngineAddress[];
  /** Engines that are not reached over HTTP: the built-in encoder. */
  readonly builtIn: readonly ServedEngine[];
  readonly aliases?: Aliases;
  /** Loopback ports looked at; absent: the well-known ones. Empty: nothing is looked for. */
  readonly ports?: readonly number[];
  onChange(): void;
}

/** All engines of this machine: finds them, keeps them, passes each call to the one it names. */
export class EngineFleet {
  readonly #options: EngineFleetOptions;
  readonly #engines = new Map<string, ServedEngine>();
  readonly #found = new Map<string, HttpEngine>();
  #cancelScan: (() => void) | null = null;
  #scanning: Promise<void> | null = null;
  #stopped = true;

  constructor(options: EngineFleetOptions) {
    this.#options = options;
  }

  start(): void {
    this.#stopped = false;
    const { builtIn, named } = this.#options;
    for (const engine of builtIn) this.#add(engine);
    for (const address of named) {
      if (!this.#engines.has(address.id)) this.#add(this.#httpEngine(address, this.#options.definitions));
    }
    void this.#scanAndSchedule();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelScan?.();
    for (const engine of this.#engines.values()) engine.stop();
    this.#engines.clear();
    this.#found.clear();
  }

  reports(): EngineReport[] {
    return [...this.#engines.values()].map((engine) => engine.report()).filter((report) => report !== null);
  }

  /** Reports as one control plane should see them: the calls of the others are foreign to it. */
  reportsFor(reports: readonly EngineReport[], controller: string): EngineReport[] {
    return reports.map((report) => {
      const own = this.#engines.get(report.engine)?.runningOf?.(controller);
      return own === undefined ? report : { ...report, foreign: report.foreign + Math.max(0, report.running - own) };
    });
  }

  serve(call: IncomingCall): void {
    const engine = this.#engines.get(call.head.engine);
    if (engine === undefined) call.fail(new EngineFailure('engine_unreachable').failure);
    else engine.serve(call);
  }

  /** Looks for engines now, and at those that are known. Resolves when the round is over. */
  detect(): Promise<void> {
    for (const engine of this.#engines.values()) engine.poke();
    this.#scanning ??= this.#scan().finally(() => {
      this.#scanning = null;
    });
    return this.#scanning;
  }

  #add(engine: ServedEngine): void {
    this.#engines.set(engine.id, engine);
    engine.start();
  }

  #httpEngine(address: EngineAddress, definitions: readonly EngineDefinition[]): HttpEngine {
    const { clock, marks, onChange, aliases = NO_ALIASES } = this.#options;
    return new HttpEngine({ address, clock, marks, definitions, aliases, onChange });
  }

  /**
   * Kinds that are used without having been named. A server that is only known to speak OpenAI's language may pass everything on
   * to somebody's cloud: whether it counts as this machine's is for a person to say.
   */
  get #certain(): readonly EngineDefinition[] {
    return this.#options.definitions.filter(({ kind }) => kind !== 'openai');
  }

  async #scanAndSchedule(): Promise<void> {
    await this.detect();
    if (!this.#stopped)
      this.#cancelScan = this.#options.clock.after(SCAN_PERIOD_MS, () => void this.#scanAndSchedule());
  }

  async #scan(): Promise<void> {
    this.#forget();
    for (const port of this.#options.ports ?? WELL_KNOWN_PORTS) {
      const address = loopbackAddress(port);
      if (this.#stopped || this.#engines.has(address.id)) continue;
      if (!(await this.#isEngine(address)) || this.#stopped || this.#engines.has(address.id)) continue;
      const engine = this.#httpEngine(address, this.#certain);
      this.#found.set(engine.id, engine);
      this.#add(engine);
    }
  }

  async #isEngine(address: EngineAddress): Promise<boolean> {
    const { clock, marks } = this.#options;
    const admits = (remote: string) => within(reachOf(remote), 'loopback');
    const http = new EngineHttp(address.origin, clock, { readMark: async () => null, admits });
    try {
      const found = await identify(http, this.#certain);
      if (found === null) return false;
      // Ollama runs llama.cpp servers of its own on further ports: they are Ollama's business.
      const isChild = (await marks.ancestors(address.port)).some((name) => /^ollama/i.test(name));
      return !(isChild && found.definition.kind !== 'ollama');
    } finally {
      http.close();
    }
  }

  #forget(): void {
    const nowMs = this.#options.clock.nowMs();
    for (const [id, engine] of this.#found) {
      const since = engine.unreachableSinceMs;
      if (since === null || nowMs - since < FORGET_AFTER_MS) continue;
      engine.stop();
      this.#found.delete(id);
      this.#engines.delete(id);
      this.#options.onChange();
    }
  }
}
