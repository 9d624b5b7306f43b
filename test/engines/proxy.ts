import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { ERROR_BODY, type Fault, OVER_LONG_BODY, spoilVectors } from './faults.ts';

export type { Fault } from './faults.ts';

export interface RecordedRequest {
  readonly method: string;
  /** Path with query. */
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Number of the client connection, from 1. */
  readonly connection: number;
  /** `performance.now()` at arrival. */
  readonly atMs: number;
  /** `performance.now()` when the client left before its answer was complete; null while it has not. */
  abortedAtMs: number | null;
  /** Bytes of the engine's own answer that were passed on, in order; empty for answers that a fault made up. */
  readonly answer: Buffer[];
}

export interface InjectOptions {
  /** Only requests whose path begins so; default: every POST. */
  readonly path?: string;
  /** How many requests it hits; default: all until cleared. */
  readonly times?: number;
}

export interface RecordingProxy {
  readonly url: string;
  readonly port: number;
  /** Everything that arrived, oldest first. */
  readonly requests: readonly RecordedRequest[];
  /** Every text of every embedding, rerank and tokenize request: what the engine was shown. */
  texts(): string[];
  /** Connections opened by clients so far. */
  connections(): number;
  forget(): void;
  /** The returned function takes the fault away. The newest matching fault applies. */
  inject(fault: Fault, options?: InjectOptions): () => void;
  /** From now on another engine is behind it. */
  retarget(url: string): void;
  stop(): Promise<void>;
}

interface Injection {
  readonly fault: Fault;
  readonly path: string | null;
  left: number;
}

/** An HTTP proxy on a free loopback port in front of `target`. */
export async function startProxy(target: string): Promise<RecordingProxy> {
  let engine = target;
  const requests: RecordedRequest[] = [];
  const injections: Injection[] = [];
  const sockets = new Map<Socket, number>();
  let opened = 0;

  const server: Server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('error', () => outgoing.destroy());
    incoming.on('end', () => {
      const body = Buffer.concat(chunks);
      const record: RecordedRequest = {
        method: incoming.method ?? '',
        path: incoming.url ?? '',
        body: body.toString(),
        headers: incoming.headers,
        connection: sockets.get(incoming.socket) ?? 0,
        atMs: performance.now(),
        abortedAtMs: null,
        answer: [],
      };
      requests.push(record);
      outgoing.once('close', () => {
        if (!outgoing.writableFinished) record.abortedAtMs = performance.now();
      });
      serve(engine, incoming, body, outgoing, choose(injections, record), record.answer);
    });
  });
  server.on('connection', (socket) => {
    sockets.set(socket, ++opened);
    socket.once('close', () => sockets.delete(socket));
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    texts: () => requests.flatMap(textsOf),
    connections: () => opened,
    forget: () => void requests.splice(0),
    inject(fault, options = {}) {
      const injection = { fault, path: options.path ?? null, left: options.times ?? Number.POSITIVE_INFINITY };
      injections.unshift(injection);
      return () => {
        injection.left = 0;
      };
    },
    retarget: (url) => {
      engine = url;
    },
    async stop() {
      for (const socket of sockets.keys()) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function choose(injections: readonly Injection[], record: RecordedRequest): Fault | null {
  const hit = injections.find(({ fault, path, left }) => {
    if (left <= 0) return false;
    if (path !== null) return record.path.startsWith(path);
    // What has no vectors must not use the fault up.
    return record.method === 'POST' && (fault.kind !== 'vectors' || record.path.includes('embed'));
  });
  if (hit === undefined) return null;
  hit.left--;
  return hit.fault;
}

function textsOf(record: RecordedRequest): string[] {
  if (record.body === '') return [];
  const body = JSON.parse(record.body) as Record<string, unknown>;
  return [body.input, body.content, body.query, body.documents].flat().filter((x) => typeof x === 'string');
}

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8', server: 'llama.cpp' };

function serve(
  engine: string,
  incoming: IncomingMessage,
  body: Buffer,
  outgoing: ServerResponse,
  fault: Fault | null,
  answer: Buffer[],
) {
  switch (fault?.kind) {
    case 'answer':
      outgoing.writeHead(fault.status, { ...JSON_TYPE, ...fault.headers }).end(fault.body);
      return;
    case 'over-long':
      outgoing.writeHead(500, JSON_TYPE).end(OVER_LONG_BODY);
      return;
    case 'error-in-200':
      outgoing.writeHead(200, JSON_TYPE).end(ERROR_BODY);
      return;
    case 'hang':
      return;
    case 'hang-after-head':
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      return;
    case 'reset':
      outgoing.socket?.resetAndDestroy();
      return;
    case 'comments': {
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      const timer = setInterval(() => outgoing.write(': still here\n\n'), fault.everyMs);
      outgoing.once('close', () => clearInterval(timer));
      return;
    }
    default:
      forward(engine, incoming, body, outgoing, fault, answer);
  }
}

function forward(
  engine: string,
  incoming: IncomingMessage,
  body: Buffer,
  outgoing: ServerResponse,
  fault: Fault | null,
  answer: Buffer[],
) {
  const { host, port } = new URL(engine);
  const headers = { ...incoming.headers, host, 'content-length': String(body.length) };
  const upstream = request({
    host: '127.0.0.1',
    port,
    method: incoming.method,
    path: incoming.url,
    headers: incoming.method === 'GET' ? { ...incoming.headers, host } : headers,
  });
  upstream.on('error', () => outgoing.destroy());
  outgoing.once('close', () => upstream.destroy());
  upstream.on('response', (response) => {
    response.on('error', () => outgoing.destroy());
    void relay(response, outgoing, fault, answer);
  });
  upstream.end(incoming.method === 'GET' ? undefined : body);
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function relay(
  response: IncomingMessage,
  outgoing: ServerResponse,
  fault: Fault | null,
  answer: Buffer[],
): Promise<void> {
  const head = { ...response.headers };
  if (fault?.kind === 'slow') await pause(fault.headMs);
  if (fault?.kind === 'vectors') {
    const spoilt = spoilVectors((await collect(response)).toString(), fault.spoil);
    outgoing.writeHead(response.statusCode ?? 502, JSON_TYPE).end(spoilt);
    return;
  }
  if (fault !== null) delete head['content-length'];
  outgoing.writeHead(response.statusCode ?? 502, head);
  let bytes = 0;
  let events = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      if (fault?.kind === 'slow') await pause(fault.chunkMs);
      if (fault?.kind === 'die-after' && bytes + chunk.length >= fault.bytes) {
        outgoing.write(chunk.subarray(0, fault.bytes - bytes), () => outgoing.socket?.resetAndDestroy());
        return;
      }
      bytes += chunk.length;
      answer.push(chunk);
      if (fault?.kind === 'error-after' || fault?.kind === 'end-after') {
        for (const event of chunk.toString().split(/(?<=\n\n)/)) {
          if (events++ < fault.events) outgoing.write(event);
        }
        if (events < fault.events) continue;
        if (fault.kind === 'error-after')
          outgoing.write(`data: ${ERROR_BODY}\n\n${fault.done ? 'data: [DONE]\n\n' : ''}`);
        outgoing.end();
        response.destroy();
        return;
      }
      if (!outgoing.write(chunk))
        await new Promise((resolve) => outgoing.once('drain', resolve).once('close', resolve));
    }
    outgoing.end();
  } catch {
    outgoing.destroy(); // the engine died: so does the answer
  }
}

async function collect(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}
