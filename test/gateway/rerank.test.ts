import { afterEach, expect, it } from 'vitest';
import { SwitchyardError } from '../../main/domain/errors.ts';
import { type Harness, LOCAL_ROUTE, post, startGateway, stopAll, USAGE } from './harness.ts';

afterEach(stopAll);

const BODY = { model: 'reranker', query: 'q', documents: ['a', { text: 'b' }, 'c'] };
const scored = (harness: Harness, scores: number[], squashed = false): void => {
  harness.dispatcher.onRerank = ({ sink }) =>
    sink.onAnswer({
      route: LOCAL_ROUTE,
      scores: Float64Array.from(scores),
      squashed,
      usage: { ...USAGE, completionTokens: 0 },
    });
};

it('orders best first, equal scores in the order of the documents', async () => {
  const harness = await startGateway();
  scored(harness, [0.25, 0.75, 0.25], true);
  for (const path of ['/v1/rerank', '/v2/rerank']) {
    const response = await post(harness, path, BODY);
    expect(response.headers.get('x-switchyard-score')).toBe('sigmoid');
    expect(await response.json()).toMatchObject({
      model: 'Qwen/Qwen3-8B',
      results: [
        { index: 1, relevance_score: 0.75 },
        { index: 0, relevance_score: 0.25 },
        { index: 2, relevance_score: 0.25 },
      ],
      usage: { total_tokens: 7 },
    });
  }
  expect(harness.dispatcher.reranks[0]?.work).toMatchObject({ query: 'q', documents: ['a', 'b', 'c'] });
});

it('returns the best n, with their texts when asked', async () => {
  const harness = await startGateway();
  scored(harness, [0.1, 0.9, 0.5]);
  const response = await post(harness, '/v1/rerank', { ...BODY, top_n: 2, return_documents: true });
  const { results } = (await response.json()) as { results: unknown };
  expect(results).toEqual([
    { index: 1, relevance_score: 0.9, document: { text: 'b' } },
    { index: 2, relevance_score: 0.5, document: { text: 'c' } },
  ]);
});

it.each([
  ['no query', { ...BODY, query: undefined }, 'invalid_request'],
  ['an empty query', { ...BODY, query: '' }, 'empty_input'],
  ['no documents', { ...BODY, documents: [] }, 'empty_input'],
  ['a number among the documents', { ...BODY, documents: ['a', 1] }, 'invalid_request'],
  ['a document without a text', { ...BODY, documents: [{ image: 'x' }] }, 'invalid_request'],
  ['2,049 documents', { ...BODY, documents: Array(2049).fill('a') }, 'too_many_inputs'],
  ['the best nought', { ...BODY, top_n: 0 }, 'invalid_request'],
])('refuses %s, in a form that the clients of both services read', async (_what, body, code) => {
  const harness = await startGateway();
  const response = await post(harness, '/v1/rerank', body);
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({
    message: expect.any(String),
    detail: expect.any(String),
    code,
    error: { code },
  });
  expect(harness.dispatcher.untouched).toBe(true);
});

it.each([[[0.1, Number.NaN, 0.2]], [[0.1, 1.5, 0.2]], [[0.1]]])('scores %j from an engine are 502', async (scores) => {
  const harness = await startGateway();
  scored(harness, scores);
  expect((await post(harness, '/v1/rerank', BODY)).status).toBe(502);
});

it('passes a failure on', async () => {
  const harness = await startGateway();
  harness.dispatcher.onRerank = ({ sink }) => sink.onFailure(new SwitchyardError('no_provider'));
  const response = await post(harness, '/v1/rerank', BODY);
  expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([503, 'no_provider']);
});
