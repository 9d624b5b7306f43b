import { describe, expect, it } from 'vitest';
import { parseEngineAddress, reachOf, within } from '../../../agent/engines/address.ts';
import { EngineCall } from '../../../agent/engines/engine-call.ts';
import { EngineFailure } from '../../../agent/engines/failure.ts';
import { ProbeLoop } from '../../../agent/engines/probe-loop.ts';
import { sumOf } from '../../../agent/engines/prometheus.ts';
import { refused, tooLongOf } from '../../../agent/engines/refusals.ts';
import { Slots } from '../../../agent/engines/slots.ts';
import { SpeedSignals } from '../../../agent/engines/speed.ts';
import { ManualClock } from '../../session/manual-clock.ts';
import { embedCall } from '../recorded-call.ts';

describe('the slots of an engine', () => {
  it('are given out until none is left, and come back once', () => {
    const slots = new Slots();
    slots.resize(2);
    const first = slots.take(1);
    const second = slots.take(4);
    expect(slots.take(1)).toBeNull();
    expect([slots.running, slots.occupied]).toEqual([2, 5]);
    second?.();
    second?.();
    expect([slots.running, slots.occupied]).toEqual([1, 1]);
    expect(slots.take(1)).not.toBeNull();
    first?.();
    expect(slots.running).toBe(1);
  });
});

describe('speed', () => {
  it('is blended: 100, then 200 tokens/s is 100 + 0.3 x 100 = 130', () => {
    const speed = new SpeedSignals();
    expect(speed.of('m')).toEqual({ tokensPerSecond: null, ttftMs: null });
    speed.tokens('m', 100, 1000);
    speed.tokens('m', 200, 1000);
    speed.firstByte('m', 50);
    expect(speed.of('m')).toEqual({ tokensPerSecond: 130, ttftMs: 50 });
    speed.tokens('m', 1, 1000);
    speed.tokens('m', 10, 0);
    expect(speed.of('m').tokensPerSecond).toBe(130);
  });
});

describe('addresses', () => {
  it.each([
    ['127.0.0.1', 'loopback'],
    ['127.8.8.8', 'loopback'],
    ['::1', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['10.1.2.3', 'private'],
    ['172.31.0.1', 'private'],
    ['172.32.0.1', 'public'],
    ['192.168.1.1', 'private'],
    ['100.64.0.1', 'private'],
    ['fe80::1%eth0', 'private'],
    ['fd00::1', 'private'],
    ['::ffff:8.8.8.8', 'public'],
    ['2001:db8::1', 'public'],
    ['0.0.0.0', 'public'],
    ['', 'public'],
  ] as const)('%s is %s', (ip, reach) => {
    expect(reachOf(ip)).toBe(reach);
  });

  it('may be nearer than reported, never further', () => {
    expect(within('loopback', 'private')).toBe(true);
    expect(within('public', 'private')).toBe(false);
  });

  it.each([
    ['http://localhost:8080', '127.0.0.1:8080', 'http://127.0.0.1:8080'],
    ['127.0.0.1:8080', '127.0.0.1:8080', 'http://127.0.0.1:8080'],
    ['https://gpu.lan', 'gpu.lan:443', 'https://gpu.lan:443'],
    ['http://[::1]:9/', '[::1]:9', 'http://[::1]:9'],
  ])('%s is engine %s at %s', (text, id, origin) => {
    expect(parseEngineAddress(text)).toMatchObject({ id, origin });
  });

  it.each(['http://user:pw@host:1', 'http://host:1/v1', 'ftp://host', 'http://host?x=1', '::', '', 'foo'])(
    '%j is refused, unquoted',
    (text) => {
      expect(() => parseEngineAddress(text)).toThrow(/^An engine is given as/);
    },
  );
});

describe("llama.cpp's own words", () => {
  const error = (message: string, more = {}) => ({ error: { code: 500, message, type: 'server_error', ...more } });
  it('are read for limits and counts', () => {
    const batch =
      'input (1030 tokens) is too large to process. increase the physical batch size (current batch size: 512)';
    expect(tooLongOf(error(batch))).toEqual({ limitTokens: 512, tokens: 1030 });
    const context = { type: 'exceed_context_size_error', n_prompt_tokens: 7518, n_ctx: 2048 };
    expect(tooLongOf(error('request exceeds', context))).toEqual({ limitTokens: 2048, tokens: 7518 });
    expect(tooLongOf(error('out of memory'))).toBeNull();
    expect(tooLongOf('input (9 tokens) is too large to process')).toBeNull();
  });

  it('are gauges: absent is null, 0 is 0', () => {
    const metrics =
      '# TYPE llamacpp:requests_deferred gauge\nllamacpp:requests_deferred 0\nllamacpp:requests_processing 2\n';
    expect(sumOf(metrics, 'llamacpp:requests_deferred')).toBe(0);
    expect(sumOf(metrics, 'llamacpp:other')).toBeNull();
  });
});

describe("an engine's own failure", () => {
  const failed = (message: string) => refused(500, { error: { message } }, {}, 'context_too_long', 'llama.cpp').failure;

  it("is the caller's when it begins with words about the request", () => {
    const complaint = failed("Failed to parse tools: Expected 'tools' to be an array, got 5");
    expect(complaint).toMatchObject({ blame: 'caller', code: 'engine_refused', engineStatus: 500 });
    expect(complaint.sentence).not.toContain('tools');
  });

  it.each(['out of memory', 'I failed. Failed to parse tools: 5', ''])('is its own with the words %j', (message) => {
    expect(failed(message)).toMatchObject({ blame: 'engine', code: 'engine_error' });
  });

  it('is its own where another engine has these words', () => {
    const { failure } = refused(500, { error: 'Failed to parse tools: 5' }, {}, 'context_too_long', 'vllm');
    expect(failure.blame).toBe('engine');
  });
});

describe('watching an engine', () => {
  function watch() {
    const clock = new ManualClock();
    const state = { probes: 0, open: 0, most: 0, lost: 0, outcome: 'ok' as 'ok' | 'fail' | 'hang' };
    let release: () => void = () => undefined;
    const loop = new ProbeLoop(
      {
        async probe() {
          state.probes++;
          state.most = Math.max(state.most, ++state.open);
          if (state.outcome === 'hang') await new Promise<void>((resolve) => (release = resolve));
          state.open--;
          if (state.outcome === 'fail') throw new Error('down');
        },
        onUnreachable: () => void state.lost++,
      },
      clock,
    );
    const pass = async (ms: number) => {
      for (let i = 0; i < 5; i++) await Promise.resolve();
      clock.advance(ms);
      for (let i = 0; i < 5; i++) await Promise.resolve();
    };
    return { loop, state, pass, release: () => release() };
  }

  it('looks every two seconds, and never twice at once', async () => {
    const { loop, state, pass, release } = watch();
    loop.start();
    await pass(0);
    for (let i = 0; i < 3; i++) await pass(2000);
    expect(state.probes).toBe(4);
    state.outcome = 'hang';
    await pass(2000);
    for (let i = 0; i < 5; i++) {
      loop.poke();
      await pass(2000);
    }
    expect(state).toMatchObject({ probes: 5, most: 1 });
    state.outcome = 'ok';
    release();
    await pass(0);
    await pass(250);
    expect(state.probes).toBe(6);
  });

  it('gives an engine up at the third failure in a row, within a second, once', async () => {
    const { loop, state, pass } = watch();
    loop.start();
    await pass(0);
    state.outcome = 'fail';
    await pass(2000);
    await pass(250);
    expect(state.lost).toBe(0);
    await pass(250);
    expect(state.lost).toBe(1);
    await pass(2000);
    expect(state.lost).toBe(1);
    state.outcome = 'ok';
    await pass(2000);
    state.outcome = 'fail';
    await pass(2000);
    await pass(250);
    await pass(250);
    expect(state.lost).toBe(2);
  });

  it('stops when told to', async () => {
    const { loop, state, pass } = watch();
    loop.start();
    await pass(0);
    loop.stop();
    await pass(10_000);
    loop.poke();
    await pass(10_000);
    expect(state.probes).toBe(1);
  });
});

describe('a call given up by the agent', () => {
  it('fails once, aborts what serves it, and says when bytes had left', () => {
    const incoming = embedCall({ engine: 'e', model: 'm' }, ['a']);
    const call = new EngineCall(incoming);
    call.respond({ status: 200, contentType: 'x', count: 1, width: 1 });
    call.write(Buffer.of(1));
    call.giveUp(new EngineFailure('engine_unreachable').failure);
    call.fail(new EngineFailure('engine_error').failure);
    call.write(Buffer.of(2));
    expect(call.signal.aborted).toBe(true);
    expect(incoming.failure).toMatchObject({ code: 'stream_interrupted', blame: 'engine', afterFirstByte: true });
    expect(incoming.chunks).toHaveLength(1);
  });

  it('has left its slot before its end is told', () => {
    const order: string[] = [];
    const incoming = embedCall({ engine: 'e', model: 'm' }, ['a']);
    incoming.fail = () => void order.push('told');
    const call = new EngineCall(incoming, () => void order.push('released'));
    call.fail(new EngineFailure('engine_error').failure);
    expect(order).toEqual(['released', 'told']);
  });

  it('is aborted with the call of the control plane', () => {
    const incoming = embedCall({ engine: 'e', model: 'm' }, ['a']);
    const call = new EngineCall(incoming);
    expect(call.signal.aborted).toBe(false);
    incoming.controls.abort();
    expect(call.signal.aborted).toBe(true);
  });
});
