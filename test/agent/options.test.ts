import { describe, expect, it } from 'vitest';
import { parseAgentArguments } from '../../agent/options.ts';

const aliases = (...texts: string[]) => {
  const command = parseAgentArguments(
    texts.flatMap((text) => ['--alias', text]),
    {},
  );
  return command.command === 'run' ? [...command.aliases] : null;
};

describe('names that the operator gives', () => {
  it('are divided at the first equals sign and gathered by model', () => {
    expect(aliases('qwen3:8b=Qwen/Qwen3-8B', 'fast = Qwen/Qwen3-8B', 'odd=a=b')).toEqual([
      ['Qwen/Qwen3-8B', ['qwen3:8b', 'fast']],
      ['a=b', ['odd']],
    ]);
    expect(aliases()).toEqual([]);
  });

  it.each(['qwen', '=model', 'name=', `name=${'x'.repeat(513)}`])('%s is refused, unquoted', (text) => {
    expect(() => aliases(text)).toThrow(/^--alias takes NAME=MODEL/);
  });
});
