import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Credentials } from '../../agent/cloud/credential.ts';
import { CloudHttp } from '../../agent/cloud/http.ts';
import { OpenRouterEngine } from '../../agent/cloud/openrouter.ts';
import { encodePush } from '../../agent/wire/cloud.ts';
import { KEY, realClock, TestCall } from './driver.ts';

const MODEL = 'poolside/laguna-s-2.1';
const MODELS = {
  data: [
    {
      id: MODEL,
      context_length: 1000,
      architecture: { output_modalities: ['text'] },
      pricing: { prompt: '0.000001', completion: '0.000002' },
    },
  ],
};

/** An OpenRouter that begins its answers and stands still; what the agent wants to know before a call comes whole. */
let server: Server;
let baseUrl: string;

beforeEach(async () => {
  server = createServer((request, response) => {
    if (request.url?.startsWith('/api/v1/models?')) return response.end(JSON.stringify(MODELS));
    if (request.headers.authorization === `Bearer ${KEY}` && request.method === 'GET')
      return response.end('{"data":{}}');
    response.writeHead(request.method === 'POST' ? 500 : 200, { 'content-type': 'application/json' });
    return response.write('{"data":');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

it.each([
  ['with a key', 'Bearer k'],
  ['from a public route', null],
])(
  'a small answer %s that stands still behind its head is waited for no longer than one without',
  async (_, authorization) => {
    const http = new CloudHttp(realClock);
    const { signal } = new AbortController();
    const request = { baseUrl, path: '/key', authorization, body: null, firstByteMs: 100, signal };
    await expect(http.json(request, 1000)).rejects.toMatchObject({ failure: { code: 'engine_timeout' } });
    await http.close();
  },
);

it('a refusal that stands still behind its head ends the call when nothing has come for the time between tokens', async () => {
  const credentials = new Credentials({ clock: realClock, baseUrl, atRest: null });
  const engine = new OpenRouterEngine({
    clock: realClock,
    credentials,
    send: () => undefined,
    onChange: () => undefined,
  });
  const roles = { 'code-assistant': { model: MODEL, policy: 'cloud' as const } };
  engine.push('cp1', encodePush(1, { keyPush: 1, roles }, Buffer.from(KEY)));
  const call = new TestCall(
    {
      op: 'chat',
      engine: 'openrouter',
      model: MODEL,
      stream: true,
      wantsUsage: false,
      path: '/v1/chat/completions',
      firstByteMs: 5000,
      betweenTokensMs: 100,
      cloud: { permit: 'p1', role: 'code-assistant', pin: null, maxTokens: null },
    },
    { messages: [] },
  );
  await expect.poll(() => engine.status('cp1').offers.length).toBe(1);
  engine.serve(call);
  await call.over;
  expect(call.failure).toMatchObject({ blame: 'transport', code: 'stream_interrupted' });
  engine.stop();
});
