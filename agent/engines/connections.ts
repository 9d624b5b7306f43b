import type { Socket } from 'node:net';
import type { Client } from 'undici';
import buildConnector from 'undici/lib/core/connect.js';
import UndiciClient from 'undici/lib/dispatcher/client.js';

const CONNECT_TIMEOUT_MS = 3000;
/** As many as calls come back at once in a burst: to open a socket anew is dearer than to keep it until the engine closes it. */
const IDLE_KEPT = 256;
/** Taken off an engine's keep-alive hint: llama.cpp closes after 5 s, and a request sent into that moment is lost. */
const KEEP_ALIVE_MARGIN_MS = 1000;

/** Reads what identifies the process at the other end of a fresh socket; null where nothing can be read. */
export type ReadProcessMark = (socket: Socket) => Promise<string | null>;

export interface SocketWatch {
  readonly readMark: ReadProcessMark;
  /** False: this address may not be talked to (a name that has come to mean another network). */
  admits(remoteAddress: string): boolean;
}

/** Fails the request like an address that does not answer. */
class AddressRefused extends Error {
  readonly code = 'EHOSTUNREACH';
}

/** One kept connection to an engine. It may be re-made under the same object; `generation` then counts up. */
export class Connection {
  readonly client: Client;
  /** Counts sockets: 0 before the first. */
  generation = 0;
  /** Requests answered on the present socket: above 0, it may have been closed by the engine while it lay idle. */
  served = 0;
  readonly #read: ReadProcessMark;
  #mark: Promise<string | null> = Promise.resolve(null);
  #connected = false;

  constructor(origin: string, watch: SocketWatch) {
    this.#read = watch.readMark;
    const connect = buildConnector({ timeout: CONNECT_TIMEOUT_MS, autoSelectFamily: true });
    this.client = new UndiciClient(origin, {
      pipelining: 1,
      headersTimeout: 0, // own timers: these cannot tell a keep-alive comment from progress
      bodyTimeout: 0,
      keepAliveTimeoutThreshold: KEEP_ALIVE_MARGIN_MS,
      allowH2: false,
      connect: (options, callback) => {
        connect(options, (error, socket) => {
          if (error !== null) {
            callback(error, null);
            return;
          }
          if (!watch.admits(socket.remoteAddress ?? '')) {
            socket.destroy();
            callback(new AddressRefused(), null);
            return;
          }
          this.#opened(socket);
          callback(null, socket);
        });
      },
    });
    this.client.on('disconnect', () => {
      this.#connected = false;
    });
  }

  /** False: the next request opens a socket first. */
  get connected(): boolean {
    return this.#connected;
  }

  /** Mark of the process behind the present socket. */
  get processMark(): Promise<string | null> {
    return this.#mark;
  }

  #opened(socket: Socket): void {
    this.#connected = true;
    this.generation++;
    this.served = 0;
    socket.setNoDelay(true);
    this.#mark = this.#read(socket).catch(() => null);
  }

  destroy(): void {
    void this.client.destroy().catch(() => undefined);
  }
}

/** Connections of one engine: as many as requests run at once; idle ones are used again, the latest first. */
export class Connections {
  readonly #origin: string;
  readonly #watch: SocketWatch;
  readonly #idle: Connection[] = [];
  readonly #all = new Set<Connection>();
  /** Idle ones beyond this are closed. */
  readonly #keep: number;
  #closed = false;

  constructor(origin: string, watch: SocketWatch, keep = IDLE_KEPT) {
    this.#origin = origin;
    this.#watch = watch;
    this.#keep = keep;
  }

  take(): Connection {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    const connection = new Connection(this.#origin, this.#watch);
    this.#all.add(connection);
    return connection;
  }

  /** Back after its exchange has settled. */
  give(connection: Connection): void {
    const usable = !this.#closed && !connection.client.destroyed && this.#idle.length < this.#keep;
    if (usable) this.#idle.push(connection);
    else this.drop(connection);
  }

  drop(connection: Connection): void {
    this.#all.delete(connection);
    connection.destroy();
  }

  get size(): number {
    return this.#all.size;
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#all) connection.destroy();
    this.#all.clear();
    this.#idle.length = 0;
  }
}
