/** Between the agent and its encoder child, over the IPC channel with structured cloning (typed arrays pass as they are). */
export interface WorkRequest {
  readonly id: number;
  readonly op: 'embed' | 'count' | 'cancel';
  readonly texts: readonly string[];
}

export type WorkAnswer =
  | { readonly id: number; readonly kind: 'vectors'; readonly values: Float32Array; readonly tokens: number }
  | { readonly id: number; readonly kind: 'counts'; readonly tokens: readonly number[] }
  /** Inputs that cannot be encoded, and why. */
  | { readonly id: number; readonly kind: 'refused'; readonly failing: readonly { index: number; tokens: number }[] }
  | { readonly id: number; readonly kind: 'failed' };

export const WIDTH = 512;
/** What the model was trained for; longer texts would be encoded, badly. */
export const MAX_TOKENS = 128;
export const MODEL = 'universal-sentence-encoder-lite';
