import type { Provider } from '../domain/provider.ts';
import type { Fingerprint } from '../domain/verdict.ts';

/** An encoder as the fleet's catalogue reports it: the provider and what founding needs of its model. */
export interface Encoder {
  readonly provider: Provider;
  readonly width: number | null;
  /** Longest single input in tokens, special tokens included. */
  readonly maxInputTokens: number | null;
  readonly tokenCounting: 'exact' | 'none';
  /** The built-in encoder. */
  readonly trial: boolean;
}

export interface ProbeOptions {
  readonly normalise: boolean;
  /** Expected full width; null while the gate measures, so that another width is seen and named. */
  readonly width: number | null;
  /** Cut to this many leading values, then normalise; null: no cut. */
  readonly cut: number | null;
  /** Aborts the call at the agent. The promise then settles soon, in whatever way. */
  readonly signal: AbortSignal;
}

/** Why a probe was not answered; a `CallFailure` of the wire fits. */
export interface ProbeFailure {
  readonly blame: 'caller' | 'busy' | 'engine' | 'transport' | 'fingerprint';
  readonly code: string;
  readonly retryAfterMs: number | null;
}

export type ProbeAnswer =
  | {
      readonly failure: null;
      /** count x width, row-major. */
      readonly vectors: Float32Array;
      readonly count: number;
      readonly width: number;
      /** Read on the engine connection that served this call. */
      readonly fingerprint: Fingerprint;
    }
  | { readonly failure: ProbeFailure };

/**
 * How the gate reaches encoders: the very path that production uses (agent, adapter, engine), never a short cut. Never
 * rejects for what an engine does; a rejection counts as a lost connection.
 */
export interface ProbePort {
  embed(provider: Provider, texts: readonly string[], options: ProbeOptions): Promise<ProbeAnswer>;
  /** Tokens of each text, special tokens included; null when the engine cannot count or did not answer. */
  tokenize(provider: Provider, texts: readonly string[], signal: AbortSignal): Promise<readonly number[] | null>;
}
