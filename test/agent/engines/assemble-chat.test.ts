import { describe, expect, it } from 'vitest';
import { ChatAssembler } from '../../../agent/engines/assemble-chat.ts';

function assemble(...chunks: unknown[]) {
  const assembler = new ChatAssembler();
  for (const chunk of chunks) assembler.add(chunk);
  return assembler.answer();
}
const delta = (delta: object, finish_reason: string | null = null, index = 0) => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  choices: [{ index, delta, finish_reason }],
});

describe('an answer put together from its stream', () => {
  it('joins the text and keeps id, reason and usage', () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2 };
    expect(
      assemble(
        delta({ role: 'assistant', content: null }),
        delta({ content: 'a' }),
        delta({ content: 'b' }),
        delta({}, 'stop'),
        {
          id: 'c1',
          object: 'chat.completion.chunk',
          choices: [],
          usage,
        },
      ),
    ).toEqual({
      id: 'c1',
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: 'ab' }, finish_reason: 'stop' }],
      usage,
    });
  });

  it('joins the arguments of several tool calls, each with its own name', () => {
    const call = (index: number, fn: object, more = {}) => delta({ tool_calls: [{ index, function: fn, ...more }] });
    const answer = assemble(
      delta({ role: 'assistant', content: null }),
      call(0, { name: 'f', arguments: '' }, { id: 'x', type: 'function' }),
      call(0, { arguments: '{"a":' }),
      call(1, { name: 'g', arguments: '{' }, { id: 'y', type: 'function' }),
      call(0, { arguments: '1}' }),
      call(1, { arguments: '}' }),
      delta({}, 'tool_calls'),
    );
    expect(answer?.choices).toEqual([
      {
        index: 0,
        finish_reason: 'tool_calls',
        message: {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'x', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
            { id: 'y', type: 'function', function: { name: 'g', arguments: '{}' } },
          ],
        },
      },
    ]);
  });

  it('keeps reasoning apart, choices in order and log probabilities together', () => {
    const withLogprobs = (token: string) => ({
      choices: [{ index: 0, delta: { content: token }, logprobs: { content: [{ token }] }, finish_reason: null }],
    });
    const answer = assemble(
      delta({ content: 'second' }, 'stop', 1),
      delta({ reasoning_content: 'hm' }),
      delta({ reasoning_content: 'm' }),
      withLogprobs('a'),
      withLogprobs('b'),
      delta({}, 'length'),
    );
    expect(answer?.choices).toEqual([
      {
        index: 0,
        finish_reason: 'length',
        logprobs: { content: [{ token: 'a' }, { token: 'b' }] },
        message: { role: 'assistant', content: 'ab', reasoning_content: 'hmm' },
      },
      { index: 1, finish_reason: 'stop', message: { role: 'assistant', content: 'second' } },
    ]);
  });

  it('makes a text completion of text chunks', () => {
    const chunk = (text: string, finish_reason: string | null) => ({
      object: 'text_completion',
      choices: [{ index: 0, text, logprobs: null, finish_reason }],
    });
    expect(assemble(chunk('a', null), chunk('b', null), chunk('', 'length'))).toEqual({
      object: 'text_completion',
      choices: [{ index: 0, text: 'ab', logprobs: null, finish_reason: 'length' }],
    });
  });

  it('is nothing without a choice', () => {
    expect(assemble({ usage: {} }, 'x', null)).toBeNull();
  });
});
