import type { ChatHead, EmbedRoute, RerankRoute } from './dialect.ts';
import { jsonOf, promptTokensOf } from './json-answer.ts';
import { readScores } from './scores.ts';
import type { Edit } from './splice.ts';
import { readVectorsOf } from './vectors.ts';

/** What engines with OpenAI's and Jina's routes have in common. */

const UNLIMITED = Number.POSITIVE_INFINITY;
const WITH_USAGE: Edit = { key: 'stream_options', how: 'set', json: '{"include_usage":true}' };

/**
 * A whole answer is ordered as a stream, which every engine stops when the connection closes and which shows between two
 * tokens that it is alive. A client that wants the usage chunk has asked for it itself; for others it is asked for and kept
 * back. `usage` false: the engine does not bear `stream_options`.
 */
export function streamEdits({ stream, wantsUsage }: ChatHead, usage = true): readonly Edit[] {
  const ask = usage && !(stream && wantsUsage) ? [WITH_USAGE] : [];
  return stream ? ask : [{ key: 'stream', how: 'set', json: 'true' }, ...ask];
}

/** Vectors as base64: one string to parse instead of a thousand numbers. */
export const OPENAI_EMBED: EmbedRoute = {
  path: '/v1/embeddings',
  maxBytes: UNLIMITED,
  body: (model, inputs) =>
    Buffer.concat([
      Buffer.from(`{"model":${JSON.stringify(model)},"encoding_format":"base64","input":`),
      inputs,
      Buffer.from('}'),
    ]),
  read: async ({ body }, demand) => {
    const { batch, answer } = await readVectorsOf(body, demand);
    return { batch, promptTokens: promptTokensOf(answer) };
  },
};

export const JINA_RERANK: RerankRoute = {
  path: '/v1/rerank',
  maxDocuments: UNLIMITED,
  body: (model, query, documents) => Buffer.from(JSON.stringify({ model, query, documents })),
  read: (answer, count) => {
    const parsed = jsonOf(answer);
    return { scores: readScores(parsed, count), promptTokens: promptTokensOf(parsed) };
  },
};
