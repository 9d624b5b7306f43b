/** One place where a model is served, with the quirks that matter to a caller. */
export interface StandInUpstream {
  /** As `provider` and `provider_name` say it. */
  readonly name: string;
  /** Endpoint tag: what a pin names. */
  readonly tag: string;
  readonly quantization: string | null;
  /** Ends its work when the connection of a stream closes. */
  readonly stopsOnAbort: boolean;
  /**
   * Embeddings: cosine of each vector to the reference numerics. 1: the same. Below: noise at a right angle to the vector,
   * drawn from the stand-in's seed, so that no test can know it.
   */
  readonly cosine: number;
  /** Embeddings: an input over the window is refused, or silently cut. */
  readonly overlong: 'reject' | 'truncate';
  /** USD per token of prompt and answer; absent: the model's. */
  readonly price?: readonly [number, number];
}

export interface StandInModel {
  readonly id: string;
  readonly kind: 'chat' | 'embeddings' | 'rerank';
  readonly contextTokens: number;
  readonly width: number;
  readonly promptUsd: number;
  readonly completionUsd: number;
  readonly upstreams: readonly StandInUpstream[];
}

export function upstream(name: string, changes: Partial<StandInUpstream> = {}): StandInUpstream {
  return {
    name,
    tag: name.toLowerCase().replaceAll(' ', '-'),
    quantization: 'bf16',
    stopsOnAbort: true,
    cosine: 1,
    overlong: 'reject',
    ...changes,
  };
}

/** What the stand-in offers unless a test says otherwise. `qwen/qwen3-reranker-8b` is missing on purpose. */
export const DEFAULT_MODELS: readonly StandInModel[] = [
  {
    id: 'poolside/laguna-s-2.1',
    kind: 'chat',
    contextTokens: 131_072,
    width: 0,
    promptUsd: 2e-7,
    completionUsd: 8e-7,
    upstreams: [upstream('Poolside'), upstream('DeepInfra', { quantization: 'fp8' })],
  },
  {
    id: 'deepseek/deepseek-v4-flash',
    kind: 'chat',
    contextTokens: 65_536,
    width: 0,
    promptUsd: 1e-7,
    completionUsd: 4e-7,
    upstreams: [upstream('Groq', { stopsOnAbort: false })],
  },
  {
    id: 'meta-llama/llama-4-scout:free',
    kind: 'chat',
    contextTokens: 32_768,
    width: 0,
    promptUsd: 0,
    completionUsd: 0,
    upstreams: [upstream('Chutes')],
  },
  {
    id: 'qwen/qwen3-embedding-8b',
    kind: 'embeddings',
    contextTokens: 32_000,
    width: 256,
    promptUsd: 1e-8,
    completionUsd: 0,
    upstreams: [
      upstream('DeepInfra', { tag: 'deepinfra/turbo' }),
      upstream('Nebius', { quantization: 'fp8', cosine: 0.976 }),
    ],
  },
  {
    id: 'baai/bge-m3',
    kind: 'embeddings',
    contextTokens: 8192,
    width: 256,
    promptUsd: 1e-8,
    completionUsd: 0,
    upstreams: [upstream('Novita')],
  },
  {
    id: 'cohere/rerank-4-fast',
    kind: 'rerank',
    contextTokens: 32_000,
    width: 0,
    promptUsd: 0,
    completionUsd: 0,
    upstreams: [upstream('Cohere')],
  },
];
