import { type ChatForm, event, promptTokens, recite } from './chat.ts';
import { type Reply, StandIn, type StandInOptions, textsIn } from './stand-in.ts';
import { base64Of } from './vectors.ts';

export interface OpenaiOptions extends StandInOptions {
  readonly task?: 'chat' | 'embed';
  /** Refuses members it does not know. */
  readonly strict?: boolean;
  readonly ownedBy?: string;
  /** Further routes, answered to GET: what forks and proxies show. */
  readonly routes?: Readonly<Record<string, string>>;
  readonly answerHeaders?: Readonly<Record<string, string>>;
}

const ERROR = { error: { message: 'broke', type: 'server_error', param: null, code: null } };

const FORM: ChatForm = {
  top: (object) => ({ id: 'chatcmpl-1', object, created: 1, model: 'm' }),
  broken: [event(ERROR)],
};

/** Some server that speaks OpenAI's language and says nothing more of itself. */
export class OpenaiStandIn extends StandIn {
  readonly task: 'chat' | 'embed';
  readonly strict: boolean;
  override readonly headers: Readonly<Record<string, string>>;
  readonly #ownedBy: string;
  readonly #routes: Readonly<Record<string, string>>;

  constructor(options: OpenaiOptions = {}) {
    super(options, 'some-model');
    this.task = options.task ?? 'chat';
    this.strict = options.strict ?? false;
    this.headers = options.answerHeaders ?? {};
    this.#ownedBy = options.ownedBy ?? 'someone';
    this.#routes = options.routes ?? {};
  }

  protected async route(reply: Reply): Promise<void> {
    const { method, path } = reply.seen;
    const further = method === 'GET' ? this.#routes[path] : undefined;
    if (further !== undefined) return reply.text(200, further);
    switch (`${method} ${path}`) {
      case 'GET /v1/models':
        return reply.json(200, {
          object: 'list',
          data: [{ id: this.model, object: 'model', created: 1, owned_by: this.#ownedBy, max_model_len: this.window }],
        });
      case 'POST /v1/chat/completions':
        return this.#chat(reply);
      case 'POST /v1/embeddings':
        return this.#embed(reply);
      default:
        return reply.json(404, { error: { message: 'Unknown request URL', type: 'invalid_request_error' } });
    }
  }

  #tooLong(reply: Reply): void {
    const message = `This model's maximum context length is ${this.window} tokens.`;
    reply.json(400, {
      error: { message, type: 'invalid_request_error', param: 'input', code: 'context_length_exceeded' },
    });
  }

  #busy(reply: Reply): void {
    const error = { message: 'Rate limit reached', type: 'requests', param: null, code: 'rate_limit_exceeded' };
    reply.json(429, { error }, { 'retry-after': '2' });
  }

  async #chat(reply: Reply): Promise<void> {
    if (this.task !== 'chat') return reply.json(404, ERROR);
    const trouble = this.meets();
    if (trouble?.kind === 'busy') return this.#busy(reply);
    if (trouble?.kind === 'error-in-200') return reply.json(200, ERROR);
    if (this.strict && reply.body.stream_options !== undefined) {
      const message = 'Extra inputs are not permitted: stream_options';
      return reply.json(422, { error: { message, type: 'invalid_request_error', param: null, code: null } });
    }
    if ((await promptTokens(this, reply.body)) > this.window) return this.#tooLong(reply);
    await recite(this, reply, FORM, trouble);
  }

  async #embed(reply: Reply): Promise<void> {
    if (this.task !== 'embed') return reply.json(404, ERROR);
    if (this.meets()?.kind === 'busy') return this.#busy(reply);
    const data: object[] = [];
    let total = 0;
    for (const [index, text] of (textsIn(reply.body.input) ?? []).entries()) {
      const tokens = await this.vectors.count(text);
      if (tokens > this.window) return this.#tooLong(reply);
      total += tokens;
      const vector = await this.vectors.encode(text);
      const embedding = reply.body.encoding_format === 'base64' ? base64Of(vector) : [...vector];
      data.push({ object: 'embedding', index, embedding });
    }
    reply.json(200, { object: 'list', data, model: this.model, usage: { prompt_tokens: total, total_tokens: total } });
  }
}
