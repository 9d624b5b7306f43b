import OpenAI from 'openai';
import { afterEach, expect, it } from 'vitest';
import { API_KEY, answerChat, answerEmbed, COMPLETION, type Harness, startGateway, stopAll } from './harness.ts';

afterEach(stopAll);

const clientOf = (harness: Harness): OpenAI =>
  new OpenAI({ baseURL: `${harness.url}/v1`, apiKey: API_KEY, maxRetries: 0 });
const CHAT = { model: 'code-assistant', messages: [{ role: 'user' as const, content: 'hi' }] };

it('chats', async () => {
  const harness = await startGateway();
  harness.dispatcher.onChat = answerChat;
  expect(await clientOf(harness).chat.completions.create(CHAT)).toMatchObject(JSON.parse(COMPLETION));
});

it('streams', async () => {
  const harness = await startGateway();
  harness.dispatcher.onChat = answerChat;
  let text = '';
  for await (const chunk of await clientOf(harness).chat.completions.create({ ...CHAT, stream: true })) {
    text += chunk.choices[0]?.delta.content ?? '';
  }
  expect(text).toBe('Hello');
});

it('embeds: it asks for base64 by itself and gets the same values as with floats', async () => {
  const harness = await startGateway();
  harness.dispatcher.onEmbed = answerEmbed(512);
  const client = clientOf(harness);
  const input = ['a', 'b'];
  const { data: decoded, response } = await client.embeddings.create({ model: 'embedding', input }).withResponse();
  const floats = await client.embeddings.create({ model: 'embedding', input, encoding_format: 'float' });
  const expected = [1 / 4096, ...Array(511).fill(0.125)];
  expect(decoded.data[0]?.embedding).toEqual(expected);
  expect(floats.data[0]?.embedding).toEqual(expected);
  expect(floats.data[1]?.embedding[0]).toBe(2 / 4096);
  expect(floats).toMatchObject({ model: 'Qwen/Qwen3-8B', usage: { prompt_tokens: 7, total_tokens: 7 } });
  expect(response.headers.get('x-switchyard-space')).toBe('embedding-0a1b2c3d');
});

it('lists and finds models, roles first', async () => {
  const harness = await startGateway();
  const client = clientOf(harness);
  const ids = (await client.models.list()).data.map((model) => model.id);
  expect(ids).toEqual([
    'embedding',
    'code-embedding',
    'reranker',
    'code-assistant',
    'rlm',
    'Qwen/Qwen3-8B',
    'tiny:local',
    'bge-m3',
  ]);
  expect((await client.models.retrieve('Qwen/Qwen3-8B')).id).toBe('Qwen/Qwen3-8B');
  await expect(client.models.retrieve('gpt-9')).rejects.toMatchObject({ status: 404, code: 'model_not_found' });
});

it('raises its own error classes, with our code', async () => {
  const harness = await startGateway();
  const wrong = new OpenAI({ baseURL: `${harness.url}/v1`, apiKey: 'sk-wrong', maxRetries: 0 });
  await expect(wrong.chat.completions.create(CHAT)).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
  await expect(clientOf(harness).chat.completions.create({ ...CHAT, model: 'gpt-9' })).rejects.toMatchObject({
    status: 404,
    code: 'model_not_found',
    param: 'model',
  });
});
