import { ConnectionChain } from './connection-chain.ts';
import type { Connection } from './connections.ts';
import type { EngineHttp, FetchOptions } from './engine-http.ts';
import { EngineFailure } from './failure.ts';

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
  /** Mark of the chain it belongs to; null: the engine tells of its own process, or nobody asked. */
  readonly chain: string | null;
  /** `process`, and the engine's own sign or else the chain. Null: none of them. */
  readonly mark: string | null;
}

/** Longer than a probe's: an engine that is deep in work is late, and that is no reason to take it for another. */
const TIMEOUT_MS = 30_000;
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
  readonly #chain: ConnectionChain;
  readonly #known = new WeakMap<Connection, MarkedSocket>();

  /** @param token of this agent's life, at random */
  constructor(http: EngineHttp, sign: ReadSign, token: string) {
    this.#http = http;
    this.#sign = sign;
    this.#chain = new ConnectionChain(http, async (connection, signal) => void (await sign(connection, signal)), token);
  }

  /** Read once per socket, and anew when its chain has ended. */
  async of(connection: Connection, signal?: AbortSignal): Promise<MarkedSocket> {
    const known = this.#known.get(connection);
    const holds =
      known !== undefined &&
      connection.connected &&
      known.generation === connection.generation &&
      (known.chain === null || known.chain === this.#chain.mark);
    return holds ? known : this.read(connection, signal);
  }

  /** Read now. */
  async read(connection: Connection, signal?: AbortSignal): Promise<MarkedSocket> {
    const sign = await this.#sign(connection, signal);
    const chain = sign === null ? await this.#chain.join(connection, signal) : null;
    const read = await this.#marked(connection, sign, chain);
    this.#known.set(connection, read);
    return read;
  }

  /**
   * On any kept connection for calls. `chained`: by its connections where the engine tells nothing of its process; one that
   * keeps none is left without, and each of its embedding calls will fail by that.
   */
  async now(chained: boolean): Promise<MarkedSocket> {
    const connection = this.#http.take();
    try {
      const sign = await this.#sign(connection);
      const chain = sign === null && chained ? await this.#chain.join(connection).catch(nullIfLoose) : null;
      return await this.#marked(connection, sign, chain);
    } finally {
      this.#http.giveBack(connection);
    }
  }

  /** False: the chain of that mark has ended. */
  isCurrent(chain: string): boolean {
    return chain === this.#chain.mark;
  }

  /** Keeps the chain, if there is one: some seconds without an answer end a connection. */
  beat(): void {
    this.#chain.beat();
  }

  endChain(): void {
    this.#chain.end();
  }

  async #marked(connection: Connection, sign: string | null, chain: string | null): Promise<MarkedSocket> {
    const { generation } = connection;
    const process = await connection.processMark;
    const parts = [process, sign, chain].filter((part) => part !== null);
    return { generation, process, chain, mark: parts.length > 0 ? parts.join(' ') : null };
  }
}

function nullIfLoose(error: unknown): null {
  if (error instanceof EngineFailure && error.failure.code === 'fingerprint_changed') return null;
  throw error;
}
