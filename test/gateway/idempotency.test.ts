import { afterEach, describe, expect, it } from 'vitest';
import { SwitchyardError } from '../../main/domain/errors.ts';
import { MemoryIdempotencyStore } from '../../main/gateway/idempotency-memory.ts';
import type { Admission, IdempotencyStore } from '../../main/gateway/ports.ts';
import {
  answerChat,
  authorised,
  COMPLETION,
  codeOf,
  type Harness,
  KEY,
  LOCAL_ROUTE,
  post,
  sha256,
  startGateway,
  stopAll,
} from './harness.ts';
import { ManualClock } from './manual-clock.ts';

afterEach(stopAll);

const PATH = '/v1/chat/completions';
const CHAT = { model: 'code-assistant', messages: [{ role: 'user', content: 'hi' }] };
const ONCE = { 'idempotency-key': 'order-1' };
const calls = (harness: Harness): number => harness.dispatcher.chats.length;

describe('the same body again', () => {
  it('runs when its first client left while the store was still asked, instead of being told that it runs', async () => {
    const store = new MemoryIdempotencyStore(new ManualClock());
    let letGo = () => {};
    const slow = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    let claims = 0;
    const claim: IdempotencyStore['claim'] = async (scope, digest) => {
      claims += 1;
      const claimed = await store.claim(scope, digest);
      // The store has written it down; its answer is on the way.
      if (claims === 1) await slow;
      return claimed;
    };
    let admitted = 0;
    const admit = (): Admission => {
      admitted += 1;
      return { admitted: true, rate: { requests: null, tokens: null } };
    };
    const limits = { admit, settle: () => undefined };
    const harness = await startGateway({ ports: { limits, idempotency: { ...bound(store), claim } } });
    harness.dispatcher.onChat = answerChat;
    const leaving = new AbortController();
    const first = fetch(`${harness.url}${PATH}`, {
      method: 'POST',
      headers: { ...authorised, ...ONCE },
      body: JSON.stringify(CHAT),
      signal: leaving.signal,
    }).catch(() => null);
    await expect.poll(() => claims).toBe(1);
    leaving.abort();
    await first;
    await expect.poll(() => harness.exchanges.length).toBe(1);
    const second = post(harness, PATH, CHAT, ONCE);
    await expect.poll(() => admitted).toBe(2);
    letGo();
    expect((await second).status).toBe(200);
    expect(calls(harness)).toBe(1);
  });

  it('gets the stored answer, streams byte for byte, and nothing runs twice', async () => {
    const harness = await startGateway();
    harness.dispatcher.onChat = answerChat;
    for (const stream of [false, true]) {
      const headers = { 'idempotency-key': `order-${stream}` };
      const first = await post(harness, PATH, { ...CHAT, stream }, headers);
      const text = await first.text();
      const second = await post(harness, PATH, { ...CHAT, stream }, headers);
      expect(await second.text()).toBe(text);
      expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
      expect(second.headers.get('content-type')).toBe(first.headers.get('content-type'));
      expect(second.headers.get('x-switchyard-provider')).toBe(first.headers.get('x-switchyard-provider'));
      expect(second.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
    }
    expect(calls(harness)).toBe(2);
  });

  it('joins the one in flight, which survives its first client', async () => {
    let admitted = 0;
    const admit = (): Admission => {
      admitted += 1;
      return { admitted: true, rate: { requests: null, tokens: null } };
    };
    const harness = await startGateway({ ports: { limits: { admit, settle: () => undefined } } });
    const leaving = new AbortController();
    const body = JSON.stringify(CHAT);
    const first = fetch(`${harness.url}${PATH}`, {
      method: 'POST',
      headers: { ...authorised, ...ONCE },
      body,
      signal: leaving.signal,
    }).catch(() => null);
    await expect.poll(() => calls(harness)).toBe(1);
    const second = post(harness, PATH, body, ONCE);
    const third = post(harness, PATH, body, ONCE);
    // All three are admitted; a fourth that comes after them and is answered has let their small bodies in first.
    await expect.poll(() => admitted).toBe(3);
    await expect.poll(async () => (await post(harness, PATH, { ...CHAT, x: 1 }, ONCE)).status).toBe(422);
    leaving.abort();
    await first;
    await expect.poll(() => harness.exchanges.some((exchange) => exchange.status === 499)).toBe(true);
    expect(harness.dispatcher.chats[0]?.cancelled).toBe(0);
    for (const handed of harness.dispatcher.chats) answerChat(handed);
    expect(await (await second).text()).toBe(COMPLETION);
    expect(await (await third).text()).toBe(COMPLETION);
    expect(calls(harness)).toBe(1);
  });

  it('runs again after everybody left: the call was aborted and forgotten', async () => {
    const harness = await startGateway();
    const leaving = new AbortController();
    const pending = fetch(`${harness.url}${PATH}`, {
      method: 'POST',
      headers: { ...authorised, ...ONCE },
      body: JSON.stringify(CHAT),
      signal: leaving.signal,
    }).catch(() => null);
    await expect.poll(() => calls(harness)).toBe(1);
    leaving.abort();
    await expect.poll(() => harness.dispatcher.chats[0]?.cancelled).toBe(1);
    await pending;
    harness.dispatcher.onChat = answerChat;
    expect(await (await post(harness, PATH, CHAT, ONCE)).text()).toBe(COMPLETION);
    expect(calls(harness)).toBe(2);
  });
});

describe('what is kept', () => {
  it("the caller's own 4xx, but no failure of ours and no refusal that time lifts", async () => {
    const harness = await startGateway();
    for (const [code, runs] of [
      ['context_too_long', 1],
      ['engine_error', 2],
      ['queue_full', 2],
    ] as const) {
      const before = calls(harness);
      harness.dispatcher.onChat = ({ sink }) => sink.onFailure(new SwitchyardError(code));
      for (let count = 0; count < 2; count += 1) {
        const response = await post(harness, PATH, CHAT, { 'idempotency-key': code });
        expect(await codeOf(response)).toBe(code);
      }
      expect(calls(harness) - before).toBe(runs);
    }
  });

  it('no broken stream, and nothing over 8 MiB', async () => {
    const harness = await startGateway();
    harness.dispatcher.onChat = ({ sink }) => {
      sink.onHead(LOCAL_ROUTE, { status: 200, contentType: 'application/json' });
      for (let count = 0; count < 9; count += 1) sink.onData(Buffer.alloc(1024 * 1024, 0x20));
      sink.onEnd(null);
    };
    for (let count = 0; count < 2; count += 1) {
      expect((await (await post(harness, PATH, CHAT, ONCE)).arrayBuffer()).byteLength).toBe(9 * 1024 * 1024);
    }
    expect(calls(harness)).toBe(2);
  });

  it('for a day, in memory', async () => {
    const clock = new ManualClock();
    const store = new MemoryIdempotencyStore(clock);
    const scope = { project: KEY.project, route: PATH, key: 'k' };
    const answer = { status: 200, headers: [], body: Buffer.from('x') };
    expect(await store.claim(scope, 'a')).toEqual({ state: 'claimed' });
    expect(await store.claim(scope, 'a')).toEqual({ state: 'running' });
    await store.complete(scope, answer);
    clock.advance(24 * 3_600_000 - 1);
    expect(await store.claim(scope, 'a')).toEqual({ state: 'stored', answer });
    expect(await store.claim(scope, 'b')).toEqual({ state: 'other-body' });
    clock.advance(1);
    expect(await store.claim(scope, 'b')).toEqual({ state: 'claimed' });
  });
});

describe('what is refused', () => {
  it('another body under the same key is 422, stored or in flight', async () => {
    const harness = await startGateway();
    harness.dispatcher.onChat = answerChat;
    await (await post(harness, PATH, CHAT, ONCE)).text();
    const other = await post(harness, PATH, { ...CHAT, stream: true }, ONCE);
    expect([other.status, await codeOf(other)]).toEqual([422, 'idempotency_mismatch']);
    expect(calls(harness)).toBe(1);
  });

  it('the key of another project and of another route is another key', async () => {
    const harness = await startGateway();
    harness.keys.set(sha256('other'), { ...KEY, id: 'key-2', project: 'project-2' as never });
    harness.dispatcher.onChat = answerChat;
    await (await post(harness, PATH, CHAT, ONCE)).text();
    await (await post(harness, PATH, CHAT, { ...ONCE, authorization: 'Bearer other' })).text();
    await (await post(harness, '/v1/completions', { ...CHAT, prompt: 'a' }, ONCE)).text();
    expect(calls(harness)).toBe(3);
  });

  it('nothing runs when the store cannot say; without the header it does', async () => {
    const broken: IdempotencyStore = {
      claim: () => Promise.reject(new Error('disk')),
      complete: () => Promise.reject(new Error('disk')),
      forget: () => Promise.reject(new Error('disk')),
    };
    const harness = await startGateway({ ports: { idempotency: broken } });
    harness.dispatcher.onChat = answerChat;
    const refused = await post(harness, PATH, CHAT, ONCE);
    expect([refused.status, await codeOf(refused)]).toEqual([503, 'idempotency_unavailable']);
    expect(calls(harness)).toBe(0);
    expect((await post(harness, PATH, CHAT)).status).toBe(200);
  });

  it('a claim that another process holds is 409, a key that is none 400', async () => {
    const store = new MemoryIdempotencyStore(new ManualClock());
    const harness = await startGateway({
      ports: { idempotency: { ...bound(store), claim: async () => ({ state: 'running' }) } },
    });
    const running = await post(harness, PATH, CHAT, ONCE);
    expect([running.status, await codeOf(running)]).toEqual([409, 'idempotency_running']);
    for (const key of ['', 'a b', 'a'.repeat(256)]) {
      expect((await post(harness, PATH, CHAT, { 'idempotency-key': key })).status).toBe(400);
    }
    expect(calls(harness)).toBe(0);
  });
});

function bound(store: MemoryIdempotencyStore): IdempotencyStore {
  return {
    claim: (scope, digest) => store.claim(scope, digest),
    complete: (scope, answer) => store.complete(scope, answer),
    forget: (scope) => store.forget(scope),
  };
}
