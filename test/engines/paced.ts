import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { encode, tokens } from '../gate/encoders.ts';

/**
 * An engine that speaks like llama.cpp's server and works at a set pace, so that a test knows what an ideal fleet would need.
 * An encoder works on one input after the other, whole requests in the order in which they came; a chat model writes so many
 * tokens a second in each slot and lets further requests wait. A client that leaves stops its work at once.
 */
export interface PacedOptions {
  readonly task: 'embed' | 'chat';
  /** Inputs/s of the encoder, tokens/s of each chat slot. Infinity: as fast as it can. */
  readonly rate?: number;
  /** Requests worked on at once; an encoder has one. */
  readonly slots?: number;
  readonly width?: number;
  /** Tokens of an answer when the request does not limit them. */
  readonly answerTokens?: number;
  readonly model?: string;
  readonly contextTokens?: number;
  readonly port?: number;
}

export interface PacedCounts {
  /** How often each text was encoded to the end, over all requests. */
  readonly encodes: Readonly<Record<string, number>>;
  readonly chats: {
    readonly begun: number;
    readonly completed: number;
    /** By their client, before the end. */
    readonly left: number;
    /** That were here at the same time. */
    readonly most: number;
    readonly tokens: number;
  };
  /** The model field of every chat, in order. */
  readonly bodies: readonly string[];
}

export interface PacedEngine {
  readonly url: string;
  readonly port: number;
  setRate(rate: number): void;
  counts(): PacedCounts;
  forget(): void;
  stop(): Promise<void>;
}

const LIMIT_TOKENS = 512;
const WORDS = ['the ', 'yard ', 'sorts ', 'waggons ', 'by ', 'day ', 'and ', 'night '];

interface Job {
  left: boolean;
}

/** Work on so many steps, one after the other, at a rate that may change meanwhile. */
class Pace {
  rate: number;
  constructor(rate: number) {
    this.rate = rate;
  }

  /** Calls `step` for each; false when `job` was left. A pause of the whole process is not made up for. */
  async run(steps: number, job: Job, step: (at: number) => void): Promise<boolean> {
    let dueMs = performance.now();
    for (let at = 0; at < steps; at += 1) {
      if (this.rate !== Number.POSITIVE_INFINITY) {
        dueMs = Math.max(dueMs, performance.now() - 25) + 1000 / this.rate;
        const waitMs = dueMs - performance.now();
        if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
      if (job.left) return false;
      step(at);
    }
    return true;
  }
}

/** Lets so many in at a time, in the order of arrival. */
class Places {
  readonly #count: number;
  readonly #waiting: (() => void)[] = [];
  taken = 0;
  constructor(count: number) {
    this.#count = count;
  }

  async enter(): Promise<void> {
    if (this.taken >= this.#count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.taken += 1;
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.taken -= 1;
  }

  get queued(): number {
    return this.#waiting.length;
  }
}

export async function startPaced(options: PacedOptions): Promise<PacedEngine> {
  const slots = options.task === 'embed' ? 1 : (options.slots ?? 1);
  const model = options.model ?? (options.task === 'embed' ? 'paced-encoder' : 'paced-chat');
  const width = options.width ?? 64;
  const pace = new Pace(options.rate ?? Number.POSITIVE_INFINITY);
  const places = new Places(slots);
  const marker = `<__paced_${process.pid}_${Math.random().toString(36).slice(2)}__>`;
  const vectors = new Map<string, Float32Array>();
  let encodes: Record<string, number> = {};
  let chats = { begun: 0, completed: 0, left: 0, most: 0, tokens: 0 };
  let present = 0;
  let bodies: string[] = [];

  const vectorOf = (text: string) => {
    let vector = vectors.get(text);
    if (!vector) {
      vector = encode([text], { width });
      if (vectors.size > 4096) vectors.clear();
      vectors.set(text, vector);
    }
    return vector;
  };

  async function embed(body: { input?: unknown; encoding_format?: unknown }, job: Job, response: ServerResponse) {
    const inputs = [body.input].flat().map(String);
    const long = inputs.map((text) => tokens(text).length).find((count) => count > LIMIT_TOKENS);
    if (long !== undefined) {
      const message = `input (${long} tokens) is too large to process. increase the physical batch size (current batch size: ${LIMIT_TOKENS})`;
      return json(response, { error: { code: 500, message, type: 'server_error' } }, 500);
    }
    await places.enter();
    try {
      const whole = await pace.run(inputs.length, job, (at) => {
        const text = inputs[at] ?? '';
        encodes[text] = (encodes[text] ?? 0) + 1;
      });
      if (!whole) return;
    } finally {
      places.leave();
    }
    const data = inputs.map((text, index) => {
      const vector = vectorOf(text);
      const embedding =
        body.encoding_format === 'base64'
          ? Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64')
          : Array.from(vector);
      return { object: 'embedding', index, embedding };
    });
    const prompt_tokens = inputs.reduce((sum, text) => sum + tokens(text).length, 0);
    json(response, { object: 'list', model, usage: { prompt_tokens, total_tokens: prompt_tokens }, data });
  }

  interface ChatBody {
    readonly max_tokens?: number;
    readonly stream?: boolean;
    readonly stream_options?: { readonly include_usage?: boolean } | null;
  }
  async function chat(body: ChatBody, job: Job, response: ServerResponse) {
    chats.begun += 1;
    present += 1;
    chats.most = Math.max(chats.most, present);
    await places.enter();
    try {
      const count = Math.max(1, Math.min(body.max_tokens ?? Number.POSITIVE_INFINITY, options.answerTokens ?? 32));
      const chunk = (choices: readonly unknown[], more: object = {}) =>
        response.write(
          `data: ${JSON.stringify({ choices, created: 1, id: 'chatcmpl-1', model, object: 'chat.completion.chunk', ...more })}\n\n`,
        );
      const usage = { completion_tokens: count, prompt_tokens: 7, total_tokens: count + 7 };
      const timings = { prompt_n: 7, predicted_n: count };
      if (body.stream) {
        response.writeHead(200, { 'content-type': 'text/event-stream', server: 'llama.cpp' });
        response.flushHeaders();
      }
      let text = '';
      const whole = await pace.run(count, job, (at) => {
        const word = WORDS[at % WORDS.length] ?? '';
        text += word;
        chats.tokens += 1;
        if (body.stream) chunk([{ finish_reason: null, index: 0, delta: { content: word } }]);
      });
      if (!whole) {
        chats.left += 1;
        return;
      }
      chats.completed += 1;
      if (!body.stream) {
        const message = { role: 'assistant', content: text };
        json(response, {
          choices: [{ finish_reason: 'stop', index: 0, message }],
          created: 1,
          id: 'chatcmpl-1',
          model,
          object: 'chat.completion',
          usage,
          timings,
        });
        return;
      }
      const asked = body.stream_options?.include_usage === true;
      chunk([{ finish_reason: 'stop', index: 0, delta: {} }], asked ? {} : { timings });
      if (asked) chunk([], { usage, timings });
      response.end('data: [DONE]\n\n');
    } finally {
      present -= 1;
      places.leave();
    }
  }

  const routes: Readonly<Record<string, () => unknown>> = {
    'GET /health': () => ({ status: 'ok' }),
    'GET /props': () => ({
      default_generation_settings: { n_ctx: options.contextTokens ?? (options.task === 'embed' ? 512 : 8192) },
      total_slots: slots,
      model_path: `/models/${model}.gguf`,
      build_info: 'b1-paced',
      media_marker: marker,
      endpoint_metrics: false,
    }),
    'GET /v1/models': () => ({
      object: 'list',
      data: [
        { id: model, object: 'model', meta: { n_embd: width, n_params: 1, n_vocab: 1, size: 1, n_ctx_train: 512 } },
      ],
    }),
    'GET /slots': () => Array.from({ length: slots }, (_, id) => ({ id, is_processing: id < places.taken })),
  };

  function post(path: string, body: Record<string, unknown>, job: Job, response: ServerResponse): unknown {
    if (path === '/tokenize') return json(response, { tokens: tokens(String(body.content ?? '')) });
    if (path === '/v1/embeddings' && options.task === 'embed') return embed(body, job, response);
    if (path === '/v1/chat/completions' && options.task === 'chat') return chat(body, job, response);
    return json(response, { error: { code: 501, message: 'not supported', type: 'not_supported_error' } }, 501);
  }

  const server = createServer((request, response) => {
    const job: Job = { left: false };
    response.once('close', () => {
      job.left = !response.writableFinished;
    });
    const path = (request.url ?? '').split('?')[0] ?? '';
    if (request.method === 'GET') {
      const route = routes[`GET ${path}`];
      json(response, route ? route() : { error: { code: 404, type: 'not_found_error' } }, route ? 200 : 404);
      return;
    }
    void collect(request).then((text) => {
      if (path === '/v1/chat/completions') bodies.push(text);
      return post(path, JSON.parse(text) as Record<string, unknown>, job, response);
    });
  });
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket.setNoDelay(true));
    socket.once('close', () => sockets.delete(socket));
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    setRate: (rate) => {
      pace.rate = rate;
    },
    counts: () => ({ encodes: { ...encodes }, chats: { ...chats }, bodies: [...bodies] }),
    forget: () => {
      encodes = {};
      chats = { begun: 0, completed: 0, left: 0, most: 0, tokens: 0 };
      bodies = [];
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function json(response: ServerResponse, body: unknown, status = 200): void {
  const text = JSON.stringify(body);
  response
    .writeHead(status, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(text),
      server: 'llama.cpp',
    })
    .end(text);
}

async function collect(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
