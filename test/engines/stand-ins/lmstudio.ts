import { type ChatForm, event, promptTokens, recite } from './chat.ts';
import { type Reply, StandIn, type StandInOptions, textsIn } from './stand-in.ts';

export interface LmstudioOptions extends StandInOptions {
  readonly task?: 'chat' | 'embed';
  /** Only `/api/v0`, as before 0.4. */
  readonly older?: boolean;
  readonly loaded?: boolean;
}

const ERROR = { error: { message: 'The model has crashed without additional information. (Exit code: null)' } };
const broken = (error: object) => `event: error\n${event(error)}`;

const FORM: ChatForm = {
  top: (object) => ({ id: 'chatcmpl-x', object, created: 1, model: 'm', system_fingerprint: 'm' }),
  broken: [broken(ERROR)],
};

/** LM Studio: loads what is asked for, cuts embeddings silently, answers every unknown path with 200 and an error text. */
export class LmstudioStandIn extends StandIn {
  readonly task: 'chat' | 'embed';
  readonly older: boolean;
  loaded: boolean;
  /** Loads that a request caused. */
  loads = 0;

  constructor(options: LmstudioOptions = {}) {
    super(options, 'model-in-studio');
    this.task = options.task ?? 'chat';
    this.older = options.older ?? false;
    this.loaded = options.loaded ?? true;
  }

  protected async route(reply: Reply): Promise<void> {
    const { method, path } = reply.seen;
    const known = `${method} ${path}`;
    if (known === 'GET /api/v1/models' && !this.older) return reply.json(200, { models: [this.#model()] });
    if (known === 'GET /api/v0/models') return reply.json(200, { object: 'list', data: [this.#olderModel()] });
    switch (known) {
      case 'GET /v1/models':
        return reply.json(200, {
          object: 'list',
          data: [{ id: this.model, object: 'model', owned_by: 'organization_owner' }],
        });
      case 'POST /v1/chat/completions':
        return this.#chat(reply);
      case 'POST /v1/embeddings':
        return this.#embed(reply);
      default:
        return reply.json(200, { error: `Unexpected endpoint or method. (${known})` });
    }
  }

  #model(): object {
    const config = { context_length: this.window, eval_batch_size: 512, parallel: 2, flash_attention: true };
    return {
      type: this.task === 'chat' ? 'llm' : 'embedding',
      publisher: 'org',
      key: this.model,
      display_name: 'Model',
      architecture: 'qwen3',
      quantization: { name: 'Q4_K_M', bits_per_weight: 4 },
      size_bytes: 1_000_000,
      params_string: '1B',
      loaded_instances: this.loaded ? [{ id: this.model, config }] : [],
      max_context_length: 32_768,
      format: 'gguf',
    };
  }

  #olderModel(): object {
    return {
      id: this.model,
      object: 'model',
      type: this.task === 'chat' ? 'llm' : 'embeddings',
      publisher: 'org',
      arch: 'qwen3',
      compatibility_type: 'gguf',
      quantization: 'Q4_K_M',
      state: this.loaded ? 'loaded' : 'not-loaded',
      max_context_length: 32_768,
      ...(this.loaded ? { loaded_context_length: this.window } : {}),
    };
  }

  #load(): void {
    if (!this.loaded) this.loads++;
    this.loaded = true;
  }

  async #chat(reply: Reply): Promise<void> {
    if (this.task !== 'chat') return reply.json(400, { error: 'Model is not an LLM.' });
    const trouble = this.meets();
    if (trouble?.kind === 'busy') return reply.json(503, { error: 'Server is at capacity.' });
    if (trouble?.kind === 'error-in-200') return reply.json(200, ERROR);
    this.#load();
    const prompt = await promptTokens(this, reply.body);
    if (prompt > this.window) {
      const message = `Trying to keep the first ${prompt} tokens when context the overflows. However, the model is loaded with context length of only ${this.window} tokens, which is not enough.`;
      if (reply.body.stream !== true) return reply.json(400, { error: { message } });
      reply.events();
      reply.write(broken({ error: { message } }));
      return reply.end();
    }
    await recite(this, reply, FORM, trouble);
  }

  /** Floats whatever was asked for. */
  async #embed(reply: Reply): Promise<void> {
    if (this.task !== 'embed') return reply.json(400, { error: 'Model is not embedding.' });
    if (this.meets()?.kind === 'busy') return reply.json(503, { error: 'Server is at capacity.' });
    this.#load();
    const data: object[] = [];
    for (const [index, text] of (textsIn(reply.body.input) ?? []).entries()) {
      const vector = await this.vectors.encode(await this.vectors.cut(text, this.window));
      data.push({ object: 'embedding', index, embedding: [...vector] });
    }
    reply.json(200, { object: 'list', data, model: this.model, usage: { prompt_tokens: 0, total_tokens: 0 } });
  }
}
