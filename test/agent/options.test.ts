import { describe, expect, it } from 'vitest';
import { parseAgentArguments, USAGE, UsageError } from '../../agent/options.ts';

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

const sentence = (...args: string[]): string => {
  try {
    parseAgentArguments(args, {});
  } catch (error) {
    if (error instanceof UsageError) return error.message;
  }
  throw new Error('it was taken');
};

describe('a command line that is wrong', () => {
  it.each([
    ['There is no option --nonsense.', ['--nonsense']],
    ['There is no option --nonsense.', ['--json', '--nonsense=secret']],
    ['There is no option -x.', ['-x', 'secret']],
    ['There is an option that the agent does not know.', ['--sk-or-v1-0123456789abcdef']],
    ['--engine needs a value.', ['--engine']],
    ['--engine needs a value.', ['--engine', '--json']],
    ['--json takes no value.', ['--json=secret']],
    ['There is no command dance, or not with these words behind it.', ['dance']],
    ['There is no command code, or not with these words behind it.', ['code', 'secret']],
    ['There is no command controllers, or not with these words behind it.', ['controllers', 'rm']],
    ['There is a command that the agent does not know.', ['sk-or-v1-0123']],
  ])('%s', (said, args) => {
    expect(sentence(...args)).toBe(said);
  });

  it.each([
    'foo',
    'gpu.lan',
    'ftp://host:1',
    'http://',
    'http://user:pw@host:1',
    'http://host:1/v1',
    'http://host?x=1',
    'host:1/v1',
    'host:99999',
    'host:port',
    '::',
    '',
  ])('names no engine by %j', (text) => {
    expect(sentence(`--engine=${text}`)).toBe('--engine takes http://HOST:PORT, for instance http://127.0.0.1:9931.');
  });

  it.each([
    ['http://gpu.lan', 'http://gpu.lan:80'],
    ['HTTPS://gpu.lan:8443/', 'https://gpu.lan:8443'],
    ['gpu.lan:8080', 'http://gpu.lan:8080'],
    ['[::1]:8080', 'http://[::1]:8080'],
    ['http://[::1]:8080', 'http://[::1]:8080'],
  ])('may name one by %s', (text, origin) => {
    expect(parseAgentArguments(['--engine', text], {})).toMatchObject({ engines: [{ origin }] });
  });
});

describe('the help', () => {
  it('names every option that people may give, and not the one for control planes', () => {
    for (const name of ['engine', 'data-dir', 'json', 'version', 'new']) expect(USAGE).toContain(`--${name}`);
    expect(USAGE).not.toContain('--embedded');
    expect(parseAgentArguments(['--version'], {})).toEqual({ command: 'version' });
  });
});
