import type { EngineDefinition, Identity } from './adapter.ts';
import type { EngineHttp } from './engine-http.ts';

const PROBE_TIMEOUT_MS = 1500;
const MAX_BYTES = 64 * 1024;

export interface EvidenceAnswer {
  readonly status: number;
  /** The `Server` header, as sent. */
  readonly server: string;
  readonly text: string;
  /** Parsed body; undefined when it is no JSON. */
  readonly json: unknown;
}

/**
 * What an address answers to GETs. Each path is asked at most once (once more with other headers), one after the other on a
 * kept connection.
 */
export class Evidence {
  readonly #http: EngineHttp;
  readonly #answers = new Map<string, Promise<EvidenceAnswer | null>>();

  constructor(http: EngineHttp) {
    this.#http = http;
  }

  /** Null when nothing usable came: refused, too slow, too long. */
  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<EvidenceAnswer | null> {
    const key = `${path} ${JSON.stringify(headers)}`;
    const known = this.#answers.get(key);
    if (known !== undefined) return known;
    const asked = this.#ask(path, headers);
    this.#answers.set(key, asked);
    return asked;
  }

  async #ask(path: string, headers: Readonly<Record<string, string>>): Promise<EvidenceAnswer | null> {
    try {
      const answer = await this.#http.probe(path, { timeoutMs: PROBE_TIMEOUT_MS, maxBytes: MAX_BYTES, headers });
      const { status, body } = answer;
      const text = body.toString('utf8');
      const { server } = answer.headers;
      return { status, server: typeof server === 'string' ? server : '', text, json: parse(text) };
    } catch {
      return null;
    }
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface Identified {
  readonly definition: EngineDefinition;
  readonly identity: Identity;
}

/** Asks each definition in the order given. Null: something may answer there, but no engine that we know. */
export async function identify(http: EngineHttp, definitions: readonly EngineDefinition[]): Promise<Identified | null> {
  const evidence = new Evidence(http);
  if ((await evidence.get('/')) === null && (await evidence.get('/health')) === null) return null;
  for (const definition of definitions) {
    const identity = await definition.identify(evidence);
    if (identity !== null) return { definition, identity };
  }
  return null;
}
