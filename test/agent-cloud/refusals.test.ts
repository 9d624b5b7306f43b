import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Scope, sourceOf } from '../../main/budget/sources.ts';
import { refusalOf } from '../../main/cloud/outcome.ts';
import { ERROR_ROWS, type ErrorName } from '../engines/openrouter.ts';
import { Bench, KEY } from './driver.ts';

let bench: Bench;
beforeAll(async () => {
  bench = await Bench.start();
  await bench.ready();
});
afterAll(() => bench.stop());

/** Every documented error through real sockets: whom it stops, how the router sees it, how long to wait. */
const EXPECTED: Readonly<Record<ErrorName, readonly [Scope, string, number | null]>> = {
  'free-daily': ['free-models', 'busy', null],
  'free-minute': ['free-models', 'busy', null],
  'shared-capacity': ['model', 'busy', null],
  'admission-control': ['account', 'busy', 10_000],
  'upstream-pool': ['provider', 'busy', 30_000],
  account: ['account', 'busy', null],
  capacity: ['model', 'busy', 12_000],
  'in-flight-budget': ['paid-wait', 'busy', 120_000],
  credits: ['credit', 'busy', null],
  'key-limit': ['credit', 'busy', null],
  'key-limit-403': ['credit', 'busy', null],
  'guardrail-budget': ['credit', 'busy', null],
  'workspace-budget': ['credit', 'busy', null],
  unauthorized: ['key', 'busy', null],
  forbidden: ['key', 'busy', null],
  moderation: ['caller', 'caller', null],
  'guardrail-pattern': ['caller', 'caller', null],
  'bad-request': ['caller', 'caller', null],
  'context-length': ['caller', 'caller', null],
  'not-found': ['provider', 'engine', null],
  timeout: ['none', 'engine', null],
  'too-large': ['caller', 'caller', null],
  unprocessable: ['caller', 'caller', null],
  server: ['none', 'engine', null],
  'bad-gateway': ['provider', 'engine', null],
  unavailable: ['provider', 'busy', 5000],
  'edge-timeout': ['none', 'engine', null],
  overloaded: ['provider', 'busy', null],
};

describe('an error of OpenRouter', () => {
  it.each(Object.entries(EXPECTED))('%s', async (name, [scope, blame, retryAfterMs]) => {
    for (const as of ['status', 'ok'] as const) {
      bench.standIn.fail({ error: name as ErrorName, as });
      const call = bench.chat({ messages: [{ role: 'user', content: 'x' }] });
      await call.over;
      const refusal = call.failure === null ? null : refusalOf(call.failure);
      if (refusal === null) throw new Error('the refusal is lost');
      expect([sourceOf(refusal).scope, call.failure?.blame, refusal.retryAfterMs]).toEqual([
        scope,
        blame,
        retryAfterMs,
      ]);
      expect(call.chunks).toEqual([]);
    }
  });

  it('covers the whole table', () => {
    expect(Object.keys(EXPECTED).sort()).toEqual(Object.keys(ERROR_ROWS).sort());
  });

  it('free limits say when they end', async () => {
    bench.standIn.fail({ error: 'free-daily' });
    const call = bench.chat({ messages: [] });
    await call.over;
    const reset = call.failure?.cloud?.resetAtWallMs ?? 0;
    expect(reset % 86_400_000).toBe(0);
    expect(reset).toBeGreaterThan(Date.now());
  });

  it('no foreign text leaves the agent', async () => {
    const texts: string[] = [];
    for (const name of Object.keys(ERROR_ROWS) as ErrorName[]) {
      bench.standIn.fail({ error: name });
      const call = bench.chat({ messages: [] });
      await call.over;
      texts.push(JSON.stringify(call.failure));
    }
    const said = texts.join('\n') + JSON.stringify(bench.sent);
    for (const foreign of [
      'user_2',
      'exploded',
      'flagged',
      'Provider returned',
      'credits,',
      'Add 10',
      'remedy',
      'sk-or',
      KEY,
      'au7',
    ]) {
      expect(said).not.toContain(foreign);
    }
  });

  it('a 401 marks the key for people, a success clears the mark', async () => {
    bench.standIn.fail({ error: 'unauthorized' });
    await bench.chat({ messages: [] }).over;
    expect(bench.status()?.keyRefused).toBe(true);
    await bench.chat({ messages: [{ role: 'user', content: 'say 1 words' }] }).over;
    expect(bench.engine.status('cp1').keyRefused).toBe(false);
  });

  it('nobody there is a transport failure', async () => {
    const lonely = await Bench.start();
    await lonely.ready();
    await lonely.standIn.stop();
    const call = lonely.chat({ messages: [] });
    await call.over;
    expect(call.failure).toMatchObject({ blame: 'transport', code: 'engine_unreachable', cloud: { status: null } });
    lonely.engine.stop();
  });

  it('what was never sent has cost nothing: nobody there, another pin, another model', async () => {
    const otherPin = bench.chat(
      { messages: [] },
      { cloud: bench.cloud('code-assistant', { pin: 'only=x;quantizations=' }) },
    );
    const otherModel = bench.chat({ messages: [] }, { model: 'author/other' });
    const lonely = await Bench.start();
    await lonely.ready();
    await lonely.standIn.stop();
    const unheard = [lonely.chat({ messages: [] }), lonely.embed(['a'], 'nebius')];
    await Promise.all([otherPin, otherModel, ...unheard].map(({ over }) => over));
    expect(otherPin.failure).toMatchObject({ code: 'fingerprint_changed', cloud: { costUsd: 0 } });
    expect(otherModel.failure).toMatchObject({ code: 'model_missing', cloud: { costUsd: 0 } });
    for (const { failure } of unheard)
      expect(failure).toMatchObject({ code: 'engine_unreachable', cloud: { costUsd: 0 } });
    lonely.engine.stop();
  });
});
