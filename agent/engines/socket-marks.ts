import type { Connection } from './connections.ts';
import type { EngineHttp, FetchOptions } from './engine-http.ts';

/**
 * Reads over the given connection what the engine itself tells of its process; null: it tells nothing. Sends a request in any
 * case: only then is there a socket, and a process behind it.
 */
export type ReadSign = (connection: Connection, signal?: AbortSignal) => Promise<string | null>;

export interface MarkedSocket {
  /** Of the connection: the mark holds for this socket and no other. */
  readonly generation: number;
  /** Pid and start of the listener; null where they cannot be read. */
  readonly process: string | null;
  /** `process` and the engine's own sign, as far as either is to be had; null: neither. */
  readonly mark: string | null;
}

const TIMEOUT_MS = 5000;
const MAX_BYTES = 4 * 1024 * 1024;

/** The sign of an engine that tells none of itself: any answer to a cheap request will do. */
export async function noSign(
  http: EngineHttp,
  connection: Connection,
  path: string,
  options: Pick<FetchOptions, 'headers' | 'signal'>,
): Promise<null> {
  await http.fetchOn(connection, path, { ...options, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES });
  return null;
}

/** Which process is behind which socket of one engine. */
export class SocketMarks {
  readonly #http: EngineHttp;
  readonly #sign: ReadSign;
  readonly #known = new WeakMap<Connection, MarkedSocket>();

  constructor(http: EngineHttp, sign: ReadSign) {
    this.#http = http;
    this.#sign = sign;
  }

  /** Read once per socket. */
  async of(connection: Connection, signal?: AbortSignal): Promise<MarkedSocket> {
    const known = this.#known.get(connection);
    const holds = known !== undefined && connection.connected && known.generation === connection.generation;
    return holds ? known : this.read(connection, signal);
  }

  /** Read now. */
  async read(connection: Connection, signal?: AbortSignal): Promise<MarkedSocket> {
    const sign = await this.#sign(connection, signal);
    const { generation } = connection;
    const process = await connection.processMark;
    const parts = [process, sign].filter((part) => part !== null);
    const read = { generation, process, mark: parts.length > 0 ? parts.join(' ') : null };
    this.#known.set(connection, read);
    return read;
  }

  /** On any kept connection for calls. */
  async now(): Promise<MarkedSocket> {
    const connection = this.#http.take();
    try {
      return await this.read(connection);
    } finally {
      this.#http.giveBack(connection);
    }
  }
}
