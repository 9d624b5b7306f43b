import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createAgentClock } from '../../../agent/clock.ts';
import { serveChat } from '../../../agent/cloud/chat.ts';
import { CloudHttp } from '../../../agent/cloud/http.ts';
import { failureOf } from '../../../agent/engines/failure.ts';
import type { CallFailure, CallHead } from '../../../agent/wire/calls.ts';
import { chatCall } from '../recorded-call.ts';

const clock = createAgentClock();
const http = new CloudHttp(clock);
const servers: Server[] = [];
afterEach(async () => {
  await http.close();
  for (const server of servers.splice(0)) server.closeAllConnections();
});

const piece = (index: number, content: string, reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'x', choices: [{ index, delta: { content }, finish_reason: reason }] })}\n\n`;
const DONE = 'data: [DONE]\n\n';

/** What the client gets when the upstream streams `text`. */
async function answer(text: string, stream = true) {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const call = chatCall(
    { engine: 'openrouter', model: 'm' },
    { model: 'm', stream, messages: [{ role: 'user', content: 'hi' }] },
  );
  const job = {
    call,
    http,
    clock,
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    authorization: 'Bearer k',
    model: 'm',
    pin: { upstreams: [], quantizations: [], dataCollection: 'deny' as const, zdr: false, maxPrice: null },
    names: new Map(),
    price: null,
    blank: () => undefined,
    fingerprint: () => null,
  };
  const failure = await serveChat(job as never, call.head as CallHead & { op: 'chat' }).then(
    () => null,
    (error: unknown): CallFailure =>
      error instanceof Error && 'failure' in error ? (error.failure as CallFailure) : failureOf(error),
  );
  server.close();
  return { text: call.text, failure };
}

describe('a chat answer of the cloud', () => {
  it('is finished when each of its choices is', async () => {
    const half = `${piece(0, 'a', 'stop')}${piece(1, 'half')}${DONE}`;
    expect((await answer(half)).failure).toMatchObject({ code: 'stream_interrupted', afterFirstByte: true });
    expect((await answer(half, false)).failure).toMatchObject({ code: 'stream_interrupted', afterFirstByte: false });
    const whole = `${piece(0, 'a', 'stop')}${piece(1, 'b', 'stop')}${DONE}`;
    expect(await answer(whole)).toEqual({ text: whole, failure: null });
  });

  it('ends at [DONE], streamed or whole', async () => {
    const whole = `${piece(0, 'a', 'stop')}${DONE}`;
    expect(await answer(`${whole}${piece(0, 'AFTER')}`)).toEqual({ text: whole, failure: null });
    expect((await answer(`${whole}${piece(0, 'AFTER')}`, false)).text).toContain('"content":"a"');
  });

  it.each([
    ['an error event', ': c\nevent: error\ndata: {"message":"secret cause"}\n\n'],
    ['an error event without data', 'event: error\n\n'],
    ['an error that is a text', 'data: {"error":"secret cause"}\n\n'],
    ['an error event that is no JSON', 'event: error\ndata: secret cause\n\n'],
    ['lines that end in CR alone', ': c\revent: error\rdata: secret cause\r\r\n\n'],
  ])('becomes our failure at %s, which is kept back', async (_, event) => {
    const { text, failure } = await answer(`${piece(0, 'a')}${event}${DONE}`);
    expect(text).toBe(piece(0, 'a'));
    expect(failure).toMatchObject({ afterFirstByte: true });
    expect(JSON.stringify(failure)).not.toContain('secret');
  });

  it('leaves out what is no piece of it', async () => {
    const whole = `${piece(0, 'a', 'stop')}${DONE}`;
    expect(await answer(`${piece(0, 'b')}data: {"message":"secret cause"}\n\n${whole}`)).toEqual({
      text: `${piece(0, 'b')}${whole}`,
      failure: null,
    });
  });
});
