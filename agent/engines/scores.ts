import { EngineFailure } from './failure.ts';
import { isRecord } from './sse.ts';

/**
 * Scores of a Jina-shaped rerank answer `{results: [{index, relevance_score}]}` in the order of the documents, raw: logits or
 * probabilities, as the model has them.
 * @throws EngineFailure `engine_invalid_response` for missing, doubled or not finite ones; `engine_error` for an error in a 200
 */
export function readScores(answer: unknown, count: number): number[] {
  if (isRecord(answer) && answer.error !== undefined && answer.error !== null)
    throw new EngineFailure('engine_error', { engineStatus: 200 });
  const results = isRecord(answer) && Array.isArray(answer.results) ? answer.results : [];
  const scores = new Array<number | undefined>(count);
  for (const result of results) {
    const { index, relevance_score: score } = isRecord(result) ? result : {};
    if (!isIndex(index, count) || scores[index] !== undefined || typeof score !== 'number') {
      throw new EngineFailure('engine_invalid_response', {}, 'The engine answered with scores that cannot be read.');
    }
    if (!Number.isFinite(score)) {
      throw new EngineFailure(
        'engine_invalid_response',
        { failing: [{ index, tokens: null }] },
        'The engine answered with a score that is not a number.',
      );
    }
    scores[index] = score;
  }
  // `Array.from` visits holes, which `map` would leave as they are.
  return Array.from(scores, (score) => {
    if (score === undefined) {
      throw new EngineFailure('engine_invalid_response', {}, 'The engine left a document without a score.');
    }
    return score;
  });
}

/** A place among `count`. */
export function isIndex(value: unknown, count: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < count;
}
