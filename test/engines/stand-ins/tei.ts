import { type Reply, StandIn, type StandInOptions, textsIn } from './stand-in.ts';
import { base64Of } from './vectors.ts';
import { overlap } from './vllm.ts';

export interface TeiOptions extends StandInOptions {
  readonly task?: 'embed' | 'rerank';
  readonly maxBatch?: number;
}

/** TEI: 32 inputs a request, cuts silently unless a native route is told not to, flat errors on its OpenAI route. */
export class TeiStandIn extends StandIn {
  readonly version = '1.9.0';
  readonly task: 'embed' | 'rerank';
  readonly maxBatch: number;
  pooling = 'mean';
  ill = false;

  constructor(options: TeiOptions = {}) {
    super(options, 'org/model-on-tei');
    this.task = options.task ?? 'embed';
    this.maxBatch = options.maxBatch ?? 32;
  }

  protected async route(reply: Reply): Promise<void> {
    const { method, path } = reply.seen;
    switch (`${method} ${path}`) {
      case 'GET /':
      case 'GET /health':
        return this.ill ? reply.json(503, { error: 'unhealthy', error_type: 'unhealthy' }) : reply.text(200, '');
      case 'GET /info':
        return reply.json(200, this.#info());
      case 'GET /metrics':
        return reply.text(200, '# TYPE te_queue_size gauge\nte_queue_size 5\n');
      case 'POST /embed':
        return this.#embed(reply, reply.body.inputs, native(reply), (vectors) => vectors.map((vector) => [...vector]));
      case 'POST /v1/embeddings':
        return this.#embed(reply, reply.body.input, flat(reply), (vectors) => ({
          object: 'list',
          model: this.model,
          data: vectors.map((vector, index) => ({
            object: 'embedding',
            index,
            embedding: reply.body.encoding_format === 'base64' ? base64Of(vector) : [...vector],
          })),
          usage: { prompt_tokens: 1, total_tokens: 1 },
        }));
      case 'POST /rerank':
        return this.#rerank(reply);
      case 'POST /tokenize':
        return this.#tokenize(reply);
      default:
        return reply.text(404, '');
    }
  }

  #info(): object {
    const type =
      this.task === 'embed' ? { embedding: { pooling: this.pooling } } : { reranker: { id2label: {}, label2id: {} } };
    return {
      model_id: this.model,
      model_sha: 'def',
      model_dtype: 'float16',
      model_type: type,
      max_concurrent_requests: 512,
      max_input_length: this.window,
      max_batch_tokens: 16_384,
      max_batch_requests: null,
      max_client_batch_size: this.maxBatch,
      auto_truncate: true,
      tokenization_workers: 4,
      version: this.version,
      sha: null,
      docker_label: null,
    };
  }

  /** The texts as they are read; null: answered already. */
  async #read(reply: Reply, texts: readonly string[] | null, refuse: Refuse): Promise<readonly string[] | null> {
    if (this.meets()?.kind === 'busy') return refuse(429, 'Model is overloaded', 'overloaded');
    if (texts === null || texts.length === 0) return refuse(400, '`inputs` cannot be empty', 'empty');
    if (texts.length > this.maxBatch) {
      const message = `batch size ${texts.length} > maximum allowed batch size ${this.maxBatch}`;
      return refuse(422, message, 'validation');
    }
    const read: string[] = [];
    for (const text of texts) {
      const tokens = await this.vectors.count(text);
      if (tokens > this.window && reply.body.truncate === false) {
        const message = `\`inputs\` must have less than ${this.window} tokens. Given: ${tokens}`;
        return refuse(422, message, 'validation');
      }
      read.push(tokens > this.window ? await this.vectors.cut(text, this.window) : text);
    }
    return read;
  }

  async #embed(
    reply: Reply,
    input: unknown,
    refuse: Refuse,
    shape: (vectors: Float32Array[]) => unknown,
  ): Promise<void> {
    if (this.task !== 'embed') {
      refuse(424, 'model is not an embedding model', 'backend');
      return;
    }
    const texts = await this.#read(reply, textsIn(input), refuse);
    if (texts === null) return;
    const vectors: Float32Array[] = [];
    let tokens = 0;
    for (const text of texts) {
      vectors.push(await this.vectors.encode(text));
      tokens += await this.vectors.count(text);
    }
    reply.json(200, shape(vectors), { 'x-compute-tokens': String(tokens), 'x-total-time': '1' });
  }

  async #rerank(reply: Reply): Promise<void> {
    const { query, texts } = reply.body as { query: string; texts: string[] };
    const refuse = native(reply);
    if (this.task !== 'rerank') {
      refuse(424, 'model is not a re-ranker model', 'backend');
      return;
    }
    const read = await this.#read(reply, texts, refuse);
    if (read === null) return;
    const ranks = read.map((text, index) => ({ index, score: overlap(query, text) }));
    reply.json(
      200,
      ranks.sort((a, b) => b.score - a.score),
      { 'x-compute-tokens': '7' },
    );
  }

  async #tokenize(reply: Reply): Promise<void> {
    const texts = textsIn(reply.body.inputs) ?? [];
    if (texts.length > this.maxBatch) {
      native(reply)(422, `batch size ${texts.length} > maximum allowed batch size ${this.maxBatch}`, 'validation');
      return;
    }
    const rows: object[][] = [];
    for (const text of texts) {
      const count = await this.vectors.count(text);
      rows.push(Array.from({ length: count }, (_, id) => ({ id, text: '', special: id === 0, start: 0, stop: 1 })));
    }
    reply.json(200, rows);
  }
}

type Refuse = (status: number, message: string, type: string) => null;

const native =
  (reply: Reply): Refuse =>
  (status, error, error_type) => {
    reply.json(status, { error, error_type });
    return null;
  };

const flat =
  (reply: Reply): Refuse =>
  (status, message, type) => {
    reply.json(status, { message, code: status, type });
    return null;
  };
