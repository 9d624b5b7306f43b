import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { encode, tokens } from '../gate/encoders.ts';

/**
 * The engine of every row, in a process of its own: it speaks like llama.cpp's server, answers at once from bytes made before,
 * and streams by a schedule that each chunk names, so that whoever reads it knows how late it is. Run by `startStub`.
 */
const SLOTS = 1024;
const WIDTH = 2560;
const ANSWER_BYTES = 1024;

/** `CLOCK_MONOTONIC` in ms: the same for every process of this machine. */
const monotonicMs = () => Number(process.hrtime.bigint()) / 1e6;

const marker = `<__stub_${process.pid}_${Date.now()}__>`;
const model = process.argv[2] === 'embed' ? 'stub-encoder' : 'stub-chat';
const embeds = model === 'stub-encoder';

function chatAnswer(): Buffer {
  const whole = (content: string) =>
    JSON.stringify({
      choices: [{ finish_reason: 'stop', index: 0, message: { role: 'assistant', content } }],
      created: 1,
      id: 'chatcmpl-1',
      model,
      object: 'chat.completion',
      usage: { completion_tokens: 150, prompt_tokens: 7, total_tokens: 157 },
    });
  return Buffer.from(whole('x'.repeat(ANSWER_BYTES - whole('').length)));
}
const CHAT = chatAnswer();
/** The same answer for who orders it as a stream, as the agent does so that leaving stops the engine: all at once, in one write. */
const CHAT_STREAM = Buffer.from(
  [
    { finish_reason: null, index: 0, delta: { role: 'assistant', content: 'x'.repeat(600) } },
    { finish_reason: 'stop', index: 0, delta: {} },
  ]
    .map((choice, at) => {
      const timings = at === 1 ? { timings: { prompt_n: 7, predicted_n: 150 } } : {};
      const event = {
        choices: [choice],
        created: 1,
        id: 'chatcmpl-1',
        model,
        object: 'chat.completion.chunk',
        ...timings,
      };
      return `data: ${JSON.stringify(event)}\n\n`;
    })
    .concat('data: [DONE]\n\n')
    .join(''),
);
const JSON_TYPE = 'application/json; charset=utf-8';

function send(response: ServerResponse, bytes: Buffer, status = 200): void {
  response
    .writeHead(status, { 'content-type': JSON_TYPE, 'content-length': bytes.length, server: 'llama.cpp' })
    .end(bytes);
}
const json = (response: ServerResponse, body: unknown, status = 200) =>
  send(response, Buffer.from(JSON.stringify(body)), status);

/** `max_tokens` chunks; `user: "every=MS"` spaces them, else they come at once. */
function stream(body: { max_tokens?: number; user?: string }, response: ServerResponse): void {
  const count = body.max_tokens ?? 50;
  const everyMs = Number(/every=(\d+)/.exec(body.user ?? '')?.[1] ?? 0);
  response.writeHead(200, { 'content-type': 'text/event-stream', server: 'llama.cpp' });
  const startMs = monotonicMs();
  const chunk = (delta: object, reason: string | null) =>
    response.write(
      `data: ${JSON.stringify({ choices: [{ finish_reason: reason, index: 0, delta }], created: 1, id: 'chatcmpl-1', model, object: 'chat.completion.chunk' })}\n\n`,
    );
  const end = () => {
    chunk({}, 'stop');
    response.end('data: [DONE]\n\n');
  };
  let at = 0;
  let gone = false;
  response.once('close', () => {
    gone = true;
  });
  const next = () => {
    if (gone) return;
    const dueMs = startMs + at * everyMs;
    chunk({ content: `${dueMs.toFixed(2)} ${monotonicMs().toFixed(2)} ` }, null);
    at += 1;
    if (at === count) end();
    else if (everyMs === 0) next();
    else setTimeout(next, Math.max(0, startMs + at * everyMs - monotonicMs()));
  };
  next();
}

/** Answers by request body: the bench sends the same batch again and again, and a real encoder is not what is measured. */
const answers = new Map<string, Buffer>();
function embed(text: string, response: ServerResponse): void {
  let bytes = answers.get(text);
  if (!bytes) {
    const body = JSON.parse(text) as { input: unknown; encoding_format?: string };
    const inputs = [body.input].flat().map(String);
    const long = inputs.map((input) => tokens(input).length).find((count) => count > 512);
    if (long !== undefined) {
      const message = `input (${long} tokens) is too large to process. increase the physical batch size (current batch size: 512)`;
      json(response, { error: { code: 500, message, type: 'server_error' } }, 500);
      return;
    }
    const data = inputs.map((input, index) => {
      const vector = encode([input], { width: WIDTH });
      const base64 = Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64');
      return { object: 'embedding', index, embedding: body.encoding_format === 'base64' ? base64 : Array.from(vector) };
    });
    const prompt_tokens = inputs.reduce((sum, input) => sum + tokens(input).length, 0);
    bytes = Buffer.from(
      JSON.stringify({ object: 'list', model, usage: { prompt_tokens, total_tokens: prompt_tokens }, data }),
    );
    if (answers.size > 500) answers.clear();
    answers.set(text, bytes);
  }
  send(response, bytes);
}

function facts(path: string): unknown {
  switch (path) {
    case '/health':
      return { status: 'ok' };
    case '/props':
      return {
        default_generation_settings: { n_ctx: embeds ? 512 : 32_768 },
        total_slots: embeds ? 8 : SLOTS,
        model_path: `/models/${model}.gguf`,
        build_info: 'b1-stub',
        media_marker: marker,
        endpoint_metrics: false,
      };
    case '/v1/models':
      return { object: 'list', data: [{ id: model, object: 'model', meta: { n_embd: WIDTH, size: 1 } }] };
    case '/slots':
      return [{ id: 0, is_processing: false }];
    default:
      return null;
  }
}

function get(path: string, response: ServerResponse): void {
  const found = facts(path);
  if (found === null) json(response, { error: { code: 404, type: 'not_found_error' } }, 404);
  else json(response, found);
}

function post(path: string, text: string, response: ServerResponse): void {
  if (path === '/v1/chat/completions' && !embeds) {
    if (!text.includes('"stream":true')) send(response, CHAT);
    else if (text.includes('"max_tokens"')) stream(JSON.parse(text) as object, response);
    else response.writeHead(200, { 'content-type': 'text/event-stream', server: 'llama.cpp' }).end(CHAT_STREAM);
  } else if (path === '/v1/embeddings' && embeds) embed(text, response);
  else if (path === '/tokenize')
    json(response, { tokens: tokens(String((JSON.parse(text) as { content: unknown }).content)) });
  else json(response, { error: { code: 501, message: 'not supported', type: 'not_supported_error' } }, 501);
}

const server = createServer((request: IncomingMessage, response) => {
  const path = request.url ?? '';
  if (request.method === 'GET') {
    get(path, response);
    return;
  }
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => post(path, Buffer.concat(chunks).toString(), response));
});
server.on('connection', (socket) => socket.setNoDelay(true));
server.keepAliveTimeout = 120_000;
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('disconnect', () => process.exit(0));
