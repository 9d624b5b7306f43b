import { createHash } from 'node:crypto';
import { type ChatForm, event, recite } from './chat.ts';
import { type Reply, StandIn, type StandInOptions, textsIn } from './stand-in.ts';
import { base64Of } from './vectors.ts';

interface InstalledModel {
  readonly name: string;
  digest: string;
  readonly kind: 'chat' | 'embed';
  readonly remoteHost?: string;
  /** Lines of its Modelfile. */
  readonly parameters?: string;
  readonly trained: number;
}

export interface OllamaOptions extends StandInOptions {
  readonly models?: readonly Omit<InstalledModel, 'digest'>[];
  /** Host names it takes, port aside; others are refused as when it listens on loopback alone. */
  readonly hosts?: readonly string[];
}

const sha = (text: string) => createHash('sha256').update(text).digest('hex');
const TOO_LONG = 'the input length exceeds the context length';

const FORM: ChatForm = {
  top: (object) => ({ id: 'chatcmpl-417', object, created: 1, model: 'm', system_fingerprint: 'fp_ollama' }),
  // The error itself is swallowed: an empty chunk, and the end with neither a finish reason nor [DONE].
  broken: [
    event({
      id: 'chatcmpl-417',
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: { content: '' }, finish_reason: null }],
    }),
  ],
};

/** Ollama: loads models on demand with a window of its own, cuts silently unless told not to, reloads when options differ. */
export class OllamaStandIn extends StandIn {
  readonly version = '0.33.1';
  readonly models: InstalledModel[];
  /** Loaded models with the options they were loaded with. */
  readonly loaded = new Map<string, string>();
  /** How often a model was put into memory. */
  loads = 0;
  /** Runs once, when the next vectors have been made and not sent yet. */
  beforeVectors: (() => void) | null = null;
  readonly #hosts: readonly string[];
  #line: Promise<void> = Promise.resolve();

  constructor(options: OllamaOptions = {}) {
    super(options, 'encoder:latest');
    const models = options.models ?? [{ name: this.model, kind: 'embed', trained: this.window }];
    this.models = models.map((model) => ({ ...model, digest: sha(model.name) }));
    this.#hosts = options.hosts ?? ['127.0.0.1', 'localhost'];
  }

  /** Its weights are others from now on, under the same name. */
  pull(name: string): void {
    for (const model of this.models) if (model.name === name) model.digest = sha(`${model.digest}+`);
  }

  protected async route(reply: Reply): Promise<void> {
    const { method, path, headers } = reply.seen;
    if (!this.#hosts.includes((headers.host ?? '').replace(/:\d+$/, ''))) {
      reply.text(403, '');
      return;
    }
    switch (`${method} ${path}`) {
      case 'GET /':
        return reply.text(200, 'Ollama is running');
      case 'GET /api/version':
        return reply.json(200, { version: this.version });
      case 'GET /api/tags':
        return reply.json(200, { models: this.models.map((model) => this.#tag(model)) });
      case 'GET /api/ps':
        return reply.json(200, {
          models: [...this.loaded.keys()].map((name) => ({
            name,
            model: name,
            size: 1,
            size_vram: 1,
            context_length: this.window,
          })),
        });
      case 'GET /v1/models':
        return reply.json(200, {
          object: 'list',
          data: this.models.map(({ name }) => ({ id: name, object: 'model', created: 1, owned_by: 'library' })),
        });
      case 'POST /api/show':
        return this.#show(reply);
      case 'POST /api/embed':
        return this.#inLine(() => this.#embed(reply));
      case 'POST /v1/embeddings':
        return this.#inLine(() => this.#openaiEmbed(reply));
      case 'POST /v1/chat/completions':
        return this.#inLine(() => this.#chat(reply));
      default:
        return reply.text(404, '404 page not found');
    }
  }

  #tag({ name, digest, remoteHost }: InstalledModel): object {
    const details = { parent_model: '', format: 'gguf', family: 'bert', families: ['bert'], parameter_size: '1M' };
    const remote = remoteHost === undefined ? {} : { remote_model: name, remote_host: remoteHost };
    return { name, model: name, modified_at: '2026-10-01T00:00:00Z', size: 1_000_000, digest, details, ...remote };
  }

  #show(reply: Reply): void {
    const model = this.#find(reply.body.model);
    if (model === undefined) {
      reply.json(404, { error: `model '${reply.body.model}' not found` });
      return;
    }
    const embeds = model.kind === 'embed';
    const arch = embeds ? 'bert' : 'qwen3';
    reply.json(200, {
      parameters: model.parameters ?? '',
      template: '{{ .Prompt }}',
      details: { family: arch },
      model_info: {
        'general.architecture': arch,
        [`${arch}.context_length`]: model.trained,
        [`${arch}.embedding_length`]: this.vectors.width,
        ...(embeds ? { [`${arch}.pooling_type`]: 1 } : {}),
      },
      capabilities: embeds ? ['embedding'] : ['completion', 'tools'],
    });
  }

  async #embed(reply: Reply): Promise<void> {
    const { body } = reply;
    if (!this.#ready(reply, (status, error) => reply.json(status, { error }))) return;
    const texts = textsIn(body.input);
    if (texts === null) return reply.json(400, { error: 'invalid input type' });
    const cut: string[] = [];
    for (const text of texts) {
      const tooLong = (await this.vectors.count(text)) > this.window;
      if (tooLong && body.truncate === false) return reply.json(400, { error: TOO_LONG });
      cut.push(tooLong ? await this.vectors.cut(text, this.window) : text);
    }
    const embeddings: number[][] = [];
    let tokens = 0;
    for (const text of cut) {
      embeddings.push([...(await this.vectors.encode(text))]);
      tokens += await this.vectors.count(text);
    }
    this.beforeVectors?.();
    this.beforeVectors = null;
    reply.json(200, { model: body.model, embeddings, total_duration: 1, load_duration: 1, prompt_eval_count: tokens });
  }

  async #openaiEmbed(reply: Reply): Promise<void> {
    if (!this.#ready(reply, openaiError(reply))) return;
    const data: object[] = [];
    for (const [index, text] of (textsIn(reply.body.input) ?? []).entries()) {
      const vector = await this.vectors.encode(await this.vectors.cut(text, this.window));
      const embedding = reply.body.encoding_format === 'base64' ? base64Of(vector) : [...vector];
      data.push({ object: 'embedding', embedding, index });
    }
    reply.json(200, { object: 'list', data, model: reply.body.model, usage: { prompt_tokens: 1, total_tokens: 1 } });
  }

  async #chat(reply: Reply): Promise<void> {
    const trouble = this.meets();
    if (trouble?.kind === 'busy') {
      return openaiError(reply)(503, 'server busy, please try again.  maximum pending requests exceeded');
    }
    if (trouble?.kind === 'error-in-200') return reply.json(200, { error: { message: 'broke', type: 'api_error' } });
    if (!this.#ready(reply, openaiError(reply), false)) return;
    await recite(this, reply, FORM, trouble);
  }

  /** One at a time, as `OLLAMA_NUM_PARALLEL` 1 has it; the others wait without a limit. */
  #inLine(work: () => Promise<void> | void): Promise<void> {
    const mine = this.#line.then(work);
    this.#line = mine.catch(() => undefined);
    return mine;
  }

  /** Loads the model if it is not, or not with these options. False: refused. */
  #ready(reply: Reply, refuse: (status: number, error: string) => void, asks = true): boolean {
    const trouble = asks ? this.meets() : null;
    if (trouble?.kind === 'busy') {
      refuse(503, 'server busy, please try again.  maximum pending requests exceeded');
      return false;
    }
    const model = this.#find(reply.body.model);
    if (model === undefined) {
      refuse(404, `model "${reply.body.model}" not found, try pulling it first`);
      return false;
    }
    const options = JSON.stringify(reply.body.options ?? {});
    if (this.loaded.get(model.name) !== options) this.loads++;
    this.loaded.set(model.name, options);
    return true;
  }

  #find(name: unknown): InstalledModel | undefined {
    return this.models.find((model) => model.name === name);
  }
}

const openaiError = (reply: Reply) => (status: number, message: string) => {
  const type = status === 404 ? 'not_found_error' : 'api_error';
  reply.json(status, { error: { message, type, param: null, code: null } });
};
