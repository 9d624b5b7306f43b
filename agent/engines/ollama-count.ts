import type { EmbedRoute } from './dialect.ts';
import type { EngineHttp, FetchOptions, HttpAnswer } from './engine-http.ts';
import { EngineFailure } from './failure.ts';
import { jsonOf } from './json-answer.ts';
import type { ModelFacts } from './model-facts.ts';
import { refused, tooLongOf } from './refusals.ts';
import { isRecord } from './sse.ts';

const MAX_BYTES = 4 * 1024 * 1024;
/** Halvings of a text until a piece of it can be counted. */
const HALVINGS = 24;

type Options = Pick<FetchOptions, 'signal' | 'headers' | 'timeoutMs'>;

/**
 * Counts by encoding: Ollama has no tokeniser route, but `/api/embed` that may not cut tells how many tokens it read. Exact for every
 * text that fits. A text that does not is refused without a number: it gets one above the limit, from the density of the
 * longest halving of it that fits.
 */
export async function countByEmbedding(
  http: EngineHttp,
  route: EmbedRoute,
  model: ModelFacts,
  texts: readonly string[],
  options: Options,
): Promise<number[]> {
  const counts: number[] = [];
  for (const text of texts) {
    const tokens = await countOne(http, route, model, text, options);
    counts.push(tokens ?? (await estimate(http, route, model, text, options)));
  }
  return counts;
}

/** Null: longer than the engine takes. */
async function countOne(
  http: EngineHttp,
  route: EmbedRoute,
  { report }: ModelFacts,
  text: string,
  options: Options,
): Promise<number | null> {
  const body = route.body(report.model, Buffer.from(JSON.stringify([text])));
  const answer: HttpAnswer = await http.fetch(route.path, { ...options, body, maxBytes: MAX_BYTES });
  const parsed = jsonOf(answer);
  if (answer.status !== 200) {
    if (tooLongOf(parsed) !== null) return null;
    throw refused(answer.status, parsed, answer.headers, 'input_too_long', 'ollama');
  }
  const tokens = isRecord(parsed) ? parsed.prompt_eval_count : null;
  if (typeof tokens !== 'number' || !Number.isInteger(tokens)) throw new EngineFailure('unsupported_task');
  return tokens;
}

async function estimate(
  http: EngineHttp,
  route: EmbedRoute,
  model: ModelFacts,
  text: string,
  options: Options,
): Promise<number> {
  const above = (model.report.maxInputTokens ?? 0) + 1;
  let piece = text;
  for (let i = 0; i < HALVINGS && piece.length > 1; i++) {
    piece = piece.slice(0, Math.ceil(piece.length / 2));
    // A piece of so many bytes per token at most fits nowhere: no need to ask.
    if (Buffer.byteLength(piece) > above * LONGEST_TOKEN) continue;
    const tokens = await countOne(http, route, model, piece, options);
    if (tokens !== null) return Math.max(above, Math.round((tokens * text.length) / piece.length));
  }
  return above;
}

/** Bytes; texts of longer tokens than this on average are not texts. */
const LONGEST_TOKEN = 16;
