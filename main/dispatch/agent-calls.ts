import type { CallFailure, CallHead, ResponseHead, Trailers } from '../../agent/wire/calls.ts';
import { HeldBody } from '../../agent/wire/held-body.ts';
import type { CallOpener } from '../../agent/wire/stream.ts';

export type WholeAnswer =
  | { readonly failure: null; readonly head: ResponseHead; readonly body: Uint8Array; readonly trailers: Trailers }
  | { readonly failure: CallFailure };

/** A call that could not even be sent, in the form of one that failed on the way. */
export function transportFailure(sentence: string): CallFailure {
  return {
    blame: 'transport',
    code: 'engine_unreachable',
    sentence,
    engineStatus: null,
    retryAfterMs: null,
    failing: [],
    limitTokens: null,
    afterFirstByte: false,
  };
}

/**
 * One call whose answer is small enough to be held whole (vectors, scores, counts). Never rejects.
 *
 * @param maxBytes an answer beyond it is aborted and counted as the engine's fault: nothing an agent says may grow memory.
 */
export function callWhole(
  opener: CallOpener | null,
  head: CallHead,
  body: Uint8Array,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<WholeAnswer> {
  if (!opener) return Promise.resolve({ failure: transportFailure('The machine has no session now.') });
  if (signal?.aborted) return Promise.resolve({ failure: transportFailure('The call was cancelled.') });
  return new Promise((resolve) => {
    let responseHead: ResponseHead | null = null;
    const answer = new HeldBody(maxBytes);
    const settle = (settled: WholeAnswer) => {
      signal?.removeEventListener('abort', onAbort);
      resolve(settled);
    };
    const call = opener.open(head, body, {
      onHead: (got) => {
        responseHead = got;
        answer.expect(bytesOf(got));
      },
      onData: (chunk) => {
        if (!answer.take(chunk)) {
          call.cancel();
          settle({
            failure: {
              ...transportFailure('The answer was larger than it can be.'),
              blame: 'engine',
              code: 'engine_invalid_response',
            },
          });
          return false;
        }
        return true;
      },
      onEnd: (trailers) => {
        if (!responseHead)
          settle({
            failure: {
              ...transportFailure('The agent sent no head.'),
              blame: 'engine',
              code: 'engine_invalid_response',
            },
          });
        else settle({ failure: null, head: responseHead, body: answer.whole(), trailers });
      },
      onFailure: (failure) => settle({ failure }),
    });
    const onAbort = () => {
      call.cancel();
      settle({ failure: transportFailure('The call was cancelled.') });
    };
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** Bytes of an answer whose head says its rows and columns; 0: it does not say. */
function bytesOf({ count, width }: ResponseHead): number {
  return (count ?? 0) * (width ?? 0) * 4;
}

/** @returns count x width values, row-major, or null when the bytes do not fit the head. */
export function readVectors(
  head: ResponseHead,
  body: Uint8Array,
  count: number,
): { width: number; vectors: Float32Array } | null {
  const { width } = head;
  if (width === null || width < 1 || head.count !== count || body.byteLength !== count * width * 4) return null;
  return { width, vectors: new Float32Array(body.buffer, body.byteOffset, count * width) };
}

/** False when a row holds a value that is not finite, or nothing but zeros. */
export function areUsable({ width, vectors }: { readonly width: number; readonly vectors: Float32Array }): boolean {
  for (let row = 0; row < vectors.length; row += width) {
    let squares = 0; // in double precision: it is NaN or infinite if a value is
    for (let at = row; at < row + width; at += 1) {
      const value = vectors[at] as number;
      squares += value * value;
    }
    if (!(squares > 0 && squares < Number.POSITIVE_INFINITY)) return false;
  }
  return true;
}
