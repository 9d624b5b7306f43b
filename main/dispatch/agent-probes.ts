import { z } from 'zod';
import type { CallOpener } from '../../agent/wire/stream.ts';
import type { Provider } from '../domain/provider.ts';
import type { ProbeAnswer, ProbeOptions, ProbePort } from '../gate/probe-port.ts';
import { callWhole, readVectors } from './agent-calls.ts';

const encoder = new TextEncoder();
const MAX_WIDTH = 65_536;
const PROBE_TIMEOUT_MS = 120_000;
const TOKENIZE_TIMEOUT_MS = 30_000;
const MAX_COUNTS_BYTES = 1 << 20;

const TokenCounts = z.object({ tokens: z.array(z.number().int().min(0)) });

/** Probes and token counts over the same sessions, agents and adapters that production work takes. */
export class AgentProbes implements ProbePort {
  readonly #opener: (provider: Provider) => CallOpener | null;

  /** @param opener to the provider's machine, for calls of its role */
  constructor(opener: (provider: Provider) => CallOpener | null) {
    this.#opener = opener;
  }

  async embed(provider: Provider, texts: readonly string[], options: ProbeOptions): Promise<ProbeAnswer> {
    const answer = await callWhole(
      this.#opener(provider),
      {
        op: 'embed',
        engine: provider.engine,
        model: provider.model,
        count: texts.length,
        width: options.width,
        cut: options.cut,
        normalise: options.normalise,
        processMark: null,
        timeoutMs: PROBE_TIMEOUT_MS,
      },
      encoder.encode(JSON.stringify(texts)),
      texts.length * MAX_WIDTH * 4,
      options.signal,
    );
    if (answer.failure !== null) {
      const { blame, code, retryAfterMs } = answer.failure;
      return { failure: { blame, code, retryAfterMs } };
    }
    const rows = readVectors(answer.head, answer.body, texts.length);
    if (!rows) return { failure: { blame: 'engine', code: 'engine_invalid_response', retryAfterMs: null } };
    return { failure: null, ...rows, count: texts.length, fingerprint: answer.trailers.fingerprint };
  }

  async tokenize(provider: Provider, texts: readonly string[], signal: AbortSignal): Promise<readonly number[] | null> {
    const answer = await callWhole(
      this.#opener(provider),
      {
        op: 'tokenize',
        engine: provider.engine,
        model: provider.model,
        count: texts.length,
        timeoutMs: TOKENIZE_TIMEOUT_MS,
      },
      encoder.encode(JSON.stringify(texts)),
      MAX_COUNTS_BYTES,
      signal,
    );
    if (answer.failure !== null) return null;
    let parsed: unknown;
    try {
      parsed = JSON.parse(Buffer.from(answer.body).toString('utf8'));
    } catch {
      return null;
    }
    const counts = TokenCounts.safeParse(parsed);
    return counts.success && counts.data.tokens.length === texts.length ? counts.data.tokens : null;
  }
}
