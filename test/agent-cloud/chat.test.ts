import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { pinText } from '../../agent/wire/cloud.ts';
import { Bench, KEY, ROLES } from './driver.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await Bench.start();
  await bench.ready();
});
afterEach(() => bench.stop());

const say = (count: number) => ({ model: 'ignored', messages: [{ role: 'user', content: `say ${count} words` }] });

/** Data events of a stream. */
const events = (text: string) =>
  text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => event.slice(6));

describe('a whole answer', () => {
  it('travels as a stream and is put together', async () => {
    const call = bench.chat({ ...say(4), max_tokens: 100 });
    await call.over;
    expect(call.response).toMatchObject({ status: 200, contentType: 'application/json' });
    expect(JSON.parse(call.text)).toMatchObject({
      object: 'chat.completion',
      model: 'poolside/laguna-s-2.1',
      provider: 'Poolside',
      choices: [
        {
          index: 0,
          finish_reason: 'stop',
          message: { role: 'assistant', content: 'The quick brown fox', refusal: null },
        },
      ],
      usage: { completion_tokens: 4 },
    });
    expect(call.trailers).toMatchObject({
      finished: true,
      usage: { completionTokens: 4, exact: true },
      fingerprint: { engine: 'openrouter', upstream: 'Poolside', pin: null },
    });
    expect(call.trailers?.usage?.costUsd).toBeCloseTo(bench.standIn.ledger.at(-1)?.costUsd ?? -1, 12);
    expect(bench.standIn.ledger.at(-1)).toMatchObject({ stream: true, aborted: false });
  });

  it('sends nothing but allowed fields, with max_tokens, and with compression off', async () => {
    const call = bench.chat({
      ...say(1),
      temperature: 0.5,
      max_completion_tokens: 77,
      models: ['other/model'],
      route: 'fallback',
      plugins: [{ id: 'web' }],
      transforms: ['middle-out'],
      provider: { order: ['evil'] },
      debug: { echo_upstream_body: true },
      trace: { trace_id: 'x' },
      user: 'me@example.org',
      service_tier: 'priority',
      stream_options: { include_usage: true },
      switchyard: { policy: 'cloud' },
    });
    await call.over;
    expect(bench.standIn.ledger.at(-1)?.body).toEqual({
      model: 'poolside/laguna-s-2.1',
      messages: say(1).messages,
      temperature: 0.5,
      stream: true,
      max_tokens: 77,
      plugins: [{ id: 'context-compression', enabled: false }],
    });
  });

  it('states the max_tokens that the controller counted on when the client states none', async () => {
    const call = bench.chat(say(20), { cloud: bench.cloud('code-assistant', { maxTokens: 7 }) });
    await call.over;
    expect(bench.standIn.ledger.at(-1)?.body.max_tokens).toBe(7);
    expect(JSON.parse(call.text).choices[0].finish_reason).toBe('length');
  });

  it('states a max_tokens of its own when nobody does: the check of the balance would take the model’s most', async () => {
    await bench.chat(say(3)).over;
    expect(bench.standIn.ledger.at(-1)?.body.max_tokens).toBe(4096);
  });

  it.each([true, false])('by another upstream than the pinned one is thrown away (stream: %s)', async (stream) => {
    bench.push(
      { roles: { ...ROLES, 'code-assistant': { ...ROLES['code-assistant'], upstreams: ['poolside'] } } },
      null,
    );
    const cloud = () => bench.cloud('code-assistant', { pin: pinText(['poolside'], []) });
    const good = bench.chat({ ...say(3), stream }, { stream, cloud: cloud() });
    await good.over;
    expect(good.trailers?.finished).toBe(true);
    bench.standIn.claimUpstream = 'DeepInfra';
    const astray = bench.chat({ ...say(3), stream }, { stream, cloud: cloud() });
    await astray.over;
    expect(astray.failure).toMatchObject({ code: 'fingerprint_changed', cloud: { wrongUpstream: true } });
    expect(astray.chunks).toEqual([]);
  });

  it('an error before and an error inside the answer both fail it whole, so that another provider may be tried', async () => {
    for (const afterTokens of [0, 3]) {
      bench.standIn.fail({ error: 'upstream-pool', as: 'stream', afterTokens });
      const call = bench.chat(say(9));
      await call.over;
      expect(call.response).toBeNull();
      expect(call.failure).toMatchObject({
        blame: 'busy',
        code: 'engine_busy',
        afterFirstByte: false,
        cloud: { status: 429, limitSource: 'upstream_provider_shared_pool', fromProvider: true },
      });
    }
  });
});

describe('a stream', () => {
  it('passes in the upstream’s own bytes, less the usage chunk nobody asked for', async () => {
    const plain = bench.chat({ ...say(6), stream: true }, { stream: true });
    const counted = bench.chat({ ...say(6), stream: true }, { stream: true, wantsUsage: true });
    await Promise.all([plain.over, counted.over]);
    const contents = events(plain.text)
      .filter((event) => event !== '[DONE]')
      .map((event) => JSON.parse(event));
    expect(contents.map((chunk) => chunk.choices[0].delta.content).join('')).toBe('The quick brown fox jumps over');
    expect(plain.text).not.toContain('"usage"');
    expect(events(plain.text).at(-1)).toBe('[DONE]');
    expect(counted.text.match(/"usage"/g)).toHaveLength(1);
    expect(plain.trailers?.usage).toMatchObject({ completionTokens: 6, exact: true });
    expect(plain.trailers?.usage?.costUsd).toBeGreaterThan(0);
  });

  it('is byte for byte what OpenRouter sent when usage was asked for', async () => {
    bench.standIn.commentMs = 1e6;
    const call = bench.chat({ ...say(5), stream: true }, { stream: true, wantsUsage: true });
    await call.over;
    const direct = await fetch(`${bench.standIn.url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}` },
      body: JSON.stringify(bench.standIn.ledger.at(-1)?.body),
    });
    const sha = (text: string) =>
      createHash('sha256')
        .update(text.replaceAll(/"(id|created)":("[^"]*"|\d+)/g, ''))
        .digest('hex');
    const theirs = (await direct.text()).replace(': OPENROUTER PROCESSING\n\n', '');
    expect(sha(call.text)).toBe(sha(theirs));
  });

  it('an error before anything was said may be tried elsewhere; after it the stream ends without a success marker', async () => {
    bench.standIn.fail({ error: 'bad-gateway', as: 'stream', afterTokens: 0 });
    const early = bench.chat({ ...say(9), stream: true }, { stream: true });
    await early.over;
    expect(early.response).toBeNull();
    expect(early.failure).toMatchObject({
      afterFirstByte: false,
      code: 'engine_error',
      cloud: { status: 502, fromProvider: true },
    });

    bench.standIn.fail({ error: 'bad-gateway', as: 'stream', afterTokens: 3 });
    const late = bench.chat({ ...say(9), stream: true }, { stream: true });
    await late.over;
    expect(late.failure).toMatchObject({ afterFirstByte: true, code: 'stream_interrupted', cloud: { status: 502 } });
    expect(late.text).toContain('brown');
    expect(late.text).not.toContain('[DONE]');
    expect(late.text).not.toContain('"error"');
  });

  it('cut off by the network is a failure, not an answer', async () => {
    bench.standIn.fail({ error: 'server', as: 'cut', afterTokens: 4 });
    bench.standIn.tokenMs = 20;
    const call = bench.chat({ ...say(9), stream: true }, { stream: true });
    await call.over;
    expect(call.failure).toMatchObject({ code: 'stream_interrupted', blame: 'transport', afterFirstByte: true });
  });

  it.each([true, false])(
    'that ends in good order without a finish reason is no answer (stream: %s)',
    async (stream) => {
      bench.standIn.fail({ error: 'server', as: 'end', afterTokens: 4 });
      const call = bench.chat({ ...say(9), stream }, { stream });
      await call.over;
      expect(call.trailers).toBeNull();
      expect(call.failure).toMatchObject({ code: 'stream_interrupted', afterFirstByte: stream });
    },
  );

  it('comments are no progress: a stream that only says it is processing times out', async () => {
    bench.standIn.latencyMs = 3000;
    const call = bench.chat({ ...say(3), stream: true }, { stream: true, betweenTokensMs: 150 });
    await call.over;
    expect(call.failure).toMatchObject({ code: 'engine_timeout', afterFirstByte: false });
    await bench.until(() => bench.standIn.account.running === 0);
    expect(bench.standIn.ledger.at(-1)?.aborted).toBe(true);
  });

  it('waits for a reader that does not read, and does not count that as silence', async () => {
    bench.standIn.tokenMs = 0;
    const call = bench.chat({ ...say(400), max_tokens: 500, stream: true }, { stream: true, betweenTokensMs: 100 });
    call.window = 3;
    await bench.until(() => call.chunks.length >= 3);
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(call.chunks.length).toBe(3);
    call.open();
    await call.over;
    expect(call.trailers?.usage?.completionTokens).toBe(400);
  });
});

describe('a cancelled call', () => {
  const ended = (permit: string) =>
    bench.sent.find(({ message }) => message.t === 'cloud-ended' && message.permit === permit)?.message;

  it.each([true, false])(
    'closes the connection at once (stream: %s), and says so with what it cost',
    async (stream) => {
      bench.standIn.tokenMs = 50;
      const call = bench.chat({ ...say(100), max_tokens: 200, stream }, { stream });
      await bench.until(() => bench.standIn.ledger.some((entry) => entry.costUsd > 0));
      call.abort.abort();
      const permit = call.head.op === 'chat' ? (call.head.cloud?.permit ?? '') : '';
      await bench.until(() => ended(permit) !== undefined);
      expect(ended(permit)).toMatchObject({ aborted: true });
      expect(ended(permit)).toHaveProperty('costUsd', expect.any(Number));
      await bench.until(() => bench.standIn.account.running === 0, 300);
      expect(bench.standIn.ledger.at(-1)?.aborted).toBe(true);
      expect(call.trailers ?? call.failure).toBeNull();
    },
  );

  it('is read to its end where the upstream goes on', async () => {
    bench.standIn.tokenMs = 10;
    const call = bench.chat(
      { ...say(30), stream: true },
      { stream: true, cloud: bench.cloud('rlm'), model: 'deepseek/deepseek-v4-flash' },
    );
    await bench.until(() => call.chunks.length > 2);
    call.abort.abort();
    const chunks = call.chunks.length;
    const permit = call.head.op === 'chat' ? (call.head.cloud?.permit ?? '') : '';
    await bench.until(() => ended(permit) !== undefined);
    const entry = bench.standIn.ledger.at(-1);
    expect(ended(permit)).toEqual({ t: 'cloud-ended', permit, aborted: false, costUsd: entry?.costUsd });
    expect(entry).toMatchObject({ aborted: false });
    expect(bench.standIn.account.running).toBe(0);
    expect(call.chunks.length).toBe(chunks);
  });

  it('before it was sent costs nothing', async () => {
    const before = bench.standIn.ledger.length;
    const call = bench.chat(say(3), { cloud: bench.cloud('code-assistant', { permit: 'early' }) });
    call.abort.abort();
    await bench.until(() => ended('early') !== undefined);
    await bench.until(() => bench.standIn.account.running === 0);
    expect(bench.standIn.ledger.slice(before).every((entry) => entry.aborted || entry.endMs !== null)).toBe(true);
  });
});

describe('a control plane that fell silent', () => {
  it('has its calls ended at OpenRouter, and nobody else has', async () => {
    await bench.ready('cp2');
    bench.standIn.tokenMs = 20;
    const mine = bench.chat({ ...say(100), max_tokens: 200, stream: true }, { stream: true });
    const other = bench.chat({ ...say(10), max_tokens: 20, stream: true }, { stream: true }, 'cp2');
    await bench.until(() => mine.chunks.length > 2 && other.chunks.length > 2);
    bench.engine.abort('cp1');
    await mine.over;
    // Nothing of OpenRouter in it: the control plane then waits before it counts the permit as free.
    expect(mine.failure).toMatchObject({ blame: 'transport', code: 'stream_interrupted' });
    expect(mine.failure?.cloud).toBeUndefined();
    await other.over;
    expect(other.trailers?.finished).toBe(true);
    expect(bench.standIn.ledger.map(({ aborted }) => aborted)).toEqual([true, false]);
  });
});
