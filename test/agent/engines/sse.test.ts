import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SseScanner } from '../../../agent/engines/sse.ts';

const token = (content: string) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;
const FINISH = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
const USAGE = 'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}\n\n';
const ERROR = 'data: {"error":{"code":500,"message":"secret cause"}}\n\n';
const DONE = 'data: [DONE]\n\n';

/** Feeds the text cut at the given places; what is handed on until the end or the first error. */
function pass(text: string, cuts: readonly number[] = [], keepUsage = false) {
  const scanner = new SseScanner(keepUsage);
  const bytes = Buffer.from(text);
  const places = [...cuts].map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b);
  let out = '';
  let error = false;
  for (const [i, from] of [0, ...places].entries()) {
    const step = scanner.push(bytes.subarray(from, places[i] ?? bytes.length));
    out += Buffer.from(step.bytes).toString('latin1');
    if (step.kind === 'error') {
      error = true;
      break;
    }
  }
  if (!error) {
    const step = scanner.flush();
    out += Buffer.from(step.bytes).toString('latin1');
    error = step.kind === 'error';
  }
  return { out: Buffer.from(out, 'latin1').toString(), error, scanner };
}

describe('an event stream as it passes', () => {
  it('is handed on byte for byte, less the usage chunk that nobody asked for', () => {
    const stream = `: hello\n\n${token('a')}${token('b')}${FINISH}${USAGE}${DONE}`;
    const without = pass(stream);
    expect(without.out).toBe(stream.replace(USAGE, ''));
    expect(without.scanner.usage).toEqual({ promptTokens: 7, completionTokens: 3 });
    expect(without.scanner).toMatchObject({ finished: true, done: true });
    expect(pass(stream, [], true).out).toBe(stream);
  });

  it('keeps usage that comes together with a choice', () => {
    const both =
      'data: {"choices":[{"text":"","finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n';
    expect(pass(both).out).toBe(both);
    expect(pass(both).scanner.usage).toEqual({ promptTokens: 1, completionTokens: 2 });
  });

  it("reads llama.cpp's timings where there is no usage: what was cached counts as prompt", () => {
    const last = FINISH.replace('}]}', '}],"timings":{"cache_n":19,"prompt_n":1,"predicted_n":5}}');
    expect(pass(last).scanner.usage).toEqual({ promptTokens: 20, completionTokens: 5 });
  });

  it.each([
    ['an error event', ERROR],
    [
      'an error inside a choice',
      'data: {"choices":[{"index":0,"delta":{},"error":{"code":429},"finish_reason":null}]}\n\n',
    ],
    ['the finish reason "error"', 'data: {"choices":[{"index":0,"delta":{},"finish_reason": "error"}]}\n\n'],
    ['an error event without data', 'event: error\n\n'],
    ['an event that should tell something and is no JSON', 'data: {"error": oops\n\n'],
    ['an error event behind a comment', ': c\nevent: error\ndata: secret cause\n\n'],
    ['an error event behind its data', 'data: {"message":"secret cause"}\nevent: error\n\n'],
    ['an error event of another name', 'event: server_error\ndata: {"choices":[],"message":"secret cause"}\n\n'],
    ['an event of an unknown kind that is no JSON', 'event: fatal\ndata: secret cause\n\n'],
    ['an error whose key is spelled by numbers', 'data: {"\\u0065rror":{"message":"secret cause"},"choices":[]}\n\n'],
    ['an error behind a byte order mark', '\u{feff}data: {"error":{"message":"secret cause"}}\n\n'],
    ['an error of older vLLM', 'data: {"object":"error","message":"secret cause","choices":[]}\n\n'],
    ['lines that end in CR alone', ': c\revent: error\rdata: secret cause\r\r\n\n'],
    ['a data line cut in two by CR', `data: {"choices":[]}\rdata: secret cause\n\n`],
    ['words instead of an object', 'data: secret cause\n\n'],
  ])('stops before %s and hands on what came before it', (_, event) => {
    const { out, error } = pass(`${token('a')}${event}${token('b')}${DONE}`);
    expect(error).toBe(true);
    expect(out).toBe(token('a'));
  });

  it('hands on no [DONE] without a finish reason', () => {
    const { out, scanner } = pass(`${token('a')}${DONE}`);
    expect(out).toBe(token('a'));
    expect(scanner).toMatchObject({ finished: false, done: true });
  });

  it('lets the word error pass in a text, and a null error in an event', () => {
    const stream = token('an error, "error": {"x"}') + token('x').replace('{"choices"', '{"error":null,"choices"');
    expect(pass(stream)).toMatchObject({ out: stream, error: false });
  });

  it('hands on no object that is not a piece of an answer', () => {
    const { out, error } = pass(`${token('a')}data: {"message":"secret cause"}\n\n${FINISH}${DONE}`);
    expect({ out, error }).toEqual({ out: `${token('a')}${FINISH}${DONE}`, error: false });
  });

  it('sees a finish reason whose key is spelled by numbers', () => {
    const finish = FINISH.replace('finish_reason', 'finish\\u005freason');
    expect(pass(`${token('a')}${finish}`)).toMatchObject({ out: `${token('a')}${finish}`, error: false });
    expect(pass(`${token('a')}${finish}`).scanner.finished).toBe(true);
  });

  it('has finished when each choice that it saw has', () => {
    const second = token('x').replace('"index":0', '"index": 1');
    expect(pass(`${token('a')}${second}${FINISH}`).scanner.finished).toBe(false);
    expect(pass(`${second}${FINISH}`).scanner.finished).toBe(false);
    expect(pass(`${second}${FINISH.replace('"index":0', '"index":1')}`).scanner.finished).toBe(true);
    expect(pass(`${token('a')}${FINISH.replace('"index":0', '"index":1')}`).scanner.finished).toBe(false);
    expect(pass(`${token('a')}${second}${FINISH}${FINISH.replace('"index":0', '"index":1')}`).scanner.finished).toBe(
      true,
    );
  });

  it('ends at [DONE]: nothing behind it is handed on or collected', () => {
    const stream = `${token('a')}${FINISH}${DONE}`;
    expect(pass(`${stream}${token('more')}${ERROR}: words\n\n`)).toMatchObject({ out: stream, error: false });
    const collected: unknown[] = [];
    const scanner = new SseScanner(false, (event) => collected.push(event));
    scanner.push(Buffer.from(`${stream}${token('more')}`));
    expect(collected).toHaveLength(2);
  });

  it('counts no comment as progress', () => {
    const scanner = new SseScanner(false);
    expect(scanner.push(Buffer.from(': still here\n\n'))).toMatchObject({ kind: 'pass', progress: false });
    expect(scanner.push(Buffer.from(token('a')))).toMatchObject({ kind: 'pass', progress: true });
    expect(scanner.push(Buffer.from('data: {"half'))).toMatchObject({ kind: 'pass', progress: false });
  });

  it('understands CR LF, data over several lines and data without a blank', () => {
    const stream = 'data:{"choices":[{"delta":{},\r\ndata: "finish_reason":"stop"}]}\r\n\r\ndata:[DONE]\r\n\r\n';
    expect(pass(stream)).toMatchObject({ out: stream, error: false });
    expect(pass(stream).scanner.finished).toBe(true);
  });

  it('gives up on an event that never ends', () => {
    const scanner = new SseScanner(false);
    const megabyte = Buffer.alloc(1024 * 1024, 'x');
    expect(scanner.push(megabyte)).toMatchObject({ kind: 'pass' });
    expect(scanner.push(Buffer.from('x'))).toMatchObject({ kind: 'error', malformed: true });
  });

  it('hands on the same bytes and learns the same wherever the network cuts them', () => {
    const event = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 12 }).map(token),
      fc.constantFrom(': ping\n\n', USAGE, FINISH, DONE, ERROR, '\n', 'event: x\nid: 1\n\n', 'data: {"x":1}\r\n\r\n'),
    );
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 12 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        fc.boolean(),
        (events, cuts, keep) => {
          const whole = pass(events.join(''), [], keep);
          const parts = pass(events.join(''), cuts, keep);
          expect(parts.out).toBe(whole.out);
          expect(parts.error).toBe(whole.error);
          expect(parts.scanner.finished).toBe(whole.scanner.finished);
          expect(parts.scanner.usage).toEqual(whole.scanner.usage);
        },
      ),
      { numRuns: 1000 },
    );
  });
});
