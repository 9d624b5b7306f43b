import { z } from 'zod';
import { SwitchyardError } from '../domain/errors.ts';
import type { Dispatcher, RerankAnswer } from '../domain/work.ts';
import { errorReply, jsonReply } from './error-reply.ts';
import { invalidField, type JsonBody } from './json-body.ts';
import type { KeyLimits } from './ports.ts';
import { KIND_BIT } from './prescan.ts';
import { type PreparePorts, prepareRequest, routeHeaders, SwitchyardField } from './request-context.ts';
import type { Route, WorkCall } from './routes.ts';

const MAX_DOCUMENTS = 2048;

const Document = z.union([z.string(), z.looseObject({ text: z.string() })]);
const RerankRequest = z.looseObject({
  model: z.string().describe('reranker, or a model of it'),
  query: z.string().min(1),
  documents: z.array(Document).min(1).max(MAX_DOCUMENTS),
  top_n: z.int().min(1).optional(),
  return_documents: z.boolean().optional(),
  switchyard: SwitchyardField.optional(),
});
const RerankResponse = z.object({
  id: z.string(),
  model: z.string(),
  results: z.array(
    z.object({
      index: z.int(),
      relevance_score: z.number().min(0).max(1),
      document: z.object({ text: z.string() }).optional(),
    }),
  ),
  usage: z.object({ prompt_tokens: z.int(), total_tokens: z.int() }),
  meta: z.object({
    api_version: z.object({ version: z.string() }),
    billed_units: z.object({ search_units: z.int() }),
  }),
});

export interface RerankPorts extends PreparePorts {
  readonly dispatcher: Dispatcher;
  readonly limits: KeyLimits;
}

/** Jina's `POST /v1/rerank`, and Cohere's `/v2/rerank`, which differs in its address only. */
export function rerankRoutes(ports: RerankPorts): Route[] {
  return (['/v1/rerank', '/v2/rerank'] as const).map((path) => ({
    method: 'POST',
    path,
    access: 'work',
    form: 'rerank',
    document: {
      summary: 'Documents by their relevance to a query, best first',
      tag: 'Rerank',
      request: RerankRequest,
      response: RerankResponse,
    },
    handle: (call) => handleRerank(call, ports),
  }));
}

async function handleRerank(call: WorkCall, ports: RerankPorts): Promise<void> {
  const { body } = call;
  const query = body.string('query');
  if (query === null) throw invalidField('query', 'must be a string');
  if (query === '') throw new SwitchyardError('empty_input', 'query is empty.', { extra: { param: 'query' } });
  checkDocuments(body);
  const topN = body.integer('top_n', 1);
  const returnDocuments = body.boolean('return_documents') ?? false;
  const prepared = prepareRequest(call, 'rerank', ports);
  const documents = await body.texts('documents');
  if (call.reply.gone) return;
  const running = ports.dispatcher.rerank(
    { context: prepared.context, query, documents },
    {
      onAnswer: (answer) => {
        ports.limits.settle(call.key, answer.usage);
        if (answer.scores.length !== documents.length || !answer.scores.every((score) => score >= 0 && score <= 1)) {
          errorReply(call.reply, new SwitchyardError('engine_invalid_response'), 'rerank');
          return;
        }
        jsonReply(call.reply, 200, rankingOf(answer, call.id, documents, topN, returnDocuments), [
          ...routeHeaders(answer.route),
          'x-switchyard-score',
          answer.squashed ? 'sigmoid' : 'engine',
          ...prepared.headers,
        ]);
      },
      onFailure: (error) => errorReply(call.reply, error, 'rerank', prepared.headers),
    },
  );
  call.reply.onGone(() => running.cancel());
}

function checkDocuments(body: JsonBody): void {
  const documents = body.member('documents');
  if (documents?.kind !== 'array') throw invalidField('documents', 'must be an array');
  if (documents.elementCount === 0) throw new SwitchyardError('empty_input');
  if ((documents.elementKinds & ~(KIND_BIT.string | KIND_BIT.object)) !== 0) {
    throw invalidField('documents', 'must hold strings or objects with a text');
  }
  if (documents.elementCount > MAX_DOCUMENTS) throw new SwitchyardError('too_many_inputs');
}

/** Best first; equal scores keep the order of the documents. */
function rankingOf(
  answer: RerankAnswer,
  id: string,
  documents: readonly string[],
  topN: number | null,
  returnDocuments: boolean,
): z.input<typeof RerankResponse> {
  const order = Array.from(answer.scores, (score, index) => ({ index, score }))
    .sort((a, b) => b.score - a.score || a.index - b.index)
    .slice(0, topN ?? documents.length);
  return {
    id,
    model: answer.route.model,
    results: order.map(({ index, score }) => ({
      index,
      relevance_score: score,
      ...(returnDocuments ? { document: { text: documents[index] ?? '' } } : {}),
    })),
    usage: { prompt_tokens: answer.usage.promptTokens, total_tokens: answer.usage.promptTokens },
    meta: { api_version: { version: '2' }, billed_units: { search_units: 1 } },
  };
}
