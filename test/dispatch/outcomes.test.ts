import { describe, expect, it } from 'vitest';
import type { CallFailure } from '../../agent/wire/calls.ts';
import { outcomeOf } from '../../main/dispatch/outcomes.ts';
import { SimClock } from '../gate/sim-clock.ts';
import { chatLog, chatWork, failure, house, provider } from './house.ts';

/** What an agent says of a call for OpenRouter that nobody answered. */
const cloud: NonNullable<CallFailure['cloud']> = {
  status: null,
  limitSource: null,
  fromProvider: false,
  availability: null,
  moderated: false,
  retryAfterMs: null,
  resetAtWallMs: null,
  key: null,
  wrongUpstream: false,
  costUsd: null,
};
const unreachable = failure({ blame: 'transport', code: 'engine_unreachable', engineStatus: null, cloud });

describe('a failed call', () => {
  it('whose session broke silences its machine', () => {
    const lost = failure({ blame: 'transport', code: 'stream_interrupted', engineStatus: null });
    expect(outcomeOf(lost)).toEqual({ kind: 'failed', code: 'agent_lost', silent: 'node' });
  });

  it('for a cloud that its agent could not reach says nothing of the machine: the agent lives to tell it', () => {
    expect(outcomeOf(unreachable)).toEqual({ kind: 'failed', code: 'engine_error', silent: 'engine' });
  });

  it('for a cloud that broke off once, or answered that its upstream is late, is an error and no silence', () => {
    const broke = failure({ blame: 'transport', code: 'stream_interrupted', engineStatus: null, cloud });
    expect(outcomeOf(broke)).toEqual({ kind: 'failed', code: 'stream_interrupted', silent: 'no' });
    const late = failure({ code: 'engine_timeout', engineStatus: 504, cloud: { ...cloud, status: 504 } });
    expect(outcomeOf(late)).toEqual({ kind: 'failed', code: 'engine_timeout', silent: 'no' });
  });
});

it('an engine beside a cloud that cannot be reached goes on with its work', async () => {
  const clock = new SimClock();
  // Both are local here: what counts is that they are of one machine and not of one engine.
  const { dispatch, router, calls } = house([provider('code-assistant', 'a')], clock);
  const { log, sink } = chatLog();
  router.setProviders(
    [provider('code-assistant', 'a'), provider('reranker', 'a', { slotPool: 'a/openrouter' })],
    clock.nowMs(),
  );
  dispatch.rerank(
    { context: { ...chatWork(clock).context, role: 'reranker' }, query: 'q', documents: ['d'] },
    { onAnswer: () => log.push('ranked'), onFailure: (error) => log.push(error.code) },
  );
  calls.shift()?.handlers.onFailure(unreachable);
  await clock.settle();
  dispatch.chat(chatWork(clock), sink);
  expect(calls.map(({ head }) => head.op)).toEqual(['chat']);
});
