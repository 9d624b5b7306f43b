import type { Connection } from './connections.ts';
import type { EmbedAnswer } from './dialect.ts';
import { EngineFailure } from './failure.ts';
import type { InputPart } from './texts.ts';
import type { VectorBatch } from './vectors.ts';

/** Short everyday texts: cheap, and what another pooling, prefix or model changes most. */
export const SENTINELS = [
  'The harbour was quiet before sunrise.',
  'function sum(a, b) { return a + b }',
  'ÉTÉ À LA MONTAGNE',
] as const;
const [FIRST] = SENTINELS;

/** What the gate asks of a text alone and in company; one engine gives no two vectors of a text that are further apart. */
const LEAST_COSINE = 0.999;

/** Embeds a part on the connection that is looked at. */
export type EmbedPart = (part: InputPart) => Promise<EmbedAnswer>;

/**
 * Embeds a part with a sentinel: behind its own texts where a batch has room for one more, else right after it.
 * @throws OtherVectors; what `embed` throws
 */
export type Watch = (part: InputPart, embed: EmbedPart) => Promise<EmbedAnswer>;

/** A known text got another vector than at first. Nothing that came with it may be used. */
export class OtherVectors extends EngineFailure {
  constructor() {
    super('fingerprint_changed');
  }
}

interface Reference {
  /** One row for each sentinel, whole, as the first connection of the chain gave them. */
  readonly rows: readonly Float32Array[];
  /** Tokens of the first one; null: the engine does not count. */
  readonly tokens: number | null;
}

/**
 * Known texts for engines whose process cannot be seen. Before a connection carries a text it gives their vectors, and one of
 * them rides along with every batch: a load balancer or proxy may lead each request to another engine.
 */
export class Sentinels {
  /** By chain and model. */
  readonly #references = new Map<string, Promise<Reference>>();
  readonly #checked = new WeakMap<Connection, { readonly generation: number; readonly keys: Set<string> }>();

  /**
   * Resolves once the connection's present socket has given the vectors that the chain's first one gave.
   * @param maxBatch texts of one request
   * @param embed at full width
   * @throws OtherVectors; what `embed` throws
   */
  async check(
    connection: Connection,
    chain: string,
    { model, maxBatch }: { readonly model: string; readonly maxBatch: number },
    embed: EmbedPart,
  ): Promise<Watch> {
    const key = `${chain} ${model}`;
    const { generation } = connection;
    const reference = await this.#reference(key, chain, maxBatch, embed);
    const checked = this.#checked.get(connection);
    const keys = checked?.generation === generation ? checked.keys : new Set<string>();
    if (!keys.has(key)) {
      const rows = await rowsOfAll(maxBatch, embed);
      if (!rows.every((row, at) => agrees(reference, at, row))) throw new OtherVectors();
      if (connection.generation === generation) this.#checked.set(connection, { generation, keys: keys.add(key) });
    }
    return (part, embedOwn) =>
      part.count < maxBatch ? together(part, reference, embedOwn) : oneAfterOther(part, reference, embedOwn);
  }

  /** Shared by all who come first; one that failed is taken again by the next. */
  #reference(key: string, chain: string, maxBatch: number, embed: EmbedPart): Promise<Reference> {
    const known = this.#references.get(key);
    if (known !== undefined) return known;
    for (const old of this.#references.keys()) if (!old.startsWith(`${chain} `)) this.#references.delete(old);
    const taken = take(maxBatch, embed);
    this.#references.set(key, taken);
    taken.catch(() => {
      if (this.#references.get(key) === taken) this.#references.delete(key);
    });
    return taken;
  }
}

async function take(maxBatch: number, embed: EmbedPart): Promise<Reference> {
  const { promptTokens } = await embed(partOf([FIRST]));
  const rows = await rowsOfAll(maxBatch, embed);
  return { rows: rows.map((row) => row.slice()), tokens: promptTokens };
}

async function rowsOfAll(maxBatch: number, embed: EmbedPart): Promise<readonly Float32Array[]> {
  const rows: Float32Array[] = [];
  const step = Math.max(1, maxBatch);
  for (let from = 0; from < SENTINELS.length; from += step) {
    const { batch } = await embed(partOf(SENTINELS.slice(from, from + step)));
    for (let at = 0; at < batch.count; at++) rows.push(rowOf(batch, at));
  }
  return rows;
}

async function together(part: InputPart, reference: Reference, embed: EmbedPart): Promise<EmbedAnswer> {
  const { batch, promptTokens } = await embed(withSentinel(part));
  const { count } = part;
  if (!agrees(reference, 0, rowOf(batch, count))) throw new OtherVectors();
  const own = promptTokens === null || reference.tokens === null ? null : Math.max(0, promptTokens - reference.tokens);
  return { batch: { ...batch, values: batch.values.subarray(0, count * batch.width), count }, promptTokens: own };
}

async function oneAfterOther(part: InputPart, reference: Reference, embed: EmbedPart): Promise<EmbedAnswer> {
  const answer = await embed(part);
  const { batch } = await embed(partOf([FIRST]));
  if (!agrees(reference, 0, rowOf(batch, 0))) throw new OtherVectors();
  return answer;
}

const partOf = (texts: readonly string[]): InputPart => ({
  inputs: Buffer.from(JSON.stringify(texts)),
  count: texts.length,
});

/** The part with the first sentinel behind its own texts. */
function withSentinel({ inputs, count }: InputPart): InputPart {
  const bytes = Buffer.from(inputs.buffer, inputs.byteOffset, inputs.byteLength);
  const end = bytes.lastIndexOf(']');
  return {
    inputs: Buffer.concat([bytes.subarray(0, end), Buffer.from(`,${JSON.stringify(FIRST)}]`)]),
    count: count + 1,
  };
}

function rowOf({ values, width }: VectorBatch, at: number): Float32Array {
  return values.subarray(at * width, (at + 1) * width);
}

/** Over the leading values that both have: a cut vector is the beginning of a whole one. */
function agrees({ rows }: Reference, at: number, row: Float32Array): boolean {
  const whole = rows[at] ?? new Float32Array(0);
  let dot = 0;
  let a = 0;
  let b = 0;
  for (let i = 0; i < Math.min(row.length, whole.length); i++) {
    const x = row[i] as number;
    const y = whole[i] as number;
    dot += x * y;
    a += x * x;
    b += y * y;
  }
  return dot / Math.sqrt(a * b) >= LEAST_COSINE; // NaN fails
}
