import { hash } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { SwitchyardError } from '../../main/domain/errors.ts';
import type { ChatSink, ChatWork } from '../../main/domain/work.ts';
import {
  answerChat,
  authorised,
  COMPLETION,
  codeOf,
  type Handed,
  type Harness,
  KEY,
  LOCAL_ROUTE,
  post,
  sha256,
  startGateway,
  stopAll,
  USAGE,
} from './harness.ts';

afterEach(stopAll);

const PATH = '/v1/chat/completions';
const MESSAGES = [{ role: 'user', content: 'hi' }];
const CHAT = { model: 'code-assistant', messages: MESSAGES };

async function workOf(harness: Harness, body: unknown, headers: Record<string, string> = {}): Promise<ChatWork> {
  harness.dispatcher.onChat = answerChat;
  const response = await post(harness, PATH, body, headers);
  expect(response.status, await response.clone().text()).toBe(200);
  const work = harness.dispatcher.chats.at(-1)?.work;
  if (work === undefined) throw new Error('nothing was handed over');
  return work;
}

describe('what is handed over', () => {
  it("is the client's own bytes, with everything the router needs beside them", async () => {
    const harness = await startGateway();
    const body = '{ "model": "code-assistant" ,"messages":[{"role":"user","content":"h\\u00e9"}], "seed": 1e0}';
    const work = await workOf(harness, body);
    expect(Buffer.from(work.body).toString()).toBe(body);
    expect(work).toMatchObject({ path: PATH, stream: false, wantsUsage: false, maxOutputTokens: 1024 });
    // [{"role":"user","content":"hé"}] has 32 bytes as UTF-8 (é counts 2, not the 6 of its escape): ceil(32 / 3).
    expect(work.promptTokens).toBe(11);
    expect(work.context).toMatchObject({
      project: 'project-1',
      keyId: 'key-1',
      role: 'code-assistant',
      model: null,
      policy: 'aggregate',
      policyFrom: 'role',
      class: 'normal',
      maxWaitMs: 3000,
    });
    expect(work.context.id).toMatch(/^req_[0-9a-f]{24}$/);
  });

  it.each([
    [
      'first',
      '{"switchyard":{"policy":"local"}, "model":"code-assistant","messages":[{}]}',
      '{ "model":"code-assistant","messages":[{}]}',
    ],
    [
      'in the middle',
      '{"model":"code-assistant" , "switchyard" : {"priority":"batch"} ,"messages":[{}]}',
      '{"model":"code-assistant" , "messages":[{}]}',
    ],
    [
      'last',
      '{"model":"code-assistant","messages":[{}] ,\n"switchyard":{}\n}',
      '{"model":"code-assistant","messages":[{}] \n}',
    ],
    [
      'by an escaped name',
      '{"model":"code-assistant","messages":[{}],"switchy\\u0061rd":{}}',
      '{"model":"code-assistant","messages":[{}]}',
    ],
  ])('loses the field switchyard when it stands %s', async (_where, sent, forwarded) => {
    const harness = await startGateway();
    const work = await workOf(harness, sent);
    expect(Buffer.from(work.body).toString()).toBe(forwarded);
    expect(JSON.parse(Buffer.from(work.body).toString())).not.toHaveProperty('switchyard');
  });

  it('says what the client stated about the answer', async () => {
    const harness = await startGateway();
    const options = { stream: true, stream_options: { include_usage: true }, max_tokens: 9, max_completion_tokens: 7 };
    const work = await workOf(harness, { ...CHAT, ...options });
    expect(work).toMatchObject({ stream: true, wantsUsage: true, maxOutputTokens: 7 });
    expect(await workOf(harness, { ...CHAT, max_tokens: 9 })).toMatchObject({ maxOutputTokens: 9 });
  });

  it('knows a conversation by its project and its beginning up to the first user message', async () => {
    const harness = await startGateway();
    const system = { role: 'system', content: 'be brief' };
    const first = await workOf(harness, { ...CHAT, messages: [system, ...MESSAGES] });
    const later = await workOf(harness, {
      ...CHAT,
      messages: [system, ...MESSAGES, { role: 'assistant', content: 'hello' }, { role: 'user', content: 'more' }],
    });
    const beginning = `project-1\n[${JSON.stringify(system)},${JSON.stringify(MESSAGES[0])}`;
    expect(first.conversation).toBe(hash('sha256', beginning, 'hex'));
    expect(later.conversation).toBe(first.conversation);
    expect((await workOf(harness, { ...CHAT, messages: [system] })).conversation).toBeNull();
    const other = await workOf(harness, { ...CHAT, messages: [{ ...system, content: 'be long' }, ...MESSAGES] });
    expect(other.conversation).not.toBe(first.conversation);
  });

  it.each([
    ['tools', 5],
    ['tools', {}],
    ['tools', [{}, 5]],
    ['functions', 'f'],
    ['tool_choice', 5],
    ['parallel_tool_calls', 'yes'],
    ['response_format', 'json'],
    ['logit_bias', 5],
    ['stop', 5],
    ['stop', ['a', 5]],
    ['logprobs', 'x'],
    ['temperature', '0.7'],
    ['top_p', []],
    ['seed', {}],
    ['n', '2'],
    ['max_tokens', '9'],
    ['stream', 'yes'],
    ['stream_options', 5],
    ['messages', { 0: MESSAGES[0] }],
    ['messages', [MESSAGES[0], 5]],
  ])('is 400 naming %s when that is %j, before an engine sees it', async (name, value) => {
    const harness = await startGateway();
    const stream = name === 'stream_options' ? { stream: true } : {};
    const response = await post(harness, '/v1/chat/completions', { ...CHAT, ...stream, [name]: value });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_request', param: name } });
    expect(harness.dispatcher.chats).toEqual([]);
  });

  it('takes null for a member that is absent, and every kind that engines take', async () => {
    const harness = await startGateway();
    const tools = [{ type: 'function', function: { name: 'f' } }];
    await workOf(harness, { ...CHAT, tools: null, temperature: null, stop: null, n: null, response_format: null });
    await workOf(harness, {
      ...CHAT,
      tools,
      tool_choice: 'auto',
      stop: ['a'],
      temperature: 1,
      logprobs: true,
      seed: -1,
    });
    await workOf(harness, { ...CHAT, tools: [], tool_choice: { type: 'function' }, stop: 'a', logit_bias: { 1: 2 } });
  });

  it('takes completions too', async () => {
    const harness = await startGateway();
    harness.dispatcher.onChat = answerChat;
    expect((await post(harness, '/v1/completions', { model: 'tiny:local', prompt: 'abcd' })).status).toBe(200);
    // "abcd" with its quotes: 6 bytes.
    expect(harness.dispatcher.chats[0]?.work).toMatchObject({
      path: '/v1/completions',
      promptTokens: 2,
      conversation: null,
    });
    expect(harness.dispatcher.chats[0]?.work.context).toMatchObject({ model: 'tiny:local', policy: 'aggregate' });
    expect(await codeOf(await post(harness, '/v1/completions', { model: 'tiny:local', prompt: '' }))).toBe(
      'empty_input',
    );
  });
});

describe('steering over HTTP', () => {
  it('the header wins over the field and the suffix, and the answer says so', async () => {
    const harness = await startGateway();
    harness.keys.set(sha256('wide'), { ...KEY, allowWiden: true });
    harness.dispatcher.onChat = answerChat;
    const body = { ...CHAT, model: 'code-assistant:cloud', switchyard: { policy: 'backup' } };
    const response = await post(harness, PATH, body, { 'x-switchyard-policy': 'local', authorization: 'Bearer wide' });
    expect(response.headers.get('x-switchyard-overruled')).toBe('field=backup,suffix=cloud;by=header=local');
    expect(harness.dispatcher.chats[0]?.work.context).toMatchObject({ policy: 'local', policyFrom: 'header' });
  });

  it('widening without the right is 403, and rlm stays local for everybody', async () => {
    const harness = await startGateway();
    harness.keys.set(sha256('wide'), { ...KEY, allowWiden: true });
    const wide = { authorization: 'Bearer wide' };
    for (const [body, headers] of [
      [{ ...CHAT, model: 'code-assistant:cloud' }, {}],
      [{ ...CHAT, switchyard: { maxWaitMs: 1 } }, {}],
      [{ ...CHAT, model: 'rlm:cloud' }, wide],
      [
        { ...CHAT, model: 'rlm' },
        { ...wide, 'x-switchyard-policy': 'backup' },
      ],
    ] as const) {
      const response = await post(harness, PATH, body, headers);
      expect([response.status, await codeOf(response)]).toEqual([403, 'policy_not_allowed']);
    }
    expect(harness.dispatcher.untouched).toBe(true);
  });

  it('a key keeps to its project and its roles', async () => {
    const harness = await startGateway();
    harness.keys.set(sha256('any'), { ...KEY, anyProject: true });
    harness.keys.set(sha256('embed-only'), { ...KEY, roles: ['embedding'] });
    const other = { ...CHAT, switchyard: { project: 'project-2' } };
    expect(await codeOf(await post(harness, PATH, other))).toBe('project_not_allowed');
    const scoped = await post(harness, PATH, CHAT, { authorization: 'Bearer embed-only' });
    expect([scoped.status, await codeOf(scoped)]).toEqual([403, 'role_not_allowed']);
    const work = await workOf(harness, other, { authorization: 'Bearer any' });
    expect(work.context.project).toBe('project-2');
  });

  it('a policy header that is none is refused without being quoted', async () => {
    const harness = await startGateway();
    const response = await post(harness, PATH, CHAT, { 'x-switchyard-policy': 'everything' });
    expect(response.status).toBe(400);
    expect(await response.text()).not.toContain('everything');
  });
});

describe('media by address', () => {
  const withPart = (part: unknown, model = 'code-assistant'): unknown => ({
    model,
    messages: [{ role: 'user', content: [part] }],
  });
  const remote = { type: 'image_url', image_url: { url: 'http://192.168.1.1/admin' } };

  it.each([
    ['under local', withPart(remote, 'rlm')],
    ['where no cloud model is set', withPart(remote)],
    ['with an escaped name', JSON.stringify(withPart(remote)).replaceAll('image_url', 'im\\u0061ge_ur\\u006c')],
    ['as a bare string', withPart({ type: 'image_url', image_url: 'https://evil.example/x' })],
    ['as file', withPart({ type: 'video_url', video_url: { url: 'file:///etc/passwd' } })],
  ])('is refused %s', async (_when, body) => {
    const harness = await startGateway();
    expect(await codeOf(await post(harness, PATH, body))).toBe('remote_media');
    expect(harness.dispatcher.untouched).toBe(true);
  });

  it('may go to the cloud only, where the policy admits it', async () => {
    const harness = await startGateway();
    harness.roles.set('code-assistant', { hasCloud: true });
    expect((await workOf(harness, withPart(remote))).context.policy).toBe('cloud');
    const narrowed = await post(harness, PATH, withPart(remote), { 'x-switchyard-policy': 'local' });
    expect(await codeOf(narrowed)).toBe('remote_media');
  });

  it('data: is no address, and its bytes are no prompt', async () => {
    const harness = await startGateway();
    const url = `data:image/png;base64,${'A'.repeat(3_000_000)}`;
    const work = await workOf(harness, withPart({ type: 'image_url', image_url: { url } }));
    expect(work.context.policy).toBe('aggregate');
    // One part counts 1,024; what is left of the JSON around it is under 300 bytes.
    expect(work.promptTokens).toBeGreaterThan(1024);
    expect(work.promptTokens).toBeLessThan(1124);
  });

  it('words about images are no media', async () => {
    const harness = await startGateway();
    const content = [{ type: 'text', text: 'what does image_url: http://x.example mean?' }];
    expect((await workOf(harness, { ...CHAT, messages: [{ role: 'user', content }] })).context.policy).toBe(
      'aggregate',
    );
  });
});

describe('what comes back', () => {
  it('is the engine’s own answer, with the way it took', async () => {
    const harness = await startGateway();
    harness.dispatcher.onChat = answerChat;
    const response = await post(harness, PATH, CHAT);
    expect(await response.text()).toBe(COMPLETION);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(COMPLETION.length),
      'x-switchyard-provider': 'code-assistant~n1~e1~Qwen%2FQwen3-8B',
      'x-switchyard-route': 'local',
      'x-switchyard-queue-ms': '3',
      'x-request-id': harness.dispatcher.chats[0]?.work.context.id,
    });
  });

  it('streams event by event, the first before the last is made', async () => {
    const harness = await startGateway();
    const pending = post(harness, PATH, { ...CHAT, stream: true });
    await expect.poll(() => harness.dispatcher.chats.length).toBe(1);
    const sink = sinkOf(harness);
    sink.onHead(LOCAL_ROUTE, { status: 200, contentType: 'text/event-stream' });
    const response = await pending;
    const reader = response.body?.getReader();
    sink.onData(Buffer.from('data: 1\n\n'));
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('data: 1\n\n');
    sink.onData(Buffer.from('data: [DONE]\n\n'));
    sink.onEnd(USAGE);
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('data: [DONE]\n\n');
    expect((await reader?.read())?.done).toBe(true);
  });

  it('a failure before the first byte is an HTTP error with its Retry-After', async () => {
    const harness = await startGateway();
    for (const stream of [false, true]) {
      harness.dispatcher.onChat = ({ sink }) =>
        sink.onFailure(new SwitchyardError('queue_full', undefined, { retryAfterMs: 2500 }));
      const response = await post(harness, PATH, { ...CHAT, stream });
      expect([response.status, response.headers.get('retry-after'), await codeOf(response)]).toEqual([
        429,
        '3',
        'queue_full',
      ]);
    }
  });

  it('a failure inside a stream is its last event, and no [DONE] follows', async () => {
    const harness = await startGateway();
    harness.dispatcher.onChat = ({ sink }) => {
      sink.onHead(LOCAL_ROUTE, { status: 200, contentType: 'text/event-stream' });
      sink.onData(Buffer.from('data: {"x":1}\n\n'));
      sink.onFailure(new SwitchyardError('stream_interrupted'));
      sink.onData(Buffer.from('data: [DONE]\n\n'));
    };
    const response = await post(harness, PATH, { ...CHAT, stream: true });
    expect(response.status).toBe(200);
    const text = await response.text();
    const events = text.split('\n\n').filter((event) => event !== '');
    expect(events).toHaveLength(2);
    expect(JSON.parse(events[1]?.slice(6) ?? '')).toMatchObject({
      error: { code: 'stream_interrupted', type: 'api_error' },
    });
    expect(text).not.toContain('[DONE]');
  });

  it('a late failure of a whole answer is still an HTTP error; past 1 MiB the connection breaks', async () => {
    const harness = await startGateway();
    const fail = (size: number) => (handed: Handed<ChatWork, ChatSink>) => {
      handed.sink.onHead(LOCAL_ROUTE, { status: 200, contentType: 'application/json' });
      handed.sink.onData(Buffer.alloc(size, 0x20));
      handed.sink.onFailure(new SwitchyardError('agent_lost'));
    };
    harness.dispatcher.onChat = fail(1000);
    const early = await post(harness, PATH, CHAT);
    expect([early.status, await codeOf(early)]).toEqual([502, 'agent_lost']);
    harness.dispatcher.onChat = fail(2 * 1024 * 1024);
    await expect(post(harness, PATH, CHAT).then((response) => response.text())).rejects.toThrow();
  });

  it('values in headers are percent-encoded and bounded', async () => {
    const harness = await startGateway();
    harness.dispatcher.onChat = (handed) => {
      const provider = `a\r\nx-evil: 1 é${'z'.repeat(400)}` as never;
      handed.sink.onHead({ ...LOCAL_ROUTE, provider }, { status: 200, contentType: 'application/json' });
      handed.sink.onData(Buffer.from('{}'));
      handed.sink.onEnd(null);
    };
    const response = await post(harness, PATH, CHAT);
    const value = response.headers.get('x-switchyard-provider') ?? '';
    expect(value.startsWith('a%0D%0Ax-evil:%201%20%C3%A9z')).toBe(true);
    expect(value.length).toBeLessThanOrEqual(256);
    expect(response.headers.get('x-evil')).toBeNull();
  });
});

describe('a client that leaves', () => {
  it.each([
    ['in the queue', () => undefined],
    [
      'in the middle of a stream',
      ({ sink }: Handed<ChatWork, ChatSink>) => {
        sink.onHead(LOCAL_ROUTE, { status: 200, contentType: 'text/event-stream' });
        sink.onData(Buffer.from('data: 1\n\n'));
      },
    ],
    [
      'in the middle of a whole answer',
      ({ sink }: Handed<ChatWork, ChatSink>) => {
        sink.onHead(LOCAL_ROUTE, { status: 200, contentType: 'application/json' });
        sink.onData(Buffer.from('{"half":'));
      },
    ],
  ])('%s has its work cancelled once', async (when, play) => {
    const harness = await startGateway();
    harness.dispatcher.onChat = play;
    const leaving = new AbortController();
    const stream = when !== 'in the middle of a whole answer';
    const pending = fetch(`${harness.url}${PATH}`, {
      method: 'POST',
      headers: authorised,
      body: JSON.stringify({ ...CHAT, stream }),
      signal: leaving.signal,
    }).catch(() => undefined);
    await expect.poll(() => harness.dispatcher.chats.length).toBe(1);
    leaving.abort();
    await expect.poll(() => harness.dispatcher.chats[0]?.cancelled).toBe(1);
    await pending;
    // The room it took in the key's 64 is free again, and what comes late goes nowhere.
    sinkOf(harness).onEnd(USAGE);
    await expect.poll(() => harness.exchanges.length).toBe(1);
    expect(harness.dispatcher.chats[0]?.cancelled).toBe(1);
  });

  it('is not cancelled when it has its answer', async () => {
    const harness = await startGateway();
    harness.dispatcher.onChat = answerChat;
    await (await post(harness, PATH, CHAT)).text();
    await expect.poll(() => harness.exchanges.length).toBe(1);
    await harness.gateway.stop();
    expect(harness.dispatcher.chats[0]?.cancelled).toBe(0);
  });
});

describe('a client that reads slowly', () => {
  it('stops the flow and starts it again when it reads', async () => {
    const harness = await startGateway();
    const pending = post(harness, PATH, { ...CHAT, stream: true });
    await expect.poll(() => harness.dispatcher.chats.length).toBe(1);
    const sink = sinkOf(harness);
    sink.onHead(LOCAL_ROUTE, { status: 200, contentType: 'text/event-stream' });
    const response = await pending;
    const chunk = Buffer.alloc(256 * 1024, 0x0a);
    let written = 0;
    let flowing = true;
    while (flowing && written < 512) {
      flowing = sink.onData(chunk);
      written += 1;
      await new Promise(setImmediate);
    }
    expect(flowing).toBe(false);
    const reading = response.arrayBuffer();
    await expect.poll(() => harness.dispatcher.chats[0]?.resumed).toBeGreaterThanOrEqual(1);
    sink.onEnd(USAGE);
    expect((await reading).byteLength).toBe(written * chunk.length);
  });

  it('is cut, and its work cancelled, when it takes nothing at all', async () => {
    const harness = await startGateway({ gateway: { exchanges: { slowReaderMs: 60 } } });
    const pending = post(harness, PATH, { ...CHAT, stream: true });
    await expect.poll(() => harness.dispatcher.chats.length).toBe(1);
    const sink = sinkOf(harness);
    sink.onHead(LOCAL_ROUTE, { status: 200, contentType: 'text/event-stream' });
    await pending;
    // More than the buffers of both ends can hold.
    for (let count = 0; count < 256; count += 1) sink.onData(Buffer.alloc(256 * 1024, 0x0a));
    await expect.poll(() => harness.dispatcher.chats[0]?.cancelled).toBe(1);
  });
});

it('drains: what runs ends, what is new is 503 with Retry-After', async () => {
  const harness = await startGateway();
  const running = post(harness, PATH, CHAT);
  await expect.poll(() => harness.dispatcher.chats.length).toBe(1);
  const drained = harness.gateway.drain(10_000);
  const refused = await post(harness, PATH, CHAT);
  expect([refused.status, await codeOf(refused), refused.headers.get('retry-after')]).toEqual([
    503,
    'shutting_down',
    '1',
  ]);
  expect((await fetch(`${harness.url}/readyz`)).status).toBe(503);
  answerChat(harness.dispatcher.chats[0] as Handed<ChatWork, ChatSink>);
  expect(await (await running).text()).toBe(COMPLETION);
  await drained;
});

function sinkOf(harness: Harness): ChatSink {
  const sink = harness.dispatcher.chats[0]?.sink;
  if (sink === undefined) throw new Error('nothing was handed over');
  return sink;
}

describe('a head that no honest engine sends', () => {
  it.each([
    [200, 'text/event-stream\r\nset-cookie: a=b'],
    [200, 'text/\u2028plain'],
    [200, ''],
    [7, 'application/json'],
    [100, 'application/json'],
    [304, 'application/json'],
    [1_000_000_000, 'application/json'],
  ])('is answered as what was asked for: status %d, type %j', async (status, contentType) => {
    const harness = await startGateway();
    harness.dispatcher.onChat = ({ work, sink }) => {
      sink.onHead(LOCAL_ROUTE, { status, contentType });
      setTimeout(() => {
        sink.onData(Buffer.from(work.stream ? 'data: [DONE]\n\n' : COMPLETION));
        sink.onEnd(USAGE);
      }, 5);
    };
    for (const [stream, type] of [
      [false, 'application/json'],
      [true, 'text/event-stream'],
    ] as const) {
      const response = await post(harness, PATH, { ...CHAT, stream });
      expect(response.status).toBe(200);
      expect(response.headers.get('set-cookie')).toBeNull();
      expect(await response.text()).toBe(stream ? 'data: [DONE]\n\n' : COMPLETION);
      if (!/^[ -~]+$/.test(contentType)) expect(response.headers.get('content-type')).toBe(type);
    }
  });
});
