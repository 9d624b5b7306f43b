import { pause, type Reply, StandIn, type StandInOptions, textsIn } from './stand-in.ts';
import { base64Of } from './vectors.ts';

export interface PacedOptions extends StandInOptions {
  /** Texts a second, one after the other whatever the number of requests; absent: as fast as it goes. */
  readonly itemsPerSecond?: number;
  readonly slots?: number;
}

/**
 * A llama.cpp server that embeds at a fixed rate: its properties, its slots, its copies of Ollama's routes. Counts how often it
 * encoded each text, and begins no text of a request whose client has left.
 */
export class PacedEngine extends StandIn {
  override readonly headers = { server: 'llama.cpp' };
  readonly slots: number;
  /** Times each text was encoded to its end; texts of probes among them. */
  readonly encodes = new Map<string, number>();
  mediaMarker = '<__media_1__>';
  readonly #itemMs: number;
  #busySlots = 0;
  #line: Promise<void> = Promise.resolve();
  /** When the text before is done, by the rate alone: pauses that come late are made up for. */
  #doneAtMs = 0;

  constructor(options: PacedOptions = {}) {
    super(options, 'paced-encoder');
    this.slots = options.slots ?? 1;
    this.#itemMs = options.itemsPerSecond === undefined ? 0 : 1000 / options.itemsPerSecond;
  }

  /** Encodes over all texts for which `wanted` holds. */
  total(wanted: (text: string) => boolean = () => true): number {
    return [...this.encodes].reduce((sum, [text, times]) => sum + (wanted(text) ? times : 0), 0);
  }

  protected async route(reply: Reply): Promise<void> {
    const { method, path } = reply.seen;
    switch (`${method} ${path}`) {
      case 'GET /':
        return reply.text(200, '<html>llama.cpp</html>');
      case 'GET /health':
        return reply.json(200, { status: 'ok' });
      case 'GET /props':
        return reply.json(200, {
          default_generation_settings: { n_ctx: this.window },
          total_slots: this.slots,
          model_path: `/models/${this.model}.gguf`,
          media_marker: this.mediaMarker,
          build_info: 'b11669-abcdef',
          endpoint_metrics: false,
        });
      case 'GET /v1/models':
        return reply.json(200, {
          object: 'list',
          data: [{ id: this.model, object: 'model', owned_by: 'llamacpp', meta: null }],
        });
      case 'GET /slots':
        return reply.json(
          200,
          Array.from({ length: this.slots }, (_, id) => ({ id, is_processing: id < this.#busySlots })),
        );
      // Copies, which must not make anybody take it for Ollama.
      case 'GET /api/tags':
        return reply.json(200, { models: [{ name: this.model, model: this.model, digest: '', details: {} }] });
      case 'POST /tokenize':
        return reply.json(200, {
          tokens: Array.from({ length: await this.vectors.count(String(reply.body.content)) }, (_, i) => i),
        });
      case 'POST /v1/embeddings':
        return this.#embed(reply);
      case 'POST /v1/rerank':
      case 'POST /v1/chat/completions':
        return reply.json(501, {
          error: { code: 501, message: 'This server does not support it.', type: 'not_supported_error' },
        });
      default:
        return reply.json(404, { error: { code: 404, message: 'File Not Found', type: 'not_found_error' } });
    }
  }

  async #embed(reply: Reply): Promise<void> {
    if (this.meets()?.kind === 'busy') {
      return reply.json(503, { error: { code: 503, message: 'busy', type: 'unavailable_error' } });
    }
    const texts = textsIn(reply.body.input) ?? [];
    for (const text of texts) {
      const tokens = await this.vectors.count(text);
      if (tokens <= this.window) continue;
      const message = `input (${tokens} tokens) is too large to process. increase the physical batch size (current batch size: ${this.window})`;
      return reply.json(500, { error: { code: 500, message, type: 'server_error' } });
    }
    this.#busySlots++;
    const data: object[] = [];
    for (const [index, text] of texts.entries()) {
      const vector = await this.#inTurn(reply, text);
      if (vector === null) break;
      const embedding = reply.body.encoding_format === 'base64' ? base64Of(vector) : [...vector];
      data.push({ object: 'embedding', index, embedding });
    }
    this.#busySlots--;
    reply.json(200, {
      object: 'list',
      model: this.model,
      data,
      usage: { prompt_tokens: texts.length, total_tokens: texts.length },
    });
  }

  /** Null: the client has left before its text was begun. */
  #inTurn(reply: Reply, text: string): Promise<Float32Array | null> {
    const mine = this.#line.then(async () => {
      if (reply.gone) return null;
      if (this.#itemMs > 0) await this.#take();
      const vector = await this.vectors.encode(text);
      this.encodes.set(text, (this.encodes.get(text) ?? 0) + 1);
      return vector;
    });
    this.#line = mine.then(
      () => undefined,
      () => undefined,
    );
    return mine;
  }

  async #take(): Promise<void> {
    await this.awake();
    const nowMs = performance.now();
    // Idle time is not made up for, only the lateness of timers: at most one text's worth.
    const from = nowMs - this.#doneAtMs > this.#itemMs ? nowMs : this.#doneAtMs;
    this.#doneAtMs = from + this.#itemMs;
    const restMs = this.#doneAtMs - nowMs;
    if (restMs > 0) await pause(restMs);
    await this.awake();
  }
}
