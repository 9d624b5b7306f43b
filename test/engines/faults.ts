/** What can go wrong with an engine, as seen on the wire. Injected by the recording proxy. */
export type Fault =
  /** Any status and body; the engine is not asked. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly body: string;
      readonly headers?: Record<string, string>;
    }
  /** llama.cpp's own 500 for an input that does not fit a physical batch. */
  | { readonly kind: 'over-long' }
  /** 200 with an error object and no data. */
  | { readonly kind: 'error-in-200' }
  /** The request is read and never answered. */
  | { readonly kind: 'hang' }
  /** The head is sent, then nothing. */
  | { readonly kind: 'hang-after-head' }
  /** The connection is reset before a byte of the answer. */
  | { readonly kind: 'reset' }
  /** So many bytes of the body are passed on, then the connection is reset. */
  | { readonly kind: 'die-after'; readonly bytes: number }
  /** After so many SSE events: an error event, then the end, with `[DONE]` if `done` (vLLM, TGI) or without (llama.cpp). */
  | { readonly kind: 'error-after'; readonly events: number; readonly done: boolean }
  /** After so many SSE events the stream ends in peace: no finish reason, no `[DONE]` (Ollama). */
  | { readonly kind: 'end-after'; readonly events: number }
  /** An SSE head, then a comment every so often and never an event. */
  | { readonly kind: 'comments'; readonly everyMs: number }
  /** The answer is held back before its head, and each chunk of it again. */
  | { readonly kind: 'slow'; readonly headMs: number; readonly chunkMs: number }
  /** Vectors are spoilt: one value not a number, one dimension too few, the last vector missing, all zeros. */
  | { readonly kind: 'vectors'; readonly spoil: 'nan' | 'width' | 'count' | 'zero' };

export const OVER_LONG_BODY = JSON.stringify({
  error: {
    code: 500,
    message: 'input (1030 tokens) is too large to process. increase the physical batch size (current batch size: 512)',
    type: 'server_error',
  },
});

export const ERROR_BODY = JSON.stringify({
  error: { code: 500, message: 'something in the engine broke', type: 'server_error' },
});

interface EmbeddingItem {
  embedding: string | number[];
}

/** Rewrites an OpenAI-shaped embedding answer, base64 or floats, as a broken engine would have sent it. */
export function spoilVectors(body: string, spoil: 'nan' | 'width' | 'count' | 'zero'): string {
  const answer = JSON.parse(body) as { data?: EmbeddingItem[] };
  if (answer.data === undefined) return body; // a refusal
  if (spoil === 'count') answer.data = answer.data.slice(0, -1);
  else for (const item of answer.data) item.embedding = spoilVector(item.embedding, spoil);
  return JSON.stringify(answer);
}

function spoilVector(embedding: string | number[], spoil: 'nan' | 'width' | 'zero'): string | number[] {
  const values =
    typeof embedding === 'string'
      ? new Float32Array(Uint8Array.from(Buffer.from(embedding, 'base64')).buffer)
      : Float32Array.from(embedding);
  if (spoil === 'nan') values[0] = Number.NaN;
  if (spoil === 'zero') values.fill(0);
  const spoilt = spoil === 'width' ? values.subarray(0, values.length - 1) : values;
  if (typeof embedding !== 'string') return [...spoilt];
  return Buffer.from(spoilt.buffer, spoilt.byteOffset, spoilt.byteLength).toString('base64');
}
