import type { EngineId, NodeId, ProviderId } from '../../main/domain/ids.ts';
import { providerId } from '../../main/domain/ids.ts';
import type { Provider } from '../../main/domain/provider.ts';
import type { Fingerprint } from '../../main/domain/verdict.ts';
import type { Encoder, ProbeAnswer, ProbeFailure, ProbeOptions, ProbePort } from '../../main/gate/probe-port.ts';
import { encode, type Faults, tokens, WIDTH } from './encoders.ts';

export interface FakeEngine {
  faults: Faults;
  fingerprint: Fingerprint;
  /** Refuses longer texts, as an honest engine does; null: takes any length. */
  limit: number | null;
  /** Answers instead of vectors while set. */
  failure: ProbeFailure | null;
  /** Called before each answer: for changes in the middle of a verification. */
  onCall: (texts: readonly string[], call: number) => void;
  refusesBlank: boolean;
  /** Loses the last vector of every batch. */
  losesLast: boolean;
  /** Never answers while true. */
  hangs: boolean;
  calls: number;
  readonly seen: string[];
}

export const LIMIT = 96;

/** Engines behind providers; an embed call does what an agent does: cut, normalise, refuse. */
export class FakePort implements ProbePort {
  readonly engines = new Map<ProviderId, FakeEngine>();
  /** Calls that run now, and the most that ever ran on one engine at once. */
  running = new Map<string, number>();
  mostAtOnce = 0;

  engine(id: ProviderId): FakeEngine {
    const engine = this.engines.get(id);
    if (engine === undefined) throw new Error(`no engine ${id}`);
    return engine;
  }

  async embed(provider: Provider, texts: readonly string[], options: ProbeOptions): Promise<ProbeAnswer> {
    const engine = this.engine(provider.id);
    const now = (this.running.get(provider.slotPool) ?? 0) + 1;
    this.running.set(provider.slotPool, now);
    this.mostAtOnce = Math.max(this.mostAtOnce, now);
    engine.onCall(texts, engine.calls++);
    engine.seen.push(...texts);
    if (engine.hangs) await new Promise<void>((resolve) => options.signal.addEventListener('abort', () => resolve()));
    await Promise.resolve();
    this.running.set(provider.slotPool, (this.running.get(provider.slotPool) ?? 1) - 1);
    if (engine.failure !== null) return { failure: engine.failure };
    const { limit, faults } = engine;
    if (limit !== null && texts.some((text) => tokens(text).length > limit)) return { failure: TOO_LONG };
    if (engine.refusesBlank && texts.some((text) => text.trim() === '')) return { failure: EMPTY };
    const width = faults.width ?? WIDTH;
    const full = encode(texts, faults);
    const { vectors, columns } = finish(full, texts.length, width, options);
    const count = engine.losesLast && texts.length > 1 ? texts.length - 1 : texts.length;
    const kept = vectors.subarray(0, count * columns);
    return { failure: null, vectors: kept, count, width: columns, fingerprint: engine.fingerprint };
  }

  async tokenize(provider: Provider, texts: readonly string[]): Promise<readonly number[] | null> {
    this.engine(provider.id);
    return texts.map((text) => tokens(text).length);
  }
}

const TOO_LONG: ProbeFailure = { blame: 'caller', code: 'input_too_long', retryAfterMs: null };
const EMPTY: ProbeFailure = { blame: 'caller', code: 'empty_input', retryAfterMs: null };

function finish(full: Float32Array, count: number, width: number, { cut, normalise }: ProbeOptions) {
  const columns = Math.min(width, cut ?? width);
  const vectors = new Float32Array(count * columns);
  for (let i = 0; i < count; i++) {
    const part = full.subarray(i * width, i * width + columns);
    const length = normalise || cut !== null ? Math.hypot(...part) : 1;
    vectors.set(
      part.map((x) => x / length),
      i * columns,
    );
  }
  return { vectors, columns };
}

export function fingerprint(change: Partial<Fingerprint> = {}): Fingerprint {
  return {
    engine: 'llama.cpp',
    version: 'b1',
    modelDigest: null,
    upstream: null,
    pin: null,
    processMark: '100/1',
    ...change,
  };
}

export interface EncoderOptions {
  readonly name: string;
  readonly faults?: Faults;
  readonly limit?: number | null;
  readonly trial?: boolean;
  readonly fingerprint?: Partial<Fingerprint>;
  readonly provider?: Partial<Provider>;
  readonly counts?: boolean;
  readonly model?: string;
}

/** Puts an engine behind the port and returns what the catalogue would report of it. */
export function addEncoder(port: FakePort, options: EncoderOptions): Encoder {
  const { name, faults = {}, limit = LIMIT, trial = false, counts = true, model = `model-${name}` } = options;
  const role = options.provider?.role ?? 'embedding';
  const node = `node-${name}` as NodeId;
  const engine = 'engine-1' as EngineId;
  const id = providerId(role, node, engine, model);
  const print = fingerprint({ processMark: `mark-${name}`, ...options.fingerprint });
  port.engines.set(id, {
    faults,
    fingerprint: print,
    limit,
    failure: null,
    onCall: () => {},
    refusesBlank: false,
    losesLast: false,
    hangs: false,
    calls: 0,
    seen: [],
  });
  const provider: Provider = {
    id,
    role,
    kind: 'local',
    node,
    nodeName: name,
    nodeState: 'ready',
    nodePulls: true,
    engine,
    engineKind: 'llama.cpp',
    slotPool: `${node}/${engine}`,
    slots: 1,
    foreign: 0,
    model,
    aliases: [],
    present: true,
    loaded: true,
    reachable: true,
    contextTokens: LIMIT,
    maxBatch: 64,
    baseWeight: 1,
    tokensPerSecond: null,
    ttftMs: null,
    fingerprint: print,
    ...options.provider,
  };
  return {
    provider,
    width: faults.width ?? WIDTH,
    maxInputTokens: LIMIT,
    tokenCounting: counts ? 'exact' : 'none',
    trial,
  };
}
