import type { Connection } from './connections.ts';
import type { EngineHttp } from './engine-http.ts';
import { EngineFailure } from './failure.ts';
import { jsonOf } from './json-answer.ts';
import { Props } from './llamacpp-facts.ts';

const TIMEOUT_MS = 5000;
const MAX_BYTES = 4 * 1024 * 1024;

export interface MarkedSocket {
  /** Of the connection: the mark holds for this socket and no other. */
  readonly generation: number;
  readonly mark: string | null;
}

/**
 * Process marks of a llama.cpp server: pid and start of the listener, and the random `media_marker` that each process makes,
 * which is also seen through a proxy.
 */
export class LlamacppMarks {
  readonly #http: EngineHttp;
  readonly #known = new WeakMap<Connection, MarkedSocket>();

  constructor(http: EngineHttp) {
    this.#http = http;
  }

  /** Read once per socket. */
  async of(connection: Connection, signal?: AbortSignal): Promise<MarkedSocket> {
    const known = this.#known.get(connection);
    const holds = known !== undefined && connection.connected && known.generation === connection.generation;
    return holds ? known : this.read(connection, signal);
  }

  /** Read now. */
  async read(connection: Connection, signal?: AbortSignal): Promise<MarkedSocket> {
    const answer = await this.#http.fetchOn(connection, '/props', {
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_BYTES,
      ...(signal === undefined ? {} : { signal }),
    });
    if (answer.status === 503) {
      throw new EngineFailure('engine_busy', { engineStatus: 503 }, 'The model is being loaded.');
    }
    const props = Props.safeParse(jsonOf(answer));
    if (!props.success) throw new EngineFailure('engine_invalid_response');
    const { generation } = connection;
    const process = await connection.processMark;
    const parts = [process, props.data.media_marker].filter((part) => part !== null && part !== undefined);
    const read = { generation, mark: parts.length > 0 ? parts.join(' ') : null };
    this.#known.set(connection, read);
    return read;
  }
}
