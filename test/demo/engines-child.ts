import { servedVector } from '../engines/openrouter/numerics.ts';
import { type PacedEngine as PacedChat, startPaced } from '../engines/paced.ts';
import { PacedEngine as PacedEncoder } from '../engines/stand-ins/paced.ts';
import { pause, type Reply } from '../engines/stand-ins/stand-in.ts';
import { TeiStandIn } from '../engines/stand-ins/tei.ts';
import { HashVectors } from '../engines/stand-ins/vectors.ts';

/** One engine of a machine. Rates are per second: tokens of each chat slot, texts of an encoder. */
export type EngineSpec =
  | {
      readonly kind: 'chat';
      readonly model: string;
      readonly rate: number;
      readonly slots: number;
      readonly answerTokens: number;
    }
  | {
      readonly kind: 'encoder';
      readonly model: string;
      readonly rate: number;
      readonly width: number;
      readonly window: number;
      /** Of each vector to the reference numerics, which the cloud's stand-in shares; 1: the same. */
      readonly cosine: number;
    }
  | { readonly kind: 'reranker'; readonly model: string; readonly lastsMs: number };

export type ToEngines = { readonly ask: 'start'; readonly engines: readonly EngineSpec[] } | { readonly ask: 'state' };
export type FromEngines =
  | { readonly told: 'started'; readonly urls: readonly string[] }
  | { readonly told: 'state'; readonly state: EnginesState };

export interface EnginesState {
  /** Of all slots of the machine, 0 to 1. */
  readonly busy: number;
  /** Texts of clients (not of probes) that its encoders have read. */
  readonly texts: number;
}

/** What every text of the demo's clients contains, and no probe. */
export const CLIENT_MARK = 'waggon';

/** Vectors that the cloud's encoder would give too, or, below a cosine of 1, would not. */
class ReferenceVectors extends HashVectors {
  readonly #cosine: number;

  constructor(width: number, cosine: number) {
    super(width);
    this.#cosine = cosine;
  }

  override async encode(text: string): Promise<Float32Array> {
    return servedVector(text, this.width, this.#cosine, 'another quantisation');
  }
}

class PacedReranker extends TeiStandIn {
  readonly #lastsMs: number;
  running = 0;

  constructor(model: string, lastsMs: number) {
    super({ model, task: 'rerank', window: 8192 });
    this.#lastsMs = lastsMs;
  }

  protected override async route(reply: Reply): Promise<void> {
    if (reply.seen.path !== '/rerank') return super.route(reply);
    this.running += 1;
    await pause(this.#lastsMs);
    await super.route(reply);
    this.running -= 1;
  }
}

const chats: { readonly engine: PacedChat; readonly slots: number }[] = [];
const encoders: PacedEncoder[] = [];
const rerankers: PacedReranker[] = [];
let texts = 0;

async function startOne(spec: EngineSpec): Promise<string> {
  switch (spec.kind) {
    case 'chat': {
      const { model, rate, slots, answerTokens } = spec;
      const engine = await startPaced({ task: 'chat', model, rate, slots, answerTokens, contextTokens: 32_768 });
      chats.push({ engine, slots });
      return engine.url;
    }
    case 'encoder': {
      const vectors = new ReferenceVectors(spec.width, spec.cosine);
      const { model, window, rate } = spec;
      const encoder = await new PacedEncoder({ model, window, itemsPerSecond: rate, slots: 1, vectors }).start();
      encoders.push(encoder);
      return encoder.url;
    }
    case 'reranker': {
      const reranker = await new PacedReranker(spec.model, spec.lastsMs).start();
      rerankers.push(reranker);
      return reranker.url;
    }
  }
}

/** The stand-ins remember all they saw; a demo may run for days. */
function forget(): void {
  for (const { engine } of chats) engine.forget();
  for (const standIn of [...encoders, ...rerankers]) standIn.requests.splice(0);
  for (const encoder of encoders) {
    texts += encoder.total((text) => text.includes(CLIENT_MARK));
    encoder.encodes.clear();
  }
}

async function busyShare(): Promise<number> {
  let slots = 0;
  let busy = 0;
  for (const url of [...chats.map(({ engine }) => engine.url), ...encoders.map((encoder) => encoder.url)]) {
    const all = (await (await fetch(`${url}/slots`)).json()) as { readonly is_processing: boolean }[];
    slots += all.length;
    busy += all.filter((slot) => slot.is_processing).length;
  }
  for (const reranker of rerankers) {
    slots += 1;
    busy += Math.min(1, reranker.running);
  }
  return slots === 0 ? 0 : busy / slots;
}

async function answer(message: ToEngines): Promise<FromEngines> {
  if (message.ask === 'start') {
    const urls: string[] = [];
    for (const spec of message.engines) urls.push(await startOne(spec));
    return { told: 'started', urls };
  }
  forget();
  return { told: 'state', state: { busy: await busyShare(), texts } };
}

if (process.send) {
  process.on('message', (message: ToEngines) => void answer(message).then((told) => process.send?.(told)));
  process.on('disconnect', () => process.exit(0));
  // Ctrl-C reaches the whole group; who ends what in which order is the parent's business.
  process.on('SIGINT', () => undefined);
}
