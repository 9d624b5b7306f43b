import { describe, expect, it } from 'vitest';
import type { NodeId } from '../../main/domain/ids.ts';
import { SimClock } from '../gate/sim-clock.ts';
import { chatLog, chatWork, house, provider, trailers } from './house.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const head = { status: 200, contentType: 'text/event-stream', count: null, width: null };
const silent = 'a' as NodeId;

describe('a machine that fell silent', () => {
  const two = () => {
    const clock = new SimClock();
    return { clock, ...house([provider('code-assistant', 'a'), provider('code-assistant', 'b')], clock) };
  };

  it('loses a chat that it has not begun to answer; whatever it still says of it is not heard', async () => {
    const { clock, dispatch, calls } = two();
    const { log, sink } = chatLog();
    dispatch.chat(chatWork(clock), sink);
    calls[0]?.handlers.onHead(head);
    dispatch.nodeSilent(silent);
    await clock.settle();
    expect(calls.map(({ node, cancelled }) => [node, cancelled])).toEqual([
      ['a', true],
      ['b', false],
    ]);
    calls[0]?.handlers.onData(bytes('too late'));
    calls[1]?.handlers.onHead(head);
    calls[1]?.handlers.onData(bytes('answer'));
    calls[1]?.handlers.onEnd(trailers());
    await clock.settle();
    expect(log).toEqual(['head b', 'answer', 'end 3']);
  });

  it('keeps a stream that it has begun, for its session may come back', async () => {
    const { clock, dispatch, calls } = two();
    const { log, sink } = chatLog();
    dispatch.chat(chatWork(clock), sink);
    calls[0]?.handlers.onHead(head);
    calls[0]?.handlers.onData(bytes('one'));
    dispatch.nodeSilent(silent);
    await clock.settle();
    expect(calls).toHaveLength(1);
    calls[0]?.handlers.onData(bytes('two'));
    calls[0]?.handlers.onEnd(trailers());
    await clock.settle();
    expect(log).toEqual(['head a', 'one', 'two', 'end 3']);
  });

  it('is not touched while another works, and the other loses nothing', async () => {
    const { clock, dispatch, calls } = two();
    dispatch.chat(chatWork(clock), chatLog().sink);
    dispatch.nodeSilent('b' as NodeId);
    await clock.settle();
    expect(calls.map(({ node, cancelled }) => [node, cancelled])).toEqual([['a', false]]);
  });
});
