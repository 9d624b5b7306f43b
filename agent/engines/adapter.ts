import type { EngineReport, ModelReport } from '../wire/control.ts';
import type { IncomingCall } from '../wire/stream.ts';
import type { EngineHttp } from './engine-http.ts';
import type { Evidence } from './identify.ts';
import type { SpeedSignals } from './speed.ts';

export type EngineKind = EngineReport['kind'];

/** One kind of engine: how it is told from the others, and how it is used. `definitions.ts` lists them in probing order. */
export interface EngineDefinition {
  readonly kind: EngineKind;
  /** Looks at answers to GETs and nothing else. Never decides by port, by one route, or by what imitators also offer. */
  identify(evidence: Evidence): Promise<Identity | null>;
  create(http: EngineHttp, speed: SpeedSignals): EngineAdapter;
}

export interface Identity {
  readonly version: string | null;
  /** It said so itself: it is what it is, and not ready yet. */
  readonly loading: boolean;
}

/** What an engine is and has, read when it appears and whenever it changes. */
export interface Inspection {
  readonly version: string | null;
  readonly slots: number;
}

/** One look at a running engine. */
export interface Pulse {
  readonly state: 'ready' | 'loading';
  /** Model, version or process are not those of the last inspection: inspect again. */
  readonly changed: boolean;
}

/** The engine's own counts; null where it has none. */
export interface Load {
  readonly running: number | null;
  readonly queued: number | null;
}

/** One engine at one address. Requests throw EngineFailure; calls end themselves and never throw. */
export interface EngineAdapter {
  readonly kind: EngineKind;
  /** As of the last inspection, with what calls have taught since. */
  readonly models: readonly ModelReport[];
  /** Reads everything, tries each task once. The only place where an engine is asked to work for nobody. */
  inspect(): Promise<Inspection>;
  /** One request that a busy engine answers too. */
  pulse(): Promise<Pulse>;
  load(): Promise<Load>;
  /** Serves one call to its end; resolves when the engine is free of it. */
  serve(call: IncomingCall): Promise<ServedCall>;
  /** Mark of the process that served last, pid and start time with whatever the engine itself tells; null: none to be had. */
  readonly processMark: string | null;
}

/** `moved`: another process or model answered than the one that was inspected. */
export type ServedCall = 'success' | 'engine-failed' | 'moved' | 'other';
