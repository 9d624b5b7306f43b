import type { IncomingHttpHeaders } from 'node:http';
import { connect as connectPlain, isIP, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type KnownHead, ResponseReader, type ResponseSink } from './http1-response.ts';

const CONNECT_TIMEOUT_MS = 3000;
/** An engine that says nothing of how long it keeps an idle connection. */
const IDLE_MS = 4000;
/** Taken off an engine's keep-alive hint: llama.cpp closes after 5 s, and a request sent into that moment is lost. */
const KEEP_ALIVE_MARGIN_MS = 1000;
/** A body up to this size goes out with its head in one write. */
const JOINED_BYTES = 64 * 1024;

const READ_BYTES = 32 * 1024;

/** Reads what identifies the process at the other end of a fresh socket; null where nothing can be read. */
export type ReadProcessMark = (socket: Socket) => Promise<string | null>;

export interface SocketWatch {
  readonly readMark: ReadProcessMark;
  /** False: this address may not be talked to (a name that has come to mean another network). */
  admits(remoteAddress: string): boolean;
}

export interface SentRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** Names in lower case; `host` takes the place of the address. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
}

/** Hears: `onStart` when the socket stands, then as an answer comes; `onError` at any time instead of what is still to come. */
export interface ResponseHandler {
  /** An error: nothing is sent, and `onError` gets it. */
  onStart(): Error | null;
  onHead(status: number, headers: IncomingHttpHeaders): void;
  /** The bytes are lent for the call: the next ones come into the same place. May call `pause`. */
  onData(chunk: Buffer): void;
  onEnd(): void;
  onError(error: Error): void;
}

/** An error with one of Node's codes. */
class ConnectionError extends Error {
  readonly code: string;

  constructor(code: string) {
    super('The connection to the engine failed.');
    this.code = code;
  }
}

interface Running {
  readonly request: SentRequest;
  readonly handler: ResponseHandler;
}

/**
 * One kept connection to an engine: HTTP/1.1, one request at a time, redirects never followed. It may be re-made under the same
 * object; `generation` then counts up. A client of our own, because the parser of undici is WebAssembly, which takes 20 MB of an
 * idle agent's memory.
 */
export class Connection implements ResponseSink {
  /** Counts sockets: 0 before the first. */
  generation = 0;
  /** Requests answered on the present socket: above 0, it may have been closed by the engine while it lay idle. */
  served = 0;
  /** A byte of the answer to the last request has come. */
  heard = false;
  readonly #url: URL;
  readonly #watch: SocketWatch;
  readonly #goOn = () => !this.#paused && this.#reader !== null;
  #mark: Promise<string | null> = Promise.resolve(null);
  #socket: Socket | null = null;
  #connected = false;
  #destroyed = false;
  #running: Running | null = null;
  /** Of the answer that is being read; null between two. */
  #reader: ResponseReader | null = null;
  readonly #known: KnownHead = { head: null };
  #paused = false;
  /** Read, and not yet given to a handler that paused. */
  #held: Buffer | null = null;
  #cancelConnect: (() => void) | null = null;
  #idleMs = IDLE_MS;

  constructor(origin: string, watch: SocketWatch) {
    this.#url = new URL(origin);
    this.#watch = watch;
  }

  /** False: the next request opens a socket first. */
  get connected(): boolean {
    return this.#connected;
  }

  get destroyed(): boolean {
    return this.#destroyed;
  }

  /** Mark of the process behind the present socket. */
  get processMark(): Promise<string | null> {
    return this.#mark;
  }

  /** Only when the one before has ended, or was aborted. */
  send(request: SentRequest, handler: ResponseHandler): void {
    this.#running = { request, handler };
    this.heard = false;
    if (this.#destroyed) queueMicrotask(() => this.#broke(new ConnectionError('ECONNABORTED')));
    else if (this.#connected) this.#begin();
    else this.#open();
  }

  /** No more data is read until `resume`. */
  pause(): void {
    this.#paused = true;
    this.#socket?.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    const held = this.#held;
    this.#held = null;
    if (held !== null) this.#take(held);
    if (!this.#paused) this.#socket?.resume();
  }

  /** Closes the socket, which is what stops an engine's work. The handler hears nothing more; the next request opens a new one. */
  abort(): void {
    this.#running = null;
    this.#drop();
  }

  /** As `abort`, for good; a running request hears of it. */
  destroy(): void {
    this.#destroyed = true;
    this.#drop();
    if (this.#running !== null) queueMicrotask(() => this.#broke(new ConnectionError('ECONNABORTED')));
  }

  onHead(status: number, headers: IncomingHttpHeaders): void {
    this.#running?.handler.onHead(status, headers);
  }

  onBody(chunk: Buffer): void {
    this.#running?.handler.onData(chunk);
  }

  onEnd(reusable: boolean, keepMs: number | null): void {
    const handler = this.#running?.handler;
    this.#running = null;
    this.#reader = null;
    const idleMs = keepMs === null ? IDLE_MS : keepMs - KEEP_ALIVE_MARGIN_MS;
    // A request that is still being sent when its answer is complete leaves half a message behind.
    if (!reusable || idleMs <= 0 || (this.#socket?.writableLength ?? 0) > 0) this.#drop();
    else if (idleMs !== this.#idleMs) {
      this.#idleMs = idleMs;
      this.#socket?.setTimeout(idleMs);
    }
    // A reader that paused at the last piece has nothing to resume for: the next answer must not wait for it.
    this.resume();
    handler?.onEnd();
  }

  #open(): void {
    const { protocol, hostname, port } = this.#url;
    const host = hostname.replace(/^\[|\]$/g, '');
    const isTls = protocol === 'https:';
    const target = {
      host,
      port: Number(port === '' ? (isTls ? 443 : 80) : port),
      autoSelectFamily: true,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 60_000,
    };
    const socket = isTls
      ? connectTls({ ...target, ALPNProtocols: ['http/1.1'], ...(isIP(host) === 0 ? { servername: host } : {}) })
      : connectPlain({ ...target, onread: this.#reads() });
    this.#socket = socket;
    const timer = setTimeout(() => socket.destroy(new ConnectionError('ETIMEDOUT')), CONNECT_TIMEOUT_MS).unref();
    this.#cancelConnect = () => clearTimeout(timer);
    let cause: Error | null = null;
    socket.on('error', (error) => {
      cause ??= error;
    });
    socket.once('close', () => {
      if (this.#socket === socket) this.#closed(cause);
    });
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      if (this.#socket === socket) this.#opened(socket);
    });
  }

  /**
   * Bytes come into one buffer and are lent from there: a token is a hundred bytes, and by itself Node takes 64 KiB from the
   * system for every read and leaves them to the garbage collector.
   */
  #reads(): OnReadOpts {
    const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
    return {
      buffer,
      callback: (length) => {
        if (this.#connected) this.#take(buffer.subarray(0, length));
        return true;
      },
    };
  }

  #opened(socket: Socket): void {
    this.#cancelConnect?.();
    this.#cancelConnect = null;
    if (!this.#watch.admits(socket.remoteAddress ?? '')) {
      socket.destroy(new ConnectionError('EHOSTUNREACH'));
      return;
    }
    this.#connected = true;
    this.generation++;
    this.served = 0;
    this.#idleMs = IDLE_MS;
    this.#mark = this.#watch.readMark(socket).catch(() => null);
    // Counts from the last byte in either direction; while an engine computes, its silence has limits of its own.
    socket.setTimeout(IDLE_MS);
    socket.on('timeout', () => {
      if (this.#socket === socket && this.#running === null) this.#drop();
    });
    if ('encrypted' in socket) {
      socket.on('data', (bytes) => {
        if (this.#socket === socket) this.#take(bytes);
      });
    }
    socket.once('end', () => {
      if (this.#socket === socket) this.#ended();
    });
    if (this.#running !== null) this.#begin();
  }

  #begin(): void {
    const running = this.#running;
    const socket = this.#socket;
    if (running === null || socket === null) return;
    const refusal = isSendable(running.request) ? running.handler.onStart() : new ConnectionError('EINVAL');
    if (this.#running !== running) return; // aborted there
    if (refusal !== null) {
      this.#broke(refusal);
      return;
    }
    this.#reader = new ResponseReader(this, this.#known);
    this.#paused = false;
    const { body } = running.request;
    const head = this.#head(running.request);
    if (body === null) socket.write(head, 'latin1');
    else if (body.length <= JOINED_BYTES) {
      const whole = Buffer.allocUnsafe(head.length + body.length);
      whole.write(head, 0, 'latin1');
      whole.set(body, head.length);
      socket.write(whole);
    } else {
      socket.cork();
      socket.write(head, 'latin1');
      socket.write(body);
      socket.uncork();
    }
  }

  #head({ method, path, headers, body }: SentRequest): string {
    let head = `${method} ${path} HTTP/1.1\r\nhost: ${headers.host ?? this.#url.host}\r\nconnection: keep-alive\r\n`;
    for (const name in headers) if (name !== 'host') head += `${name}: ${headers[name]}\r\n`;
    if (body !== null) head += `content-length: ${body.length}\r\n`;
    return `${head}\r\n`;
  }

  #take(fresh: Buffer): void {
    const bytes = this.#held === null ? fresh : Buffer.concat([this.#held, fresh]);
    this.#held = null;
    const socket = this.#socket;
    const reader = this.#reader;
    let taken = -1;
    try {
      // Nobody asked: what comes between two answers belongs to none.
      if (reader !== null) {
        this.heard = true;
        taken = reader.push(bytes, 0, this.#goOn);
      }
    } catch {
      // A handler failed; its own sentence is told by nobody.
    }
    if (this.#socket !== socket) return; // dropped meanwhile
    if (taken === bytes.length) return;
    if (taken >= 0 && reader?.ended !== true) {
      this.#held = Buffer.from(bytes.subarray(taken));
      return;
    }
    // Behind an answer: whoever has begun the next request on this socket is told that it was closed.
    const code = reader?.ended === true ? 'ECONNRESET' : 'EPROTO';
    this.#drop();
    this.#broke(new ConnectionError(code));
  }

  /** The engine has closed its side. */
  #ended(): void {
    const held = this.#held;
    this.#held = null;
    // Nothing of an answer is lost because its reader is slow.
    if (held !== null) this.#reader?.push(held, 0, () => true);
    if (this.#reader?.close() === true) return;
    this.#drop();
    this.#broke(new ConnectionError('ECONNRESET'));
  }

  #closed(cause: Error | null): void {
    this.#forget();
    this.#broke(cause ?? new ConnectionError('ECONNRESET'));
  }

  #broke(error: Error): void {
    const handler = this.#running?.handler;
    this.#running = null;
    this.#reader = null;
    handler?.onError(error);
  }

  #drop(): void {
    const socket = this.#socket;
    this.#forget();
    socket?.destroy();
  }

  #forget(): void {
    this.#cancelConnect?.();
    this.#cancelConnect = null;
    this.#socket = null;
    this.#connected = false;
    this.#reader?.cancel();
    this.#reader = null;
    this.#held = null;
    this.#paused = false;
  }
}

/** What may stand in a request line and in a header; a line end would begin another one. */
const PATH = /^\/[\x21-\x7e]*$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

function isSendable({ path, headers }: SentRequest): boolean {
  return PATH.test(path) && Object.values(headers).every((value) => VALUE.test(value));
}
