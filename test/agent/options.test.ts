import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseAgentArguments, USAGE, UsageError } from '../../agent/options.ts';
import { engineUrl } from '../../agent/wire/engine-address.ts';

const headless = fileURLToPath(new URL('../../main/headless.ts', import.meta.url));

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

/** Pieces that addresses and slips are made of. */
const pieces = fc.constantFrom(
  'http://',
  'https://',
  'HTTP://',
  'ftp://',
  'gpu',
  '.lan',
  '[::1]',
  '127.0.0.1',
  ':',
  '8080',
  '99999',
  '/',
  'v1',
  'user@',
  '?x',
  '#',
  ' ',
  '%',
  '[',
  '',
);

describe('the one rule for addresses of engines', () => {
  it('is the same for the control plane that starts an agent and for the agent: what passes there starts here', () => {
    const text = fc.oneof(
      fc.array(pieces, { maxLength: 6 }).map((parts) => parts.join('')),
      fc.string(),
    );
    fc.assert(
      fc.property(text, (address) => {
        let taken = true;
        try {
          parseAgentArguments([`--engine=${address}`], {});
        } catch {
          taken = false;
        }
        expect(taken).toBe(engineUrl(address) !== null);
      }),
      { numRuns: 2000 },
    );
  });

  it('is what the control plane itself applies', async () => {
    const run = (...args: string[]) =>
      promisify(execFile)(process.execPath, [headless, ...args, '--help']).then(
        () => 'taken',
        (error: { stderr: string }) => error.stderr.split('\n')[0],
      );
    const refusal = '--engine takes http://HOST:PORT, for instance http://127.0.0.1:9931.';
    expect(await Promise.all(['foo', 'http://host/v1', 'gpu.lan:8080'].map((text) => run(`--engine=${text}`)))).toEqual(
      [refusal, refusal, 'taken'],
    );
  });
});

describe('the help', () => {
  it('names every option that people may give, and not the one for control planes', () => {
    for (const name of ['engine', 'data-dir', 'json', 'version', 'new']) expect(USAGE).toContain(`--${name}`);
    expect(USAGE).not.toContain('--embedded');
    expect(parseAgentArguments(['--version'], {})).toEqual({ command: 'version' });
  });
});

describe('the built-in encoder', () => {
  it('is offered unless the operator says no', () => {
    const offered = (...args: string[]) => {
      const command = parseAgentArguments(args, {});
      return command.command === 'run' && command.encoder;
    };
    expect(offered()).toBe(true);
    expect(offered('--no-detect')).toBe(true);
    expect(offered('--no-encoder')).toBe(false);
  });
});
