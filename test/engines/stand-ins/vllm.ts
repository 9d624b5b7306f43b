import { type ChatForm, event, promptTokens, recite } from './chat.ts';
import { type Reply, StandIn, type StandInOptions, textsIn } from './stand-in.ts';
import { base64Of } from './vectors.ts';

export interface VllmOptions extends StandInOptions {
  readonly task?: 'chat' | 'embed' | 'rerank';
  /** Started with `--disable-...`: its metrics cannot be read. */
  readonly metrics?: boolean;
}

const ERROR = {
  error: { message: 'EngineCore encountered an issue.', type: 'InternalServerError', param: null, code: 500 },
};

const FORM: ChatForm = {
  top: (object) => ({ id: 'chatcmpl-a1b2', object, created: 1, model: 'm' }),
  broken: [event(ERROR), event('[DONE]')],
};

/** vLLM: a route for the model's own task alone, errors nested, `[DONE]` after an error, metrics always on. */
export class VllmStandIn extends StandIn {
  readonly version = '0.14.0';
  readonly task: 'chat' | 'embed' | 'rerank';
  /** Seconds; another value is another process. */
  startedAt = 1_790_000_000.25;
  dead = false;
  running = 0;
  waiting = 0;
  readonly #metrics: boolean;

  constructor(options: VllmOptions = {}) {
    super(options, 'org/model-on-vllm');
    this.task = options.task ?? 'embed';
    this.#metrics = options.metrics ?? true;
  }

  protected async route(reply: Reply): Promise<void> {
    const { method, path } = reply.seen;
    switch (`${method} ${path}`) {
      case 'GET /health':
        return reply.text(this.dead ? 503 : 200, '');
      case 'GET /version':
        return reply.json(200, { version: this.version });
      case 'GET /metrics':
        return this.#metrics ? reply.text(200, this.#page(), { 'content-type': 'text/plain' }) : this.#noRoute(reply);
      case 'GET /v1/models':
        return reply.json(200, { object: 'list', data: [this.#model()] });
      case 'POST /tokenize':
        return this.#tokenize(reply);
      case 'POST /v1/embeddings':
        return this.#counted(() => this.#embed(reply));
      case 'POST /v1/rerank':
        return this.#counted(() => this.#rerank(reply));
      case 'POST /v1/chat/completions':
        return this.#counted(() => this.#chat(reply));
      default:
        return this.#noRoute(reply);
    }
  }

  #model(): object {
    const now = Math.floor(Date.now() / 1000); // of the answer, not of the model
    return {
      id: this.model,
      object: 'model',
      created: now,
      owned_by: 'vllm',
      root: this.model,
      parent: null,
      max_model_len: this.window,
      permission: [],
    };
  }

  #page(): string {
    const labels = `{engine="0",model_name="a model, with {braces} 7"}`;
    const more = `{engine="1",model_name="a model, with {braces} 7"}`;
    return [
      '# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.',
      '# TYPE process_start_time_seconds gauge',
      `process_start_time_seconds ${this.startedAt}`,
      '# HELP vllm:num_requests_running Number of requests in model execution batches.',
      '# TYPE vllm:num_requests_running gauge',
      `vllm:num_requests_running${labels} ${this.running}.0`,
      `vllm:num_requests_running${more} 0.0`,
      '# TYPE vllm:num_requests_waiting gauge',
      `vllm:num_requests_waiting${labels} ${this.waiting}.0`,
      `vllm:num_requests_waiting${more} 1.0`,
      '# TYPE vllm:num_requests_waiting_by_reason gauge',
      `vllm:num_requests_waiting_by_reason{reason="capacity"} 99.0`,
      '',
    ].join('\n');
  }

  async #counted(work: () => Promise<void> | void): Promise<void> {
    this.running++;
    try {
      await work();
    } finally {
      this.running--;
    }
  }

  #noRoute(reply: Reply): void {
    reply.json(404, { detail: 'Not Found' });
  }

  #refuse(reply: Reply, code: number, message: string, type: string): void {
    reply.json(code, { error: { message, type, param: null, code } });
  }

  /** False: answered already. */
  #isFor(reply: Reply, task: string, name: string): boolean {
    if (this.task !== task) {
      this.#refuse(reply, 400, `The model does not support ${name} API`, 'BadRequestError');
      return false;
    }
    if (reply.body.model === this.model) return true;
    this.#refuse(reply, 404, `The model \`${reply.body.model}\` does not exist.`, 'NotFoundError');
    return false;
  }

  #tooLong(reply: Reply, tokens: number, where: string): void {
    const message = `This model's maximum context length is ${this.window} tokens. However, you requested ${tokens} tokens ${where}. Please reduce the length.`;
    this.#refuse(reply, 400, message, 'BadRequestError');
  }

  #busy(reply: Reply): void {
    this.#refuse(reply, 503, 'The request queue is full.', 'ServiceUnavailableError');
  }

  async #tokenize(reply: Reply): Promise<void> {
    const count = await this.vectors.count(String(reply.body.prompt));
    const tokens = Array.from({ length: count }, (_, i) => i);
    reply.json(200, { count, max_model_len: this.window, tokens });
  }

  async #embed(reply: Reply): Promise<void> {
    if (!this.#isFor(reply, 'embed', 'Embeddings')) return;
    const trouble = this.meets();
    if (trouble?.kind === 'busy') return this.#busy(reply);
    if (trouble?.kind === 'error-in-200') return reply.json(200, ERROR);
    if (reply.body.dimensions !== undefined) {
      const message = `Model "${this.model}" does not support matryoshka representation, changing output dimensions will lead to poor results.`;
      return this.#refuse(reply, 400, message, 'BadRequestError');
    }
    const data: object[] = [];
    let total = 0;
    for (const [index, text] of (textsIn(reply.body.input) ?? []).entries()) {
      const tokens = await this.vectors.count(text);
      if (tokens > this.window) return this.#tooLong(reply, tokens, 'in the input for embedding generation');
      total += tokens;
      const vector = await this.vectors.encode(text);
      const embedding = reply.body.encoding_format === 'base64' ? base64Of(vector) : [...vector];
      data.push({ index, object: 'embedding', embedding });
    }
    const usage = { prompt_tokens: total, total_tokens: total, completion_tokens: 0, prompt_tokens_details: null };
    reply.json(200, { id: 'embd-1', object: 'list', created: 1, model: this.model, data, usage });
  }

  async #rerank(reply: Reply): Promise<void> {
    if (!this.#isFor(reply, 'rerank', 'Score')) return;
    const { query, documents } = reply.body as { query: string; documents: string[] };
    const results: { index: number; document: { text: string }; relevance_score: number }[] = [];
    for (const [index, text] of documents.entries()) {
      const tokens = (await this.vectors.count(query)) + (await this.vectors.count(text));
      if (tokens > this.window) return this.#tooLong(reply, tokens, 'in the input for score generation');
      results.push({ index, document: { text }, relevance_score: overlap(query, text) });
    }
    results.sort((a, b) => b.relevance_score - a.relevance_score);
    reply.json(200, { id: 'score-1', model: this.model, usage: { total_tokens: 9 }, results });
  }

  async #chat(reply: Reply): Promise<void> {
    if (!this.#isFor(reply, 'chat', 'Chat Completions')) return;
    const trouble = this.meets();
    if (trouble?.kind === 'busy') return this.#busy(reply);
    if (trouble?.kind === 'error-in-200') return reply.json(200, ERROR);
    const wanted = (await promptTokens(this, reply.body)) + Number(reply.body.max_tokens ?? 1);
    if (wanted > this.window) return this.#tooLong(reply, wanted, '(in the messages and the completion)');
    await recite(this, reply, FORM, trouble);
  }
}

/** Share of the query's words that a text has: an order anybody can check. */
export function overlap(query: string, text: string): number {
  const words = query.toLowerCase().split(/\s+/);
  const known = new Set(text.toLowerCase().split(/\s+/));
  return words.filter((word) => known.has(word)).length / words.length;
}
