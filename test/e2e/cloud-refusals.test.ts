import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type ErrorName, type Fault, type StandInModel, upstream } from '../engines/openrouter.ts';
import { CloudHouse, TEST_KEY, until } from '../support/cloud.ts';
import { removeTemporaryFolders } from '../support/processes.ts';

const OTHER = 'deepseek/deepseek-v4-flash';
const FREE = 'meta-llama/llama-4-scout:free';
/** The hint that the stand-in gives in most rows, so that no test waits for minutes. */
const HINT_S = 2;

const modelOf = (name: string): StandInModel => ({
  id: `rows/${name}`,
  kind: 'chat',
  contextTokens: 32_768,
  width: 0,
  promptUsd: 2e-7,
  completionUsd: 8e-7,
  upstreams: [upstream('Rows')],
});

/** Each row has a model of its own: what was found about one says nothing about the next. */
describe('what OpenRouter refuses, who rests for it, and until when', () => {
  let house: CloudHouse;
  let count = 0;

  beforeAll(async () => {
    house = await CloudHouse.start({
      standIn: { account: { creditUsd: 30 }, models: Array.from({ length: 40 }, (_, at) => modelOf(`m${at}`)) },
      roles: {
        'code-assistant': { policy: 'cloud' },
        rlm: { policy: 'cloud', cloud: { model: OTHER } },
        reranker: { policy: 'local' },
      },
    });
    await house.ready('rlm', 'cloud');
  });
  afterEach(async () => {
    await until(async () => (await house.budget()).inFlight === 0);
    expect((await house.standIn.books()).running).toBe(0);
  });
  afterAll(async () => {
    await house?.stop();
    removeTemporaryFolders();
  });

  /** Gives the role a model that has never been called, and empties the books. */
  async function freshModel(model = `rows/m${count++}`): Promise<string> {
    await house.standIn.order({ heal: true, forget: true, account: { creditUsd: 30 } });
    await house.role('code-assistant', { cloud: { model } });
    await until(async () => {
      const { providers } = await house.operator.get<{ providers: { model: string; state: string }[] }>(
        'providers?role=code-assistant',
      );
      return providers.some((provider) => provider.model === model && provider.state === 'ready');
    });
    await until(async () => (await house.budget()).state !== 'cooling');
    return model;
  }
  const refuse = (error: ErrorName, model: string, more: Partial<Fault> = {}) =>
    house.standIn.order({ fail: { error, model, ...more } });
  const renewKey = async () => {
    await house.push(TEST_KEY);
    await house.holding(1);
  };

  /** One refused call, what else was sent meanwhile, and when each started again; ms after the refusal. */
  async function refusedOnce(error: ErrorName, model: string, more: Partial<Fault> = {}) {
    const before = await house.budget();
    await refuse(error, model, more);
    const first = house.chat(model);
    await until(async () => (await house.standIn.calls()).some(({ endMs }) => endMs !== null));
    // What is sent before the control plane has heard of the refusal, and has its permit back, proves nothing.
    await until(async () => (await house.budget()).inFlight === 0);
    const second = house.chat(OTHER);
    const statuses = [(await first).status, (await second).status];
    const after = await house.budget();
    expect([before.inFlight, after.inFlight]).toEqual([0, 0]);
    const calls = await house.standIn.calls();
    const refusedAtMs = calls[0]?.endMs ?? Number.NaN;
    const startOf = (wanted: string) =>
      (calls.slice(1).find((call) => call.model === wanted)?.startMs ?? Number.NaN) - refusedAtMs;
    return { before, after, statuses, againMs: startOf(model), otherMs: startOf(OTHER), calls };
  }

  // First: each further cut doubles the pause that is taken without a hint.
  it('account without a hint: base / 2 + U(0, base), base 2 s at the first cut', async () => {
    const model = await freshModel();
    const { before, statuses, after, againMs } = await refusedOnce('account', model);
    expect(statuses).toEqual([200, 200]);
    expect(after.cuts.length).toBe(before.cuts.length + 1);
    expect(againMs).toBeGreaterThanOrEqual(1000);
    expect(againMs).toBeLessThan(3000 + 3000);
  });

  it.each(['account', 'admission-control'] as const)(
    '%s: the account is cut once, nothing of it starts before the cooldown has passed, then both do',
    async (error) => {
      const model = await freshModel();
      const { before, after, statuses, againMs, otherMs } = await refusedOnce(error, model, { retryAfterS: HINT_S });
      expect(statuses).toEqual([200, 200]);
      expect(after.effective).toBe(Math.max(1, Math.floor(Math.min(before.effective, before.ceiling) / 2)));
      expect(after.cuts.length).toBe(before.cuts.length + 1);
      // Retry-After + U(0, min(Retry-After / 4, 5 s)), and what a loaded machine adds.
      for (const startMs of [againMs, otherMs]) {
        expect(startMs).toBeGreaterThanOrEqual(HINT_S * 1000);
        expect(startMs).toBeLessThan(HINT_S * 1250 + 3000);
      }
    },
  );

  it.each(['shared-capacity', 'upstream-pool', 'overloaded', 'unavailable', 'capacity'] as const)(
    '%s: that model or provider rests for as long as is asked, no cut, and others go on at once',
    async (error) => {
      const model = await freshModel();
      const { before, after, statuses, againMs, otherMs } = await refusedOnce(error, model, { retryAfterS: HINT_S });
      expect(statuses).toEqual([200, 200]);
      // It may have climbed meanwhile; it was not cut.
      expect(after.cuts.length).toBe(before.cuts.length);
      expect(after.effective).toBeGreaterThanOrEqual(before.effective);
      // `capacity` has another hint in its body: the header goes before it.
      const restMs = HINT_S * 1000;
      expect(againMs).toBeGreaterThanOrEqual(restMs);
      expect(againMs).toBeLessThan(restMs + 4000);
      expect(otherMs).toBeLessThan(restMs);
    },
  );

  it('bad-gateway: the request fails where there is nobody else, and its upstream rests', async () => {
    const model = await freshModel();
    const { before, after, statuses, otherMs } = await refusedOnce('bad-gateway', model, { retryAfterS: HINT_S });
    expect(statuses).toEqual([502, 200]);
    expect(after.cuts.length).toBe(before.cuts.length);
    expect(otherMs).toBeLessThan(HINT_S * 1000);
    expect((await house.chat(model)).status).toBe(200);
    const [refused, , again] = await house.standIn.calls();
    expect((again?.startMs ?? 0) - (refused?.endMs ?? 0)).toBeGreaterThanOrEqual(HINT_S * 1000);
  });

  it('in-flight 402: paid work waits as long as is asked, and succeeds', async () => {
    const model = await freshModel();
    const { before, after, statuses, againMs, otherMs } = await refusedOnce('in-flight-budget', model, {
      retryAfterS: HINT_S,
    });
    expect(statuses).toEqual([200, 200]);
    expect(after.cuts.length).toBe(before.cuts.length);
    // The balance is the account's: another paid model waits too.
    for (const startMs of [againMs, otherMs]) {
      expect(startMs).toBeGreaterThanOrEqual(HINT_S * 1000);
      expect(startMs).toBeLessThan(HINT_S * 1000 + 4000);
    }
  });

  it('free-daily: free models are closed until the reset, paid ones go on', async () => {
    await freshModel(FREE);
    const dayMs = 86_400_000;
    const midnight = Math.floor(Date.now() / dayMs) * dayMs + dayMs;
    await refuse('free-daily', FREE);
    expect((await house.chat(FREE)).status).toBe(503);
    const refused = await house.chat(FREE);
    expect([refused.status, refused.json.error?.code]).toEqual([503, 'no_provider']);
    expect(refused.text).toContain('free_tier_spent');
    const budget = await house.budget();
    expect(Math.abs((budget.freeTierClosedUntilMs ?? 0) - midnight)).toBeLessThan(2000);
    await house.standIn.order({ forget: true });
    expect((await house.chat(FREE)).status).toBe(503);
    expect((await house.chat(OTHER)).status).toBe(200);
    expect((await house.standIn.calls()).map(({ model }) => model)).toEqual([OTHER]);
    await renewKey();
    expect((await house.chat(FREE)).status).toBe(200);
  });

  it.each(['free-minute', 'free-daily'] as const)(
    '%s: a reset that is reported opens them again, and not before',
    async (error) => {
      await freshModel(FREE);
      const before = await house.budget();
      await refuse(error, FREE, { resetS: HINT_S });
      expect((await house.chat(FREE)).status).toBe(503);
      const closed = await house.budget();
      expect([closed.cuts.length, closed.usable]).toEqual([before.cuts.length, before.usable]);
      expect(closed.freeTierClosedUntilMs).toBeGreaterThan(Date.now());
      expect((await house.chat(OTHER)).status).toBe(200);
      await until(async () => (await house.chat(FREE)).status === 200);
      const [refused, , again] = await house.standIn.calls();
      expect((again?.startMs ?? 0) - (refused?.endMs ?? 0)).toBeGreaterThanOrEqual(HINT_S * 1000 - 20);
      expect((await house.budget()).freeTierClosedUntilMs).toBeNull();
    },
  );

  it.each(['credits', 'key-limit', 'key-limit-403', 'guardrail-budget', 'workspace-budget'] as const)(
    '%s: the cloud is off with the reason, until the operator resumes it',
    async (error) => {
      const model = await freshModel();
      await refuse(error, model);
      expect((await house.chat(model)).status).toBe(503);
      const refused = await house.chat(model);
      expect([refused.status, refused.text.includes('cloud_off')]).toEqual([503, true]);
      await until(async () => (await house.budget()).state === 'off');
      expect((await house.budget()).sentence.sentence).toMatch(/credit|limit|budget/i);
      await house.standIn.order({ forget: true });
      expect((await house.chat(OTHER)).status).toBe(503);
      expect(await house.standIn.calls()).toEqual([]);
      const { events } = await house.operator.get<{ events: { code: string; needsPerson: boolean }[] }>('events');
      expect(events.some(({ code, needsPerson }) => code === 'credit_exhausted' && needsPerson)).toBe(true);
      await house.operator.post('cloud/resume');
      expect((await house.chat(OTHER)).status).toBe(200);
    },
  );

  it('no credit left: paid models are off, also under an override; free ones go on', async () => {
    await freshModel(FREE);
    await house.standIn.order({ account: { creditUsd: 0 } });
    await house.operator.post('cloud/test');
    await until(async () => (await house.budget()).creditUsd === 0);
    await house.operator.patch('budget', { override: 12 });
    expect((await house.chat(OTHER)).status).toBe(503);
    expect((await house.chat(FREE)).status).toBe(200);
    await house.operator.patch('budget', { override: null });
    await house.standIn.order({ account: { creditUsd: 30 } });
    await house.operator.post('cloud/test');
    await until(async () => (await house.budget()).creditUsd === 30);
    expect((await house.chat(OTHER)).status).toBe(200);
  });

  it.each(['unauthorized', 'forbidden'] as const)('%s: the key is marked, and another one lifts it', async (error) => {
    const model = await freshModel();
    await refuse(error, model);
    expect((await house.chat(model)).status).toBe(503);
    await house.standIn.order({ forget: true });
    expect((await house.chat(OTHER)).status).toBe(503);
    expect(await house.standIn.calls()).toEqual([]);
    const { events } = await house.operator.get<{ events: { code: string; needsPerson: boolean }[] }>('events');
    expect(events.some(({ code, needsPerson }) => code === 'cloud_key_refused' && needsPerson)).toBe(true);
    await renewKey();
    expect((await house.chat(OTHER)).status).toBe(200);
  });

  it.each(['moderation', 'bad-request', 'context-length', 'too-large', 'unprocessable'] as const)(
    '%s: the caller hears it, nobody rests',
    async (error) => {
      const model = await freshModel();
      const before = await house.budget();
      await refuse(error, model);
      const { status } = await house.chat(model);
      expect([400, 403, 413, 422]).toContain(status);
      expect((await house.chat(model)).status).toBe(200);
      const after = await house.budget();
      expect([after.cuts.length, after.inFlight]).toEqual([before.cuts.length, 0]);
      expect(await house.standIn.calls()).toHaveLength(2);
    },
  );

  it('an error object in a 200 is read as the refusal it is', async () => {
    const model = await freshModel();
    const { before, after, statuses, againMs } = await refusedOnce('account', model, { as: 'ok' });
    expect(statuses).toEqual([200, 200]);
    expect(after.cuts.length).toBe(before.cuts.length + 1);
    expect(againMs).toBeGreaterThanOrEqual(1000);
    expect(after.inFlight).toBe(0);
  });

  it('an error inside a stream before the first word is tried again; after it the client hears it, and the permit is back', async () => {
    const model = await freshModel();
    await refuse('bad-gateway', model, { as: 'stream', afterTokens: 3 });
    const broken = await house.chat(model, { stream: true });
    expect(broken.status).toBe(200);
    expect(broken.text).toContain('"error"');
    expect(broken.text).not.toContain('[DONE]');
    expect(broken.text).not.toContain('upstream exploded');
    await until(async () => (await house.budget()).inFlight === 0);
    expect((await house.standIn.books()).running).toBe(0);
    const next = await freshModel();
    await refuse('shared-capacity', next, { as: 'stream', afterTokens: 0 });
    const pending = house.chat(next, { stream: true });
    await until(async () => (await house.standIn.calls()).some(({ endMs }) => endMs !== null));
    await until(async () => (await house.budget()).inFlight === 0);
    expect((await house.chat(OTHER)).status).toBe(200);
    expect((await house.standIn.calls()).filter((call) => call.model === next)).toHaveLength(1);
    await house.role('code-assistant', { cloud: { model: OTHER } });
    expect([200, 503]).toContain((await pending).status);
  });
});
