import { describe, expect, it } from 'vitest';
import type { SwitchyardError } from '../../main/domain/errors.ts';
import type { SpaceId } from '../../main/domain/ids.ts';
import type { EmbedAnswer, EmbedWork, RerankAnswer } from '../../main/domain/work.ts';
import { replay } from '../../main/router/replay.ts';
import { SimClock } from '../gate/sim-clock.ts';
import {
  chatLog,
  chatWork,
  context,
  FINGERPRINT,
  failure,
  house,
  provider,
  SPACE_ID,
  space,
  trailers,
} from './house.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const chatHead = { status: 200, contentType: 'text/event-stream', count: null, width: null };

describe('a chat', () => {
  it('passes bytes on as they come and is over when the engine has finished', async () => {
    const clock = new SimClock();
    const { dispatch, calls, summaries } = house([provider('code-assistant', 'a')], clock);
    const { log, sink } = chatLog();
    dispatch.chat(chatWork(clock), sink);
    const [call] = calls;
    call?.handlers.onHead(chatHead);
    call?.handlers.onData(bytes('one'));
    call?.handlers.onData(bytes('two'));
    call?.handlers.onEnd(trailers());
    await clock.settle();
    expect(log).toEqual(['head a', 'one', 'two', 'end 3']);
    expect(summaries).toMatchObject([{ outcome: 'success', attempts: 1, node: 'a', route: 'local' }]);
  });

  it('is tried elsewhere when the first provider fails before a byte, and the client sees only the second', async () => {
    const clock = new SimClock();
    const { dispatch, calls, traces } = house(
      [provider('code-assistant', 'a'), provider('code-assistant', 'b')],
      clock,
    );
    const { log, sink } = chatLog();
    dispatch.chat(chatWork(clock), sink);
    calls[0]?.handlers.onHead(chatHead);
    calls[0]?.handlers.onFailure(failure({}));
    await clock.settle();
    expect(calls.map(({ node }) => node)).toEqual(['a', 'b']);
    calls[1]?.handlers.onHead(chatHead);
    calls[1]?.handlers.onData(bytes('answer'));
    calls[1]?.handlers.onEnd(trailers());
    await clock.settle();
    expect(log).toEqual(['head b', 'answer', 'end 3']);
    expect(traces[0]?.attempts.map(({ outcome }) => outcome)).toEqual(['failed', 'success']);
  });

  it('is not tried elsewhere after a byte: the error goes to the client', async () => {
    const clock = new SimClock();
    const { dispatch, calls } = house([provider('code-assistant', 'a'), provider('code-assistant', 'b')], clock);
    const { log, sink } = chatLog();
    dispatch.chat(chatWork(clock), sink);
    calls[0]?.handlers.onHead(chatHead);
    calls[0]?.handlers.onData(bytes('half'));
    calls[0]?.handlers.onFailure(failure({ code: 'stream_interrupted', afterFirstByte: true }));
    await clock.settle();
    expect(calls).toHaveLength(1);
    expect(log).toEqual(['head a', 'half', 'failed stream_interrupted']);
  });

  it('that ended without a finish reason has not succeeded, whatever came before', async () => {
    const clock = new SimClock();
    const { dispatch, calls } = house([provider('code-assistant', 'a')], clock);
    const { log, sink } = chatLog();
    dispatch.chat(chatWork(clock), sink);
    calls[0]?.handlers.onHead(chatHead);
    calls[0]?.handlers.onData(bytes('half'));
    calls[0]?.handlers.onEnd(trailers({ finished: false }));
    await clock.settle();
    expect(log.at(-1)).toBe('failed stream_interrupted');
  });

  it('not streamed is held back whole, so that a death in its middle is mended elsewhere', async () => {
    const clock = new SimClock();
    const { dispatch, calls } = house([provider('code-assistant', 'a'), provider('code-assistant', 'b')], clock);
    const { log, sink } = chatLog();
    dispatch.chat(chatWork(clock, { stream: false }), sink);
    calls[0]?.handlers.onHead(chatHead);
    calls[0]?.handlers.onData(bytes('{"half'));
    calls[0]?.handlers.onFailure(failure({ code: 'stream_interrupted', afterFirstByte: true }));
    await clock.settle();
    expect(log).toEqual([]);
    calls[1]?.handlers.onHead(chatHead);
    calls[1]?.handlers.onData(bytes('{"whole"}'));
    calls[1]?.handlers.onEnd(trailers());
    await clock.settle();
    expect(log).toEqual(['head b', '{"whole"}', 'end 3']);
  });

  it("that is the caller's own fault is not tried elsewhere", async () => {
    const clock = new SimClock();
    const { dispatch, calls } = house([provider('code-assistant', 'a'), provider('code-assistant', 'b')], clock);
    const { log, sink } = chatLog();
    dispatch.chat(chatWork(clock), sink);
    calls[0]?.handlers.onFailure(failure({ blame: 'caller', code: 'engine_refused' }));
    await clock.settle();
    expect(calls).toHaveLength(1);
    expect(log).toEqual(['failed engine_refused']);
  });

  it('whose client leaves aborts its call at once and is heard of no more', async () => {
    const clock = new SimClock();
    const { dispatch, calls, summaries } = house([provider('code-assistant', 'a')], clock);
    const { log, sink } = chatLog();
    const running = dispatch.chat(chatWork(clock), sink);
    running.cancel();
    running.cancel();
    expect(calls[0]?.cancelled).toBe(true);
    calls[0]?.handlers.onData(bytes('late'));
    await clock.settle();
    expect(log).toEqual([]);
    expect(summaries).toMatchObject([{ outcome: 'cancelled', code: 'client_closed' }]);
  });

  it('whose client leaves in its middle says who worked for it, and about how much', async () => {
    const clock = new SimClock();
    const { dispatch, calls, summaries, traces } = house([provider('code-assistant', 'a')], clock);
    const running = dispatch.chat(chatWork(clock), chatLog().sink);
    await clock.settle();
    calls[0]?.handlers.onHead(chatHead);
    calls[0]?.handlers.onData(bytes('data: 1\n\ndata: 2\n\n'));
    calls[0]?.handlers.onData(bytes('data: 3\n\ndata: '));
    expect(running.usage).toEqual({ promptTokens: 10, completionTokens: 3, exact: false, costUsd: null });
    running.cancel();
    await clock.settle();
    expect(summaries).toMatchObject([
      {
        outcome: 'cancelled',
        route: 'local',
        node: 'a',
        usage: { promptTokens: 10, completionTokens: 3, exact: false, costUsd: null },
      },
    ]);
    expect(traces[0]?.attempts).toMatchObject([{ provider: summaries[0]?.provider, outcome: 'ignored' }]);
    expect(traces[0]?.attempts[0]?.endedAtMs).not.toBeNull();
    expect(traces[0]?.attempts[0]?.abortedAtMs).toBe(traces[0]?.attempts[0]?.endedAtMs);
  });

  it('whose client leaves before a word of it names nobody, and shows who was asked', async () => {
    const clock = new SimClock();
    const { dispatch, calls, summaries, traces } = house([provider('code-assistant', 'a')], clock);
    const running = dispatch.chat(chatWork(clock, { stream: false }), chatLog().sink);
    await clock.settle();
    calls[0]?.handlers.onHead(chatHead);
    calls[0]?.handlers.onData(bytes('{"half'));
    running.cancel();
    await clock.settle();
    expect(summaries).toMatchObject([{ outcome: 'cancelled', route: null, provider: null, usage: null }]);
    expect(traces[0]?.attempts).toMatchObject([{ outcome: 'ignored' }]);
  });

  it('whose client leaves frees the slot for the one behind it, which was never sent twice', async () => {
    const clock = new SimClock();
    const { dispatch, calls } = house([provider('code-assistant', 'a')], clock);
    const first = dispatch.chat(chatWork(clock), chatLog().sink);
    const queued = dispatch.chat(chatWork(clock), chatLog().sink);
    const third = chatLog();
    dispatch.chat(chatWork(clock), third.sink);
    await clock.settle();
    expect(calls).toHaveLength(1);
    queued.cancel();
    first.cancel();
    await clock.settle();
    expect(calls).toHaveLength(2);
    calls[1]?.handlers.onHead(chatHead);
    calls[1]?.handlers.onEnd(trailers());
    await clock.settle();
    expect(third.log).toEqual(['head a', 'end 3']);
  });

  it('stops the flow when its client does not read and goes on when it does', async () => {
    const clock = new SimClock();
    const { dispatch, calls } = house([provider('code-assistant', 'a')], clock);
    const { sink } = chatLog();
    const running = dispatch.chat(chatWork(clock), sink);
    calls[0]?.handlers.onHead(chatHead);
    sink.flowing = false;
    expect(calls[0]?.handlers.onData(bytes('x'))).toBe(false);
    running.resume();
    expect(calls[0]?.resumed).toBe(1);
  });

  it('leaves a trace from which the same choice is made again', async () => {
    const clock = new SimClock();
    const { dispatch, calls, traces } = house(
      [provider('code-assistant', 'a', { baseWeight: 0.5 }), provider('code-assistant', 'b', { baseWeight: 2 })],
      clock,
    );
    dispatch.chat(chatWork(clock), chatLog().sink);
    calls[0]?.handlers.onHead(chatHead);
    calls[0]?.handlers.onEnd(trailers());
    await clock.settle();
    const [choice] = traces[0]?.choices ?? [];
    if (!choice) throw new Error('no choice was kept');
    // Through JSON and back, as it would come from the admin API.
    expect(replay(JSON.parse(JSON.stringify(choice))).provider).toBe(choice.picked);
    expect(choice.picked).toContain('~b~');
  });
});

function embedWork(clock: SimClock, parts: Partial<EmbedWork> = {}): EmbedWork {
  return {
    context: context('embedding', clock),
    texts: ['a', 'b'],
    dimensions: null,
    truncate: false,
    space: null,
    ...parts,
  };
}

function embedLog() {
  const answers: EmbedAnswer[] = [];
  const failures: SwitchyardError[] = [];
  return {
    answers,
    failures,
    sink: {
      onAnswer: (answer: EmbedAnswer) => answers.push(answer),
      onFailure: (error: SwitchyardError) => failures.push(error),
    },
  };
}

/** Answers a call with vectors that say which text they are of: [length, code of the first letter]. */
function answerEmbed(call: ReturnType<typeof house>['calls'][number] | undefined) {
  if (!call) throw new Error('no such call');
  const texts = JSON.parse(new TextDecoder().decode(call.body)) as string[];
  const vectors = Float32Array.from(texts.flatMap((text) => [text.length, text.charCodeAt(0)]));
  call.handlers.onHead({ status: 200, contentType: 'application/octet-stream', count: texts.length, width: 2 });
  call.handlers.onData(new Uint8Array(vectors.buffer));
  call.handlers.onEnd(trailers());
}

describe('an embedding request', () => {
  it('is striped, and its vectors are in the order of its inputs whatever the order of the answers', async () => {
    const clock = new SimClock();
    const { dispatch, calls } = house([provider('embedding', 'a'), provider('embedding', 'b')], clock);
    const { answers, sink } = embedLog();
    const texts = ['c', 'bb', 'aaa', 'zzzz', 'yyyyy', 'x', 'ww', 'vvv'];
    dispatch.embed(embedWork(clock, { texts }), sink);
    await clock.settle();
    for (let round = 0; round < 10 && answers.length === 0; round += 1) {
      // The newest first, so that answers come in the wrong order.
      for (const call of calls.splice(0).reverse()) answerEmbed(call);
      await clock.settle();
    }
    expect([...(answers[0]?.vectors ?? [])]).toEqual(texts.flatMap((text) => [text.length, text.charCodeAt(0)]));
    expect(answers[0]).toMatchObject({ width: 2, count: 8, space: SPACE_ID });
  });

  it('throws vectors of another process away and asks again', async () => {
    const clock = new SimClock();
    const { dispatch, calls, state, router } = house([provider('embedding', 'a')], clock);
    const { answers, sink } = embedLog();
    dispatch.embed(embedWork(clock), sink);
    await clock.settle();
    state.admit = false;
    answerEmbed(calls.shift());
    await clock.settle();
    expect(answers).toEqual([]);
    // The gate has checked the new process since.
    state.admit = true;
    router.setProviders(
      [
        provider('embedding', 'a', {
          verifiedAtMs: clock.nowMs() + 1,
          fingerprint: { ...FINGERPRINT, processMark: '2:2' },
        }),
      ],
      clock.nowMs() + 1,
    );
    await clock.advance(2000);
    for (let round = 0; round < 5 && answers.length === 0; round += 1) {
      for (const call of calls.splice(0)) answerEmbed(call);
      await clock.settle();
    }
    expect([...(answers[0]?.vectors ?? [])]).toEqual([1, 97, 1, 98]);
  });

  it('takes its provider again when the gate refused for another reason than its process: no check would ever lift it', async () => {
    const clock = new SimClock();
    const { dispatch, calls, state } = house([provider('embedding', 'a')], clock);
    const { answers, sink } = embedLog();
    dispatch.embed(embedWork(clock, { texts: ['a'] }), sink);
    await clock.settle();
    // As when its space is retired, or its model leaves the role for a moment: nothing is checked anew.
    Object.assign(state, { admit: false, pending: false });
    answerEmbed(calls.shift());
    await clock.settle();
    Object.assign(state, { admit: true });
    answerEmbed(calls.shift());
    await clock.settle();
    expect([...(answers[0]?.vectors ?? [])]).toEqual([1, 97]);
  });

  it('whose agent met another process has it checked, also where the gate has not heard of that yet', async () => {
    const clock = new SimClock();
    const { dispatch, calls, verified } = house([provider('embedding', 'a'), provider('embedding', 'b')], clock);
    const { sink } = embedLog();
    dispatch.embed(embedWork(clock, { texts: ['a', 'b', 'c', 'd'] }), sink);
    await clock.settle();
    const refusal = failure({ blame: 'fingerprint', code: 'fingerprint_changed', engineStatus: null });
    const [first, second] = calls.splice(0);
    first?.handlers.onFailure(refusal);
    await clock.settle();
    expect(verified).toEqual([`embedding~${first?.node}~e~m`]);
    // By now the gate knows: it is being checked, and begins no second time.
    second?.handlers.onFailure(refusal);
    await clock.settle();
    expect(verified).toHaveLength(1);
  });

  it('sends the mark of the process that was checked, so that an agent can refuse before a text is seen', async () => {
    const clock = new SimClock();
    const { dispatch, calls } = house([provider('embedding', 'a')], clock);
    dispatch.embed(embedWork(clock), embedLog().sink);
    await clock.settle();
    expect(calls[0]?.head).toMatchObject({ op: 'embed', processMark: '1:1', width: 2, normalise: true });
  });

  it('never takes a wrong number of bytes for vectors', async () => {
    const clock = new SimClock();
    const { dispatch, calls, admitted } = house([provider('embedding', 'a')], clock);
    const { failures, sink } = embedLog();
    dispatch.embed(embedWork(clock, { texts: ['a'] }), sink);
    for (let round = 0; round < 4; round += 1) {
      await clock.advance(30_000);
      for (const { handlers } of calls.splice(0)) {
        handlers.onHead({ status: 200, contentType: 'application/octet-stream', count: 1, width: 2 });
        handlers.onData(new Uint8Array(4));
        handlers.onEnd(trailers());
      }
    }
    await clock.advance(120_000);
    expect(admitted).toEqual([]);
    expect(failures).toHaveLength(1);
  });

  it.each([
    ['zeros', [0, 0]],
    ['a value that is no number', [1, Number.NaN]],
    ['a value that is not finite', [Number.POSITIVE_INFINITY, 1]],
  ])('never takes a row of %s for a vector, and blames the engine', async (_, row) => {
    const clock = new SimClock();
    const { dispatch, calls, admitted } = house([provider('embedding', 'a')], clock);
    const { failures, sink } = embedLog();
    dispatch.embed(embedWork(clock, { texts: ['a', 'b'] }), sink);
    for (let round = 0; round < 4; round += 1) {
      await clock.advance(30_000);
      for (const { head, handlers } of calls.splice(0)) {
        const count = head.op === 'embed' ? head.count : 0;
        const rows = Float32Array.from([[3, 4], row].slice(2 - count).flat());
        handlers.onHead({ status: 200, contentType: 'application/octet-stream', count, width: 2 });
        handlers.onData(new Uint8Array(rows.buffer));
        handlers.onEnd(trailers());
      }
    }
    await clock.advance(120_000);
    expect(admitted).toEqual([]);
    expect(failures).toMatchObject([{ code: 'engine_invalid_response' }]);
  });

  it('waits for a space that is being founded', async () => {
    const clock = new SimClock();
    const { dispatch, calls, state, tellGate } = house([provider('embedding', 'a')], clock, { state: 'founding' });
    dispatch.embed(embedWork(clock), embedLog().sink);
    await clock.settle();
    expect(calls).toEqual([]);
    state.roleSpace = { state: 'founded', space: space() };
    tellGate();
    await clock.settle();
    expect(calls.length).toBeGreaterThan(0);
  });

  it('without a space is refused with the candidates, and an unknown space is a mismatch', async () => {
    const clock = new SimClock();
    const { dispatch, summaries } = house([], clock, {
      state: 'unfounded',
      candidates: [],
      reason: { code: 'x', sentence: 'Choose one.' },
    });
    const none = embedLog();
    dispatch.embed(embedWork(clock), none.sink);
    const other = embedLog();
    dispatch.embed(embedWork(clock, { space: 'embedding-ffffffff' as SpaceId }), other.sink);
    await clock.settle();
    expect(none.failures[0]).toMatchObject({ code: 'space_unfounded', message: 'Choose one.' });
    expect(other.failures[0]).toMatchObject({ code: 'space_mismatch' });
    expect(summaries.map(({ code }) => code).sort()).toEqual(['space_mismatch', 'space_unfounded']);
  });

  it('whose space is retired while it waits, runs or is counted is a mismatch at once', async () => {
    const clock = new SimClock();
    const { dispatch, calls, summaries, state } = house([provider('embedding', 'a')], clock);
    const logs = [embedLog(), embedLog(), embedLog()] as const;
    dispatch.embed(embedWork(clock), logs[0].sink);
    dispatch.embed(embedWork(clock), logs[1].sink);
    await clock.settle();
    expect(calls).toHaveLength(1);
    dispatch.embed(embedWork(clock), logs[2].sink);
    state.retiredAtMs = 1;
    dispatch.spaceRetired(SPACE_ID);
    await clock.settle();
    expect(calls.map(({ cancelled }) => cancelled)).toEqual([true]);
    for (const { failures } of logs) expect(failures).toMatchObject([{ code: 'space_mismatch' }]);
    expect(summaries.map(({ outcome, code }) => [outcome, code])).toEqual(Array(3).fill(['failed', 'space_mismatch']));
    expect(dispatch.running).toBe(0);
  });

  it('for a model whose vectors were found to belong elsewhere is a mismatch, not a matter of waiting', async () => {
    const clock = new SimClock();
    const { dispatch, calls, state } = house([provider('embedding', 'a')], clock);
    state.verdict = 'dimension-mismatch';
    const { failures, sink } = embedLog();
    dispatch.embed(embedWork(clock, { context: { ...context('embedding', clock), model: 'm' } }), sink);
    await clock.settle();
    expect(failures[0]).toMatchObject({ code: 'space_mismatch' });
    expect(calls).toEqual([]);
  });

  it('whose client leaves aborts every chunk', async () => {
    const clock = new SimClock();
    const { dispatch, calls } = house([provider('embedding', 'a'), provider('embedding', 'b')], clock);
    const running = dispatch.embed(
      embedWork(clock, { texts: Array.from({ length: 64 }, (_, at) => `t${at}`) }),
      embedLog().sink,
    );
    await clock.settle();
    expect(calls.length).toBe(2);
    running.cancel();
    expect(calls.every(({ cancelled }) => cancelled)).toBe(true);
  });
});

describe('a rerank', () => {
  const rerank = async (scores: unknown) => {
    const clock = new SimClock();
    const { dispatch, calls } = house([provider('reranker', 'a')], clock);
    const answers: RerankAnswer[] = [];
    const failures: SwitchyardError[] = [];
    dispatch.rerank(
      { context: context('reranker', clock), query: 'q', documents: ['d1', 'd2'] },
      { onAnswer: (answer) => answers.push(answer), onFailure: (error) => failures.push(error) },
    );
    for (let round = 0; round < 3 && answers.length === 0; round += 1) {
      for (const { handlers } of calls.splice(0)) {
        handlers.onHead({ status: 200, contentType: 'application/json', count: 2, width: null });
        handlers.onData(bytes(JSON.stringify({ scores })));
        handlers.onEnd(trailers());
      }
      await clock.settle();
    }
    return { answers, failures };
  };

  it('passes scores within [0, 1] on', async () => {
    const { answers } = await rerank([0.25, 1]);
    expect(answers[0]?.squashed).toBe(false);
    expect([...(answers[0]?.scores ?? [])]).toEqual([0.25, 1]);
  });

  it('puts raw scores through a sigmoid, keeping their order, and says so', async () => {
    const { answers } = await rerank([0, -2]);
    expect(answers[0]?.squashed).toBe(true);
    expect(answers[0]?.scores[0]).toBe(0.5);
    expect(answers[0]?.scores[1]).toBeCloseTo(1 / (1 + Math.exp(2)), 12);
  });

  it('takes too few scores for no answer', async () => {
    const { answers } = await rerank([0.5]);
    expect(answers).toEqual([]);
  });
});

describe('stopping', () => {
  it('refuses new work and fails what is still there after the grace', async () => {
    const clock = new SimClock();
    const { dispatch, calls } = house([provider('code-assistant', 'a')], clock);
    const running = chatLog();
    dispatch.chat(chatWork(clock), running.sink);
    const stopped = dispatch.stop(1000);
    const late = chatLog();
    dispatch.chat(chatWork(clock), late.sink);
    expect(late.log).toEqual(['failed shutting_down']);
    await clock.advance(1100);
    await stopped;
    expect(running.log).toEqual(['failed shutting_down']);
    expect(calls[0]?.cancelled).toBe(true);
  });
});

describe('right after a start', () => {
  it('work waits until the fleet has answered instead of being refused, and may be cancelled meanwhile', async () => {
    const clock = new SimClock();
    let settle = () => {};
    const settled = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const { dispatch, router, calls } = house([], clock, undefined, settled);
    const [waits, leaves] = [chatLog(), chatLog()];
    dispatch.chat(chatWork(clock), waits.sink);
    dispatch.chat(chatWork(clock), leaves.sink).cancel();
    await clock.settle();
    expect(waits.log).toEqual([]);
    router.setProviders([provider('code-assistant', 'a')], clock.nowMs());
    settle();
    await clock.settle();
    expect(calls).toHaveLength(1);
    expect(leaves.log).toEqual([]);
  });
});
